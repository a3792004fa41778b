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


def find_max_timestamp(segment: Segment) -> TimestampOffset | None:
    """Return the first record that has the segment's largest timestamp."""
    segment.load_indexes()
    for span in segment.batches_from(segment.offset_index.lookup(segment.offset_of_max_timestamp).position):
        batch = _read_batch(segment, span)
        if batch.max_timestamp == segment.max_timestamp_ms:
            for record in batch.records():
                if record.timestamp == batch.max_timestamp:
                    return TimestampOffset(record.timestamp, record.offset, _epoch_of(batch))
    return None


def _read_batch(segment: Segment, span: BatchSpan) -> RecordBatch | LegacyBatch:
    data = segment.file.get().pread(span.size_bytes, span.position)
    return RecordBatch(data) if span.magic >= CURRENT_MAGIC else LegacyBatch(data)


def _epoch_of(batch: RecordBatch | LegacyBatch) -> int:
    """Return the leader epoch of a batch; older formats have none."""
    return max(batch.partition_leader_epoch, NO_LEADER_EPOCH) if isinstance(batch, RecordBatch) else NO_LEADER_EPOCH
