"""The building block of compaction: batches in, the batches of what is to stay out.

What stays is decided by whoever compacts; this keeps the rest of a batch true to itself. A batch keeps its base and
last offset, its producer fields and its codec, so that nobody who follows offsets or sequences stumbles. A batch that
holds tombstones, or the marker of a transaction without data, gets at its first pass the time after which those may
go, its delete horizon (KIP-534), in place of its base timestamp.

Batches of which everything stays are passed on byte for byte. Messages of magic 0 and 1 of which something goes become
v2 batches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from ottla.model import NO_OFFSET, NO_TIMESTAMP_MS, TimestampType
from ottla.records.batch import (
    CONTROL_BIT,
    HEADER_BYTES,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    RecordBatch,
)
from ottla.records.builder import BatchBuilder, assemble
from ottla.records.legacy import LegacyBatch, split_any
from ottla.records.outline import outline_batch, pick_records
from ottla.records.record import Record


class BatchRetention(Enum):
    """What becomes of a batch."""

    DELETE = 1
    """It goes, and its records are not looked at."""
    RETAIN_EMPTY = 2
    """Its header stays even without records: it holds a producer's last sequence."""
    DELETE_EMPTY = 3
    """It goes when no record stays."""


class RetentionFilter(Protocol):
    """Decides what stays."""

    def check_batch(self, batch: RecordBatch | LegacyBatch) -> tuple[BatchRetention, bool]:
        """Return what becomes of a batch, and whether it is the marker of a transaction that has no data left."""

    def should_retain(self, batch: RecordBatch | LegacyBatch, record: Record) -> bool:
        """Say whether a record stays; of v2 batches it gets outlines, without values and headers (`outline`)."""


@dataclass(slots=True)
class FilterResult:
    """What stayed, and what was counted on the way. Sizes in bytes; -1 where nothing stayed."""

    output: list[bytes] = field(default_factory=list)
    records_read: int = 0
    bytes_read: int = 0
    records_retained: int = 0
    bytes_retained: int = 0
    max_offset: int = NO_OFFSET
    max_timestamp_ms: int = NO_TIMESTAMP_MS
    last_offset_of_max_timestamp: int = NO_OFFSET
    """Last offset of the first batch that has the largest timestamp, as a time index enters it."""

    def keep(self, data: bytes, records: int, *, max_offset: int, max_timestamp_ms: int, last_offset: int) -> None:
        """Enter one batch that stays."""
        self.output.append(data)
        self.records_retained += records
        self.bytes_retained += len(data)
        self.max_offset = max(self.max_offset, max_offset)
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms
            self.last_offset_of_max_timestamp = last_offset


def filter_batches(data: bytes, retention: RetentionFilter, *, now_ms: int, delete_retention_ms: int) -> FilterResult:
    """Keep of the batches in `data` what `retention` keeps; a torn batch at the end is left out.

    Tombstones that stay may go `delete_retention_ms` after `now_ms`. Raises `CorruptMessage`, `InvalidRecord`.
    """
    result = FilterResult()
    horizon_ms = min(now_ms + delete_retention_ms, (1 << 63) - 1)
    position = 0
    for batch in split_any(data):
        fate, is_marker_of_nothing = retention.check_batch(batch)
        size_bytes = int(batch.size_in_bytes)
        result.bytes_read += size_bytes
        position += size_bytes
        if fate == BatchRetention.DELETE:
            continue
        records = outlines(batch, data, position - size_bytes)
        retained = [index for index, record in enumerate(records) if retention.should_retain(batch, record)]
        result.records_read += len(records)
        if len(retained) == len(records) and records and not _needs_horizon(batch, records, is_marker_of_nothing):
            _keep_whole(batch, len(records), result)
        elif retained:
            kept = pick(batch, retained)
            _keep_records(batch, kept, result, is_marker_of_nothing, horizon_ms)
        elif fate == BatchRetention.RETAIN_EMPTY and isinstance(batch, RecordBatch):
            _keep_header(batch, result)
    return result


def pick(batch: RecordBatch | LegacyBatch, indexes: list[int]) -> list[Record]:
    """Return some of a batch's records, whole, in their order."""
    if isinstance(batch, RecordBatch):
        return pick_records(batch, indexes)
    records = list(batch.records())
    return [records[index] for index in indexes]


def outlines(batch: RecordBatch | LegacyBatch, data: bytes, position: int) -> list[Record]:
    """Return a batch's records; of a v2 batch, which stands in `data` at a position, outlines."""
    return outline_batch(batch, data, position) if isinstance(batch, RecordBatch) else list(batch.records())


def _needs_horizon(batch: RecordBatch | LegacyBatch, retained: list[Record], is_marker_of_nothing: bool) -> bool:
    """Say whether a batch is to get its delete horizon now."""
    if not isinstance(batch, RecordBatch) or batch.has_delete_horizon:
        return False
    return is_marker_of_nothing or any(record.value is None for record in retained)


def _keep_whole(batch: RecordBatch | LegacyBatch, count: int, result: FilterResult) -> None:
    result.keep(
        bytes(batch.buffer),
        count,
        max_offset=batch.last_offset,
        max_timestamp_ms=batch.max_timestamp,
        last_offset=batch.last_offset,
    )


def _keep_records(
    batch: RecordBatch | LegacyBatch,
    retained: list[Record],
    result: FilterResult,
    is_marker_of_nothing: bool,
    horizon_ms: int,
) -> None:
    """Keep some records of a batch, or all with a horizon that they get."""
    needs_horizon = _needs_horizon(batch, retained, is_marker_of_nothing)
    data = _rebuild(batch, retained, horizon_ms if needs_horizon else None)
    rebuilt = RecordBatch(data)
    result.keep(
        data,
        len(retained),
        max_offset=int(retained[-1].offset),
        max_timestamp_ms=rebuilt.max_timestamp,
        last_offset=batch.last_offset,
    )


def _rebuild(batch: RecordBatch | LegacyBatch, retained: list[Record], horizon_ms: int | None) -> bytes:
    base_offset = batch.base_offset if isinstance(batch, RecordBatch) else int(retained[0].offset)
    builder = BatchBuilder(codec=batch.codec, base_offset=base_offset)
    if isinstance(batch, RecordBatch):
        builder.leader_epoch = batch.partition_leader_epoch
        builder.producer_id = batch.producer_id
        builder.producer_epoch = batch.producer_epoch
        builder.base_sequence = batch.base_sequence
        builder.is_transactional = batch.is_transactional
        builder.is_control = batch.is_control
        if horizon_ms is None:
            horizon_ms = batch.delete_horizon_ms
    if horizon_ms is not None:
        builder.set_delete_horizon(horizon_ms)
    for record in retained:
        builder.append_at(record.offset - base_offset, record.timestamp, record.key, record.value, record.headers)
    builder.extend_to(batch.last_offset - base_offset)
    if batch.timestamp_type == TimestampType.LOG_APPEND_TIME:
        builder.set_append_time(batch.max_timestamp)
    return builder.build()


def _keep_header(batch: RecordBatch, result: FilterResult) -> None:
    """Leave a batch without records, which still says where its producer's sequence was."""
    header = assemble(
        b"",
        base_offset=batch.base_offset,
        leader_epoch=batch.partition_leader_epoch,
        attributes=batch.attributes & (TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT),
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=NO_TIMESTAMP_MS,
        max_timestamp=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        count=0,
    )
    assert len(header) == HEADER_BYTES
    result.keep(
        header,
        0,
        max_offset=batch.last_offset,
        max_timestamp_ms=batch.max_timestamp,
        last_offset=batch.last_offset,
    )
