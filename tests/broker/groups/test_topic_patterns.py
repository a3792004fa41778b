"""Patterns of subscriptions, in RE2 syntax."""

from __future__ import annotations

import time

import pytest

from ottla.broker.groups.topic_patterns import check_pattern, match_topics
from ottla.errors import InvalidRegularExpression


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("orders", {"orders"}),
        ("orders|ev.*", {"orders", "events", "ev"}),
        ("o", set()),  # the whole name
        (r"\w+\.v[0-9]", {"a.v1"}),
        ("(?i)ORDERS", {"orders"}),
        (".*", {"orders", "events", "ev", "a.v1"}),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, matched: set[str]) -> None:
    assert match_topics(pattern, ["orders", "events", "ev", "a.v1"]) == matched


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(", "a**", "[z-a]"])
def test_what_re2_does_not_know_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRegularExpression):
        check_pattern(pattern)


def test_no_pattern_takes_long() -> None:
    started = time.perf_counter()

    match_topics("(a*)*(a*)*(a*)*(a*)*b", ["a" * 249])

    assert time.perf_counter() - started < 1
