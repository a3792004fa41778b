"""Varints against Kafka's own: every number's bytes, and what each odd byte string reads as."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from ottla.records.varint import (
    VarintError,
    read_unsigned_varint,
    read_varint,
    read_varlong,
    unsigned_varint_size,
    varint_size,
    write_unsigned_varint,
    write_varint,
)
from tests.records.golden import rows

ERRORS = {"!BufferUnderflowException": IndexError, "!IllegalArgumentException": VarintError}


def written(value: int) -> bytes:
    out = BytesWriter()
    write_varint(out, value)
    return out.getvalue()


def test_numbers_have_the_bytes_that_kafka_gives_them() -> None:
    for row in rows("varint"):
        value, data = int(row["value"]), bytes.fromhex(row["bytes_hex"])
        if row["kind"] == "varint":
            assert (written(value), read_varint(data, 0)) == (data, (value, len(data))), row
            assert varint_size(value) == int(row["size"]), row
        elif row["kind"] == "varlong":
            assert (written(value), read_varlong(data, 0)) == (data, (value, len(data))), row
            assert varint_size(value) == int(row["size"]), row
        elif row["kind"] == "unsignedVarint":
            unsigned, out = value & 0xFFFFFFFF, BytesWriter()
            write_unsigned_varint(out, unsigned)
            assert (out.getvalue(), read_unsigned_varint(data, 0)) == (data, (unsigned, len(data))), row
            assert unsigned_varint_size(unsigned) == int(row["size"]), row


@pytest.mark.parametrize(
    ("column", "read"),
    [("readVarint", read_varint), ("readVarlong", read_varlong), ("readUnsignedVarint", read_unsigned_varint)],
)
def test_odd_bytes_read_as_kafka_reads_them(column: str, read: object) -> None:
    assert callable(read)
    for row in rows("varint-read"):
        data, expected = bytes.fromhex(row["bytes_hex"]), row[column]
        if expected.startswith("!"):
            with pytest.raises(ERRORS[expected]):
                read(data, 0)
            continue
        value = int(expected) & 0xFFFFFFFF if read is read_unsigned_varint else int(expected)
        assert read(data, 0) == (value, int(row[f"{column}_used"])), row


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_a_number_reads_back_from_between_other_bytes(value: int, before: bytes, after: bytes) -> None:
    data = written(value)

    assert read_varlong(before + data + after, len(before)) == (value, len(before) + len(data))
    assert varint_size(value) == len(data)
