"""From times to offsets within one segment: what ListOffsets asks.

The time index gives an offset before which nothing is as new as asked, the offset index a position for it; from there
batch headers are walked, and only the batch that must hold the answer is opened.
"""

from __future__ import annotations

from ottla.engine import TimestampOffset
from ottla.model import NO_LEADER_EPOCH
from ottla.records.batch import RecordBatch
from ottla.records.legacy import LegacyBatch
from ottla.storage.segment import CURRENT_MAGIC, BatchSpan, Segment


def find_timestamp(segment: Segment, timestamp_ms: int, from_offset: int) -> TimestampOffset | None:
    """Return the first record at or above `from_offset` that is as new as `timestamp_ms`."""
    segment.load_indexes()
    indexed_offset = segment.time_index.lookup(timestamp_ms).offset
    position = segment.offset_index.lookup(max(indexed_offset, from_offset)).position
    for span in segment.batches_from(position):
        batch = _read_batch(segment, span)
        if batch.max_timestamp < timestamp_ms:
            continue
        for record in batch.records():
            if record.timestamp >= timestamp_ms and record.offset >= from_offset:
                return TimestampOffset(record.timestamp, record.offset, _epoch_of(batch))
    return None


def find_max_timestamp(segment: Segment, from_offset: int = 0) -> TimestampOffset | None:
    """Return the first record at or above `from_offset` that no other one there is newer than.

    Where the segment's largest timestamp is below `from_offset`, all batches above it are looked at.
    """
    segment.load_indexes()
    found = None
    for span in segment.batches_from(segment.offset_index.lookup(segment.offset_of_max_timestamp).position):
        if span.max_timestamp_ms == segment.max_timestamp_ms:
            found = _find_newest(_read_batch(segment, span), from_offset)
            break
    return found or _find_newest_above(segment, from_offset)


def _find_newest_above(segment: Segment, from_offset: int) -> TimestampOffset | None:
    newest: TimestampOffset | None = None
    for span in segment.batches_from(segment.offset_index.lookup(from_offset).position):
        if span.last_offset < from_offset or (newest is not None and span.max_timestamp_ms <= newest.timestamp_ms):
            continue
        found = _find_newest(_read_batch(segment, span), from_offset)
        if newest is None or (found is not None and found.timestamp_ms > newest.timestamp_ms):
            newest = found
    return newest


def _find_newest(batch: RecordBatch | LegacyBatch, from_offset: int) -> TimestampOffset | None:
    """Return the first of a batch's newest records at or above an offset."""
    records = [record for record in batch.records() if record.offset >= from_offset]
    newest = max(records, key=lambda record: record.timestamp, default=None)
    return None if newest is None else TimestampOffset(newest.timestamp, newest.offset, _epoch_of(batch))


def _read_batch(segment: Segment, span: BatchSpan) -> RecordBatch | LegacyBatch:
    data = segment.file.get().pread(span.size_bytes, span.position)
    return RecordBatch(data) if span.magic >= CURRENT_MAGIC else LegacyBatch(data)


def _epoch_of(batch: RecordBatch | LegacyBatch) -> int:
    """Return the leader epoch of a batch; older formats have none."""
    return max(batch.partition_leader_epoch, NO_LEADER_EPOCH) if isinstance(batch, RecordBatch) else NO_LEADER_EPOCH
