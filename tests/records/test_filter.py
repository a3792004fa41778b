"""What compaction leaves of a batch, against what Kafka's own filter leaves."""

from __future__ import annotations

import pytest

from ottla.errors import KafkaError
from ottla.records.batch import RecordBatch
from ottla.records.filter import BatchRetention, FilterResult, filter_batches
from ottla.records.legacy import LegacyBatch, split_any
from ottla.records.record import Record
from tests.records.golden import Case, cases, hex_or_none

CASES = cases("filter")


class ListedRetention:
    """Keeps what a case lists, batch by batch, and remembers what it was asked."""

    def __init__(self, case: Case) -> None:
        self.fates = list(case["batchRetention"])
        self.retained_offsets = set(case["retainOffsets"])
        self.asked: list[int] = []

    def check_batch(self, batch: RecordBatch | LegacyBatch) -> tuple[BatchRetention, bool]:
        fate = self.fates.pop(0) if len(self.fates) > 1 else self.fates[0]
        return BatchRetention[fate["policy"]], fate["containsMarkerForEmptyTxn"]

    def should_retain(self, batch: RecordBatch | LegacyBatch, record: Record) -> bool:
        self.asked.append(int(record.offset))
        return int(record.offset) in self.retained_offsets


def run(case: Case) -> tuple[FilterResult, list[int]]:
    retention = ListedRetention(case)
    result = filter_batches(
        bytes.fromhex(case["hex"]), retention, now_ms=case["now"], delete_retention_ms=case["deleteRetentionMs"]
    )
    return result, retention.asked


def is_legacy(case: Case) -> bool:
    return bool(case["note"].startswith("magic"))


def test_batches_become_what_kafka_makes_of_them() -> None:
    for case in CASES:
        if "error" in case or is_legacy(case):
            continue
        result, asked = run(case)
        expected = case["result"]
        assert asked == expected["recordsAskedFor"], case["id"]
        counts = (result.records_read, result.bytes_read, result.records_retained)
        assert counts == (expected["messagesRead"], expected["bytesRead"], expected["messagesRetained"]), case["id"]
        last = (result.max_offset, result.max_timestamp_ms, result.last_offset_of_max_timestamp)
        assert last == (expected["maxOffset"], expected["maxTimestamp"], expected["shallowOffsetOfMaxTimestamp"]), case[
            "id"
        ]
        output = b"".join(result.output)
        if not expected["hasCompressedOutput"]:
            assert output.hex() == expected["hex"], case["id"]
            assert result.bytes_retained == expected["bytesRetained"], case["id"]
        assert decoded(output) == decoded(bytes.fromhex(expected["hex"])), case["id"]


def decoded(data: bytes) -> list[tuple[object, ...]]:
    return [
        (
            batch.base_offset,
            batch.last_offset,
            batch.attributes,
            batch.base_timestamp,
            batch.max_timestamp,
            batch.decode(),
        )
        for batch in split_any(data)
        if isinstance(batch, RecordBatch) and batch.is_crc_valid()
    ]


def test_messages_of_old_formats_keep_what_kafka_keeps() -> None:
    """Kafka writes the old format again, we the new one; offsets, times and contents are the same."""
    seen = 0
    for case in CASES:
        if "error" in case or not is_legacy(case):
            continue
        result, asked = run(case)
        expected = case["result"]
        assert asked == expected["recordsAskedFor"], case["id"]
        assert [
            (record.offset, record.timestamp, hex_or_none(record.key), hex_or_none(record.value))
            for batch in split_any(b"".join(result.output))
            for record in batch.records()
        ] == [
            (record["offset"], record["timestamp"], record["key"], record["value"])
            for batch in expected["batches"]
            for record in batch["records"]
        ], case["id"]
        seen += 1
    assert seen > 20


def test_what_kafka_cannot_filter_is_refused() -> None:
    for case in CASES:
        if "error" in case and not is_legacy(case):
            with pytest.raises(KafkaError):
                run(case)
