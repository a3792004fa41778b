"""Lag: never below zero, nothing where nothing is known, gone with what it was of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ottla.client import Admin, Consumer, Producer, TopicPartition
from ottla.client.groups import GroupDescription, PartitionLag
from ottla.errors import GroupIdNotFound
from ottla.testing.cluster import running_broker

GROUP = "readers"
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
LOOKS = 200


@asynccontextmanager
async def two_partitions(records: int) -> AsyncIterator[tuple[Admin, Producer, Consumer]]:
    """A topic with records in its first partition, and a consumer that may commit for a group without joining it."""
    async with (
        running_broker() as running,
        Admin(running.address) as admin,
        Producer(running.address) as producer,
        Consumer(running.address, group=GROUP) as consumer,
    ):
        await admin.create_topic("t", partitions=2)
        for number in range(records):
            await producer.send("t", b"%d" % number, partition=0)
        await producer.flush()
        yield admin, producer, consumer


async def rows_of(admin: Admin, *partitions: TopicPartition) -> dict[TopicPartition, PartitionLag]:
    return {row.partition: row for row in await admin.groups.lag(GROUP, partitions)}


def test_lag_is_never_negative_while_records_are_written_and_committed() -> None:
    """danielqsj/kafka_exporter#287 "consumergroupLag may be negative", #169."""

    async def main() -> None:
        async with two_partitions(records=1) as (admin, producer, consumer):

            async def write_and_commit() -> None:
                while True:
                    written = await producer.send_and_wait("t", b"x", partition=0)
                    await consumer.commit({FIRST: written.offset + 1})

            await consumer.commit({FIRST: 1})
            busy = asyncio.create_task(write_and_commit())
            seen = [(await rows_of(admin))[FIRST] for _ in range(LOOKS)]
            busy.cancel()
            assert all(row.lag is not None and row.lag >= 0 for row in seen)
            assert seen[-1].committed is not None and seen[-1].committed > 1

    asyncio.run(main())


def test_a_partition_without_a_commit_has_no_lag() -> None:
    """danielqsj/kafka_exporter#28: no commit was shown as a huge lag."""

    async def main() -> None:
        async with two_partitions(records=5) as (admin, _, consumer):
            await consumer.commit({SECOND: 0})
            rows = await rows_of(admin, FIRST)
            assert (rows[FIRST].committed, rows[FIRST].high_watermark, rows[FIRST].lag) == (None, 5, None)
            assert rows[SECOND].lag == 0

    asyncio.run(main())


def test_lag_is_counted_from_the_start_where_retention_went_past_the_commit() -> None:
    """seglo/kafka-lag-exporter#37: an idle topic showed a lag of records that were gone."""

    async def main() -> None:
        async with two_partitions(records=10) as (admin, _, consumer):
            await consumer.commit({FIRST: 2})
            assert (await rows_of(admin))[FIRST].lag == 8
            await admin.delete_records({FIRST: 7})
            row = (await rows_of(admin))[FIRST]
            assert (row.committed, row.beginning, row.lag) == (2, 7, 3)
            await admin.delete_records({FIRST: -1})
            assert (await rows_of(admin))[FIRST].lag == 0

    asyncio.run(main())


def test_a_group_without_members_is_shown_and_a_deleted_one_is_not() -> None:
    """danielqsj/kafka_exporter#226: idle groups vanished."""

    async def main() -> None:
        async with two_partitions(records=3) as (admin, _, consumer):
            await consumer.commit({FIRST: 1})
            assert [group.group_id for group in await admin.groups.list_groups()] == [GROUP]
            described = (await admin.groups.describe([GROUP]))[GROUP]
            assert isinstance(described, GroupDescription)
            assert (described.state, described.members) == ("Empty", [])
            assert (await rows_of(admin))[FIRST].lag == 2

            await admin.groups.delete([GROUP])
            assert await admin.groups.list_groups() == []
            assert isinstance((await admin.groups.describe([GROUP]))[GROUP], GroupIdNotFound)
            assert await rows_of(admin) == {}

    asyncio.run(main())


def test_a_deleted_topic_leaves_no_lag() -> None:
    """omarsmak/kafka-consumer-lag-monitoring#20: deleted topics stayed."""

    async def main() -> None:
        async with two_partitions(records=3) as (admin, _, consumer):
            await consumer.commit({FIRST: 1})
            await admin.delete_topic("t")
            assert all(row.lag is None for row in (await rows_of(admin)).values())

    asyncio.run(main())
