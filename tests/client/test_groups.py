"""Consumers in groups, of all protocols, against a broker in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from ottla.client import (
    Admin,
    Consumer,
    GroupSettings,
    OffsetAndMetadata,
    Producer,
    ProducerSettings,
    RebalanceListener,
    TopicPartition,
    sync,
)
from ottla.errors import FencedInstanceId, OffsetOutOfRange
from ottla.testing.cluster import broker_in_thread, running_broker

PARTITIONS = 4
PROTOCOLS = ["eager", "cooperative", "consumer"]
BROKER = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "700",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
}


def group(protocol: str, **said: Any) -> GroupSettings:
    """Settings of a group in which things happen quickly."""
    return GroupSettings(
        group_id="g",
        group_protocol="consumer" if protocol == "consumer" else "classic",
        assignors=["cooperative-sticky"] if protocol == "cooperative" else ["range"],
        session_timeout_ms=700,
        heartbeat_interval_ms=50,
        max_poll_interval_ms=said.pop("max_poll_interval_ms", 5000),
        **said,
    )


class Journal(RebalanceListener):
    """Notes what is read, and who let go of what."""

    def __init__(self) -> None:
        self.owned: set[TopicPartition] = set()
        self.events: list[tuple[str, int]] = []

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.owned.update(partitions)
        self.events.append(("assigned", len(partitions)))

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.owned.difference_update(partitions)
        self.events.append(("revoked", len(partitions)))

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.owned.difference_update(partitions)
        self.events.append(("lost", len(partitions)))


class Reader:
    """A consumer that reads in the background and notes what it gets."""

    def __init__(self, address: str, settings: GroupSettings) -> None:
        self.consumer = Consumer(address, group=settings, auto_offset_reset="earliest")
        self.journal = Journal()
        self.values: list[bytes] = []
        self._task: asyncio.Task[None] | None = None

    async def start(self, *topics: str, **said: Any) -> Reader:
        await self.consumer.start()
        await self.consumer.subscribe(*(topics or () if said else topics or ("t",)), listener=self.journal, **said)
        self._task = asyncio.create_task(self._read())
        return self

    async def _read(self) -> None:
        async for record in self.consumer:
            self.values.append(record.value)

    async def stop(self) -> None:
        """Leave properly."""
        await self.pause()
        await self.consumer.close()

    async def pause(self) -> None:
        """Ask for nothing more."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def owns(self) -> list[int]:
        return sorted(partition.partition for partition in self.journal.owned)


async def until(is_so: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    try:
        async with asyncio.timeout(10):
            while not is_so():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"never came true: {what}") from None


async def is_shared(*readers: Reader) -> None:
    """Wait until these own everything, each partition once."""

    def is_so() -> bool:
        owned = sorted(number for reader in readers for number in reader.owns())
        assert len(set(owned)) == len(owned), [reader.owns() for reader in readers]
        return owned == list(range(PARTITIONS)) and all(reader.owns() for reader in readers)

    await until(is_so, "all partitions are shared")


async def send(address: str, first: int, count: int) -> list[bytes]:
    """Write numbered records to all partitions."""
    values = [b"%d" % number for number in range(first, first + count)]
    async with Producer(address, settings=ProducerSettings(linger_ms=0)) as producer:
        for number, value in enumerate(values):
            await producer.send("t", value, partition=number % PARTITIONS)
    return values


def with_broker(work: Callable[[str], Coroutine[Any, Any, None]], **settings: str) -> None:
    async def main() -> None:
        async with running_broker({**BROKER, **settings}) as running:
            async with Admin(running.address) as admin:
                await admin.create_topic("t", partitions=PARTITIONS)
            await work(running.address)

    asyncio.run(main())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_share_and_nothing_is_lost_or_read_twice(protocol: str) -> None:
    """Joins and proper leaves: positions are committed before partitions go to others."""

    async def work(address: str) -> None:
        first = await Reader(address, group(protocol)).start()
        await is_shared(first)
        sent = await send(address, 0, 40)
        await until(lambda: len(first.values) == 40, "the first reads all")
        second = await Reader(address, group(protocol)).start()
        await is_shared(first, second)
        sent += await send(address, 40, 40)
        await until(lambda: len(first.values) + len(second.values) == 80, "both read all")
        await first.stop()
        await is_shared(second)
        sent += await send(address, 80, 40)
        await until(lambda: len(first.values) + len(second.values) == 120, "the second reads the rest")
        await second.stop()

        assert sorted(first.values + second.values) == sorted(sent)

    with_broker(work)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_that_dies_is_replaced_and_nothing_is_lost(protocol: str) -> None:
    async def work(address: str) -> None:
        first = await Reader(address, group(protocol, auto_commit_interval_ms=50)).start()
        second = await Reader(address, group(protocol)).start()
        await is_shared(first, second)
        assert first.consumer._group is not None and first.consumer._group._task is not None
        first.consumer._group._task.cancel()  # it stops its heartbeats, as a killed process would
        await first.pause()
        first.journal.owned.clear()
        sent = await send(address, 0, 40)

        await is_shared(second)
        await until(lambda: len({*first.values, *second.values}) == 40, "all is read")

        await second.stop()
        await first.consumer._fetcher.close()
        await first.consumer._cluster.close()
        assert {*first.values, *second.values} == set(sent)

    with_broker(work)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_goes_on_where_it_had_got(protocol: str) -> None:
    async def work(address: str) -> None:
        await send(address, 0, 20)
        first = await Reader(address, group(protocol)).start()
        await until(lambda: len(first.values) == 20, "all is read")
        await first.stop()
        sent = await send(address, 20, 8)

        again = await Reader(address, group(protocol)).start()
        await until(lambda: len(again.values) == 8, "the rest is read")
        await again.stop()

        assert sorted(again.values) == sorted(sent)

    with_broker(work)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_partition_is_given_up_only_when_the_application_asks_for_more(protocol: str) -> None:
    async def work(address: str) -> None:
        await send(address, 0, 4)
        consumer = Consumer(address, group=group(protocol), auto_offset_reset="earliest")
        journal = Journal()
        await consumer.start()
        await consumer.subscribe("t", listener=journal)
        for _ in range(4):
            assert await consumer.next_record(5000) is not None
        second = await Reader(address, group(protocol)).start()
        await asyncio.sleep(0.3)
        assert (len(journal.owned), second.owns()) == (4, [])

        async with asyncio.timeout(5):
            while not second.owns():
                assert await consumer.next_record(50) is None

        given_up = [TopicPartition("t", number) for number in second.owns()]
        committed = await consumer.committed(*given_up)
        assert {partition: one.offset for partition, one in committed.items()} == dict.fromkeys(given_up, 1)
        assert second.values == []
        await second.stop()
        await consumer.close()

    with_broker(work)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_application_that_does_not_ask_for_too_long_is_out_and_comes_back(protocol: str) -> None:
    async def work(address: str) -> None:
        first = await Reader(address, group(protocol, max_poll_interval_ms=400)).start()
        await is_shared(first)
        await first.pause()
        second = await Reader(address, group(protocol)).start()
        await until(lambda: len(second.owns()) == PARTITIONS, "the second has everything")
        first._task = asyncio.create_task(first._read())
        await until(lambda: len(second.owns()) == 2 and len(first.owns()) == 2, "the first is back")
        await first.stop()
        await second.stop()
        assert any(event == "lost" for event, _ in first.journal.events) or protocol != "consumer"

    with_broker(work)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_commits_by_hand(protocol: str) -> None:
    async def work(address: str) -> None:
        await send(address, 0, 8)
        settings = group(protocol, enable_auto_commit=False)
        async with Consumer(address, group=settings, auto_offset_reset="earliest") as consumer:
            await consumer.subscribe("t")
            for _ in range(8):
                assert await consumer.next_record(5000) is not None
            assert await consumer.committed() == {}
            await consumer.commit({TopicPartition("t", 1): OffsetAndMetadata(1, metadata="note")})
            assert await consumer.committed() == {TopicPartition("t", 1): OffsetAndMetadata(1, -1, "note")}
            await consumer.commit()
            committed = await consumer.committed()
        assert {partition.partition: one.offset for partition, one in committed.items()} == dict.fromkeys(range(4), 2)

    with_broker(work)


def test_commits_without_a_membership() -> None:
    """A consumer that assigns itself keeps its positions in a group that nobody is in."""

    async def work(address: str) -> None:
        await send(address, 0, 4)
        async with Consumer(address, group="g", auto_offset_reset="earliest") as consumer:
            await consumer.assign_topics("t")
            assert await consumer.next_record(5000) is not None
            await consumer.commit({TopicPartition("t", 0): 3})
            assert (await consumer.committed(TopicPartition("t", 0)))[TopicPartition("t", 0)].offset == 3

    with_broker(work)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_new_partitions_are_read(protocol: str) -> None:
    async def work(address: str) -> None:
        reader = await Reader(address, group(protocol)).start()
        await is_shared(reader)
        async with Admin(address) as admin:
            await admin.grow_topics({"t": 6})
        await reader.consumer._cluster.refresh()
        await until(lambda: reader.owns() == list(range(6)), "the new ones too")
        await reader.stop()

    with_broker(work)


def test_a_pattern_is_matched_by_the_broker() -> None:
    async def work(address: str) -> None:
        reader = await Reader(address, group("consumer")).start(pattern="(t|u).*")
        await is_shared(reader)
        await reader.stop()
        with pytest.raises(ValueError, match="pattern"):
            async with Consumer(address, group=group("eager")) as consumer:
                await consumer.subscribe(pattern="t")

    with_broker(work)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_static_member_comes_back_without_a_rebalance(protocol: str) -> None:
    async def work(address: str) -> None:
        first = await Reader(address, group(protocol, group_instance_id="one")).start()
        second = await Reader(address, group(protocol, group_instance_id="two")).start()
        await is_shared(first, second)
        had, events = first.owns(), len(second.journal.events)
        await first.stop()

        again = await Reader(address, group(protocol, group_instance_id="one")).start()
        await until(lambda: again.owns() == had, "it has what it had")
        await asyncio.sleep(0.2)

        assert len(second.journal.events) == events
        await again.stop()
        await second.stop()

    with_broker(work)


def test_who_is_fenced_hears_of_it() -> None:
    async def work(address: str) -> None:
        first = await Reader(address, group("eager", group_instance_id="one")).start()
        await is_shared(first)
        second = await Reader(address, group("eager", group_instance_id="one")).start()
        await until(lambda: first._task is not None and first._task.done(), "the first is told")
        assert first._task is not None
        with pytest.raises(FencedInstanceId):
            await first._task
        await first.consumer.close()
        await second.stop()

    with_broker(work)


def test_scripts_without_a_loop_read_in_groups() -> None:
    with broker_in_thread(BROKER) as running, sync.Admin(running.address) as admin:
        admin.create_topic("t", partitions=PARTITIONS)
        with sync.Producer(running.address) as producer:
            producer.send("t", "value", partition=0)
        with sync.Consumer(running.address, group="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe("t")
            record = consumer.next_record(10_000)
            assert record is not None and record.value == b"value"
            consumer.commit()
            assert consumer.committed()[TopicPartition("t", 0)].offset == 1
            consumer.unsubscribe()


def test_without_a_committed_offset_and_a_default_reading_fails() -> None:
    async def work(address: str) -> None:
        async with Consumer(address, group=group("eager"), auto_offset_reset="none") as consumer:
            await consumer.subscribe("t")
            with pytest.raises(OffsetOutOfRange):
                await consumer.next_record(5000)

    with_broker(work)


@pytest.mark.parametrize(
    "said",
    [
        {"group_protocol": "other"},
        {"assignors": []},
        {"assignors": ["sticky"]},
        {"heartbeat_interval_ms": 45_000},
    ],
)
def test_wrong_settings_are_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        GroupSettings(group_id="g", **said)


def test_a_consumer_without_a_group_cannot_subscribe() -> None:
    async def work(address: str) -> None:
        async with Consumer(address) as consumer:
            with pytest.raises(ValueError, match="group"):
                await consumer.subscribe("t")

    with_broker(work)
