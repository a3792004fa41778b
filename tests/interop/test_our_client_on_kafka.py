"""Our client and command line on the shared broker, whichever that is: the same results on Ottla and on Apache Kafka.

`OTTLA_INTEROP_BROKER=kafka` makes the broker a real Kafka.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client import Admin, Consumer, IsolationLevel, Producer, ProducerSettings, TopicPartition, sync
from ottla.client.configs import ConfigResource, ConfigSource
from ottla.client.offsets import OffsetAndTimestamp
from ottla.errors import InvalidPartitions, KafkaError, TopicAlreadyExists, UnsupportedVersion
from ottla.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from tests.interop.brokers import OTTLA, Broker

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


def test_settings_are_read_and_changed_where_the_broker_serves_that(broker: Broker, topic: str) -> None:
    resource = ConfigResource.topic(topic)
    with sync.Admin(broker.address) as admin:
        admin.create_topic(topic, partitions=1, replication_factor=1, configs={"retention.ms": "1000000"})
        try:
            before = admin.describe_configs([resource])[resource]
        except UnsupportedVersion:
            return
        assert not isinstance(before, KafkaError)
        assert (before["retention.ms"].value, before["retention.ms"].source) == ("1000000", ConfigSource.TOPIC)
        assert admin.alter_configs({resource: {"retention.ms": None, "segment.bytes": "2000000"}}) == {resource: None}
        after = admin.describe_configs([resource])[resource]
        assert not isinstance(after, KafkaError)
        assert after["retention.ms"].source is not ConfigSource.TOPIC
        assert after["segment.bytes"].value == "2000000"


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


def ottla(broker: Broker, *words: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [OTTLA, *words],
        input=data,
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, "OTTLA_BOOTSTRAP": broker.address},
    )


def test_the_command_line_says_the_same_on_every_broker(broker: Broker, topic: str) -> None:
    assert ottla(broker, "ready").returncode == 0
    assert ottla(broker, "topics", "create", topic, "-p", "1", "-r", "1").returncode == 0
    assert ottla(broker, "produce", topic, "-k", ":", "-q", data=b"a:1\nb:2\n").returncode == 0
    consumed = ottla(broker, "consume", topic, "--until", "end", "-q", "--json")
    assert [json.loads(line)["value"] for line in consumed.stdout.splitlines()] == ["1", "2"]
    missing = ottla(broker, "topics", "describe", f"{topic}-missing")
    assert (missing.returncode, missing.stdout) == (1, b"")
    assert missing.stderr.endswith(b"[UNKNOWN_TOPIC_OR_PARTITION]\n")
    assert ottla(broker, "topics", "delete", topic).returncode == 0
