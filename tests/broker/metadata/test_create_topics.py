"""CreateTopics, decided: which rows are refused, in which order of checks, and what the records are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ottla.broker.metadata.create_topics import CreatedTopic, NewTopic, TopicPlacement, decide_create_topics
from ottla.broker.metadata.records import (
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from ottla.broker.metadata.state import MetadataState
from ottla.errors import KafkaError, PolicyViolation
from ottla.model import OFFSETS_TOPIC, TopicId
from tests.broker.metadata.harness import DIRECTORY_ID, state_of, topic_id

BROKER = RegisterBrokerRecord(broker_id=1, fenced=False)
PLACEMENT = TopicPlacement(num_partitions=2, replication_factor=1, directory_id=DIRECTORY_ID)
NEW_ID = topic_id(77)


def accept(configs: Mapping[str, str]) -> None:
    """Settings are another room's matter."""


def decide(
    *topics: NewTopic, state: MetadataState | None = None
) -> tuple[Sequence[MetadataRecord], Mapping[str, CreatedTopic | KafkaError]]:
    state = state_of(BROKER) if state is None else state
    decision = decide_create_topics(
        state, topics, PLACEMENT, check_configs=accept, new_topic_id=lambda: TopicId(NEW_ID)
    )
    return decision.records, decision.answer


def refusal(topic: NewTopic, state: MetadataState | None = None) -> str:
    records, answer = decide(topic, state=state)
    error = answer[topic.name]
    assert isinstance(error, KafkaError), f"{topic} was created"
    assert list(records) == []
    return error.name


def test_a_topic_becomes_its_record_its_settings_and_its_partitions() -> None:
    records, answer = decide(NewTopic("t", 2, 1, configs=[("retention.ms", "5")]))
    assert answer == {"t": CreatedTopic("t", NEW_ID, 2, 1, {"retention.ms": "5"})}
    assert [type(record) for record in records] == [TopicRecord, ConfigRecord, PartitionRecord, PartitionRecord]
    last = records[-1]
    assert isinstance(last, PartitionRecord)
    assert (last.partition_id, last.replicas, last.isr, last.leader) == (1, [1], [1], 1)
    assert (last.leader_epoch, last.partition_epoch, last.directories) == (0, 0, [DIRECTORY_ID])


def test_counts_of_minus_one_are_the_brokers_defaults() -> None:
    _, answer = decide(NewTopic("t"))
    created = answer["t"]
    assert isinstance(created, CreatedTopic)
    assert (created.num_partitions, created.replication_factor) == (2, 1)


def test_the_last_of_a_repeated_setting_wins() -> None:
    _, answer = decide(NewTopic("t", configs=[("retention.ms", "5"), ("retention.ms", "6")]))
    created = answer["t"]
    assert isinstance(created, CreatedTopic)
    assert created.configs == {"retention.ms": "6"}


def test_min_insync_replicas_clears_eligible_leaders_before_the_partitions() -> None:
    """Kafka writes the record even for a topic that is being created."""
    state = state_of(BROKER, FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1))
    records, _ = decide(NewTopic("t", 1, configs=[("min.insync.replicas", "1")]), state=state)
    assert [type(record) for record in records] == [TopicRecord, ConfigRecord, ClearElrRecord, PartitionRecord]


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic(""), "INVALID_TOPIC_EXCEPTION"),
        (NewTopic("."), "INVALID_TOPIC_EXCEPTION"),
        (NewTopic(".."), "INVALID_TOPIC_EXCEPTION"),
        (NewTopic("a b"), "INVALID_TOPIC_EXCEPTION"),
        (NewTopic("ü"), "INVALID_TOPIC_EXCEPTION"),
        (NewTopic("x" * 250), "INVALID_TOPIC_EXCEPTION"),
        (NewTopic("__cluster_metadata"), "INVALID_REQUEST"),
        (NewTopic("t", 0, 1), "INVALID_PARTITIONS"),
        (NewTopic("t", -2, 1), "INVALID_PARTITIONS"),
        (NewTopic("t", 1, 0), "INVALID_REPLICATION_FACTOR"),
        (NewTopic("t", 1, -2), "INVALID_REPLICATION_FACTOR"),
        (NewTopic("t", 1, 2), "INVALID_REPLICATION_FACTOR"),
        (NewTopic("t", 0, 0), "INVALID_REPLICATION_FACTOR"),
        (NewTopic("t", 0, 2), "INVALID_PARTITIONS"),
        (NewTopic("t", configs=[("retention.ms", None)]), "INVALID_CONFIG"),
        (NewTopic("t", 2, -1, assignments=[(0, [1]), (1, [1])]), "INVALID_REQUEST"),
        (NewTopic("t", -1, 1, assignments=[(0, [1])]), "INVALID_REQUEST"),
        (NewTopic("t", assignments=[(0, [1, 1])]), "INVALID_REPLICA_ASSIGNMENT"),
        (NewTopic("t", assignments=[(0, [])]), "INVALID_REPLICA_ASSIGNMENT"),
        (NewTopic("t", assignments=[(0, [9])]), "INVALID_REPLICA_ASSIGNMENT"),
        (NewTopic("t", assignments=[(0, [-1])]), "INVALID_REPLICA_ASSIGNMENT"),
        (NewTopic("t", assignments=[(0, [1]), (0, [1])]), "INVALID_REPLICA_ASSIGNMENT"),
        (NewTopic("t", assignments=[(0, [1]), (2, [1])]), "INVALID_REPLICA_ASSIGNMENT"),
        (NewTopic("t", assignments=[(1, [1])]), "INVALID_REPLICA_ASSIGNMENT"),
        (NewTopic("t", assignments=[(0, [1]), (1, [1, 9])]), "INVALID_REPLICA_ASSIGNMENT"),
    ],
)
def test_a_topic_that_cannot_be_is_refused(topic: NewTopic, error: str) -> None:
    assert refusal(topic) == error


def test_an_assignment_decides_the_number_of_partitions() -> None:
    _, answer = decide(NewTopic("t", assignments=[(1, [1]), (0, [1]), (2, [1])]))
    created = answer["t"]
    assert isinstance(created, CreatedTopic)
    assert created.num_partitions == 3


def test_an_existing_topic_is_refused_also_when_its_name_has_dots() -> None:
    state = state_of(BROKER, TopicRecord(name="a.b", topic_id=topic_id(1)), TopicRecord(name="t", topic_id=topic_id(2)))
    assert refusal(NewTopic("t"), state) == "TOPIC_ALREADY_EXISTS"
    assert refusal(NewTopic("a.b"), state) == "TOPIC_ALREADY_EXISTS"
    assert refusal(NewTopic("a_b"), state) == "INVALID_TOPIC_EXCEPTION"


def test_an_internal_topic_can_be_created_by_anyone() -> None:
    _, answer = decide(NewTopic(OFFSETS_TOPIC, 1, 1))
    assert isinstance(answer[OFFSETS_TOPIC], CreatedTopic)


def test_names_of_one_request_may_collide_with_each_other() -> None:
    """Kafka compares with existing topics only (seen on a running 4.4.0)."""
    _, answer = decide(NewTopic("q.b"), NewTopic("q_b"))
    assert all(isinstance(row, CreatedTopic) for row in answer.values())


def test_a_name_that_stands_twice_has_one_refused_row_and_harms_no_other() -> None:
    records, answer = decide(NewTopic("t", 1), NewTopic("other", 1), NewTopic("t", 2))
    assert list(answer) == ["t", "other"]
    error = answer["t"]
    assert isinstance(error, KafkaError)
    assert error.name == "INVALID_REQUEST"
    assert [record.name for record in records if isinstance(record, TopicRecord)] == ["other"]


@pytest.mark.parametrize(
    "topics",
    [
        [NewTopic("t", 10_001, 1)],
        [NewTopic("t", 6_000, 1), NewTopic("u", 6_000, 1)],
        [NewTopic("t", 9_999, 1), NewTopic("u")],
    ],
)
def test_too_many_partitions_refuse_the_whole_request(topics: list[NewTopic]) -> None:
    with pytest.raises(PolicyViolation):
        decide(*topics)


def test_settings_are_checked_before_counts() -> None:
    assert refusal(NewTopic("t", 0, 0, configs=[("retention.ms", None)])) == "INVALID_CONFIG"


def test_without_a_live_broker_nothing_can_be_placed() -> None:
    assert refusal(NewTopic("t", 1, 1), state_of()) == "INVALID_REPLICATION_FACTOR"
