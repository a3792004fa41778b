"""The header view, the records behind it, and the walk through a buffer, against batches that Kafka wrote."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from ottla.errors import CorruptMessage, InvalidRecord, UnsupportedCompressionType
from ottla.model import NO_SEQUENCE, TimestampType
from ottla.records.batch import (
    ATTRIBUTES_AT,
    BASE_SEQUENCE_AT,
    HEADER_BYTES,
    MAGIC_AT,
    RecordBatch,
    next_batch_size,
    split_batches,
    stamp,
)
from ottla.records.builder import BatchBuilder
from ottla.records.legacy import split_any
from tests.records.golden import Case, cases, hex_or_none

HEADER_FIELDS = {
    "magic": "magic",
    "baseOffset": "base_offset",
    "batchLength": "batch_length",
    "sizeInBytes": "size_in_bytes",
    "partitionLeaderEpoch": "partition_leader_epoch",
    "crc": "crc",
    "attributes": "attributes",
    "isTransactional": "is_transactional",
    "isControl": "is_control",
    "deleteHorizonMs": "delete_horizon_ms",
    "lastOffsetDelta": "last_offset_delta",
    "rawBaseTimestamp": "base_timestamp",
    "maxTimestamp": "max_timestamp",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "baseSequence": "base_sequence",
    "recordsCount": "count",
    "lastOffset": "last_offset",
    "nextOffset": "next_offset",
    "lastSequence": "last_sequence",
    "hasProducerId": "has_producer_id",
}

V2_BATCHES = [
    (case["id"], batch, expected)
    for case in cases("batches")
    for batch, expected in zip(split_any(bytes.fromhex(case["hex"])), case["batches"], strict=True)
    if isinstance(batch, RecordBatch)
]


def batch_of(count: int) -> bytes:
    builder = BatchBuilder()
    for number in range(count):
        builder.append(1_000 + number, b"key", b"value")
    return builder.build()


def test_headers_read_as_kafka_reads_them() -> None:
    for case_id, batch, expected in V2_BATCHES:
        seen = {name: getattr(batch, attribute) for name, attribute in HEADER_FIELDS.items()}
        assert seen == {name: expected[name] for name in HEADER_FIELDS}, case_id
        assert batch.is_crc_valid() == expected["crcValid"], case_id
        assert batch.codec.name.lower() == expected["compression"], case_id
        is_append_time = expected["timestampType"] == "LogAppendTime"
        assert (batch.timestamp_type == TimestampType.LOG_APPEND_TIME) == is_append_time, case_id


def test_records_read_as_kafka_reads_them() -> None:
    for case_id, batch, expected in V2_BATCHES:
        assert [record_facts(record) for record in batch.records()] == [
            expected_facts(record) for record in expected["records"]
        ], case_id


def test_a_buffer_is_walked_batch_by_batch() -> None:
    for case in cases("batches"):
        if all(batch["magic"] == 2 for batch in case["batches"]):
            offsets = [batch.base_offset for batch in split_batches(bytes.fromhex(case["hex"]))]
            assert offsets == [batch["baseOffset"] for batch in case["batches"]], case["id"]


def record_facts(record: Any) -> tuple[object, ...]:
    headers = [[key, hex_or_none(value)] for key, value in record.headers]
    return record.offset, record.timestamp, record.sequence, hex_or_none(record.key), hex_or_none(record.value), headers


def expected_facts(record: Case) -> tuple[object, ...]:
    return tuple(record[name] for name in ("offset", "timestamp", "sequence", "key", "value", "headers"))


@pytest.mark.parametrize("base_sequence", [-1, -2, -(1 << 31)])
def test_records_have_no_sequence_where_the_first_one_is_negative(base_sequence: int) -> None:
    batch = bytearray(batch_of(2))
    struct.pack_into(">i", batch, BASE_SEQUENCE_AT, base_sequence)

    assert [record.sequence for record in RecordBatch(batch).records()] == [NO_SEQUENCE, NO_SEQUENCE]


@pytest.mark.parametrize("left", [0, 1, 11, 12, 16, 17, 60, 61, 80])
def test_the_walk_stops_at_a_torn_batch(left: int) -> None:
    whole = batch_of(3)

    batches = list(split_batches(whole + whole[:left]))

    assert [batch.count for batch in batches] == [3]
    assert next_batch_size(memoryview(whole[:left]), 0) == -1


@pytest.mark.parametrize("length", [0, 13, -1, -(1 << 31), (1 << 31) - 1, (1 << 31) - 12])
def test_a_length_that_no_batch_has_is_corrupt(length: int) -> None:
    damaged = bytearray(batch_of(1))
    damaged[8:12] = length.to_bytes(4, "big", signed=True)

    with pytest.raises(CorruptMessage):
        list(split_batches(damaged))


@pytest.mark.parametrize("magic", [0, 1, 3, 127, 128, 255])
def test_a_batch_of_another_magic_is_corrupt(magic: int) -> None:
    damaged = bytearray(batch_of(1))
    damaged[MAGIC_AT] = magic

    with pytest.raises(CorruptMessage):
        list(split_batches(damaged))


def test_less_than_a_header_is_corrupt() -> None:
    with pytest.raises(CorruptMessage):
        RecordBatch(batch_of(1)[: HEADER_BYTES - 1])


def test_stamping_leaves_the_checksum_right() -> None:
    buffer = bytearray(batch_of(2))

    stamp(memoryview(buffer), 1 << 40, 7)

    batch = RecordBatch(buffer)
    assert (batch.base_offset, batch.last_offset, batch.partition_leader_epoch) == (1 << 40, (1 << 40) + 1, 7)
    assert batch.is_crc_valid()


def test_an_unknown_codec_is_unsupported() -> None:
    buffer = bytearray(batch_of(1))
    buffer[ATTRIBUTES_AT + 1] = 5

    with pytest.raises(UnsupportedCompressionType):
        RecordBatch(buffer).records()


@pytest.mark.parametrize("count", [0, 1, 3, 1_000_000_000])
def test_a_count_that_is_not_true_is_invalid(count: int) -> None:
    buffer = bytearray(batch_of(2))
    buffer[57:61] = count.to_bytes(4, "big")

    with pytest.raises(InvalidRecord):
        RecordBatch(buffer).decode()
