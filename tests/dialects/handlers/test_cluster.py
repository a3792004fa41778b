"""Metadata, DescribeCluster, DescribeTopicPartitions, InitProducerId and FindCoordinator, beside the recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.metadata.create_topics import NewTopic
from ottla.dialects.kafka.handlers import (
    describe_cluster,
    describe_topic_partitions,
    find_coordinator,
    init_producer_id,
    metadata,
)
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.dialects.handlers.harness import Bench

NONE, UNKNOWN_TOPIC, NOT_AVAILABLE, INVALID_TOPIC, INVALID_REQUEST, BAD_TIMEOUT, UNKNOWN_ID = 0, 3, 15, 17, 42, 50, 100
NOT_ASKED, TOPIC_OPERATIONS = -(2**31), 3576


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.controller.create_topics([NewTopic("a", 2, 1), NewTopic("b", 3, 1)])
    return bench


def names(*wanted: str, create: bool = False) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in wanted]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)


@pytest.mark.parametrize(("version", "count"), [(0, 2), (1, 0), (13, 0)])
def test_asking_for_nothing_means_everything_in_the_first_version_only(bench: Bench, version: int, count: int) -> None:
    assert len(bench.ask(metadata, names(), version).topics) == count


def test_a_missing_topic_is_made_and_known_the_next_time(bench: Bench) -> None:
    assert [row.error_code for row in bench.ask(metadata, names("new", create=True), 9).topics] == [UNKNOWN_TOPIC]
    assert [row.error_code for row in bench.ask(metadata, names("new"), 9).topics] == [NONE]


@pytest.mark.parametrize("name", ["..", "__cluster_metadata"])
def test_what_cannot_be_a_topic_is_not_made(bench: Bench, name: str) -> None:
    bench.ask(metadata, names(name, create=True), 9)
    assert sorted(bench.broker.image.topic_names()) == ["a", "b"]


def test_topics_are_not_made_where_the_broker_forbids_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, auto_create_topics_enable="false")
    bench.ask(metadata, names("new", create=True), 9)
    assert bench.broker.find_topic("new") is None


def test_operations_are_told_of_unknown_names_and_not_of_unknown_ids(bench: Bench) -> None:
    """Seen on a running 4.4.0."""
    by_name = names("nope")
    by_id = MetadataRequest(topics=[MetadataRequestTopic(topic_id=bytes(15) + b"\x07", name=None)])
    by_name.include_topic_authorized_operations = by_id.include_topic_authorized_operations = True
    by_id.allow_auto_topic_creation = False
    (named,) = bench.ask(metadata, by_name, 12).topics
    (with_id,) = bench.ask(metadata, by_id, 12).topics
    assert (named.error_code, named.topic_authorized_operations) == (UNKNOWN_TOPIC, TOPIC_OPERATIONS)
    assert (with_id.error_code, with_id.topic_authorized_operations) == (UNKNOWN_ID, NOT_ASKED)


@pytest.mark.parametrize("version", [10, 11, 12, 13])
def test_a_topic_without_name_and_id_makes_the_request_invalid(bench: Bench, version: int) -> None:
    """Kafka answers UNKNOWN_SERVER_ERROR from version 12 on; we say what is wrong."""
    response = bench.ask(metadata, MetadataRequest(topics=[MetadataRequestTopic(name=None)]), version)
    assert (response.brokers, response.cluster_id, response.controller_id) == ([], None, -1)
    assert [row.error_code for row in response.topics] == [INVALID_REQUEST]
    assert response.error_code == INVALID_REQUEST


def test_replicas_on_brokers_that_are_gone_are_offline(bench: Bench) -> None:
    view = bench.broker.image
    topic = view.topic("a")
    assert topic is not None
    assert metadata.offline_replicas(topic.partitions[0], bench.broker) == []
    elsewhere = type(topic.partitions[0])(0, 1, 0, 0, (1, 7), (1,))
    assert metadata.offline_replicas(elsewhere, bench.broker) == [7]


def page(bench: Bench, limit: int, cursor: Cursor | None, *wanted: str) -> tuple[list[tuple[str, int, int]], object]:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in wanted], response_partition_limit=limit, cursor=cursor
    )
    response = bench.ask(describe_topic_partitions, request, 0)
    rows = [(row.name, row.error_code, len(row.partitions)) for row in response.topics]
    return rows, response.next_cursor


def test_pages_follow_each_other_without_gap(bench: Bench) -> None:
    assert page(bench, 2, None) == ([("a", NONE, 2)], Cursor(topic_name="b", partition_index=0))
    assert page(bench, 2, Cursor(topic_name="b", partition_index=0)) == (
        [("b", NONE, 2)],
        Cursor(topic_name="b", partition_index=2),
    )
    assert page(bench, 2, Cursor(topic_name="b", partition_index=2)) == ([("b", NONE, 1)], None)


def test_a_full_page_points_at_the_next_topic_even_when_it_is_unknown(bench: Bench) -> None:
    """Seen on a running 4.4.0, as is the code of an impossible name."""
    assert page(bench, 2, None, "..", "a", "zzz") == (
        [("..", INVALID_TOPIC, 0), ("a", NONE, 2)],
        Cursor(topic_name="zzz", partition_index=0),
    )


def test_no_page_is_larger_than_the_broker_allows(tmp_path: Path) -> None:
    bench = Bench(tmp_path, max_request_partition_size_limit="1")
    bench.controller.create_topics([NewTopic("a", 2, 1)])
    assert page(bench, 2_000, None)[0] == [("a", NONE, 1)]


def test_a_cursor_into_all_topics_need_not_name_one_that_is_there(bench: Bench) -> None:
    assert page(bench, 9, Cursor(topic_name="aa", partition_index=1)) == ([("b", NONE, 3)], None)
    assert page(bench, 9, Cursor(topic_name="a", partition_index=-1)) == ([], None)


def test_the_cluster_is_told_with_its_only_broker(bench: Bench) -> None:
    response = bench.ask(describe_cluster, DescribeClusterRequest(), 2)
    assert (response.cluster_id, response.controller_id) == ("a-cluster", 1)
    assert [(row.broker_id, row.host, row.port) for row in response.brokers] == [(1, "localhost", 9092)]


def test_a_new_producer_waits_for_its_block_and_the_next_ones_do_not(bench: Bench) -> None:
    first = bench.ask(init_producer_id, InitProducerIdRequest(transactional_id=None), 4)
    second = init_producer_id.handle(InitProducerIdRequest(transactional_id=None), bench.context(4))
    assert isinstance(second, InitProducerIdResponse), "it did not wait"
    assert (first.error_code, first.producer_id, first.producer_epoch) == (NONE, 0, 0)
    assert (second.producer_id, second.producer_epoch) == (1, 0)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), NOT_AVAILABLE),
        (InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=0), BAD_TIMEOUT),
        (InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=900_001), BAD_TIMEOUT),
        (InitProducerIdRequest(transactional_id="", transaction_timeout_ms=0), INVALID_REQUEST),
        (InitProducerIdRequest(transactional_id=None, producer_id=5), INVALID_REQUEST),
    ],
)
def test_a_producer_id_is_refused_as_by_kafka(bench: Bench, request_: InitProducerIdRequest, code: int) -> None:
    response = bench.ask(init_producer_id, request_, 4)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (code, -1, -1)


@pytest.mark.parametrize(
    ("key_type", "key", "version", "code"),
    [
        (1, "x", 4, NOT_AVAILABLE),
        (2, "g:AAAAAAAAAAAAAAAAAAAABQ:0", 6, NOT_AVAILABLE),
        (2, "g:AAAAAAAAAAAAAAAAAAAABQ:0", 5, INVALID_REQUEST),
        (2, "g:no-id:0", 6, INVALID_REQUEST),
        (2, "g:AAAAAAAAAAAAAAAAAAAABQ:x", 6, INVALID_REQUEST),
        (9, "g", 6, INVALID_REQUEST),
    ],
)
def test_nobody_coordinates_transactions_and_share_groups_yet(
    bench: Bench, key_type: int, key: str, version: int, code: int
) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    (row,) = bench.ask(find_coordinator, request, version).coordinators
    assert (row.key, row.error_code, row.node_id, row.host, row.port) == (key, code, -1, "", -1)
