"""AddOffsetsToTxn: say that a transaction will commit a group's offsets (API key 25)."""

from __future__ import annotations

from ottla.protocol.schema import Message, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message, key=25, versions="0-4", flexible="3+"):
    """The group whose offsets partition joins the transaction. Version 2 stands for the error of fenced producers, 4
    for that of transactions that can only be aborted (KIP-890).
    """

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(Message, key=25, versions="0-4", flexible="3+"):
    """Whether it did."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
