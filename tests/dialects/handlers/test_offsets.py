"""Fetch and ListOffsets: what is asked for in odd ways, beside the recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.metadata.create_topics import NewTopic
from ottla.dialects.kafka.handlers import fetch, list_offsets
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.dialects.handlers.harness import Bench

LATEST = -1
FENCED_LEADER_EPOCH = 74


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.controller.create_topics([NewTopic("t", 1, 1)])
    return bench


def test_a_topic_without_partitions_is_not_answered(bench: Bench) -> None:
    asked = [ListOffsetsPartition(partition_index=0, timestamp=LATEST)]
    topics = [ListOffsetsTopic(name="nope"), ListOffsetsTopic(name="t", partitions=asked)]

    response = bench.ask(list_offsets, ListOffsetsRequest(topics=topics), 6)

    assert [topic.name for topic in response.topics] == ["t"]


@pytest.mark.parametrize("epoch", [-2, -(1 << 31)])
def test_an_epoch_below_zero_is_none_for_fetches_only(bench: Bench, epoch: int) -> None:
    partition = FetchPartition(current_leader_epoch=epoch, last_fetched_epoch=epoch, partition_max_bytes=100)
    fetched = bench.ask(fetch, FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])], max_wait_ms=0), 12)
    asked = ListOffsetsPartition(current_leader_epoch=epoch, timestamp=LATEST)
    listed = bench.ask(list_offsets, ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[asked])]), 6)

    assert fetched.responses[0].partitions[0].error_code == 0
    assert listed.topics[0].partitions[0].error_code == FENCED_LEADER_EPOCH
