"""CreateTopics, DeleteTopics and CreatePartitions: rows, texts and what waits for the disk.

That the answers are Kafka's in all versions is shown by the recorded conversations; here is what they don't show.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.dialects.kafka.answers import LaterAnswer
from ottla.dialects.kafka.handlers import create_partitions, create_topics, delete_topics
from ottla.errors import KafkaStorageError
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.dialects.handlers.harness import Bench

NONE, TIMED_OUT, INVALID_REQUEST, POLICY_VIOLATION, STORAGE_ERROR, DELETION_DISABLED = 0, 7, 42, 44, 56, 73


def creation(
    *names: str, num_partitions: int = 1, timeout_ms: int = 1_000, validate_only: bool = False
) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=num_partitions, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_creation_is_answered_when_it_is_durable(bench: Bench) -> None:
    answer = bench.begin(create_topics.handle(creation("t"), bench.context(7)))
    assert isinstance(answer, LaterAnswer)
    assert bench.broker.find_topic("t") is not None, "it is there at once"
    assert answer.response is None
    bench.store.tickets[-1].settle()
    assert isinstance(answer.response, CreateTopicsResponse)


def test_a_creation_that_cannot_be_written_is_a_storage_error_in_every_row(bench: Bench) -> None:
    answer = bench.begin(create_topics.handle(creation("t", "u"), bench.context(7)))
    assert isinstance(answer, LaterAnswer)
    bench.store.tickets[-1].settle(KafkaStorageError("the disk is gone"))
    response: Any = answer.response
    assert [row.error_code for row in response.topics] == [STORAGE_ERROR, STORAGE_ERROR]


def test_settings_are_answered_as_they_were_written_with_their_source(bench: Bench) -> None:
    request = creation("t")
    request.topics[0].configs = [CreatableTopicConfig(name="cleanup.policy", value=" compact , delete ")]
    (row,) = bench.ask(create_topics, request, 7).topics
    entries = {entry.name: (entry.value, entry.config_source) for entry in row.configs}
    assert entries["cleanup.policy"] == (" compact , delete ", 1)
    assert entries["min.insync.replicas"] == ("1", 3)
    assert entries["segment.bytes"] == ("1073741824", 5)
    assert "internal.segment.bytes" not in entries


@pytest.mark.parametrize(
    ("names", "codes"),
    [
        (("t",), [TIMED_OUT]),
        (("t", "t", "u"), [TIMED_OUT, TIMED_OUT, TIMED_OUT]),
        (("t", "t"), [INVALID_REQUEST]),
        (("__cluster_metadata",), [INVALID_REQUEST]),
        ((), []),
    ],
)
def test_a_timeout_that_is_over_creates_nothing(bench: Bench, names: tuple[str, ...], codes: list[int]) -> None:
    """Seen on a running 4.4.0: rows that fail before the controller is asked are told so."""
    response = bench.ask(create_topics, creation(*names, timeout_ms=0), 7)
    assert [row.error_code for row in response.topics] == codes
    assert list(bench.broker.image.topic_names()) == []


def test_a_creation_that_is_too_large_is_refused_row_by_row(bench: Bench) -> None:
    response = bench.ask(create_topics, creation("m1", "m2", num_partitions=6_000, validate_only=True), 7)
    assert [row.error_code for row in response.topics] == [POLICY_VIOLATION, POLICY_VIOLATION]


@pytest.mark.parametrize(("version", "code"), [(2, INVALID_REQUEST), (3, DELETION_DISABLED), (6, DELETION_DISABLED)])
def test_deletion_can_be_forbidden(tmp_path: Path, version: int, code: int) -> None:
    bench = Bench(tmp_path, delete_topic_enable="false")
    bench.ask(create_topics, creation("t"), 7)
    request = DeleteTopicsRequest(topic_names=["t"], topics=[DeleteTopicState(name="t")], timeout_ms=1_000)
    (row,) = bench.ask(delete_topics, request, version).responses
    assert row.error_code == code
    assert bench.broker.find_topic("t") is not None


def test_a_deletion_whose_timeout_is_over_deletes_nothing_and_says_no_more(bench: Bench) -> None:
    bench.ask(create_topics, creation("t"), 7)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=0)
    (row,) = bench.ask(delete_topics, request, 6).responses
    assert (row.name, row.error_code, row.error_message) == ("t", TIMED_OUT, None)
    assert bench.broker.find_topic("t") is not None


def test_a_deleted_topic_is_gone_for_everybody(bench: Bench) -> None:
    bench.ask(create_topics, creation("t"), 7)
    (row,) = bench.ask(delete_topics, DeleteTopicsRequest(topic_names=["t"], timeout_ms=1_000), 5).responses
    assert row.error_code == NONE
    assert bench.broker.find_topic("t") is None


def test_growth_reaches_the_partitions_that_are_served(bench: Bench) -> None:
    bench.ask(create_topics, creation("t"), 7)
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="t", count=3, assignments=None)], timeout_ms=1_000
    )
    (row,) = bench.ask(create_partitions, request, 3).results
    assert (row.error_code, row.error_message) == (NONE, None)
    topic = bench.broker.find_topic("t")
    assert topic is not None
    assert len(topic.partitions) == 3


@pytest.mark.parametrize(("counts", "code"), [([3], TIMED_OUT), ([3, 4], INVALID_REQUEST)])
def test_growth_whose_timeout_is_over(bench: Bench, counts: list[int], code: int) -> None:
    bench.ask(create_topics, creation("t"), 7)
    topics = [CreatePartitionsTopic(name="t", count=count, assignments=None) for count in counts]
    (row,) = bench.ask(create_partitions, CreatePartitionsRequest(topics=topics, timeout_ms=0), 3).results
    assert row.error_code == code
