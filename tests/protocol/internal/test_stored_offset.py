"""Committed offsets read where they stand: the same as by way of messages, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import UnsupportedVersion
from ottla.protocol.internal.framing import (
    CoordinatorRecord,
    decode_group_record,
    encode_coordinator_key,
    encode_versioned,
)
from ottla.protocol.internal.group_records import GroupMetadataKey, OffsetCommitKey, OffsetCommitValue
from ottla.protocol.internal.stored_offset import read_stored_offset
from ottla.protocol.primitives import DecodeError

KEY = encode_coordinator_key(OffsetCommitKey(group="group", topic="topic", partition=7))
TOPIC_ID = bytes(range(16))


def value_of(version: int, metadata: str = "", topic_id: bytes = bytes(16)) -> bytes:
    value = OffsetCommitValue(
        offset=2**40,
        leader_epoch=-1 if version < 3 else 3,
        metadata=metadata,
        commit_timestamp=1_700_000_000_000,
        topic_id=topic_id,
    )
    return encode_versioned(value, version)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("metadata", ["", "noted by its committer", "größer"])
def test_what_brokers_write_is_of_the_usual_form(version: int, metadata: str) -> None:
    topic_id = TOPIC_ID if version == 4 else bytes(16)
    found = read_stored_offset(KEY, value_of(version, metadata, topic_id))
    assert found == ("group", "topic", 7, 2**40, 3, metadata, 1_700_000_000_000, topic_id)


def test_other_keys_and_versions_and_long_metadata_go_the_general_way() -> None:
    assert read_stored_offset(encode_coordinator_key(GroupMetadataKey(group="a group")), value_of(3)) is None
    assert [version for version in range(5) if read_stored_offset(KEY, value_of(version)) is not None] == [3, 4]
    assert read_stored_offset(KEY, value_of(4, "x" * 126)) is not None
    assert read_stored_offset(KEY, value_of(4, "x" * 127)) is None


@given(
    key=st.sampled_from([KEY, encode_coordinator_key(OffsetCommitKey(group="", topic="", partition=-1))]),
    value=st.builds(value_of, st.sampled_from([3, 4]), st.text(max_size=60), st.sampled_from([bytes(16)]))
    | st.just(value_of(4, "", TOPIC_ID)),
    damage=st.lists(st.tuples(st.booleans(), st.integers(0, 99), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, 30),
)
def test_damaged_or_not_it_says_what_the_general_way_says(
    key: bytes, value: bytes, damage: list[tuple[bool, int, int]], cut: int
) -> None:
    """Where it says anything: it may leave a record to the general way, never read another thing out of it."""
    damaged = [bytearray(key), bytearray(value[: max(len(value) - cut, 2)])]
    for is_key, at, byte in damage:
        part = damaged[0 if is_key else 1]
        part[at % len(part)] = byte
    stored_key, stored_value = map(bytes, damaged)
    found = read_stored_offset(stored_key, stored_value)
    if found is None:
        return
    try:
        record = decode_group_record(stored_key, stored_value)
    except (DecodeError, UnsupportedVersion):
        raise AssertionError(f"read {found} from what is no record") from None
    assert isinstance(record, CoordinatorRecord)
    assert record.key == OffsetCommitKey(group=found[0], topic=found[1], partition=found[2])
    assert record.value == OffsetCommitValue(
        offset=found[3],
        leader_epoch=found[4],
        metadata=found[5],
        commit_timestamp=found[6],
        topic_id=found[7],
    )
