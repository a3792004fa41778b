"""How records are written for people and programs."""

from __future__ import annotations

import json

import pytest

from ottla.cli.formats import bytes_from_json, format_writer, record_json, value_writer
from ottla.model import TopicPartition
from ottla.records.record import Record

T3 = TopicPartition("t", 3)
RECORD = Record(7, 1_777_896_000_000, b"key", b"value", (("h", b"1"), ("n", None)))
TOMBSTONE = Record(8, 1_777_896_000_000, None, None)


def test_the_format_language() -> None:
    write = format_writer(r"%t-%p %o %T %D %k/%K %s/%S %h %%\x21\t\n", null=b"NULL", is_hex=False)

    assert write(T3, [RECORD]) == (b"t-3 7 1777896000000 2026-05-04T12:00:00.000Z key/3 value/5 h=1,n %!\t\n")
    assert b"NULL/-1 NULL/-1" in write(T3, [TOMBSTONE])


@pytest.mark.parametrize("template", ["%q", r"\q", "%"])
def test_what_the_language_does_not_have_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match=r"a format (has no|does not end)"):
        format_writer(template, null=b"", is_hex=False)


def test_plain_values_are_bytes_as_they_are() -> None:
    write = value_writer(null=b"NULL", is_hex=False, with_key=False, with_headers=False)
    assert write(T3, [Record(0, 0, None, b"\xff\x00"), TOMBSTONE]) == b"\xff\x00\nNULL\n"


def test_keys_headers_and_hex() -> None:
    write = value_writer(null=b"-", is_hex=True, with_key=True, with_headers=True)
    assert write(T3, [RECORD, TOMBSTONE]) == b"h=1,n\t6b6579\t76616c7565\n\t-\t-\n"


@pytest.mark.parametrize("data", [None, b"", b"text", "ünï".encode(), b"\xff\xfe"])
def test_json_goes_there_and_back(data: bytes | None) -> None:
    fields = json.loads(record_json(T3, Record(7, 5, data, data, (("h", data),))))

    assert (fields["topic"], fields["partition"], fields["offset"], fields["timestamp_ms"]) == ("t", 3, 7, 5)
    assert bytes_from_json(fields, "key") == data
    assert bytes_from_json(fields, "value") == data
    assert bytes_from_json(fields["headers"][0], "value") == data
