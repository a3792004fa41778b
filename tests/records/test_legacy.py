"""Message sets of magic 0 and 1 as Kafka reads them, and buffers with damaged ends."""

from __future__ import annotations

import pytest

from ottla.errors import CorruptMessage, InvalidRecord, KafkaError
from ottla.model import TimestampType
from ottla.records.batch import RecordBatch, next_batch_size
from ottla.records.legacy import LegacyBatch, convert, split_any, valid_bytes
from tests.records.golden import Case, cases, hex_or_none

FIELDS = {
    "magic": "magic",
    "baseOffset": "base_offset",
    "lastOffset": "last_offset",
    "nextOffset": "next_offset",
    "sizeInBytes": "size_in_bytes",
    "crc": "crc",
    "maxTimestamp": "max_timestamp",
}
TIMESTAMP_TYPES = {
    "NoTimestampType": None,
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}


def legacy_batches() -> list[tuple[str, LegacyBatch, Case]]:
    return [
        (case["id"], batch, expected)
        for case in cases("batches")
        for batch, expected in zip(split_any(bytes.fromhex(case["hex"])), case["batches"], strict=True)
        if isinstance(batch, LegacyBatch)
    ]


def test_messages_read_as_kafka_reads_them() -> None:
    for case_id, batch, expected in legacy_batches():
        seen = {name: getattr(batch, attribute) for name, attribute in FIELDS.items()}
        assert seen == {name: expected[name] for name in FIELDS}, case_id
        assert batch.is_crc_valid() == expected["crcValid"], case_id
        assert batch.codec.name.lower() == expected["compression"], case_id
        assert batch.timestamp_type == TIMESTAMP_TYPES[expected["timestampType"]], case_id


def test_inner_messages_have_kafkas_offsets_and_times() -> None:
    for case_id, batch, expected in legacy_batches():
        assert [
            (record.offset, record.timestamp, hex_or_none(record.key), hex_or_none(record.value))
            for record in batch.records()
        ] == [
            tuple(record[name] for name in ("offset", "timestamp", "key", "value")) for record in expected["records"]
        ], case_id


def test_wrappers_that_kafka_refuses_are_refused() -> None:
    """Kafka's verdict on these is about the format; that they cannot be read is in the detail of its append."""
    for case in cases("verdicts"):
        append = case["detail"].get("append")
        if case["group"] != "legacy" or not isinstance(append, dict) or "exception" not in append:
            continue
        if append.get("invalidException") == "InvalidTimestampException":
            continue
        with pytest.raises(KafkaError):
            for batch in split_any(bytes.fromhex(case["hex"])):
                if not batch.is_crc_valid():
                    raise CorruptMessage
                list(batch.records())


def test_a_buffer_is_walked_to_its_damaged_end_as_kafka_walks_it() -> None:
    """A batch shorter than its header is Kafka's IndexOutOfBoundsException on the next look; here it is corrupt."""
    for case in cases("iterate"):
        buffer, expected = bytes.fromhex(case["hex"]), case["memory"]
        seen, error = walk(buffer)
        kafka_error = expected.get("error")
        if kafka_error == "IndexOutOfBoundsException":
            assert error == "CORRUPT_MESSAGE", case["id"]
            assert seen == [facts_of(batch) for batch in expected["batches"]][: len(seen)], case["id"]
            continue
        assert (error is None) == (kafka_error is None), (case["id"], case["note"])
        assert seen == [facts_of(batch) for batch in expected["batches"]], (case["id"], case["note"])
        if error is None:
            assert valid_bytes(buffer) == expected["validBytes"], case["id"]


def walk(buffer: bytes) -> tuple[list[tuple[object, ...]], str | None]:
    seen: list[tuple[object, ...]] = []
    try:
        for batch in split_any(buffer):
            seen.append(
                (
                    batch.magic,
                    batch.base_offset,
                    batch.last_offset,
                    batch.size_in_bytes,
                    batch.is_crc_valid(),
                    batch.max_timestamp,
                )
            )
    except KafkaError as error:
        return seen, error.name
    return seen, None


def facts_of(batch: Case) -> tuple[object, ...]:
    names = ("magic", "baseOffset", "lastOffset", "sizeInBytes", "crcValid", "maxTimestamp")
    return tuple(batch.get(name) for name in names)


def test_the_size_of_the_first_batch_is_known_from_its_front() -> None:
    for case in cases("iterate"):
        expected = case["memory"]["firstBatchSize"]
        buffer = memoryview(bytes.fromhex(case["hex"]))
        if isinstance(expected, int) and expected <= len(buffer):
            assert next_batch_size(buffer, 0) == expected, case["id"]


def test_conversion_keeps_offsets_times_and_contents() -> None:
    for case in cases("batches"):
        batches = list(split_any(bytes.fromhex(case["hex"])))
        legacy = [batch for batch in batches if isinstance(batch, LegacyBatch)]
        if not legacy or len(legacy) < len(batches):
            continue
        records = [record for batch in legacy for record in batch.records()]
        if [record.offset for record in records] != sorted({record.offset for record in records}):
            continue
        batch = RecordBatch(convert(legacy))
        assert batch.is_crc_valid(), case["id"]
        assert list(batch.records()) == records, case["id"]


def test_nothing_converts_to_nothing() -> None:
    with pytest.raises(InvalidRecord):
        convert([])
