"""AddOffsetsToTxn (API key 25)."""

from __future__ import annotations

from ottla.protocol.schema import Message, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message, key=25, versions="0-4", flexible="3+"):
    """AddOffsetsToTxnRequest."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(Message, key=25, versions="0-4", flexible="3+"):
    """AddOffsetsToTxnResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
