"""Kafka's own tools for groups, `kafka-consumer-groups` and `kafka-groups`, with the output that Kafka itself gives.

Tables are compared as words, since the tools pad columns to what stands in them. `OTTLA_INTEROP_BROKER=kafka` makes the
broker a real Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla.client import Admin, GroupSettings, TopicPartition, sync
from ottla.client.cluster import ClusterSettings
from ottla.client.committed import OffsetAndMetadata
from ottla.client.connection import ConnectionSettings
from ottla.client.groups import GroupDescription
from tests.interop.brokers import KAFKA_HOME, Broker
from tests.interop.clients.client import run
from tests.interop.clients.console import QUICK_JVM

OFFSETS = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
NEW_OFFSETS = "GROUP TOPIC PARTITION NEW-OFFSET"
STATE = "GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE GROUP-EPOCH TARGET-ASSIGNMENT-EPOCH #MEMBERS"
MEMBERS = "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH TARGET-ASSIGNMENT"
FORBIDDEN = (
    "Error: org.apache.kafka.common.errors.GroupSubscribedToTopicException: "
    "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."
)


class Tools:
    """Kafka's tools for groups, on one broker."""

    def __init__(self, broker: Broker) -> None:
        self._address = broker.address

    def groups(self, *arguments: str) -> list[str]:
        return self._run("kafka-groups", *arguments)

    def consumer_groups(self, *arguments: str) -> list[str]:
        return self._run("kafka-consumer-groups", *arguments)

    def _run(self, tool: str, *arguments: str) -> list[str]:
        """Return the lines that it printed, without empty ones, with one space between words."""
        command = [str(KAFKA_HOME / f"bin/{tool}.sh"), "--bootstrap-server", self._address, *arguments]
        lines = (" ".join(line.split()) for line in run(command, environment=QUICK_JVM).splitlines())
        return [line for line in lines if line]


@pytest.fixture
def tools(broker: Broker) -> Tools:
    return Tools(broker)


def fill(broker: Broker, topic: str) -> None:
    """Make a topic of two partitions, with five records and three."""
    with sync.Admin(broker.address) as admin:
        admin.create_topic(topic, partitions=2, replication_factor=1)
    with sync.Producer(broker.address) as producer:
        for partition, count in enumerate((5, 3)):
            for _ in range(count):
                producer.send(topic, b"x", partition=partition)


@contextmanager
def one_member(broker: Broker, topic: str, protocol: str) -> Iterator[str]:
    """Have one member read it all in a group that is named as the topic; gives the member's id."""
    settings = GroupSettings(group_id=topic, group_protocol=protocol, enable_auto_commit=False)
    cluster = ClusterSettings(connection=ConnectionSettings(client_id="reader"))
    with sync.Consumer(broker.address, group=settings, auto_offset_reset="earliest", cluster=cluster) as consumer:
        consumer.subscribe(topic)
        assert all(consumer.next_record(10_000) is not None for _ in range(8))
        consumer.commit({TopicPartition(topic, 0): 2, TopicPartition(topic, 1): 3})
        yield member_id(broker, topic)


def member_id(broker: Broker, group: str) -> str:
    """Return the id of the only member."""

    async def ask() -> str:
        async with Admin(broker.address) as admin:
            described = (await admin.groups.describe([group]))[group]
        assert isinstance(described, GroupDescription), described
        (only,) = described.members
        return only.member_id

    return asyncio.run(ask())


def commit(broker: Broker, group: str, *offsets: int) -> None:
    """Commit for the partitions of the topic that is named as the group."""

    async def work() -> None:
        async with Admin(broker.address) as admin:
            rows = {TopicPartition(group, number): OffsetAndMetadata(offset) for number, offset in enumerate(offsets)}
            assert set((await admin.groups.commit(group, rows)).values()) == {None}

    asyncio.run(work())


def committed(broker: Broker, group: str) -> dict[int, int]:
    """Return the committed offset of each partition that has one."""

    async def ask() -> dict[int, int]:
        async with Admin(broker.address) as admin:
            found = await admin.groups.committed(group)
        return {partition.partition: one.offset for partition, one in found.items()}

    return asyncio.run(ask())


def test_a_classic_group_with_a_member(broker: Broker, tools: Tools, topic: str) -> None:
    fill(broker, topic)
    chosen = ("--group", topic)
    with one_member(broker, topic, "classic") as member:
        assert tools.consumer_groups("--describe", *chosen) == [
            OFFSETS,
            f"{topic} {topic} 0 2 5 3 {member} /127.0.0.1 reader",
            f"{topic} {topic} 1 3 3 0 {member} /127.0.0.1 reader",
        ]
        assert tools.consumer_groups("--describe", *chosen, "--members", "--verbose") == [
            MEMBERS,
            f"{topic} {member} /127.0.0.1 reader 2 - {topic}:0,1 - -",
        ]
        listed = tools.groups("--list")
        assert listed[0] == "GROUP TYPE PROTOCOL"
        assert f"{topic} Classic consumer" in listed[1:]
        assert tools.consumer_groups(*chosen, "--topic", topic, "--reset-offsets", "--to-earliest", "--execute") == [
            f"Error: Assignments can only be reset if the group '{topic}' is inactive, "
            "but the current state is Stable.",
            NEW_OFFSETS,
        ]
        assert tools.consumer_groups(*chosen, "--delete-offsets", "--topic", topic) == [
            "Error: Encountered some partition-level error, see the follow-up details.",
            "TOPIC PARTITION STATUS",
            f"{topic} 0 {FORBIDDEN}",
            f"{topic} 1 {FORBIDDEN}",
        ]


def test_a_group_of_the_consumer_protocol_with_a_member(broker: Broker, tools: Tools, topic: str) -> None:
    fill(broker, topic)
    chosen = ("--group", topic)
    with one_member(broker, topic, "consumer") as member:
        assert tools.consumer_groups("--describe", *chosen, "--members", "--verbose") == [
            MEMBERS,
            f"{topic} {member} /127.0.0.1 reader 2 2 {topic}:0,1 2 {topic}:0,1",
        ]
        assert tools.consumer_groups("--describe", *chosen, "--state", "--verbose") == [
            STATE,
            f"{topic} {broker.address} (1) uniform Stable 2 2 1",
        ]
        listed = tools.groups("--list", "--group-type", "consumer")
        assert listed[0] == "GROUP TYPE PROTOCOL"
        assert f"{topic} Consumer consumer" in listed[1:]
        assert {row.split()[1] for row in listed[1:]} == {"Consumer"}


def test_a_group_without_members(broker: Broker, tools: Tools, topic: str) -> None:
    fill(broker, topic)
    chosen = ("--group", topic)
    commit(broker, topic, 2, 3)
    listed = tools.consumer_groups("--list", "--state", "--type")
    assert listed[0] == "GROUP TYPE STATE"
    assert f"{topic} Classic Empty" in listed[1:]
    assert tools.consumer_groups("--describe", *chosen) == [
        OFFSETS,
        f"{topic} {topic} 0 2 5 3 - - -",
        f"{topic} {topic} 1 3 3 0 - - -",
    ]

    dry_run = tools.consumer_groups(*chosen, "--topic", f"{topic}:0", "--reset-offsets", "--to-latest", "--dry-run")
    assert dry_run == [NEW_OFFSETS, f"{topic} {topic} 0 5"]
    assert committed(broker, topic) == {0: 2, 1: 3}
    done = tools.consumer_groups(*chosen, "--topic", topic, "--reset-offsets", "--shift-by", "-1", "--execute")
    assert (done[0], sorted(done[1:])) == (NEW_OFFSETS, [f"{topic} {topic} 0 1", f"{topic} {topic} 1 2"])
    assert committed(broker, topic) == {0: 1, 1: 2}

    assert tools.consumer_groups(*chosen, "--delete-offsets", "--topic", f"{topic}:1") == [
        f"Request succeeded for deleting offsets from group {topic}.",
        "TOPIC PARTITION STATUS",
        f"{topic} 1 Successful",
    ]
    assert committed(broker, topic) == {0: 1}
    deleted = f"Deletion of requested consumer groups ('{topic}') was successful."
    assert tools.consumer_groups(*chosen, "--delete") == [deleted]
    assert committed(broker, topic) == {}
    assert tools.consumer_groups("--describe", *chosen)[0] == (
        "Error: Executing consumer group command failed due to "
        f"org.apache.kafka.common.errors.GroupIdNotFoundException: Group {topic} not found."
    )
