"""ListTransactions: transactional ids that a broker coordinates (KIP-664; API key 66)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int16, int32, int64, string


class ListTransactionsRequest(Message, key=66, versions="0-2", flexible="0+"):
    """Filters by state and producer. Version 1 adds one by duration (KIP-994); 2 a pattern of ids (KIP-1152)."""

    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable="2+", default=None)


class TransactionState(Struct):
    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


class ListTransactionsResponse(Message, key=66, versions="0-2", flexible="0+"):
    """Ids with producer and state, and the states in the filter that do not exist."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[TransactionState] = array(TransactionState)
