"""Counting, and how it is shown."""

from __future__ import annotations

import pytest

from ottla.metrics import Histogram, Registry


def test_metrics_show_in_prometheus_text_form() -> None:
    registry = Registry()
    registry.counter("requests_total", "Requests seen.").add(3)
    errors = registry.counter_family("errors_total", "Errors\nby name.", "name", "api")
    errors.labels("B", 'x"y\\').add()
    errors.labels("A", "p").add(2)
    registry.gauge("open_files", "Files.", read=lambda: 2.5)
    registry.gauge("lag", "Lag.").set(-1)
    registry.gauge("ratio", "Ratio.", read=lambda: float("nan"))
    assert registry.exposition().splitlines() == [
        "# HELP errors_total Errors\\nby name.",
        "# TYPE errors_total counter",
        'errors_total{name="A",api="p"} 2',
        'errors_total{name="B",api="x\\"y\\\\"} 1',
        "# HELP lag Lag.",
        "# TYPE lag gauge",
        "lag -1",
        "# HELP open_files Files.",
        "# TYPE open_files gauge",
        "open_files 2.5",
        "# HELP ratio Ratio.",
        "# TYPE ratio gauge",
        "ratio NaN",
        "# HELP requests_total Requests seen.",
        "# TYPE requests_total counter",
        "requests_total 3",
    ]


def test_a_histogram_counts_at_or_below_each_bound() -> None:
    registry = Registry()
    sizes = registry.histogram("size_bytes", "Sizes.", bounds=(10, 100))
    for size in (5, 10, 11, 1000):
        sizes.observe(size)
    assert registry.exposition().splitlines()[2:] == [
        'size_bytes_bucket{le="10"} 2',
        'size_bytes_bucket{le="100"} 3',
        'size_bytes_bucket{le="+Inf"} 4',
        "size_bytes_sum 1026",
        "size_bytes_count 4",
    ]


def test_a_member_of_a_family_is_made_once_and_can_be_forgotten() -> None:
    family = Registry().counter_family("bytes_total", "Bytes.", "topic")
    assert family.labels("t") is family.labels("t")
    family.remove("t")
    assert list(family.lines())[2:] == []
    with pytest.raises(ValueError, match="has the labels"):
        family.labels("t", "0")


def test_a_name_is_taken_once() -> None:
    registry = Registry()
    registry.counter("a_total", "A.")
    with pytest.raises(ValueError, match="already"):
        registry.gauge("a_total", "A.")


def test_bounds_rise() -> None:
    with pytest.raises(ValueError, match="rise"):
        Histogram((2, 1))
