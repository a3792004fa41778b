"""AlterPartitionReassignments, decided and recorded."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ottla.broker.metadata.reassign_partitions import Reassignment, decide_reassignments
from ottla.broker.metadata.records import (
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    encode_record,
)
from ottla.broker.metadata.registration import format_records
from tests.broker.metadata.harness import LEVEL, MemoryStore, start, state_of, topic_id

T1, HERE, THERE = topic_id(1), b"h" * 16, b"t" * 16
RECORDS: list[MetadataRecord] = [
    RegisterBrokerRecord(broker_id=1, fenced=False),
    RegisterBrokerRecord(broker_id=2, fenced=True),
    TopicRecord(name="t", topic_id=T1),
    PartitionRecord(partition_id=0, topic_id=T1, replicas=[1], isr=[1], leader=1, directories=[HERE]),
    PartitionRecord(partition_id=1, topic_id=T1, replicas=[2, 1], isr=[2, 1], leader=2, directories=[THERE, HERE]),
    PartitionRecord(
        partition_id=2, topic_id=T1, replicas=[1, 2], isr=[1], leader=1, adding_replicas=[2], directories=[HERE, THERE]
    ),
    PartitionRecord(partition_id=3, topic_id=T1, replicas=[2], isr=[2], leader=2, directories=[THERE]),
]
STATE = state_of(*RECORDS)


def outcome(partition: int, replicas: Sequence[int] | None, topic: str = "t", *, may_change: bool = True) -> str | None:
    asked = [Reassignment(topic, partition, replicas)]
    decision = decide_reassignments(STATE, asked, allow_replication_factor_change=may_change)
    (error,) = decision.answer
    assert error is None or not decision.records
    return None if error is None else error.name


@pytest.mark.parametrize(
    ("partition", "replicas", "error"),
    [
        (0, [1], None),
        (0, None, "NO_REASSIGNMENT_IN_PROGRESS"),
        (0, [], "INVALID_REPLICA_ASSIGNMENT"),
        (0, [1, 1], "INVALID_REPLICA_ASSIGNMENT"),
        (0, [-1], "INVALID_REPLICA_ASSIGNMENT"),
        (0, [9], "INVALID_REPLICA_ASSIGNMENT"),
        (0, [1, 2], "INVALID_REPLICA_ASSIGNMENT"),
        (1, [1], None),
        (2, None, None),
        (3, [1], "INVALID_REPLICA_ASSIGNMENT"),
        (9, [1], "UNKNOWN_TOPIC_OR_PARTITION"),
        (9, None, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_reassignments_are_checked_as_by_kafka(partition: int, replicas: list[int] | None, error: str | None) -> None:
    assert outcome(partition, replicas) == error


def test_topics_must_be_known_and_the_number_of_replicas_may_be_kept() -> None:
    assert outcome(0, [1], topic="nope") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert outcome(1, [1], may_change=False) == "INVALID_REPLICATION_FACTOR"
    assert outcome(0, [1], may_change=False) is None


def test_a_partition_that_stays_is_not_recorded() -> None:
    asked = [Reassignment("t", 0, [1])]
    assert decide_reassignments(STATE, asked, allow_replication_factor_change=True).records == []


def test_replicas_that_are_gone_are_given_up_and_the_leader_epoch_does_not_fall() -> None:
    store = MemoryStore(format_records())
    store.snapshot_values += [encode_record(record, LEVEL) for record in RECORDS]
    controller = start(store)
    before = controller.view.topic("t")
    assert before is not None
    controller.reassign_partitions([Reassignment("t", 1, [1])], allow_replication_factor_change=True)
    after = controller.view.topic("t")
    assert after is not None
    moved = after.partitions[1]
    assert (moved.replicas, moved.isr, moved.directories, moved.leader) == ((1,), (1,), (HERE,), 1)
    assert moved.leader_epoch == before.partitions[1].leader_epoch
    assert not controller.write_leader_epoch(T1, 1)


def test_a_reassignment_that_is_taken_back_leaves_the_replicas_of_before() -> None:
    decision = decide_reassignments(STATE, [Reassignment("t", 2, None)], allow_replication_factor_change=True)
    partition = state_of(*RECORDS, *decision.records).topic("t")
    assert partition is not None
    kept = partition.partitions[2]
    assert (kept.replicas, kept.adding_replicas, kept.directories) == ((1,), (), (HERE,))
