"""Any bytes as record batches: what a producer sends, what a log holds, what a consumer gets."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import strategies as st

from ottla.errors import KafkaError
from ottla.model import TimestampType
from ottla.records.batch import HEADER_BYTES, RecordBatch, split_batches
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec, deflate, inflate
from ottla.records.legacy import split_any
from ottla.records.rules import ProduceRules
from ottla.records.validation import has_transactional_batch, validate_produced
from tests.fuzz.corpus import batches
from tests.fuzz.mutation import fuzz, memory_within, mutated
from tests.wire import sign

NOW_MS = 1_750_000_000_000
INFLATED_BYTES = 1 << 20
MEMORY_BYTES = 16 * INFLATED_BYTES
"""Inflated bytes, a copy for the walk, and objects for small records where they are looked at one by one."""

RULES = [
    ProduceRules(max_inflated_bytes=INFLATED_BYTES),
    ProduceRules(max_inflated_bytes=INFLATED_BYTES, codec=Codec.ZSTD, before_max_ms=1000, is_compacted=True),
    ProduceRules(max_inflated_bytes=INFLATED_BYTES, codec=Codec.NONE, timestamp_type=TimestampType.LOG_APPEND_TIME),
    ProduceRules(max_inflated_bytes=INFLATED_BYTES, codec=Codec.GZIP, max_message_bytes=500),
]


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def signed(data: bytes) -> bytes:
    """The same bytes with a length and a checksum that fit, so that what is behind the checksum is looked at."""
    if len(data) < HEADER_BYTES:
        return data
    whole = bytearray(data)
    whole[0:8] = bytes(8)
    whole[8:12] = (len(data) - 12).to_bytes(4, "big")
    return sign(whole)


def test_any_bytes_are_appended_or_refused_with_an_error_of_kafkas() -> None:
    def check(case: tuple[bytes, ProduceRules]) -> None:
        data, rules = bytearray(case[0]), case[1]
        with memory_within(MEMORY_BYTES):
            try:
                has_transactional_batch(memoryview(data))
                batch = validate_produced(memoryview(data), rules, NOW_MS)
            except KafkaError as error:
                assert error.code > 0
                return
            check_readable(bytes(batch.buffer), batch.count)

    damaged = mutated(batches())
    fuzz(st.tuples(st.one_of(damaged, damaged.map(signed)), st.sampled_from(RULES)), check)


def check_readable(stored: bytes, count: int) -> None:
    """What was taken is one batch that consumers read. Offsets of plain records are left as they came, as in Kafka."""
    (only,) = split_batches(stored)
    assert only.is_crc_valid()
    records = list(only.records())
    assert len(records) == count
    assert only.codec is Codec.NONE or records[-1].offset == only.last_offset


def test_any_bytes_of_a_log_are_walked_or_refused() -> None:
    def check(data: bytes) -> None:
        with memory_within(MEMORY_BYTES + 100 * len(data)):
            total = 0
            try:
                for batch in split_any(data):
                    total += batch.size_in_bytes
                    assert batch.is_crc_valid() in (True, False)
                    assert batch.next_offset == batch.last_offset + 1
                    if isinstance(batch, RecordBatch):
                        list(batch.records())
                    else:
                        list(batch.records(INFLATED_BYTES))
            except KafkaError as error:
                assert error.code > 0
            assert total <= len(data)

    fuzz(mutated([*batches(), *[a + b for a, b in zip(batches(), batches()[1:], strict=False)]]), check)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE], ids=lambda codec: codec.name)
def test_any_bytes_inflate_within_bounds_or_are_refused(codec: Codec) -> None:
    seeds = [deflate(codec, data) for data in payloads()]

    def check(data: bytes) -> None:
        with memory_within(4 * INFLATED_BYTES + 10 * len(data)):
            try:
                assert len(inflate(codec, memoryview(data), INFLATED_BYTES)) <= INFLATED_BYTES
            except KafkaError as error:
                assert error.code > 0

    fuzz(mutated(seeds), check)


def payloads() -> list[bytes]:
    """What is inside batches: little, much, text, zeros."""
    builder = BatchBuilder()
    for number in range(200):
        builder.append(NOW_MS + number, b"k%d" % number, b"some value %d" % (number % 7))
    records = builder.build()[HEADER_BYTES:]
    return [b"", b"x", records, bytes(300_000), records * 20, bytes(2 * INFLATED_BYTES)]
