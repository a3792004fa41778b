"""Batches that come with their offsets: what a follower fetched, what a Raft leader assigned.

Nothing is changed and records are not looked at, only that the batches are whole and follow the log. A leader's own
batches are `validation`'s.
"""

from __future__ import annotations

from ottla.errors import CorruptMessage, InvalidRecord
from ottla.model import NO_LEADER_EPOCH, AppendOrigin
from ottla.records.batch import RecordBatch
from ottla.records.control import marker_of
from ottla.records.legacy import LegacyBatch, split_any


def check_placed(
    records: bytes | bytearray | memoryview, *, origin: AppendOrigin, leader_epoch: int, log_end_offset: int
) -> list[RecordBatch | LegacyBatch]:
    """Return the batches of `records` that may be appended at `log_end_offset`; offsets may have gaps.

    A torn end is left out. So is, for a follower (REPLICATION), all from the first batch of a later epoch than its own
    `leader_epoch`: it was fetched from a leader that the follower has not heard of. A Raft leader's batches all have
    its epoch. Raises `CorruptMessage` and `InvalidRecord`.
    """
    batches: list[RecordBatch | LegacyBatch] = []
    for batch in split_any(records):
        epoch = batch.partition_leader_epoch if isinstance(batch, RecordBatch) else NO_LEADER_EPOCH
        if origin == AppendOrigin.RAFT_LEADER and epoch != leader_epoch:
            raise InvalidRecord(f"the leader of epoch {leader_epoch} has a batch of epoch {epoch}")
        if epoch > leader_epoch:
            break
        if not batch.is_crc_valid():
            raise CorruptMessage(f"the batch that ends at offset {batch.last_offset} fails its checksum")
        batches.append(batch)
    _check_order(batches, log_end_offset)
    for batch in batches:
        if isinstance(batch, RecordBatch):
            if batch.partition_leader_epoch < 0:
                raise InvalidRecord(f"a batch in a log cannot have leader epoch {batch.partition_leader_epoch}")
            marker_of(batch)
    return batches


def _check_order(batches: list[RecordBatch | LegacyBatch], log_end_offset: int) -> None:
    """Last offsets rise, and the first batch begins where the log ends or later."""
    last_offset = -1
    for batch in batches:
        if batch.last_offset <= last_offset:
            raise InvalidRecord(f"a batch that ends at offset {batch.last_offset} follows one at {last_offset}")
        last_offset = batch.last_offset
    if batches:
        first = batches[0]
        first_offset = first.base_offset if isinstance(first, RecordBatch) else first.last_offset
        if first_offset < log_end_offset:
            raise InvalidRecord(f"a batch at offset {first_offset} comes to a log that ends at {log_end_offset}")
