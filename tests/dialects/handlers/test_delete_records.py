"""DeleteRecords, beside the recordings: what stands twice, what is the broker's own, and policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.metadata.alter_configs import ConfigAlteration
from ottla.broker.metadata.create_topics import NewTopic
from ottla.dialects.kafka.handlers import delete_records
from ottla.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tests.dialects.handlers.harness import Bench
from tests.storage.harness import make_batch

NONE, OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC, INVALID_TOPIC, POLICY_VIOLATION = 0, 1, 3, 17, 44
Row = tuple[str, int, int, int]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    policies = {"plain": "delete", "compacted": "compact", "both": "compact,delete", "kept": ""}
    for name, policy in policies.items():
        bench.controller.create_topics([NewTopic(name, 2, 1, configs=[("cleanup.policy", policy)])])
        bench.broker.append(bench.broker.partition(name, 0), memoryview(make_batch(3)))
    return bench


def delete(bench: Bench, *asked: tuple[str, int, int], timeout_ms: int = 5000) -> list[Row]:
    """Ask with a topic of its own for each partition; the rows as (topic, partition, low watermark, error)."""
    topics = [
        DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=number, offset=offset)])
        for name, number, offset in asked
    ]
    response = bench.ask(delete_records, DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms), 2)
    return [
        (topic.name, row.partition_index, row.low_watermark, row.error_code)
        for topic in response.topics
        for row in topic.partitions
    ]


def test_topics_that_stand_twice_get_one_row_and_of_a_partition_the_last_counts(bench: Bench) -> None:
    assert delete(bench, ("plain", 0, 9), ("plain", 1, 0), ("plain", 0, 2)) == [
        ("plain", 0, 2, NONE),
        ("plain", 1, 0, NONE),
    ]


def test_a_topic_without_partitions_gets_no_row(bench: Bench) -> None:
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="plain")], timeout_ms=5000)
    assert bench.ask(delete_records, request, 2).topics == []


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_the_timeout_does_not_matter(bench: Bench, timeout_ms: int) -> None:
    assert delete(bench, ("plain", 0, 1), timeout_ms=timeout_ms) == [("plain", 0, 1, NONE)]


@pytest.mark.parametrize(
    ("topic", "offset", "low_watermark", "error"),
    [
        ("plain", -1, 3, NONE),
        ("plain", -2, -1, OFFSET_OUT_OF_RANGE),
        ("plain", 4, -1, OFFSET_OUT_OF_RANGE),
        ("both", 2, 2, NONE),
        ("kept", 2, 2, NONE),
        ("compacted", 2, -1, POLICY_VIOLATION),
        ("compacted", -2, -1, POLICY_VIOLATION),
        ("nope", 0, -1, UNKNOWN_TOPIC),
        ("", 0, -1, UNKNOWN_TOPIC),
        ("__consumer_offsets", 0, -1, UNKNOWN_TOPIC),
        ("__cluster_metadata", 0, -1, UNKNOWN_TOPIC),
    ],
)
def test_one_partition(bench: Bench, topic: str, offset: int, low_watermark: int, error: int) -> None:
    assert delete(bench, (topic, 0, offset)) == [(topic, 0, low_watermark, error)]


def test_records_of_the_brokers_own_topics_stay(bench: Bench) -> None:
    bench.controller.auto_create_topics(["__consumer_offsets"])
    assert delete(bench, ("__consumer_offsets", 0, 0)) == [("__consumer_offsets", 0, -1, INVALID_TOPIC)]
    assert delete(bench, ("__consumer_offsets", 99, 0)) == [("__consumer_offsets", 99, -1, UNKNOWN_TOPIC)]


def test_a_change_of_policy_counts_at_once(bench: Bench) -> None:
    bench.broker.alter_configs([ConfigAlteration(2, "compacted", [("cleanup.policy", 0, "delete")])])
    assert delete(bench, ("compacted", 0, 2)) == [("compacted", 0, 2, NONE)]
