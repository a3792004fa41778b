"""Figures of many times, chosen as Kafka's tools choose them."""

from __future__ import annotations

import random

import pytest

from ottla.cli.latencies import MOST_SAMPLES, Latencies, figures_line, timed_each


def test_figures_are_those_of_kafkas_tools() -> None:
    """ProducerPerformance takes the time at place int(count * percentile) of all in order."""
    latencies = Latencies()
    milliseconds = list(range(1, 2001))
    random.Random(1).shuffle(milliseconds)
    for one in milliseconds:
        latencies.note(one / 1000)

    assert latencies.figures() == {
        "avg": 1000.5,
        "p50": 1001,
        "p90": 1801,
        "p95": 1901,
        "p99": 1981,
        "p99.9": 1999,
        "max": 2000,
    }


def test_a_single_time_is_every_figure() -> None:
    latencies = Latencies()
    latencies.note(0.0125)
    figures = latencies.figures()
    assert len(latencies) == 1
    assert set(figures.values()) == {12.5}
    assert figures_line("latency", {"avg": 12.5, "max": 12.5}) == "latency      avg 12.500 ms  max 12.500 ms"


@pytest.mark.parametrize(
    ("records", "each"), [(1, 1), (1999, 1), (2000, 2), (10_000, 10), (1_000_000, 16), (8_000_000, 16)]
)
def test_few_records_are_all_timed_and_of_many_a_part(records: int, each: int) -> None:
    assert timed_each(records) == each


def test_never_more_are_timed_than_are_kept() -> None:
    assert -(-1_000_000_000 // timed_each(1_000_000_000)) <= MOST_SAMPLES
