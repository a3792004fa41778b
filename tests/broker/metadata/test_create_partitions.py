"""CreatePartitions, decided."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ottla.broker.metadata.create_partitions import GrownTopic, decide_create_partitions
from ottla.broker.metadata.records import PartitionRecord, RegisterBrokerRecord, TopicRecord
from ottla.errors import InvalidRequest, KafkaError, PolicyViolation, UnknownTopicOrPartition
from tests.broker.metadata.harness import DIRECTORY_ID, state_of, topic_id

T1, T2 = topic_id(1), topic_id(2)
STATE = state_of(
    RegisterBrokerRecord(broker_id=1, fenced=False),
    TopicRecord(name="t", topic_id=T1),
    PartitionRecord(partition_id=0, topic_id=T1, replicas=[1], isr=[1], leader=1, leader_epoch=4, partition_epoch=4),
    PartitionRecord(partition_id=1, topic_id=T1, replicas=[1], isr=[1], leader=1, leader_epoch=0, partition_epoch=0),
    TopicRecord(name="u", topic_id=T2),
    PartitionRecord(partition_id=0, topic_id=T2, replicas=[1], isr=[1], leader=1, leader_epoch=0, partition_epoch=0),
)


def outcome(count: int, assignments: Sequence[Sequence[int]] | None = None, name: str = "t") -> str | None:
    decision = decide_create_partitions(STATE, [GrownTopic(name, count, assignments)], directory_id=DIRECTORY_ID)
    error = decision.answer[name]
    assert bool(decision.records) is (error is None)
    return None if error is None else error.name


def test_new_partitions_begin_at_epoch_0_behind_the_old_ones() -> None:
    records = decide_create_partitions(STATE, [GrownTopic("t", 4)], directory_id=DIRECTORY_ID).records
    found = [record for record in records if isinstance(record, PartitionRecord)]
    assert [(one.partition_id, one.leader_epoch, one.replicas) for one in found] == [(2, 0, [1]), (3, 0, [1])]


@pytest.mark.parametrize(
    ("count", "assignments", "error"),
    [
        (3, None, None),
        (3, [[1]], None),
        (2, None, "INVALID_PARTITIONS"),
        (1, None, "INVALID_PARTITIONS"),
        (0, None, "INVALID_PARTITIONS"),
        (-1, None, "INVALID_PARTITIONS"),
        (3, [], "INVALID_REPLICA_ASSIGNMENT"),
        (3, [[]], "INVALID_REPLICA_ASSIGNMENT"),
        (3, [[1], [1]], "INVALID_REPLICA_ASSIGNMENT"),
        (4, [[1]], "INVALID_REPLICA_ASSIGNMENT"),
        (3, [[1, 1]], "INVALID_REPLICA_ASSIGNMENT"),
        (3, [[1, 2]], "INVALID_REPLICA_ASSIGNMENT"),
        (3, [[9]], "INVALID_REPLICA_ASSIGNMENT"),
    ],
)
def test_growth_is_checked_as_by_kafka(count: int, assignments: list[list[int]] | None, error: str | None) -> None:
    assert outcome(count, assignments) == error


def test_an_unknown_topic_is_told_so_without_words() -> None:
    error = decide_create_partitions(STATE, [GrownTopic("nope", 3)], directory_id=DIRECTORY_ID).answer["nope"]
    assert error is not None
    assert (error.name, error.message) == ("UNKNOWN_TOPIC_OR_PARTITION", None)


def test_a_topic_that_stands_twice_does_not_grow() -> None:
    decision = decide_create_partitions(STATE, [GrownTopic("t", 3), GrownTopic("t", 4)], directory_id=DIRECTORY_ID)
    assert [error.name for error in decision.answer.values() if error is not None] == ["INVALID_REQUEST"]
    assert decision.records == []


def test_too_many_new_partitions_refuse_the_whole_request() -> None:
    with pytest.raises(PolicyViolation):
        decide_create_partitions(STATE, [GrownTopic("t", 10_003)], directory_id=DIRECTORY_ID)


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        ([GrownTopic("nope", 10_001)], UnknownTopicOrPartition),
        ([GrownTopic("u", 10_002), GrownTopic("u", 2)], InvalidRequest),
    ],
    ids=["is not there", "is named twice"],
)
def test_what_is_asked_for_a_topic_that_is_refused_does_not_count(
    refused: list[GrownTopic], error: type[KafkaError]
) -> None:
    answer = decide_create_partitions(STATE, [*refused, GrownTopic("t", 3)], directory_id=DIRECTORY_ID).answer
    assert isinstance(answer[refused[0].name], error)
    assert answer["t"] is None
