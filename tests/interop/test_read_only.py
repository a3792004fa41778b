"""What other people's clients make of a broker that serves read-only: they read, in groups too, and give up writing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator

import aiokafka
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from kafka import KafkaProducer
from kafka.errors import PolicyViolationError

from tests.interop.brokers import KAFKA_HOME, OttlaBroker
from tests.interop.clients import Row
from tests.interop.clients.client import TIMEOUT_S
from tests.interop.clients.confluent import ConfluentClient
from tests.interop.clients.console import QUICK_JVM

SAID = "this broker serves its data read-only: nothing is written"
SETTINGS = ("group.initial.rebalance.delay.ms=0",)
TOPIC, GROUP, COMMITTED = "t", "g", 60
ROWS = [Row(str(number), "value") for number in range(100)]
AT_ONCE_S = 20.0
"""Far less than any client's patience, on a slow machine too: who tries again for ever takes longer."""


class ReadOnlyBroker(OttlaBroker):
    def command(self) -> list[str]:
        return ["--read-only" if word == "--data" else word for word in super().command()]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReadOnlyBroker]:
    """A broker on the data of another one, which was used and stopped."""
    folder = tmp_path_factory.mktemp("read-only")
    first = OttlaBroker(folder, *SETTINGS)
    first.start()
    client = ConfluentClient(first.address)
    client.create_topic(TOPIC)
    client.produce(TOPIC, ROWS)
    consumer = Consumer({"bootstrap.servers": first.address, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, COMMITTED)], asynchronous=False)
    consumer.close()
    first.stop()
    broker = ReadOnlyBroker(folder, *SETTINGS)
    broker.start()
    yield broker
    broker.stop()


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_librdkafka_gives_up_producing(broker: ReadOnlyBroker, is_idempotent: bool) -> None:
    begin = time.monotonic()
    with pytest.raises(KafkaException) as raised:
        ConfluentClient(broker.address).produce(TOPIC, ROWS[:1], is_idempotent=is_idempotent)
    assert raised.value.args[0].code() == KafkaError.POLICY_VIOLATION
    assert time.monotonic() - begin < AT_ONCE_S


def test_kafka_python_says_why(broker: ReadOnlyBroker) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.address)
    with pytest.raises(PolicyViolationError, match=SAID):
        producer.send(TOPIC, b"value").get(AT_ONCE_S)
    producer.close()


def test_kafkas_own_producer_says_why(broker: ReadOnlyBroker) -> None:
    """Idempotent by default, so that it asks for a producer id first."""
    command = [str(KAFKA_HOME / "bin/kafka-console-producer.sh"), "--bootstrap-server", broker.address]
    done = subprocess.run(
        [*command, "--topic", TOPIC],
        input="value\n",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**os.environ, **QUICK_JVM},
        check=False,
    )
    assert f"PolicyViolationException: {SAID}" in done.stdout + done.stderr


def test_an_administrator_is_told_why(broker: ReadOnlyBroker) -> None:
    with pytest.raises(KafkaException, match=SAID):
        ConfluentClient(broker.address).create_topic("new")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_reads_on_from_its_stored_offset(broker: ReadOnlyBroker, protocol: str) -> None:
    """It commits all the time, in vain, and reads no worse for it."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": GROUP,
            "group.protocol": protocol,
            "auto.offset.reset": "error",
            "auto.commit.interval.ms": 10,
        }
    )
    consumer.subscribe([TOPIC])
    offsets: list[int | None] = []
    deadline = time.monotonic() + AT_ONCE_S
    while len(offsets) < len(ROWS) - COMMITTED:
        assert time.monotonic() < deadline, f"{len(offsets)} records came"
        for message in consumer.consume(10, 0.5):
            assert message.error() is None, message.error()
            offsets.append(message.offset())
    consumer.close()
    assert offsets == list(range(COMMITTED, len(ROWS)))


def test_aiokafka_reads_in_a_group_that_does_not_commit(broker: ReadOnlyBroker) -> None:
    """With automatic commits, its default, it raises the refusal to whoever reads."""

    async def read() -> list[int]:
        consumer = aiokafka.AIOKafkaConsumer(
            TOPIC, bootstrap_servers=broker.address, group_id=GROUP, enable_auto_commit=False
        )
        await consumer.start()
        try:
            async with asyncio.timeout(AT_ONCE_S):
                return [(await consumer.getone()).offset for _ in range(len(ROWS) - COMMITTED)]
        finally:
            await consumer.stop()

    assert asyncio.run(read()) == list(range(COMMITTED, len(ROWS)))


def test_nothing_was_written(broker: ReadOnlyBroker) -> None:
    """The clean-shutdown file of the broker before is still there, which a broker that writes takes away first."""
    assert (broker.data / ".kafka_cleanshutdown").exists()
