"""What the builder makes, other people's code reads; what other people's code makes, ours reads."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from ottla.model import TimestampType
from ottla.records.batch import RecordBatch, split_batches
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.record import Headers

Produced = tuple[int, bytes | None, bytes | None, Headers]

FIELDS = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=10), FIELDS), max_size=3).map(tuple)
RECORDS = st.lists(st.tuples(st.integers(0, 1 << 45), FIELDS, FIELDS, HEADERS), min_size=1, max_size=20)
CODECS = st.sampled_from(list(Codec))


def built(records: list[Produced], codec: Codec = Codec.NONE, **options: Any) -> bytes:
    builder = BatchBuilder(codec=codec, **options)
    for timestamp, key, value, headers in records:
        builder.append(timestamp, key, value, headers)
    return builder.build()


def numbered(records: list[Produced]) -> list[tuple[object, ...]]:
    return [(offset, *record[:3], list(record[3])) for offset, record in enumerate(records)]


@given(records=RECORDS, codec=CODECS)
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("reader", [AiokafkaBatch, KafkaPythonBatch])
def test_other_clients_read_what_we_build(reader: Any, records: list[Produced], codec: Codec) -> None:
    batch = reader(built(records, codec))

    assert batch.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch] == numbered(records)


@given(records=RECORDS, codec=CODECS)
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("builder_class", [AiokafkaBuilder, KafkaPythonBuilder])
def test_we_read_what_other_clients_build(builder_class: Any, records: list[Produced], codec: Codec) -> None:
    builder = builder_class(
        magic=2,
        compression_type=int(codec),
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for offset, (timestamp, key, value, headers) in enumerate(records):
        assert builder.append(offset, timestamp, key, value, list(headers)) is not None
    (batch,) = split_batches(bytes(builder.build()))

    assert batch.is_crc_valid()
    assert [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch.records()] == numbered(records)


@given(records=RECORDS)
@settings(max_examples=60, deadline=None)
def test_the_size_is_known_before_and_while_it_grows(records: list[Produced]) -> None:
    builder = BatchBuilder()
    for record in records:
        expected = builder.size_with(*record)
        builder.append(*record)
        assert builder.size_in_bytes == expected
    assert len(builder.build()) == builder.size_in_bytes


def test_every_header_field_is_written() -> None:
    batch = RecordBatch(
        built(
            [(5, b"k", b"v", ()), (9, None, None, ())],
            Codec.ZSTD,
            base_offset=100,
            leader_epoch=3,
            timestamp_type=TimestampType.LOG_APPEND_TIME,
            producer_id=7,
            producer_epoch=2,
            base_sequence=(1 << 31) - 1,
            is_transactional=True,
            is_control=True,
        )
    )

    assert (batch.base_offset, batch.last_offset, batch.next_offset, batch.count) == (100, 101, 102, 2)
    assert (batch.partition_leader_epoch, batch.codec, batch.timestamp_type) == (3, Codec.ZSTD, 1)
    assert (batch.base_timestamp, batch.max_timestamp) == (5, 9)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 2, (1 << 31) - 1)
    assert batch.last_sequence == 0  # sequences go on at 0 after the largest
    assert batch.is_transactional
    assert batch.is_control
    assert batch.is_crc_valid()
    assert {record.timestamp for record in batch.records()} == {9}


def test_offset_gaps_are_kept() -> None:
    builder = BatchBuilder(base_offset=10)
    builder.append_at(2, 1, b"a", b"")
    builder.append_at(7, 1, b"b", b"")

    batch = RecordBatch(builder.build())

    assert [record.offset for record in batch.records()] == [12, 17]
    assert (batch.last_offset_delta, batch.count) == (7, 2)


def test_an_empty_batch_has_a_header_only() -> None:
    batch = RecordBatch(BatchBuilder().build())

    assert (batch.size_in_bytes, batch.count, list(batch.records())) == (61, 0, [])
