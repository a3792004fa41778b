"""Our client on the shared broker, whichever that is: the same results on Ottla and on Apache Kafka.

`OTTLA_INTEROP_BROKER=kafka` makes the broker a real Kafka.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.client import Admin, Consumer, IsolationLevel, Producer, ProducerSettings, TopicPartition, sync
from ottla.client.configs import ConfigResource, ConfigSource
from ottla.client.errors import RefusedWithBatch
from ottla.client.offsets import OffsetAndTimestamp
from ottla.client.replicas import LogDirectory
from ottla.client.users import DEFAULT_ENTITY, QuotaEntity, ScramMechanism
from ottla.errors import (
    ElectionNotNeeded,
    InvalidPartitions,
    InvalidRecord,
    KafkaError,
    TopicAlreadyExists,
)
from ottla.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from tests.interop.brokers import Broker

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize("compression", CODECS)
def test_every_codec_and_the_order_of_many_records(broker: Broker, topic: str, compression: str) -> None:
    sent = [f"{number} {'x' * (number % 200)}".encode() for number in range(10_000)]

    async def work() -> list[bytes]:
        async with Admin(broker.address) as admin:
            await admin.create_topic(topic, partitions=1, replication_factor=1)
        settings = ProducerSettings(compression_type=compression, batch_size=16_384)
        async with Producer(broker.address, settings=settings) as producer:
            for value in sent:
                await producer.send(topic, value)
        found: list[bytes] = []
        async with Consumer(
            broker.address, auto_offset_reset="earliest", isolation_level=IsolationLevel.READ_COMMITTED
        ) as consumer:
            await consumer.assign_topics(topic)
            async for batch in consumer.batches():
                found += [record.value for record in batch.records if record.value is not None]
                if len(found) >= len(sent):
                    return found
        raise AssertionError("the consumer ended")

    assert asyncio.run(work()) == sent


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(broker: Broker, topic: str, acks: int | str) -> None:
    with sync.Admin(broker.address) as admin:
        admin.create_topic(topic, partitions=1, replication_factor=1)
        with sync.Producer(broker.address, settings=ProducerSettings(acks=acks, linger_ms=0)) as producer:
            metadata = [producer.send(topic, str(number)) for number in range(5)]
            assert [row.offset for row in metadata] == ([-1] * 5 if acks == 0 else list(range(5)))
            if acks == 0:
                assert producer.send_many(topic, [b"last"]) == 1
        with sync.Consumer(broker.address, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert [consumer.next_record(10_000) is not None for _ in range(5)] == [True] * 5


def test_start_middle_end_and_time(broker: Broker, topic: str) -> None:
    partition = TopicPartition(topic, 0)

    first_ms = int(time.time() * 1000) - 60_000  # recent: retention takes what is old

    async def work() -> None:
        async with Admin(broker.address) as admin:
            await admin.create_topic(topic, partitions=1, replication_factor=1)
        async with Producer(broker.address) as producer:
            for number in range(100):
                await producer.send(topic, str(number), timestamp_ms=first_ms + number)
        async with Consumer(broker.address, auto_offset_reset="earliest") as consumer:
            await consumer.assign([partition])
            for where, expected in (("start", 0), ("middle", 50), ("time", 77)):
                if where == "start":
                    consumer.seek_to_beginning()
                elif where == "middle":
                    consumer.seek(partition, 50)
                else:
                    consumer.seek_to_time(first_ms + 77)
                record = await consumer.next_record(10_000)
                assert record is not None
                assert record.offset == expected
                assert consumer.lag(partition) == 99 - expected
            consumer.seek_to_end()
            assert await consumer.position(partition) == 100
        async with Admin(broker.address) as admin:
            answers = [await admin.list_offsets({partition: at}) for at in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)]
            offsets = [answer[partition] for answer in answers]
            assert [row.offset for row in offsets if isinstance(row, OffsetAndTimestamp)] == [0, 100]

    asyncio.run(work())


def test_topics_are_created_grown_and_deleted(broker: Broker, topic: str) -> None:
    with sync.Admin(broker.address) as admin:
        created = admin.create_topic(topic, partitions=2, replication_factor=1)
        assert (created.partitions, created.replication_factor) == (2, 1)
        with pytest.raises(TopicAlreadyExists):
            admin.create_topic(topic)
        admin.grow_topic(topic, 3)
        with pytest.raises(InvalidPartitions):
            admin.grow_topic(topic, 2)
        assert len(admin.describe_topic(topic).partitions) == 3
        admin.delete_topic(topic)
        assert topic not in [row.name for row in admin.list_topics()]


def test_settings_are_read_and_changed(broker: Broker, topic: str) -> None:
    resource = ConfigResource.topic(topic)
    with sync.Admin(broker.address) as admin:
        admin.create_topic(topic, partitions=1, replication_factor=1, configs={"retention.ms": "1000000"})
        with sync.Producer(broker.address) as producer:  # Kafka's broker hears of a topic after its controller answered
            producer.call(lambda it: it.partitions_of(topic))
        before = admin.describe_configs([resource])[resource]
        assert not isinstance(before, KafkaError)
        assert (before["retention.ms"].value, before["retention.ms"].source) == ("1000000", ConfigSource.TOPIC)
        assert admin.alter_configs({resource: {"retention.ms": None, "segment.bytes": "2000000"}}) == {resource: None}
        after = admin.describe_configs([resource])[resource]
        assert not isinstance(after, KafkaError)
        assert after["retention.ms"].source is not ConfigSource.TOPIC
        assert after["segment.bytes"].value == "2000000"


def test_batches_and_records_that_a_topic_does_not_take(broker: Broker, topic: str) -> None:
    async def work() -> None:
        async with Admin(broker.address) as admin:
            configs = {"max.message.bytes": "2000", "cleanup.policy": "compact"}
            await admin.create_topic(topic, partitions=1, replication_factor=1, configs=configs)
        async with Producer(broker.address) as producer:
            deliveries = [await producer.send(topic, b"x" * 100, key=b"%d" % number) for number in range(200)]
            await producer.flush()
            assert [(await delivery).offset for delivery in deliveries] == list(range(200)), "sent in pieces that fit"
            keyed = await producer.send(topic, b"v", key=b"k")
            keyless = await producer.send(topic, b"v")
            with pytest.raises(InvalidRecord):
                await keyless
            with pytest.raises(RefusedWithBatch):
                await keyed
            assert (await producer.send_and_wait(topic, b"v", key=b"k")).offset == 200

    asyncio.run(work())


def test_a_commit_keeps_the_leader_epoch_and_is_checked_against_the_log(broker: Broker, topic: str) -> None:
    partition = TopicPartition(topic, 0)

    async def work() -> None:
        async with Admin(broker.address) as admin:
            await admin.create_topic(topic, partitions=1, replication_factor=1)
        async with Producer(broker.address) as producer:
            await producer.send(topic, b"a")
            await producer.send(topic, b"b")
        async with Consumer(broker.address, group=topic, auto_offset_reset="earliest") as consumer:
            await consumer.assign([partition])
            assert await consumer.next_record(10_000) is not None
            await consumer.commit()
            committed = (await consumer.committed(partition))[partition]
            assert (committed.offset, committed.leader_epoch) == (1, 0)
            consumer.seek(partition, committed)
            record = await consumer.next_record(10_000)
            assert record is not None
            assert record.value == b"b"

    asyncio.run(work())


async def until(ask: Callable[[], Awaitable[object]], expected: object) -> None:
    """Ask until the broker knows what the controller has done, which on Kafka is a moment later."""
    async with asyncio.timeout(10):
        while await ask() != expected:
            await asyncio.sleep(0.05)


def test_administration_of_replicas_users_and_the_quorum(broker: Broker, topic: str) -> None:
    partition, entity = TopicPartition(topic, 0), QuotaEntity(user=topic, client_id=DEFAULT_ENTITY)

    async def work() -> None:
        async with Admin(broker.address) as admin:
            await admin.create_topic(topic, partitions=1, replication_factor=1)
            async with Producer(broker.address) as producer:
                await producer.send_and_wait(topic, b"x")
            (directory,) = (await admin.replicas.log_dirs(partitions=[partition])).values()
            assert isinstance(directory, LogDirectory)
            assert directory.replicas[partition].size_bytes > 0
            producers = (await admin.replicas.producers([partition]))[partition]
            assert isinstance(producers, list)
            assert [(one.producer_epoch, one.last_sequence) for one in producers] == [(0, 0)]
            assert isinstance((await admin.replicas.elect_leaders([partition]))[partition], ElectionNotNeeded)
            assert await admin.replicas.reassignments([partition]) == {}
            assert await admin.users.alter_quotas({entity: {"producer_byte_rate": 1e9}}) == {entity: None}
            await until(lambda: admin.users.quotas(entity), {entity: {"producer_byte_rate": 1e9}})
            assert await admin.users.alter_quotas({entity: {"producer_byte_rate": None}}) == {entity: None}
            await admin.users.set_scram_password(topic, "secret", ScramMechanism.SHA_256)
            credentials = {topic: [(ScramMechanism.SHA_256, 8192)]}
            await until(lambda: admin.users.scram_credentials([topic]), credentials)
            await admin.users.remove_scram_password(topic, ScramMechanism.SHA_256)
            quorum = await admin.quorum.describe()
            assert quorum.leader_id == quorum.voters[0].replica_id
            assert await admin.quorum.update_features({"group.version": 1}, validate_only=True) == {
                "group.version": None
            }
            assert ConfigResource.topic(topic) in await admin.list_config_resources()

    asyncio.run(work())


def test_a_restart_of_the_broker_costs_no_record_and_doubles_none(
    start_broker: Callable[..., Broker], topic: str
) -> None:
    broker = start_broker()

    async def work() -> None:
        loop = asyncio.get_running_loop()
        async with Admin(broker.address) as admin:
            await admin.create_topic(topic, partitions=1, replication_factor=1)
        async with Producer(broker.address, settings=ProducerSettings(linger_ms=0)) as producer:
            await producer.send_and_wait(topic, b"0")
            restarting = loop.run_in_executor(None, broker.restart)
            deliveries: list[Any] = []
            number = 0
            while not restarting.done():
                number += 1
                deliveries.append(await producer.send(topic, str(number)))
                await asyncio.sleep(0.01)
            await restarting
            assert [(await delivery).offset for delivery in deliveries] == list(range(1, number + 1))

    asyncio.run(work())
