"""Which segments go: by start, by size, by time, and in one pass."""

from __future__ import annotations

import pytest

from ottla.config.log_config import LogConfig
from ottla.storage.retention import Expired, SegmentFacts, find_expired

NOW_MS = 1_000_000
CONFIG = LogConfig(retention_ms=1_000, retention_bytes=-1)


def segments(*ages_ms: int, size_bytes: int = 100, modified_ms: int = NOW_MS) -> list[SegmentFacts]:
    """Segments of ten offsets each, so many milliseconds old."""
    return [
        SegmentFacts(10 * (slot + 1), size_bytes, NOW_MS - age_ms, modified_ms) for slot, age_ms in enumerate(ages_ms)
    ]


def expired(
    found: list[SegmentFacts], config: LogConfig = CONFIG, *, start: int = 0, high_watermark: int | None = None
) -> Expired:
    end = found[-1].end_offset if high_watermark is None else high_watermark
    return find_expired(found, config, log_start_offset=start, high_watermark=end, now_ms=NOW_MS)


def test_only_what_is_strictly_older_goes() -> None:
    """KAFKA-20091 (records of exactly the age)."""
    assert expired(segments(1_001, 1_000, 0)) == (1, "retention.ms")
    assert expired(segments(1_000, 1_000)) == (0, "")


def test_a_younger_segment_keeps_those_behind_it() -> None:
    assert expired(segments(2_000, 10, 2_000)).segments == 1


def test_all_segments_may_go_but_no_empty_newest_one() -> None:
    assert expired(segments(2_000, 2_000)).segments == 2
    empty = [*segments(2_000), SegmentFacts(10, 0, -1, 0)]
    assert expired(empty).segments == 1


def test_nothing_at_or_above_the_high_watermark_goes() -> None:
    """KAFKA-5634 "Do not allow segment deletion beyond high watermark"."""
    assert expired(segments(2_000, 2_000, 2_000), high_watermark=15).segments == 1


def test_segment_from_the_future_is_as_old_as_its_file() -> None:
    """KAFKA-6482 (microseconds), redpanda-data/redpanda#9820, KAFKA-18929: one record kept a disk full for ever."""
    future = segments(-(10**12), 0, modified_ms=NOW_MS - 1_001)
    assert expired(future).segments == 1
    assert expired([replaced._replace(modified_ms=NOW_MS) for replaced in future]).segments == 0


@pytest.mark.parametrize("timestamp_ms", [-1, 0])
def test_segment_without_times_is_as_old_as_its_file(timestamp_ms: int) -> None:
    old = SegmentFacts(10, 100, timestamp_ms, NOW_MS - 1_001)
    young = SegmentFacts(20, 100, timestamp_ms, NOW_MS - 999)
    assert expired([old, young]).segments == 1


def test_seconds_in_place_of_milliseconds_look_old() -> None:
    """confluentinc/librdkafka#1238, KAFKA-20609: records in seconds went at once."""
    assert expired([SegmentFacts(10, 100, NOW_MS // 1_000, NOW_MS)]).segments == 1


def test_size_counts_until_the_rest_would_be_too_small() -> None:
    config = LogConfig(retention_ms=-1, retention_bytes=250)
    assert expired(segments(0, 0, 0, 0), config) == (1, "retention.bytes")
    assert expired(segments(0, 0, 0), config).segments == 0
    assert expired(segments(0, 0, 0, size_bytes=2**40), config).segments == 2


def test_size_zero_keeps_nothing() -> None:
    assert expired(segments(0, 0), CONFIG._replace(retention_bytes=0)).segments == 2


def test_log_start_comes_before_size_in_one_pass() -> None:
    """KAFKA-12177 "apply log start offset retention before time and size based retention"."""
    config = LogConfig(retention_ms=-1, retention_bytes=150)
    found = segments(0, 0, 0, 0)
    assert expired(found, config, start=20) == (2, "log start offset")
    assert expired(found[2:], config, start=20).segments == 0


def test_compacted_log_loses_only_what_lies_below_its_start() -> None:
    config = CONFIG._replace(cleanup_policy=frozenset({"compact"}))
    assert expired(segments(9_999, 9_999, 9_999), config, start=10) == (1, "log start offset")


def test_without_limits_everything_stays() -> None:
    assert expired(segments(10**9, 10**9), LogConfig(retention_ms=-1, retention_bytes=-1)).segments == 0
