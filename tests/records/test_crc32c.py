"""CRC-32C against Kafka's table, and continued over pieces."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from ottla.records.crc32c import crc32c
from tests.records.golden import rows


def test_checksums_are_kafkas() -> None:
    for row in rows("crc"):
        data = bytes.fromhex(row["bytes_hex"])
        assert (crc32c(data), zlib.crc32(data)) == (int(row["crc32c"]), int(row["crc32"])), row


@given(st.binary(), st.binary())
def test_a_checksum_continues_over_pieces(first: bytes, second: bytes) -> None:
    assert crc32c(memoryview(second), crc32c(bytearray(first))) == crc32c(first + second)
