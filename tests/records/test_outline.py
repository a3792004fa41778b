"""Outlines say the same of records as their whole, but for values and headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import InvalidRecord
from ottla.records.batch import RecordBatch
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.outline import outline_batch

FIELDS = st.none() | st.binary(max_size=200)
RECORDS = st.lists(
    st.tuples(st.integers(0, 1 << 45), FIELDS, FIELDS, st.lists(st.tuples(st.text(max_size=5), FIELDS), max_size=2)),
    min_size=1,
    max_size=20,
)


def build(records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]], codec: Codec) -> bytes:
    builder = BatchBuilder(codec=codec, base_offset=100)
    for timestamp, key, value, headers in records:
        builder.append(timestamp, key, value, tuple(headers))
    return builder.build()


@given(RECORDS, st.sampled_from([Codec.NONE, Codec.GZIP]), st.binary(max_size=10))
def test_an_outline_has_key_offset_and_time_and_says_whether_there_is_a_value(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]], codec: Codec, before: bytes
) -> None:
    data = build(records, codec)
    batch = RecordBatch(data)
    outlines = outline_batch(batch, before + data + b"behind", len(before))
    assert [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in outlines] == [
        (one.offset, one.timestamp, one.key, None if one.value is None else b"", ()) for one in batch.records()
    ]


@pytest.mark.parametrize("position", range(61, 61 + 10))
def test_damage_is_an_invalid_record_or_is_in_what_is_skipped(position: int) -> None:
    data = bytearray(build([(5, b"k", b"vv", [])], Codec.NONE))
    data[position] ^= 0x55
    batch = RecordBatch(bytes(data))
    try:
        outlines = outline_batch(batch, bytes(data), 0)
    except InvalidRecord:
        return
    assert len(outlines) == 1


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_wrong_count_is_an_invalid_record(count: int) -> None:
    data = bytearray(build([(5, b"k", b"v", [])] * 2, Codec.NONE))
    data[57:61] = count.to_bytes(4, "big")
    with pytest.raises(InvalidRecord):
        outline_batch(RecordBatch(bytes(data)), bytes(data), 0)
