"""Our consumer in groups of both protocols and `admin.groups`, with the same results on Ottla and on Apache Kafka.

`OTTLA_INTEROP_BROKER=kafka` makes the broker a real Kafka.
"""

from __future__ import annotations

import asyncio

import pytest

from ottla.client import Admin, Consumer, GroupSettings, Producer, TopicPartition
from ottla.client.committed import OffsetAndMetadata
from ottla.client.groups import GroupDescription, GroupListing
from ottla.errors import GroupIdNotFound, NonEmptyGroup, UnknownMemberId
from tests.interop.brokers import Broker

WAIT_MS = 10_000
PROTOCOLS = ["classic", "consumer"]


async def fill(broker: Broker, topic: str, *, partitions: int = 1, records: int = 6) -> list[TopicPartition]:
    """Make a topic with so many records in each partition, their values their offsets."""
    async with Admin(broker.address) as admin:
        await admin.create_topic(topic, partitions=partitions, replication_factor=1)
    async with Producer(broker.address) as producer:
        for partition in range(partitions):
            for number in range(records):
                await producer.send(topic, str(number), partition=partition)
    return [TopicPartition(topic, partition) for partition in range(partitions)]


def member(broker: Broker, group: str, protocol: str, *, instance: str | None = None) -> Consumer:
    settings = GroupSettings(
        group_id=group, group_protocol=protocol, group_instance_id=instance, enable_auto_commit=False
    )
    return Consumer(broker.address, group=settings, auto_offset_reset="earliest")


async def read(consumer: Consumer, count: int) -> list[int]:
    """Read so many records; returns their offsets."""
    found = []
    for _ in range(count):
        record = await consumer.next_record(WAIT_MS)
        assert record is not None
        found.append(record.offset)
    return found


async def describe(admin: Admin, group: str) -> GroupDescription:
    described = (await admin.groups.describe([group]))[group]
    assert isinstance(described, GroupDescription), described
    return described


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_that_comes_back_goes_on_at_what_was_committed(broker: Broker, topic: str, protocol: str) -> None:
    async def work() -> None:
        (partition,) = await fill(broker, topic)
        async with member(broker, topic, protocol) as first:
            await first.subscribe(topic)
            assert await read(first, 4) == [0, 1, 2, 3]
            await first.commit({partition: 3})
            assert (await first.committed(partition))[partition].offset == 3
        async with member(broker, topic, protocol) as second:
            await second.subscribe(topic)
            assert await read(second, 3) == [3, 4, 5]
            assert list(second.assignment) == [partition]
            await second.commit()
        async with Admin(broker.address) as admin:
            assert (await admin.groups.committed(topic))[partition].offset == 6

    asyncio.run(work())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_is_listed_described_and_kept_from_changes_while_a_member_is_in_it(
    broker: Broker, topic: str, protocol: str
) -> None:
    async def work() -> None:
        (partition,) = await fill(broker, topic)
        async with Admin(broker.address) as admin:
            async with member(broker, topic, protocol) as consumer:
                await consumer.subscribe(topic)
                await read(consumer, 2)
                await consumer.commit({partition: 2})
                listed = await admin.groups.list_groups(types=[protocol], states=["Stable"])
                wanted = GroupListing(topic, "consumer", "Stable", protocol)
                assert wanted in [row._replace(group_type=row.group_type.lower()) for row in listed]
                described = await describe(admin, topic)
                assert (described.group_type, described.state) == (protocol, "Stable")
                assert described.assignor == {"classic": "range", "consumer": "uniform"}[protocol]
                (only,) = described.members
                assert (only.client_id, only.client_host, only.assignment) == ("ottla", "/127.0.0.1", [partition])
                assert isinstance((await admin.groups.delete([topic]))[topic], NonEmptyGroup)
                refused = (await admin.groups.commit(topic, {partition: OffsetAndMetadata(0)}))[partition]
                assert isinstance(refused, UnknownMemberId)
                (lag,) = await admin.groups.lag(topic)
                assert lag[1:5] == (2, 0, 6, 4)
            described = await describe(admin, topic)
            assert (described.state, described.members) == ("Empty", [])

    asyncio.run(work())


def test_offsets_are_set_forgotten_and_deleted_with_the_group(broker: Broker, topic: str) -> None:
    async def work() -> None:
        first, second = await fill(broker, topic, partitions=2)
        async with Admin(broker.address) as admin:
            assert await admin.groups.committed(topic) == {}
            offsets = {first: OffsetAndMetadata(2, metadata="by hand"), second: OffsetAndMetadata(4)}
            assert await admin.groups.commit(topic, offsets) == {first: None, second: None}
            committed = await admin.groups.committed(topic)
            assert {row: (one.offset, one.metadata) for row, one in committed.items()} == {
                first: (2, "by hand"),
                second: (4, ""),
            }
            assert await admin.groups.commit(topic, {first: OffsetAndMetadata(1)}) == {first: None}
            assert await admin.groups.delete_offsets(topic, [second]) == {second: None}
            assert [(row.partition, row.lag) for row in await admin.groups.lag(topic)] == [(first, 5)]
            assert await admin.groups.delete([topic]) == {topic: None}
            assert isinstance((await admin.groups.delete([topic]))[topic], GroupIdNotFound)
            assert isinstance((await admin.groups.describe([topic]))[topic], GroupIdNotFound)
            assert await admin.groups.committed(topic) == {}

    asyncio.run(work())


def test_a_static_member_that_is_gone_is_removed_by_name(broker: Broker, topic: str) -> None:
    async def work() -> None:
        await fill(broker, topic)
        async with Admin(broker.address) as admin:
            async with member(broker, topic, "classic", instance="one") as consumer:
                await consumer.subscribe(topic)
                await read(consumer, 1)
            left = (await describe(admin, topic)).members
            assert [one.instance_id for one in left] == ["one"], "a static member stays when its process ends"
            assert await admin.groups.remove_members(topic, left) == {"one": None}
            described = await describe(admin, topic)
            assert (described.state, described.members) == ("Empty", [])
            (refused,) = (await admin.groups.remove_members(topic, left)).values()
            assert isinstance(refused, UnknownMemberId)

    asyncio.run(work())
