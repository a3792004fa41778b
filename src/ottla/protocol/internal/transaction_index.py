"""transaction_index."""

from __future__ import annotations

from ottla.protocol.schema import Message, int64


class AbortedTxn(Message, versions="0"):
    """AbortedTxn."""

    producer_id: int = int64()
    first_offset: int = int64()
    last_offset: int = int64()
    last_stable_offset: int = int64()
