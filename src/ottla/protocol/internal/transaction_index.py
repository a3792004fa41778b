"""Entries of the `.txnindex` files of a partition: its aborted transactions."""

from __future__ import annotations

from ottla.protocol.schema import Message, int64


class AbortedTxn(Message, versions="0"):
    """One aborted transaction. Every entry has its version in front and is 34 bytes long."""

    producer_id: int = int64()
    first_offset: int = int64()
    last_offset: int = int64()
    last_stable_offset: int = int64()
