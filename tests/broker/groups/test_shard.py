"""Shards: what is left of a log when it is loaded, and what is done with records that nobody knows."""

from __future__ import annotations

import pytest

from ottla.broker.groups.classic import ClassicGroup
from ottla.broker.groups.group import MemberClaim
from ottla.broker.groups.offsets import CommittedOffset, offset_record, offset_tombstone
from ottla.broker.groups.shard import GroupShard, encode_group_record, tombstone
from ottla.engine import Shard, StateBatch, StateRecord
from ottla.errors import KafkaStorageError
from ottla.model import TopicPartition
from ottla.protocol.internal.framing import CoordinatorRecord
from ottla.protocol.internal.group_records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
)
from tests.broker.groups.harness import Bench, MemoryShards

SHARD = Shard("__consumer_offsets", 0)
PARTITION = TopicPartition("t", 0)


def commit_of(offset: int, group_id: str = "g", partition: TopicPartition = PARTITION) -> StateRecord:
    return encode_group_record(offset_record(group_id, partition, CommittedOffset(offset)))


def forget(group_id: str = "g", partition: TopicPartition = PARTITION) -> StateRecord:
    return encode_group_record(offset_tombstone(group_id, partition))


def delete(group_id: str = "g") -> StateRecord:
    return encode_group_record(tombstone(GroupMetadataKey(group=group_id)))


class Log:
    """A shard's log, written batch by batch."""

    def __init__(self) -> None:
        self.store = MemoryShards()
        self.batches: list[StateBatch] = []
        self.store.batches[SHARD] = self.batches
        self._next_offset = 0

    def append(self, *records: StateRecord, producer_id: int = -1) -> Log:
        self.batches.append(StateBatch(self._next_offset, 0, records, producer_id))
        self._next_offset += len(records)
        return self

    def end(self, producer_id: int, *, is_commit: bool) -> Log:
        self.batches.append(StateBatch(self._next_offset, 0, (), producer_id, is_commit))
        self._next_offset += 1
        return self

    def load(self) -> GroupShard:
        shard = GroupShard(SHARD, self.store, lead=lambda shard: 0, make_simple_group=ClassicGroup)
        shard.load()
        return shard

    def offset(self, group_id: str = "g") -> int | None:
        found = self.load().offsets.find(group_id, *PARTITION)
        return None if found is None else found.offset


def test_of_each_key_the_newest_record_counts() -> None:
    log = Log().append(commit_of(1), commit_of(2, "h")).append(commit_of(3))
    assert (log.offset(), log.offset("h")) == (3, 2)


def test_a_tombstone_removes_and_a_later_record_brings_back() -> None:
    log = Log().append(commit_of(1)).append(forget())
    assert log.offset() is None
    log.append(commit_of(2))
    assert log.offset() == 2


def test_a_group_is_there_once_it_committed_until_it_is_deleted() -> None:
    """Also when all its offsets are gone, as long as nothing was compacted: Kafka lists it."""
    log = Log().append(commit_of(1)).append(forget())
    assert set(log.load().groups) == {"g"}
    log.append(delete())
    assert set(log.load().groups) == set()
    log.append(commit_of(1, "h"), encode_group_record(tombstone(ConsumerGroupMetadataKey(group_id="h"))))
    assert set(log.load().groups) == {"h"}  # it still has an offset
    log.append(commit_of(1))
    assert set(log.load().groups) == {"g", "h"}


def test_records_of_a_transaction_count_from_its_commit_on() -> None:
    log = Log().append(commit_of(1)).append(commit_of(5), producer_id=9)
    shard = log.load()
    assert (log.offset(), shard.offsets.is_pending("g", *PARTITION)) == (1, True)
    log.end(9, is_commit=True)
    shard = log.load()
    assert (log.offset(), shard.offsets.is_pending("g", *PARTITION)) == (5, False)


def test_records_of_an_aborted_transaction_never_count_but_their_group_is_known() -> None:
    log = Log().append(commit_of(5), producer_id=9).end(9, is_commit=False)
    assert log.offset() is None
    assert set(log.load().groups) == {"g"}


def test_a_plain_commit_after_one_in_a_transaction_wins() -> None:
    log = Log().append(commit_of(5), producer_id=9).append(commit_of(6)).end(9, is_commit=True)
    assert log.offset() == 6


def test_transactions_of_producers_do_not_mix() -> None:
    log = Log().append(commit_of(5), producer_id=8).append(commit_of(6, "h"), producer_id=9)
    log.end(9, is_commit=True).end(8, is_commit=False)
    assert (log.offset(), log.offset("h")) == (None, 6)


def test_the_end_of_a_transaction_that_committed_nothing_here_is_no_matter() -> None:
    assert Log().append(commit_of(1)).end(77, is_commit=True).offset() == 1


def test_records_of_a_type_that_nobody_knows_are_left_alone() -> None:
    from_the_future = StateRecord(b"\x00\x63\x00\x01x", b"\x00\x00")
    assert Log().append(from_the_future).append(commit_of(1)).offset() == 1


@pytest.mark.parametrize(
    "record",
    [
        StateRecord(b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x01", b"\x00\x63\x00"),  # a version from the future
        StateRecord(b"\x00\x03\x00\x01g", b"\x00\x63"),
        StateRecord(b"\x00\x01\x00", b"\x00\x01"),
        StateRecord(b"\x00", b""),
        StateRecord(b"\x00\x02\x00\x01g", b"\x00\x03\x00"),
        StateRecord(None, b"no key"),
    ],
)
@pytest.mark.parametrize("producer_id", [-1, 7])
def test_a_record_that_cannot_be_read_ends_the_load(record: StateRecord, producer_id: int) -> None:
    """As in Kafka 4.4, which was asked with each of these: without it a group would go on from an older offset."""
    log = Log().append(commit_of(1), commit_of(2)).append(record, producer_id=producer_id)
    with pytest.raises(KafkaStorageError, match="__consumer_offsets-0 cannot be loaded: the record of offset 2 "):
        log.load()


def test_a_record_that_cannot_be_read_is_no_matter_once_a_newer_one_took_its_place() -> None:
    torn = StateRecord(commit_of(1).key, b"\x00\x04\x00")
    assert Log().append(torn).append(commit_of(2)).offset() == 2


@pytest.mark.parametrize("is_classic_newer", [True, False])
def test_of_two_kinds_of_a_group_the_newer_is_loaded(*, is_classic_newer: bool) -> None:
    """A conversion writes tombstones for what was; a log that has lost them must not end the start."""
    classic = CoordinatorRecord(GroupMetadataKey(group="g"), GroupMetadataValue(protocol_type="consumer"), 3)
    consumer = CoordinatorRecord(ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=3), 0)
    records = [encode_group_record(record) for record in (consumer, classic)]
    store = MemoryShards()
    store.batches[SHARD] = [StateBatch(0, 0, records if is_classic_newer else records[::-1])]

    assert Bench(store).states() == {"g": "Empty"}
    (group,) = Bench(store).coordinator.groups()
    assert isinstance(group, ClassicGroup) == is_classic_newer


def test_a_coordinator_record_is_a_key_with_its_type_and_a_value_with_its_version() -> None:
    record = encode_group_record(offset_record("g", PARTITION, CommittedOffset(5, topic_id=bytes(16))))
    assert record.key == b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00"
    assert record.value is not None and record.value[:2] == b"\x00\x04"
    assert isinstance(offset_tombstone("g", PARTITION), CoordinatorRecord)
    assert forget() == StateRecord(record.key, None)


def test_groups_are_spread_over_the_shards_by_kafkas_hash() -> None:
    bench = Bench()
    for number in range(40):
        bench.commit(("t", 0, 1), group_id=f"group-{number}")
    assert {shard.partition: len(batches) for shard, batches in bench.store.batches.items()} == {
        0: 10,
        1: 10,
        2: 10,
        3: 10,
    }
    assert bench.coordinator.partition_of("group-0") == 2


def test_deleting_a_group_is_durable_and_takes_its_offsets_along() -> None:
    bench = Bench()
    (member,) = bench.stable_group(1)
    bench.commit(("t", 0, 1), claim=member.claim)
    bench.commit(("t", 0, 1), group_id="other")
    member.leave()
    assert bench.delete_group() == [None]
    for coordinator in (bench, bench.restart()):
        assert coordinator.states() == {"other": "Empty"}
        assert coordinator.committed() == {}


@pytest.mark.parametrize(("group_id", "code"), [("g", 68), ("nobody", 69), ("", 24)])
def test_groups_that_cannot_be_deleted(group_id: str, code: int) -> None:
    bench = Bench()
    bench.stable_group(1)
    (error,) = bench.delete_group(group_id)
    assert error is not None and error.code == code


def test_a_deletion_that_cannot_be_written_deletes_nothing() -> None:
    bench = Bench()
    bench.commit(("t", 0, 1))
    bench.store.failure = KafkaStorageError()
    (error,) = bench.delete_group()
    assert error is not None and error.code == 16
    assert bench.committed() == {("t", 0): 1}


def test_groups_are_listed_by_state_and_type_in_any_case() -> None:
    bench = Bench()
    bench.stable_group(1, group_id="live")
    bench.commit(("t", 0, 1), group_id="empty", claim=MemberClaim())

    def names(states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> set[str]:
        return {group.group_id for group in bench.coordinator.list_groups(states, types)}

    assert names() == {"live", "empty"}
    assert names(("stable",)) == {"live"}
    assert names(("STABLE", "Empty")) == {"live", "empty"}
    assert names(("Nonsense",)) == set()
    assert names(types=("CLASSIC",)) == {"live", "empty"}
    assert names(types=("consumer",)) == set()
