"""EndTxn: commit or abort a transaction (API key 26)."""

from __future__ import annotations

from ottla.protocol.schema import Message, boolean, int16, int32, int64, string


class EndTxnRequest(Message, key=26, versions="0-5", flexible="3+"):
    """How the transaction ends. Version 5 asks for a raised epoch with each end (KIP-890)."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


class EndTxnResponse(Message, key=26, versions="0-5", flexible="3+"):
    """Whether the end was decided. Version 5 adds the producer's id and epoch for its next transaction."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
