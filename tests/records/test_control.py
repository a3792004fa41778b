"""Control batches as Kafka writes them, and markers that cannot be read."""

from __future__ import annotations

import pytest

from ottla.errors import InvalidRecord
from ottla.records.batch import RecordBatch, split_batches
from ottla.records.control import (
    ControlType,
    EndTransactionMarker,
    control_type_of,
    decode_end_transaction_marker,
    end_transaction_batch,
    kraft_control_batch,
    marker_of,
)
from ottla.records.record import Record
from tests.records.golden import Case, cases


def control_batches() -> list[tuple[Case, RecordBatch, Case]]:
    return [
        (case, batch, expected)
        for case in cases("batches")
        if case["batches"][0].get("isControl")
        for batch, expected in zip(split_batches(bytes.fromhex(case["hex"])), case["batches"], strict=True)
    ]


def test_control_records_say_what_kafka_reads() -> None:
    for case, batch, expected_batch in control_batches():
        for record, expected in zip(batch.records(), expected_batch["records"], strict=True):
            control = expected["control"]
            assert control_type_of(record).name == control["type"], case["id"]
            if "coordinatorEpoch" in control:
                marker = decode_end_transaction_marker(record)
                assert marker == (ControlType[control["type"]], control["coordinatorEpoch"]), case["id"]
                assert marker_of(batch) == marker, case["id"]


def test_markers_have_the_bytes_that_kafka_writes() -> None:
    seen = 0
    for case, batch, expected in control_batches():
        if not case["note"].startswith("end transaction marker") or batch.partition_leader_epoch != -1:
            continue
        marker = marker_of(batch)
        assert marker is not None
        ours = end_transaction_batch(
            marker,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            timestamp_ms=batch.base_timestamp,
        )
        assert RecordBatch(ours).attributes == expected["attributes"]
        assert ours[16:] == bytes(batch.buffer)[16:], case["id"]
        seen += 1
    assert seen > 0


def test_kraft_batches_have_the_bytes_that_kafka_writes() -> None:
    seen = 0
    for case, batch, _ in control_batches():
        records = batch.decode()
        if batch.has_producer_id or batch.count != 1:
            continue
        ours = kraft_control_batch(
            [(control_type_of(records[0]), records[0].value or b"")],
            timestamp_ms=batch.base_timestamp,
            base_offset=batch.base_offset,
            leader_epoch=batch.partition_leader_epoch,
        )
        assert ours == bytes(batch.buffer), case["id"]
        seen += 1
    assert seen > 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\x00\x00\x00\x00\x00\x05"),
        (b"\x00\x00", b"\x00\x00\x00\x00\x00\x05"),
        (b"\xff\xff\x00\x01", b"\x00\x00\x00\x00\x00\x05"),
        (b"\x00\x00\x00\x02", b"\x00\x00\x00\x00\x00\x05"),
        (b"\x00\x00\x00\x01", None),
        (b"\x00\x00\x00\x01", b"\x00\x00\x00"),
        (b"\x00\x00\x00\x01", b"\xff\xff\x00\x00\x00\x05"),
    ],
)
def test_a_damaged_marker_is_invalid(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(InvalidRecord):
        decode_end_transaction_marker(Record(0, 0, key, value))


def test_a_plain_batch_has_no_marker() -> None:
    batch = end_transaction_batch(
        EndTransactionMarker(ControlType.COMMIT, 1), producer_id=-1, producer_epoch=-1, timestamp_ms=0
    )

    assert marker_of(RecordBatch(batch)) is None
