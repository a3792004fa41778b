"""Lines of the broker's log: all that a record carries, in one line."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pytest

from ottla.cli.log_lines import LogLines


def line_of(message: str, *arguments: object, **extra: Any) -> str:
    log = logging.getLogger("ottla.test")
    exc_info = sys.exc_info() if extra.pop("is_fault", False) else None
    return LogLines().format(
        log.makeRecord(log.name, logging.WARNING, __file__, 1, message, arguments, exc_info, extra=extra)
    )


def test_fields_stand_behind_the_message() -> None:
    line = line_of("a group rebalances: %d", 3, group="g-1", members=2)
    assert line.endswith(" WARNING ottla.test: a group rebalances: 3 group=g-1 members=2")


def test_record_without_fields_is_as_it_was() -> None:
    assert line_of("stopping").endswith(" WARNING ottla.test: stopping")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("two words", '"two words"'),
        ("", '""'),
        ("a\nlevel=ERROR", '"a\\nlevel=ERROR"'),
        ('say "x"', '"say \\"x\\""'),
        ("größe", "größe"),
        ("::1", "::1"),
        (None, "None"),
    ],
)
def test_no_value_looks_like_more_than_one(value: object, written: str) -> None:
    assert line_of("m", key=value).endswith(f": m key={written}")


def test_no_message_looks_like_more_than_one() -> None:
    assert line_of("odd\nkey\x1b[31m is not a setting").endswith(r": odd\nkey\x1b[31m is not a setting")


def test_traceback_comes_after_the_fields() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        lines = line_of("a fault", peer="::1", is_fault=True).splitlines()
    assert lines[0].endswith(": a fault peer=::1")
    assert lines[-1] == "ValueError: broken"
