"""InitProducerId: get a producer id, or fence earlier users of a transactional id (API key 22)."""

from __future__ import annotations

from ottla.protocol.schema import Message, boolean, int16, int32, int64, string


class InitProducerIdRequest(Message, key=22, versions="0-6", flexible="2+"):
    """An idempotent or transactional producer introduces itself.

    Version 3 lets it bring its id to have the epoch raised (KIP-360); 4 tells fenced producers apart; 6 takes part in
    two-phase commits (KIP-939) and is not announced.
    """

    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = boolean("6+")
    keep_prepared_txn: bool = boolean("6+")


class InitProducerIdResponse(Message, key=22, versions="0-6", flexible="2+"):
    """The producer's id and epoch. Version 6 adds those of a transaction that is still prepared."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)
