"""A partition of `__consumer_offsets` that cannot be loaded: its groups have no coordinator, all others are served.

What each API answers is what Apache Kafka 4.4.0 answered, started on a partition with a bit turned in the length of a
batch: NOT_COORDINATOR wherever a group is named, and a ListGroups without these groups.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.broker.groups.group import MemberClaim
from ottla.broker.groups.requests import LeavingMember, SyncRequest
from ottla.engine import Shard, StateBatch
from ottla.errors import KafkaError, KafkaStorageError, NotCoordinator
from ottla.model import OFFSETS_TOPIC, TopicPartition
from tests.broker.groups.consumer_harness import ConsumerBench, first_heartbeat
from tests.broker.groups.harness import PARTITIONS, Bench, MemoryShards

LOST = "group-0"
"""Lives in partition 2."""
FINE = "group-1"
DAMAGED = Shard(OFFSETS_TOPIC, 2)
PROBLEM = "__consumer_offsets-2 cannot be loaded: its file, byte 71: the batch fails its checksum"
A_DAY_SECONDS = 24 * 3600


class DamagedShards(MemoryShards):
    """State shards of which one ends in damage, until it is repaired."""

    def __init__(self) -> None:
        super().__init__()
        self.is_damaged = False

    def load(self, shard: Shard) -> Iterator[StateBatch]:
        yield from super().load(shard)
        if self.is_damaged and shard == DAMAGED:
            raise KafkaStorageError(PROBLEM)


def committed_bench(make: Callable[..., Bench] = Bench) -> Bench:
    """A coordinator in whose groups something was committed, restarted when one shard had become damaged."""
    store = DamagedShards()
    before = make(store)
    assert [before.coordinator.partition_of(group_id) for group_id in (LOST, FINE)] == [2, 3]
    for group_id in (LOST, FINE):
        assert before.commit(("t", 0, 7), group_id=group_id) == [None]
    store.is_damaged = True
    return make(store, before.clock)


def sync(bench: Bench, answers: list[Any]) -> None:
    bench.coordinator.sync(
        SyncRequest(
            group_id=LOST,
            member_id="m",
            group_instance_id=None,
            generation_id=1,
            protocol_type=None,
            protocol_name=None,
            assignments={},
        ),
        lambda outcome: answers.append(outcome.error),
    )


ANSWERED: dict[str, Callable[[Bench, list[Any]], object]] = {
    "JoinGroup": lambda bench, answers: answers.append(bench.member(group_id=LOST).join().joined.error),
    "SyncGroup": sync,
    "DeleteGroups": lambda bench, answers: answers.extend(bench.delete_group(LOST)),
    "ConsumerGroupHeartbeat": lambda bench, answers: bench.coordinator.consumer_heartbeat(
        first_heartbeat(LOST), answers.append
    ),
}
RAISED: dict[str, Callable[[Bench], object]] = {
    "Heartbeat": lambda bench: bench.coordinator.heartbeat(LOST, "m", None, 1),
    "LeaveGroup": lambda bench: bench.coordinator.leave(LOST, [LeavingMember("m", None)], print),
    "OffsetCommit": lambda bench: bench.commit(("t", 0, 8), group_id=LOST),
    "OffsetDelete": lambda bench: bench.coordinator.delete_offsets(LOST, [TopicPartition("t", 0)], print),
    "OffsetFetch": lambda bench: bench.coordinator.check_offset_fetch(LOST, MemberClaim()),
    "OffsetFetch of one": lambda bench: bench.coordinator.committed_offset(LOST, TopicPartition("t", 0)),
    "OffsetFetch of all": lambda bench: bench.coordinator.committed_offsets(LOST),
    "DescribeGroups": lambda bench: bench.coordinator.describe_classic(LOST),
    "ConsumerGroupDescribe": lambda bench: bench.coordinator.describe_consumer(LOST),
}


@pytest.mark.parametrize("api", ANSWERED)
def test_its_groups_are_answered_that_nobody_coordinates_them(api: str) -> None:
    answers: list[KafkaError | None] = []
    ANSWERED[api](committed_bench(ConsumerBench), answers)
    assert [type(answer) for answer in answers] == [NotCoordinator]


@pytest.mark.parametrize("api", RAISED)
def test_who_asks_about_its_groups_hears_that_nobody_coordinates_them(api: str) -> None:
    with pytest.raises(NotCoordinator, match="__consumer_offsets-2 could not be loaded"):
        RAISED[api](committed_bench(ConsumerBench))


def test_groups_of_other_partitions_are_served() -> None:
    bench = committed_bench()
    assert bench.coordinator.is_ready  # FindCoordinator names this broker, for these groups as for the others
    assert bench.states() == {FINE: "Empty"}
    assert [group.group_id for group in bench.coordinator.list_groups()] == [FINE]
    assert bench.committed(FINE) == {("t", 0): 7}
    assert bench.commit(("t", 0, 8), group_id=FINE) == [None]
    (member,) = bench.stable_group(1, group_id=FINE)
    assert member.leave() is None
    assert bench.delete_group(FINE) == [None]


def test_it_is_said_once_with_what_is_wrong(caplog: pytest.LogCaptureFixture) -> None:
    bench = committed_bench()
    bench.coordinator.open(PARTITIONS)  # as with every change of topics
    (line,) = caplog.records
    assert line.levelno == logging.ERROR
    assert line.getMessage().startswith(PROBLEM)
    assert "no coordinator" in line.getMessage()


def test_nothing_is_written_to_it() -> None:
    """Neither what expires nor what is forgotten with a topic: what it has is all there for whoever repairs it."""
    bench = committed_bench()
    before = list(bench.store.batches[DAMAGED])
    bench.coordinator.forget_topics(["t"])
    bench.advance(30 * A_DAY_SECONDS)
    bench.coordinator.close()
    assert bench.store.batches[DAMAGED] == before
    assert len(bench.store.batches[Shard(OFFSETS_TOPIC, 3)]) > 1


def test_a_start_that_finds_it_whole_has_its_groups_again() -> None:
    bench = committed_bench()
    assert isinstance(bench.store, DamagedShards)
    bench.store.is_damaged = False
    assert bench.restart().committed(LOST) == {("t", 0): 7}


def test_members_of_what_was_read_before_the_damage_have_no_sessions() -> None:
    store = DamagedShards()
    before = Bench(store)
    before.stable_group(2, group_id=LOST)
    store.is_damaged = True
    after = before.restart()
    expiry_only = len(Bench().timers)
    assert len(after.timers) == expiry_only
