"""Stored records as Kafka frames them, in its own logs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.errors import UnsupportedVersion
from ottla.protocol.codec import DecodeError, decode, encode
from ottla.protocol.internal import framing
from ottla.protocol.internal.consumer_protocol import ConsumerProtocolSubscription
from ottla.protocol.internal.control_records import ControlRecordTypeSchema, EndTxnMarker
from ottla.protocol.internal.framing import CoordinatorRecord, RawCoordinatorRecord, RawRecord
from ottla.protocol.internal.group_records import OffsetCommitKey
from ottla.protocol.internal.metadata_records import FeatureLevelRecord, NoOpRecord
from ottla.protocol.internal.principal import DefaultPrincipalData
from tests.protocol.kafka_data import Json, Shown, lines, message_types

CASES = list(lines("record_frames.jsonl.gz"))


def of_kind(*kinds: str) -> list[Json]:
    return [case for case in CASES if case["kind"] in kinds]


@pytest.mark.parametrize(
    ("kind", "decode_record"),
    [
        ("metadata-record", framing.decode_metadata_record),
        ("remote-log-metadata-record", framing.decode_remote_log_record),
    ],
)
def test_metadata_records(kind: str, decode_record: Callable[[bytes], object]) -> None:
    for case in of_kind(kind):
        data = bytes.fromhex(case["hex"])

        record = decode_record(data)

        assert isinstance(record, message_types()[case["name"]]), case
        assert Shown(record, case["v"]).json == case["json"], case
        assert framing.encode_metadata_record(record, case["v"]) == data, case


@pytest.mark.parametrize(
    ("kind", "decode_record"),
    [
        ("group-coordinator", framing.decode_group_record),
        ("transaction-coordinator", framing.decode_transaction_record),
        ("share-coordinator", framing.decode_share_record),
    ],
)
def test_coordinator_records(kind: str, decode_record: Callable[[bytes, bytes | None], object]) -> None:
    for case in of_kind(kind):
        key = bytes.fromhex(case["keyHex"])
        value = None if case["valueHex"] is None else bytes.fromhex(case["valueHex"])

        record = decode_record(key, value)

        assert isinstance(record, CoordinatorRecord), case
        assert isinstance(record.key, message_types()[case["keyName"]]), case
        assert Shown(record.key, framing.KEY_VERSION).json == case["key"], case
        assert framing.encode_coordinator_key(record.key) == key, case
        if value is None:
            assert (record.value, record.version) == (None, -1), case
            continue
        assert isinstance(record.value, message_types()[case["valueName"]]), case
        assert record.version == case["v"], case
        assert Shown(record.value, case["v"]).json == case["value"], case
        assert framing.encode_versioned(record.value, case["v"]) == value, case


def test_control_records() -> None:
    for case in of_kind("control-batch"):
        key, value = bytes.fromhex(case["recordKeyHex"]), bytes.fromhex(case["recordValueHex"])
        if case["name"] == "EndTxnMarker":
            marker = framing.decode_versioned(EndTxnMarker, value)
            assert marker.coordinator_epoch == case["coordinatorEpoch"], case
            assert framing.encode_versioned(marker, 0) == value, case
        else:
            record = decode(message_types()[case["name"]], case["v"], value)
            assert Shown(record, case["v"]).json == case["json"], case
            assert encode(record, case["v"]) == value, case
        assert framing.encode_versioned(framing.decode_versioned(ControlRecordTypeSchema, key), 0) == key, case


def test_principals() -> None:
    for case in of_kind("principal"):
        data = bytes.fromhex(case["hex"])
        principal = framing.decode_versioned(DefaultPrincipalData, data)
        assert (principal.type, principal.name) == (case["type"], case["name"]), case
        assert principal.token_authenticated == case["tokenAuthenticated"], case
        assert framing.encode_versioned(principal, 0) == data, case


def test_unknown_metadata_records_are_kept_as_they_are() -> None:
    unknown_type = bytes([1, 99, 0, 1, 2, 3])
    assert framing.decode_metadata_record(unknown_type) == RawRecord(99, 0, unknown_type)
    newer = bytearray(framing.encode_metadata_record(FeatureLevelRecord(name="f"), 0))
    newer[2] = 7
    assert framing.decode_metadata_record(bytes(newer)) == RawRecord(12, 7, bytes(newer))


def test_unknown_coordinator_records_are_kept_as_they_are() -> None:
    assert framing.decode_group_record(b"\x00\x63key", b"v") == RawCoordinatorRecord(99, b"\x00\x63key", b"v")
    key = framing.encode_coordinator_key(OffsetCommitKey(group="g", topic="t"))
    assert framing.decode_group_record(key, b"\x00\x63value") == RawCoordinatorRecord(1, key, b"\x00\x63value")


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x01\x02", b"\x00\x02\x00", b"\x01\x02\x00"])
def test_damaged_metadata_records_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        framing.decode_metadata_record(data)


@pytest.mark.parametrize(("key", "value"), [(b"", None), (b"\x00", None), (b"\x00\x01\x00", None)])
def test_damaged_coordinator_records_are_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        framing.decode_group_record(key, value)


def test_members_that_are_newer_are_read_as_far_as_known() -> None:
    subscription = ConsumerProtocolSubscription(topics=["t"], rack_id="r")
    highest = ConsumerProtocolSubscription.SCHEMA.versions.highest
    data = framing.encode_versioned(subscription, highest)
    assert framing.decode_versioned(ConsumerProtocolSubscription, b"\x00\x63" + data[2:]) == subscription
    with pytest.raises(UnsupportedVersion):
        framing.decode_versioned(ConsumerProtocolSubscription, b"\xff\xff" + data[2:])


def test_record_without_fields() -> None:
    data = framing.encode_metadata_record(NoOpRecord(), 0)
    assert data == bytes([1, 20, 0, 0])
    assert framing.decode_metadata_record(data) == NoOpRecord()
