"""Producer, consumer and admin against a broker in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.client import (
    Admin,
    ClusterSettings,
    Consumer,
    FetchSettings,
    Producer,
    ProducerSettings,
    TopicPartition,
    sync,
)
from ottla.client.admin import CreatedTopic
from ottla.client.errors import BufferFull, ClusterUnreachable, NotAssigned, RefusedWithBatch
from ottla.client.offsets import OffsetAndTimestamp
from ottla.clock import SystemClock
from ottla.errors import (
    InvalidRecord,
    KafkaError,
    MessageTooLarge,
    OffsetOutOfRange,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from ottla.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ottla.testing.cluster import broker_in_thread, running_broker

T0 = TopicPartition("t", 0)


def with_broker(work: Callable[[str], Coroutine[Any, Any, None]], partitions: int = 1) -> None:
    """Run `work` with the address of a broker that has topic `t`."""

    async def main() -> None:
        async with running_broker() as running:
            async with Admin(running.address) as admin:
                await admin.create_topic("t", partitions=partitions)
            await work(running.address)

    asyncio.run(main())


async def send(address: str, *values: bytes, **settings: Any) -> None:
    async with Producer(address, settings=ProducerSettings(linger_ms=0, **settings)) as producer:
        for value in values:
            await producer.send("t", value, partition=0)


async def values(consumer: Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        record = await consumer.next_record(5000)
        assert record is not None
        found.append(record.value)
    return found


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_was_sent_comes_back(compression: str) -> None:
    async def work(address: str) -> None:
        async with Producer(address, settings=ProducerSettings(compression_type=compression)) as producer:
            delivery = await producer.send("t", b"v", key=b"k", headers=[("h", b"1"), ("n", None)], timestamp_ms=5)
            await producer.send("t", None, key="text")
            await producer.flush()
            assert await delivery == ("t", 0, 0, 5)
        async with Consumer(address, auto_offset_reset="earliest") as consumer:
            await consumer.assign_topics("t")
            first, second = [await consumer.next_record(5000) for _ in range(2)]
        assert first == ("t", 0, 0, 5, b"k", b"v", (("h", b"1"), ("n", None)))
        assert second is not None
        assert (second.offset, second.key, second.value) == (1, b"text", None)

    with_broker(work)


@pytest.mark.parametrize("acks", ["all", 1, 0])
def test_all_acks_deliver_in_order(acks: int | str) -> None:
    async def work(address: str) -> None:
        sent = [str(number).encode() for number in range(2000)]
        await send(address, *sent, acks=acks, batch_size=500)
        async with Consumer(address, auto_offset_reset="earliest") as consumer:
            await consumer.assign([T0])
            assert await values(consumer, 2000) == sent

    with_broker(work)


def test_keys_and_stickiness_spread_over_partitions() -> None:
    async def work(address: str) -> None:
        async with Producer(address, settings=ProducerSettings(batch_size=200)) as producer:
            deliveries = [await producer.send("t", b"x" * 50) for _ in range(500)]
            keyed = {(await producer.send_and_wait("t", b"v", key=b"same")).partition for _ in range(3)}
            places = {(await delivery).partition for delivery in deliveries}
        assert places == {0, 1, 2}
        assert len(keyed) == 1

    with_broker(work, partitions=3)


def test_a_full_buffer_makes_senders_wait_and_nothing_is_lost() -> None:
    async def work(address: str) -> None:
        await send(address, *[b"x" * 900] * 300, buffer_memory=4000, batch_size=1000)
        async with Consumer(address) as consumer:
            assert await consumer.end_offsets([T0]) == {T0: 300}

    with_broker(work)


def test_waiting_for_room_ends_with_an_error() -> None:
    async def work(address: str) -> None:
        settings = ProducerSettings(
            buffer_memory=1000, batch_size=1000, max_block_ms=20, linger_ms=60_000, max_in_flight=0
        )
        producer = Producer(address, settings=settings)
        await producer.start()
        await producer.partitions_of("t")
        await producer.send("t", b"x" * 900)
        with pytest.raises(BufferFull, match=r"buffer.memory is 1000 bytes"):
            await producer.send("t", b"x" * 900)
        await producer.abandon()

    with_broker(work)


def test_errors_of_records_that_nobody_awaits_come_with_flush() -> None:
    async def work(address: str) -> None:
        async with Admin(address) as admin:
            await admin.create_topic("small", configs={"max.message.bytes": "500"})
        producer = Producer(address, settings=ProducerSettings(linger_ms=0))
        await producer.start()
        await producer.send("small", b"x" * 1000)
        with pytest.raises(MessageTooLarge, match="small-0"):
            await producer.flush()
        delivery = await producer.send("small", b"x" * 1000)
        with pytest.raises(MessageTooLarge):
            await delivery
        assert (await producer.send_and_wait("small", b"fits")).offset == 0, "the sequence goes on after the gap"
        assert (producer.delivered_count, producer.failed_count) == (1, 2)
        await producer.close()

    with_broker(work)


def test_a_batch_that_the_topic_has_no_room_for_is_sent_in_pieces() -> None:
    async def work(address: str) -> None:
        async with Admin(address) as admin:
            await admin.create_topic("small", configs={"max.message.bytes": "2000"})
        async with Producer(address) as producer:
            deliveries = [await producer.send("small", b"x" * 100) for _ in range(500)]
            await producer.flush()
            assert [(await delivery).offset for delivery in deliveries] == list(range(500))

    with_broker(work)


def test_one_record_that_the_topic_cannot_take_is_named_and_fails_its_batch() -> None:
    async def work(address: str) -> None:
        async with Admin(address) as admin:
            await admin.create_topic("keyed", configs={"cleanup.policy": "compact"})
        async with Producer(address) as producer:
            keyed = await producer.send("keyed", b"v", key=b"k")
            keyless = await producer.send("keyed", b"v")
            with pytest.raises(InvalidRecord, match="keyed-0: a record without a key"):
                await keyless
            with pytest.raises(RefusedWithBatch):
                await keyed

    with_broker(work)


def test_seeks_pauses_and_positions() -> None:
    async def work(address: str) -> None:
        await send(address, *[str(number).encode() for number in range(10)])
        async with Consumer(address, auto_offset_reset="earliest") as consumer:
            with pytest.raises(NotAssigned):
                await consumer.next_batch(0)
            await consumer.assign([T0])
            assert await consumer.position(T0) == 0
            assert await values(consumer, 3) == [b"0", b"1", b"2"]
            assert (await consumer.position(T0), consumer.high_watermark(T0), consumer.lag(T0)) == (3, 10, 7)

            consumer.pause(T0)
            assert await consumer.next_record(10) is None
            assert list(consumer.paused) == [T0]
            consumer.resume(T0)
            assert await values(consumer, 1) == [b"3"]

            batch = await consumer.next_batch(1000)
            assert batch is not None
            assert [record.value for record in batch.records] == [b"4", b"5", b"6", b"7", b"8", b"9"]
            consumer.seek(T0, 8)
            assert await values(consumer, 2) == [b"8", b"9"]
            consumer.seek_to_end()
            assert await consumer.position(T0) == 10
            with pytest.raises(OffsetOutOfRange):
                consumer.seek(T0, -1)

    with_broker(work)


def test_seeking_to_a_time() -> None:
    async def work(address: str) -> None:
        async with Producer(address) as producer:
            for number in range(5):
                await producer.send("t", str(number), partition=0, timestamp_ms=1000 + number)
        async with Consumer(address) as consumer:
            await consumer.assign([T0])
            consumer.seek_to_time(1003)
            assert await values(consumer, 2) == [b"3", b"4"]
            answer = (await consumer.offsets_for_times({T0: 1002}))[T0]
            assert answer is not None
            assert answer.offset == 2
            assert await consumer.offsets_for_times({T0: 9999}) == {T0: None}
            consumer.seek_to_time(9999)
            assert await consumer.position(T0) == 5

    with_broker(work)


@pytest.mark.parametrize(("reset", "expected"), [("earliest", b"0"), ("none", None)])
def test_a_position_out_of_range_is_reset_or_reported(reset: str, expected: bytes | None) -> None:
    async def work(address: str) -> None:
        await send(address, b"0")
        async with Consumer(address, auto_offset_reset=reset) as consumer:
            await consumer.assign([T0])
            consumer.seek(T0, 100)
            if expected is None:
                with pytest.raises(OffsetOutOfRange, match="t-0"):
                    await consumer.next_record(5000)
            else:
                assert await values(consumer, 1) == [expected]

    with_broker(work)


def test_a_reset_may_go_by_the_age_of_records() -> None:
    """KIP-1106: the first record that is young enough, and the end where none is."""

    async def work(address: str) -> None:
        now_ms = SystemClock().wall_ms()
        async with Producer(address) as producer:
            for days, value in ((9, b"old"), (2, b"young"), (1, b"younger")):
                await producer.send_and_wait("t", value, partition=0, timestamp_ms=now_ms - days * 86_400_000)
        for group in (None, "aged"):
            async with Consumer(address, group=group, auto_offset_reset="by_duration:P3D") as consumer:
                await (consumer.assign([T0]) if group is None else consumer.subscribe("t"))
                assert await values(consumer, 2) == [b"young", b"younger"]
                consumer.seek(T0, 100)
                assert await values(consumer, 1) == [b"young"]
        async with Consumer(address, auto_offset_reset="by_duration:PT1S") as consumer:
            await consumer.assign([T0])
            assert await consumer.position(T0) == 3

    with_broker(work)


def test_batches_and_deserializers() -> None:
    async def work(address: str) -> None:
        await send(address, b"1", b"2")
        async with Consumer(address, auto_offset_reset="earliest", value_deserializer=int) as consumer:
            await consumer.assign_topics("t")
            async for record in consumer:
                assert record.value == 1
                break
            async for batch in consumer.batches():
                assert [row.value for row in batch.records] == [b"2"]
                assert (batch.partition, batch.next_offset) == (T0, 2)
                break

    with_broker(work)


def test_what_is_fetched_ahead_is_bounded() -> None:
    async def work(address: str) -> None:
        await send(address, *[b"x" * 1000] * 200, batch_size=2000)
        settings = FetchSettings(max_partition_fetch_bytes=5000, max_buffered_bytes=6000, auto_offset_reset="earliest")
        async with Consumer(address, settings=settings) as consumer:
            await consumer.assign([T0])
            assert len(await values(consumer, 200)) == 200
            state = consumer._subscription.state(T0)
            assert state.buffered_bytes == 0

    with_broker(work)


def test_topics_live_and_die() -> None:
    async def work(address: str) -> None:
        async with Admin(address) as admin:
            with pytest.raises(TopicAlreadyExists):
                await admin.create_topic("t")
            created = await admin.create_topic("u", partitions=2)
            assert isinstance(created, CreatedTopic)
            await admin.grow_topic("u", 3)
            assert [topic.name for topic in await admin.list_topics()] == ["t", "u"]
            topic = await admin.describe_topic("u")
            assert (topic.topic_id, len(topic.partitions)) == (created.topic_id, 3)
            await admin.delete_topic("u")
            with pytest.raises(UnknownTopicOrPartition, match="u"):
                await admin.describe_topic("u")
            described = await admin.describe_cluster()
            assert [broker.node_id for broker in described.brokers] == [described.controller_id]

    with_broker(work)


def test_offsets_are_told_per_partition_with_errors_in_their_place() -> None:
    async def work(address: str) -> None:
        await send(address, b"a", b"b")
        missing, too_high = TopicPartition("nope", 0), TopicPartition("t", 9)
        async with Admin(address) as admin:
            ends = await admin.list_offsets(dict.fromkeys([T0, missing, too_high], LATEST_TIMESTAMP))
            begins = await admin.list_offsets({T0: EARLIEST_TIMESTAMP})
        found = [row.offset for row in (begins[T0], ends[T0]) if isinstance(row, OffsetAndTimestamp)]
        assert found == [0, 2]
        assert isinstance(ends[missing], UnknownTopicOrPartition)
        assert isinstance(ends[too_high], UnknownTopicOrPartition)

    with_broker(work)


def test_a_topic_that_is_missing_is_an_error_at_once_for_consumers() -> None:
    async def work(address: str) -> None:
        async with Consumer(address) as consumer:
            with pytest.raises(UnknownTopicOrPartition, match="nope"):
                await consumer.assign_topics("nope")
            with pytest.raises(UnknownTopicOrPartition, match="t-7"):
                await consumer.assign([TopicPartition("t", 7)])

    with_broker(work)


def test_an_address_where_nobody_listens_is_named() -> None:
    async def work() -> None:
        with pytest.raises(ClusterUnreachable, match=r"127\.0\.0\.1:1: connection refused"):
            async with Consumer("127.0.0.1:1,127.0.0.1:2") as consumer:
                await consumer.assign_topics("t")

    asyncio.run(work())


def test_a_producer_survives_a_restart_of_the_broker(tmp_path: Any) -> None:
    """Records that were sent while the broker was away arrive once, in order, on the port it comes back to."""

    async def work() -> None:
        settings = {"log.dirs": str(tmp_path)}
        async with running_broker(settings) as running:
            address = running.address
            async with Admin(address) as admin:
                await admin.create_topic("t", partitions=1)
            producer = Producer(address, settings=ProducerSettings(linger_ms=0), cluster=ClusterSettings())
            await producer.start()
            await producer.send_and_wait("t", b"before")
        deliveries = [await producer.send("t", str(number)) for number in range(3)]
        async with running_broker({**settings, "listeners": f"PLAINTEXT://{address}"}):
            assert [(await delivery).offset for delivery in deliveries] == [1, 2, 3]
            await producer.close()

    asyncio.run(work())


def test_scripts_need_no_loop() -> None:
    with broker_in_thread() as running:
        with sync.Admin(running.address) as admin:
            admin.create_topic("t", partitions=1)
            with pytest.raises(KafkaError) as caught:
                admin.create_topic("t")
            assert caught.value.name == "TOPIC_ALREADY_EXISTS"
        with sync.Producer(running.address) as producer:
            assert producer.send("t", "first").offset == 0
            assert producer.send_many("t", ["second", "third"]) == 2
        with sync.Consumer(running.address, auto_offset_reset="earliest") as consumer:
            consumer.assign_topics("t")
            found = []
            for record in consumer:
                found.append(record.value)
                if len(found) == 3:
                    break
        assert found == [b"first", b"second", b"third"]
