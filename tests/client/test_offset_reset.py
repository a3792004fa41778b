"""auto.offset.reset in Kafka's words."""

from __future__ import annotations

import pytest

from ottla.client import Consumer
from ottla.client.offset_reset import OffsetReset, parse_duration_ms

NOW_MS = 1_000_000_000_000


@pytest.mark.parametrize(
    ("text", "timestamp_ms"),
    [
        ("earliest", -2),
        ("latest", -1),
        ("none", None),
        ("by_duration:PT1H", NOW_MS - 3_600_000),
        ("by_duration:P40000D", 0),
    ],
)
def test_words_are_the_timestamps_that_leaders_know(text: str, timestamp_ms: int | None) -> None:
    assert OffsetReset(text, lambda: NOW_MS).timestamp_ms() == timestamp_ms


def test_an_age_is_counted_from_when_it_is_asked() -> None:
    now_ms = [NOW_MS]
    reset = OffsetReset("by_duration:PT10S", lambda: now_ms[0])
    now_ms[0] += 5_000
    assert reset.timestamp_ms() == NOW_MS - 5_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("P1D", 86_400_000), ("PT1H30M", 5_400_000), ("P1DT0.5S", 86_400_500), ("pt2s", 2_000), ("PT0S", 0)],
)
def test_durations_are_those_that_java_reads(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "P-1D", "-P1D", "P1Y", "P1W", "P1H", "PT1D"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        Consumer("localhost:1", auto_offset_reset=f"by_duration:{text}")


@pytest.mark.parametrize("text", ["sometime", "by_duration", "Earliest", ""])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="none of earliest, latest, none, by_duration"):
        Consumer("localhost:1", auto_offset_reset=text)
