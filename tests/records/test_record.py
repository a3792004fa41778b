"""The walk and the decoder agree about every payload, right or wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from librt.strings import BytesWriter

from ottla.errors import InvalidRecord
from ottla.records.record import (
    MIN_TIMESTAMP,
    Headers,
    Record,
    add_sequence,
    add_timestamps,
    decode_records,
    record_body_size,
    walk_records,
    write_record,
)
from ottla.records.varint import varint_size

BASE_TIMESTAMP = 1_750_000_000_000
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
FIELDS = st.none() | st.binary(max_size=20)
HEADERS = st.lists(st.tuples(st.text(max_size=5), FIELDS), max_size=2).map(tuple)
ROWS = st.lists(st.tuples(INT64, st.integers(-(1 << 31), (1 << 31) - 1), FIELDS, FIELDS, HEADERS), max_size=5)

Row = tuple[int, int, bytes | None, bytes | None, Headers]


def payload_of(rows: list[Row]) -> bytes:
    out = BytesWriter()
    for row in rows:
        write_record(out, *row)
    return out.getvalue()


def decoded(payload: bytes, count: int) -> list[Record]:
    return decode_records(payload, count, base_offset=1_000, base_timestamp=BASE_TIMESTAMP)


@given(ROWS)
@settings(deadline=None)
def test_the_walk_finds_out_what_the_records_say(rows: list[Row]) -> None:
    payload = payload_of(rows)
    records = decoded(payload, len(rows))
    walk = walk_records(payload, len(rows), BASE_TIMESTAMP)

    assert [(record.offset - 1_000, record.key, record.value, record.headers) for record in records] == [
        row[1:] for row in rows
    ]
    if rows:
        first_largest = max(records, key=lambda record: record.timestamp)
        assert walk.max_timestamp == first_largest.timestamp
        assert walk.max_timestamp_offset_delta == first_largest.offset - 1_000
        assert walk.min_timestamp == min(record.timestamp for record in records)
        assert walk.largest_bytes == max(record_body_size(*row) for row in rows)
    assert walk.keyless_count == sum(record.key is None for record in records)
    assert walk.misplaced_count == sum(row[1] != index for index, row in enumerate(rows))


@given(ROWS, st.integers(0, 400), st.integers(1, 255), st.integers(0, 3), st.integers(-2, 2))
@settings(max_examples=300, deadline=None)
def test_the_walk_refuses_what_the_decoder_refuses(rows: list[Row], at: int, flip: int, cut: int, more: int) -> None:
    payload = bytearray(payload_of(rows))
    if payload:
        payload[at % len(payload)] ^= flip
    damaged = bytes(payload[: len(payload) - cut])
    count = max(len(rows) + more, 0)

    def refuses(look: object) -> bool:
        assert callable(look)
        try:
            look()
        except InvalidRecord:
            return True
        return False

    is_refused = refuses(lambda: walk_records(damaged, count, BASE_TIMESTAMP))
    assert is_refused == refuses(lambda: decoded(damaged, count))


@given(ROWS)
@settings(deadline=None)
def test_sizes_are_known_before_writing(rows: list[Row]) -> None:
    sizes = [record_body_size(*row) for row in rows]

    assert len(payload_of(rows)) == sum(varint_size(size) + size for size in sizes)


@given(INT64, INT64)
def test_timestamps_wrap_as_java_wraps_them(base: int, delta: int) -> None:
    wrapped = add_timestamps(base, delta)

    assert -(1 << 63) <= wrapped < 1 << 63
    assert (wrapped - base - delta) % (1 << 64) == 0


@pytest.mark.parametrize(("base", "increment", "expected"), [(0, 5, 5), ((1 << 31) - 1, 0, (1 << 31) - 1)])
def test_sequences_add(base: int, increment: int, expected: int) -> None:
    assert add_sequence(base, increment) == expected


def test_sequences_go_on_at_zero() -> None:
    assert add_sequence((1 << 31) - 1, 3) == 2


@pytest.mark.parametrize("append_time", [-1, MIN_TIMESTAMP])
def test_an_append_time_covers_all_records(append_time: int) -> None:
    payload = payload_of([(1, 0, b"k", b"v", ()), (2, 1, b"k", b"v", ())])

    records = decode_records(payload, 2, base_offset=0, base_timestamp=append_time, has_one_time=True)
    own = decode_records(payload, 2, base_offset=0, base_timestamp=5)

    assert [record.timestamp for record in records] == [append_time, append_time]
    assert [record.timestamp for record in own] == [6, 7]


def test_records_are_values() -> None:
    one, same, other = (Record(1, 2, b"k", value, (("h", None),), 3) for value in (b"v", b"v", b"w"))

    assert (one == same, one == other, one == "record", hash(one) == hash(same)) == (True, False, False, True)
    assert repr(one) == "Record(offset=1, timestamp=2, key=b'k', value=b'v', headers=(('h', None),), sequence=3)"
