"""Which of a log's oldest segments may go: a decision without side effects.

Three rules, applied one after the other from the oldest segment on, so that one pass reaches a fixed point (Kafka's
order since KAFKA-12177):

1. What lies wholly below the log start offset goes, under every `cleanup.policy`.
2. With `delete` in the policy: while the log without its oldest segment is still at least `retention.bytes` large.
3. With `delete` in the policy: what is older than `retention.ms`, strictly.

Nothing at or above the high watermark goes. The newest segment may go as well; its log then begins a new one at its
end, so that the end offset never falls.

A segment is as old as its newest record says. Where that lies in the future, or no record has a time (0 counts as none:
so does a damaged index speak), it is as old as its file: one wrong clock must not pin the disk (KAFKA-6482). Times that
are too early cannot be told from right ones; `message.timestamp.before.max.ms` keeps them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.config.log_config import LogConfig


class SegmentFacts(NamedTuple):
    """What retention knows of a segment. `end_offset` is one past its last; times in ms since 1970."""

    end_offset: int
    size_bytes: int
    max_timestamp_ms: int
    modified_ms: int


class Expired(NamedTuple):
    """How many of the oldest segments go, and by which rule the last of them does ("" when none)."""

    segments: int
    reason: str


def is_timestamp_in_future(segment: SegmentFacts, now_ms: int) -> bool:
    return segment.max_timestamp_ms > now_ms


def age_ms(segment: SegmentFacts, now_ms: int) -> int:
    """Return how old a segment counts; below zero for a file from the future, which then stays."""
    timestamp_ms = segment.max_timestamp_ms
    if timestamp_ms <= 0 or is_timestamp_in_future(segment, now_ms):
        timestamp_ms = segment.modified_ms
    return now_ms - timestamp_ms


def find_expired(
    segments: Sequence[SegmentFacts], config: LogConfig, *, log_start_offset: int, high_watermark: int, now_ms: int
) -> Expired:
    """Decide for the segments of one log, oldest first."""
    count, reason = 0, ""
    while count < len(segments) - 1 and segments[count].end_offset <= log_start_offset:
        count, reason = count + 1, "log start offset"
    if "delete" not in config.cleanup_policy:
        return Expired(count, reason)
    deletable = count + _count_deletable(segments[count:], high_watermark)
    if config.retention_bytes >= 0:
        excess_bytes = sum(segment.size_bytes for segment in segments[count:]) - config.retention_bytes
        while count < deletable and segments[count].size_bytes <= excess_bytes:
            excess_bytes -= segments[count].size_bytes
            count, reason = count + 1, "retention.bytes"
    if config.retention_ms >= 0:
        old = _count_old(segments[count:deletable], config.retention_ms, now_ms)
        if old:
            count, reason = count + old, "retention.ms"
    return Expired(count, reason)


def _count_old(segments: Sequence[SegmentFacts], retention_ms: int, now_ms: int) -> int:
    """Return how many at the front are too old; those that compaction has emptied go with what follows them."""
    count = 0
    for index, segment in enumerate(segments):
        if segment.size_bytes and age_ms(segment, now_ms) <= retention_ms:
            break
        if segment.size_bytes:
            count = index + 1
    return count


def _count_deletable(segments: Sequence[SegmentFacts], high_watermark: int) -> int:
    """Return how many consumers have been able to see in full. An empty newest segment is not worth replacing."""
    for index, segment in enumerate(segments):
        is_newest = index == len(segments) - 1
        if segment.end_offset > high_watermark or (is_newest and not segment.size_bytes):
            return index
    return len(segments)
