"""Times, settings and headers as people give them."""

from __future__ import annotations

import click
import pytest

from ottla.cli.options import format_time, parse_headers, parse_settings, parse_time

NOW_MS = 1_777_896_000_000


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("1777896000000", NOW_MS),
        ("-90s", NOW_MS - 90_000),
        ("-2h", NOW_MS - 7_200_000),
        ("-1d", NOW_MS - 86_400_000),
        ("2026-05-04T12:00", NOW_MS),
        ("2026-05-04T14:00:00+02:00", NOW_MS),
        ("2026-05-04", NOW_MS - 43_200_000),
    ],
)
def test_times(text: str, expected_ms: int) -> None:
    assert parse_time(text, NOW_MS) == expected_ms


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="is no time"):
        parse_time("yesterday", NOW_MS)


def test_times_are_written_in_utc() -> None:
    assert format_time(NOW_MS) == "2026-05-04T12:00:00.000Z"
    assert format_time(2**62) == str(2**62)


def test_settings_and_headers() -> None:
    assert parse_settings(["a=1", "b=x=y"]) == {"a": "1", "b": "x=y"}
    assert parse_headers(["a=1", "b", "a="]) == (("a", b"1"), ("b", None), ("a", b""))
    with pytest.raises(click.BadParameter):
        parse_settings(["a"])
    with pytest.raises(click.BadParameter):
        parse_headers(["=1"])
