"""From times to offsets within one log: ListOffsets, special timestamps included.

Which segment is asked is decided here; where in it the answer stands is `timestamps`' business.
"""

from __future__ import annotations

from ottla.engine import TimestampOffset
from ottla.model import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NO_LEADER_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP_MS,
)
from ottla.storage.log import PartitionLog
from ottla.storage.timestamps import find_max_timestamp, find_timestamp


def offset_for_timestamp(log: PartitionLog, timestamp_ms: int) -> TimestampOffset | None:
    """Answer ListOffsets for a log, see `engine.RecordLog.offset_for_timestamp`. Raises `OSError`."""
    if timestamp_ms in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        return TimestampOffset(NO_TIMESTAMP_MS, log.log_start_offset, _earliest_epoch(log))
    if timestamp_ms == LATEST_TIMESTAMP:
        return TimestampOffset(NO_TIMESTAMP_MS, log.log_end_offset, log.epochs.latest_epoch)
    if timestamp_ms in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return TimestampOffset(NO_TIMESTAMP_MS, NO_OFFSET, NO_LEADER_EPOCH)
    if timestamp_ms == MAX_TIMESTAMP:
        return _find_newest(log)
    return _find_first(log, timestamp_ms)


def _earliest_epoch(log: PartitionLog) -> int:
    entries = log.epochs.entries
    if not entries or entries[0].start_offset > log.log_start_offset:
        return NO_LEADER_EPOCH
    return entries[0].epoch


def _find_newest(log: PartitionLog) -> TimestampOffset | None:
    """Return the first record that no other one is newer than."""
    for segment in log.segments:
        segment.load_timestamps()
    newest = max(log.segments, key=lambda segment: segment.max_timestamp_ms)
    log.keep_warm(newest)
    found = find_max_timestamp(newest)
    if found is None or found.offset >= log.log_start_offset:
        return found
    kept = [segment for segment in log.segments if segment.next_offset > log.log_start_offset]
    candidates = [find_max_timestamp(segment, log.log_start_offset) for segment in kept]
    return max(filter(None, candidates), key=lambda candidate: candidate.timestamp_ms, default=None)


def _find_first(log: PartitionLog, timestamp_ms: int) -> TimestampOffset | None:
    """Return the first record that is as new as asked."""
    for segment in log.segments:
        segment.load_timestamps()
        if segment.max_timestamp_ms >= timestamp_ms:
            log.keep_warm(segment)
            found = find_timestamp(segment, timestamp_ms, log.log_start_offset)
            if found is not None:
                return found
    return None
