"""Topics: order of checks, names, assignments, growth, deletion and what comes after it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from ottla.model import ZERO_TOPIC_ID
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from tests.wire import Room, batch, fetch_request, on_broker, open_room, produce_request

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_REQUEST = 42
KAFKA_STORAGE_ERROR = 56


async def create(room: Room, *topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsResponse:
    answer: CreateTopicsResponse = await room.ask(
        CreateTopicsRequest(topics=list(topics), validate_only=validate_only), 7
    )
    return answer


def topic(
    name: str, partitions: int = 1, replicas: int = 1, assignments: Sequence[tuple[int, list[int]]] = ()
) -> CreatableTopic:
    rows = [CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in assignments]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, assignments=rows)


async def metadata(room: Room, name: str, *, may_create: bool = False) -> MetadataResponseTopic:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=may_create)
    answer = await room.ask(request, 12)
    row: MetadataResponseTopic = answer.topics[0]
    return row


async def all_names(room: Room) -> set[str | None]:
    answer = await room.ask(MetadataRequest(topics=None), 12)
    return {row.name for row in answer.topics}


async def delete(room: Room, name: str) -> int:
    answer = await room.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5000), 6)
    code: int = answer.responses[0].error_code
    return code


@on_broker()
async def test_that_a_topic_exists_is_said_first(room: Room) -> None:
    """KAFKA-8875 apache/kafka#7298 "CreateTopic API should check topic existence before replication factor"."""
    await room.create("t")
    for wrong in (topic("t", 1, 3), topic("t", 0, 1), topic("t", 1, -5)):
        (row,) = (await create(room, wrong)).topics
        assert row.error_code == TOPIC_ALREADY_EXISTS


@on_broker()
async def test_validation_alone_creates_nothing_and_tells_what_would_be(room: Room) -> None:
    """redpanda "kafka/create_topics: validate_only improvements"."""
    await room.create("old")
    answer = await create(room, topic("new", 3, 1), topic("old", 3, 1), validate_only=True)
    rows = {row.name: row for row in answer.topics}

    assert rows["old"].error_code == TOPIC_ALREADY_EXISTS
    assert (rows["new"].error_code, rows["new"].num_partitions, rows["new"].replication_factor) == (0, 3, 1)
    assert await all_names(room) == {"old"}
    assert (await metadata(room, "new")).error_code == UNKNOWN_TOPIC_OR_PARTITION


@on_broker()
async def test_a_name_that_is_asked_twice_is_refused(room: Room) -> None:
    """KAFKA-8875 and its kind: the first one created, the second one an error, or the other way round."""
    answer = await create(room, topic("twice"), topic("once"), topic("twice"))

    assert {row.name: row.error_code for row in answer.topics} == {"twice": INVALID_REQUEST, "once": 0}
    assert await all_names(room) == {"once"}


@pytest.mark.parametrize("name", [".", "..", "", "a/b", "a b", "ä", "a\x00b", "x" * 250, "t\n"])
@on_broker()
async def test_a_name_that_is_none_is_refused_with_words(room: Room, name: str) -> None:
    """KAFKA-3219 "Fix long topic name validation", redpanda "Propagate error message for invalid topic name"."""
    (row,) = (await create(room, topic(name))).topics

    assert row.error_code == INVALID_TOPIC
    assert row.error_message
    assert await all_names(room) == set()
    assert [path.name for path in Path(room.running.directory).glob("*-0")] == ["__cluster_metadata-0"]


@on_broker()
async def test_names_that_differ_in_dots_and_underscores_collide(room: Room) -> None:
    """KAFKA-13743 (metric names that collide): refused, as in Kafka."""
    assert [row.error_code for row in (await create(room, topic("a.b"))).topics] == [0]
    (row,) = (await create(room, topic("a_b"))).topics

    assert row.error_code == INVALID_TOPIC
    assert "a.b" in (row.error_message or "")


def test_long_names_and_names_with_dots_leave_nothing_behind(tmp_path: Path) -> None:
    """KAFKA-4893 "Fix deletion and moving of topics with long names", KAFKA-5232 "handle deleted topics with a period
    in the name": a directory name too long on delete, leftovers loaded as a topic."""
    longest = "x" * 249
    settings = {"log.dirs": str(tmp_path)}

    async def main() -> None:
        async with open_room(settings) as room:
            for name in (longest, "x.y", "kept"):
                await room.create(name)
                await room.append(name, b"v")
            assert await delete(room, longest) == 0
            assert await delete(room, "x.y") == 0
        async with open_room(settings) as room:
            assert await all_names(room) == {"kept"}
            assert await room.read_all("kept") == [(0, b"v")]
            left = {path.name for path in tmp_path.iterdir() if path.is_dir()}
            assert not {name for name in left if name.endswith("-0")} - {"kept-0", "__cluster_metadata-0"}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (topic("t", 0), INVALID_PARTITIONS),
        (topic("t", -1), 0),
        (topic("t", -2), INVALID_PARTITIONS),
        (topic("t", 1, 0), INVALID_REPLICATION_FACTOR),
        (topic("t", 1, -1), 0),
        (topic("t", 1, 2), INVALID_REPLICATION_FACTOR),
        (topic("t", -1, -1, [(0, [1]), (1, [1])]), 0),
        (topic("t", -1, -1, [(0, [1, 1])]), INVALID_REPLICA_ASSIGNMENT),
        (topic("t", -1, -1, [(0, [7])]), INVALID_REPLICA_ASSIGNMENT),
        (topic("t", -1, -1, [(0, [])]), INVALID_REPLICA_ASSIGNMENT),
        (topic("t", -1, -1, [(0, [1]), (2, [1])]), INVALID_REPLICA_ASSIGNMENT),
        (topic("t", -1, -1, [(1, [1])]), INVALID_REPLICA_ASSIGNMENT),
        (topic("t", 1, -1, [(0, [1])]), INVALID_REQUEST),
        (topic("t", -1, 1, [(0, [1])]), INVALID_REQUEST),
    ],
)
@on_broker()
async def test_counts_and_assignments_are_checked(room: Room, wanted: CreatableTopic, code: int) -> None:
    """franz-go "kfake: forbid 0-partition topic creations", redpanda-data/redpanda#8824, KAFKA-5091."""
    (row,) = (await create(room, wanted)).topics

    assert row.error_code == code, row.error_message
    assert await all_names(room) == ({"t"} if code == 0 else set())


async def grow(
    room: Room, count: int, *, validate_only: bool = False, assignments: list[list[int]] | None = None
) -> int:
    rows = None if assignments is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="t", count=count, assignments=rows)],
        timeout_ms=5000,
        validate_only=validate_only,
    )
    answer = await room.ask(request, 3)
    code: int = answer.results[0].error_code
    return code


async def partition_count(room: Room) -> int:
    row = await metadata(room, "t")
    numbers = sorted(partition.partition_index for partition in row.partitions)
    assert numbers == list(range(len(numbers)))
    return len(numbers)


@on_broker()
async def test_partitions_are_added_behind_the_last_one(room: Room) -> None:
    """franz-go "kfake: fix bugs in OffsetForLeaderEpoch and CreatePartitions", KAFKA-13861 apache/kafka#12106
    "validateOnly behavior", redpanda "Validate create_partitions partition cnt"."""
    await room.create("t", partitions=2)
    assert await grow(room, 5) == 0
    await room.append("t", b"at once", partition=4)
    assert await grow(room, 5) == INVALID_PARTITIONS
    assert await grow(room, 3) == INVALID_PARTITIONS
    assert await grow(room, 9, validate_only=True) == 0
    assert await partition_count(room) == 5
    assert await grow(room, 7, assignments=[[1]]) == INVALID_REPLICA_ASSIGNMENT
    assert await grow(room, 6, assignments=[[7]]) == INVALID_REPLICA_ASSIGNMENT
    assert await grow(room, 6, assignments=[[1, 1]]) == INVALID_REPLICA_ASSIGNMENT
    assert await partition_count(room) == 5
    assert await grow(room, 6, assignments=[[1]]) == 0
    assert await partition_count(room) == 6


def test_a_deleted_name_is_free_at_once(tmp_path: Path) -> None:
    """redpanda-data/redpanda#4890, #194 "Error returned when trying to delete a topic", #3836 (not-leader after
    recreation), KAFKA-12403 "Ensure local state deleted": the topic exists on create, old records, errors that stay."""
    settings = {"log.dirs": str(tmp_path)}
    seen = set[bytes]()

    async def rounds(count: int) -> None:
        async with open_room(settings) as room:
            other = await room.connect()
            for number in range(count):
                topic_id = await room.create("t")
                assert topic_id not in seen
                seen.add(topic_id)
                other.send(fetch_request({"t": {0: 0}}, max_wait_ms=20), 12)
                assert await room.append("t", b"%d" % number) == 0
                assert await room.read_all("t") == [(0, b"%d" % number)]
                await other.receive()
                other.send(fetch_request({"t": {0: 1}}, max_wait_ms=10_000), 12)
                assert await delete(room, "t") == 0
                await other.receive()  # whoever waits is told at once
                assert (await room.produce("t", batch(b"v"))).error_code == UNKNOWN_TOPIC_OR_PARTITION

    asyncio.run(rounds(20))
    asyncio.run(rounds(20))


@on_broker()
async def test_a_log_that_is_gone_keeps_no_topic_from_being_deleted(room: Room) -> None:
    """Somebody removed a partition's directory: what is left of the topic goes, and whoever waits there is told."""
    await room.create("t", partitions=2)
    waiting = await room.connect()
    waiting.send(fetch_request({"t": {0: 0, 1: 0}}, max_wait_ms=60_000), 12)
    await room.bounds("t")
    directory = Path(room.running.directory)
    shutil.rmtree(directory / "t-0")

    assert await delete(room, "t") == 0

    await waiting.receive()
    assert not (directory / "t-1").exists()
    await room.create("t", partitions=2)
    assert await room.append("t", b"v") == 0


@on_broker()
async def test_a_log_that_could_not_be_made_is_made_with_its_first_record(room: Room) -> None:
    """The disk had no room for it when the topic was created. Until it has, producers are told and may try again."""
    obstacle = Path(room.running.directory) / "t-0"
    obstacle.write_bytes(b"")
    await room.create("t")
    assert (await room.produce("t", batch(b"v"))).error_code == KAFKA_STORAGE_ERROR

    obstacle.unlink()

    assert await room.append("t", b"v") == 0
    assert await room.read_all("t") == [(0, b"v")]


@on_broker()
async def test_topics_are_deleted_by_id_and_told_by_name(room: Room) -> None:
    """redpanda-data/redpanda#194 and its kind, for KIP-516: unknown ids, both id and name, the same topic twice."""
    topic_id = await room.create("t")
    unknown = bytes(range(1, 17))

    async def ask(*states: DeleteTopicState) -> list[tuple[str | None, int]]:
        answer = await room.ask(DeleteTopicsRequest(topics=list(states), timeout_ms=5000), 6)
        return [(row.name, row.error_code) for row in answer.responses]

    assert await ask(DeleteTopicState(name=None, topic_id=unknown)) == [(None, 100)]
    assert await ask(DeleteTopicState(name=None, topic_id=ZERO_TOPIC_ID)) != [(None, 0)]
    assert await ask(DeleteTopicState(name="missing")) == [("missing", UNKNOWN_TOPIC_OR_PARTITION)]
    assert await ask(DeleteTopicState(name=None, topic_id=topic_id)) == [("t", 0)]
    assert await all_names(room) == set()


@on_broker()
async def test_topics_are_created_when_they_are_asked_for_and_not_before(room: Room) -> None:
    """redpanda-data/redpanda#1256 "Produce to topic fails when topic not exists and auto_create_topics_enabled is
    true", KAFKA-5291 "AdminClient should not trigger auto creation of topics"."""
    assert (await metadata(room, "no")).error_code == UNKNOWN_TOPIC_OR_PARTITION
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="no")])
    assert (await room.ask(request, 0)).topics[0].error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert (await room.produce("no", batch(b"v"))).error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert (await room.fetch("no", 0)).error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert await all_names(room) == set()

    assert (await metadata(room, "bad name", may_create=True)).error_code == INVALID_TOPIC
    await metadata(room, "yes", may_create=True)  # Kafka answers 3 once, which clients try again
    assert (await metadata(room, "yes", may_create=True)).error_code == 0
    assert await room.append("yes", b"v") == 0
    assert await all_names(room) == {"yes"}


@on_broker({"auto.create.topics.enable": "false"})
async def test_nothing_is_created_where_that_is_off(room: Room) -> None:
    """KAFKA-5291, redpanda-data/redpanda#1256."""
    for version in range(14):
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True)
        answer = await room.ask(request, version)
        assert answer.topics[0].error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert await all_names(room) == set()


@on_broker()
async def test_many_clients_may_want_the_same_new_topics(room: Room) -> None:
    """redpanda-data/redpanda#1256: fifty names at once from several clients, each created once."""
    peers = [await room.connect() for _ in range(4)]
    names = [f"t{number}" for number in range(50)]
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=True
    )
    await asyncio.gather(*(peer.ask(request, 12) for peer in peers))
    answers = await asyncio.gather(*(peer.ask(request, 12) for peer in peers))

    ids = {tuple((row.name, row.topic_id) for row in sorted(a.topics, key=lambda r: r.name)) for a in answers}
    assert len(ids) == 1
    assert {row.error_code for answer in answers for row in answer.topics} == {0}
    answer = await room.ask(produce_request({name: {0: batch(b"v")} for name in names}), 12)
    assert {row.error_code for t in answer.responses for row in t.partition_responses} == {0}
