"""A word count by Kafka Streams, without transactions, loses no word when it is killed, nor when the broker is.

Its topics for repartitioning and for the changelog of its store are made, read back and trimmed on the broker too.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.client import sync
from ottla.client.configs import ConfigResource
from ottla.errors import KafkaError
from tests.interop.brokers import Broker
from tests.interop.clients.jvm import OUR_CLASS_PATH, JavaProcess

APPLICATION: Final = "word-count"
PARTITIONS: Final = 2
SETTINGS: Final = (
    "group.initial.rebalance.delay.ms=0",
    "group.min.session.timeout.ms=500",
    "offsets.topic.num.partitions=4",
    f"num.partitions={PARTITIONS}",
)
COMMON: Final = ("so", "many", "words")
WAIT_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.1


@pytest.fixture
def broker(start_broker: Callable[..., Broker]) -> Broker:
    started = start_broker(*SETTINGS)
    topics = [
        NewTopic("lines", PARTITIONS, 1),
        NewTopic("counts", PARTITIONS, 1, config={"cleanup.policy": "compact"}),
    ]
    admin = AdminClient({"bootstrap.servers": started.address})
    for made in admin.create_topics(topics).values():
        made.result()
    return started


@pytest.fixture
def start_streams(broker: Broker, tmp_path: Path) -> Iterator[Callable[[], JavaProcess]]:
    """Start the program, each time with an empty folder, so that its store must come back from the changelog."""
    started: list[JavaProcess] = []

    def start() -> JavaProcess:
        number = len(started)
        words = (broker.address, "lines", "counts", APPLICATION, str(tmp_path / f"state-{number}"))
        started.append(JavaProcess(tmp_path / f"log-{number}", OUR_CLASS_PATH, "WordCount", *words))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.fixture
def counts(broker: Broker) -> Iterator[Counts]:
    reader = Counts(broker)
    yield reader
    reader.close()


class Counts:
    """The newest count of each word, as the topic of results tells it."""

    def __init__(self, broker: Broker) -> None:
        self._consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "reader", "log_level": 0})
        self._consumer.assign([TopicPartition("counts", number, 0) for number in range(PARTITIONS)])
        self.newest: Counter[str] = Counter()

    def close(self) -> None:
        self._consumer.close()

    def wait_for(self, wanted: Counter[str], process: JavaProcess) -> None:
        """Wait until each word was counted so often, or more often."""
        deadline = time.monotonic() + WAIT_SECONDS
        while lacking := wanted - self.newest:
            process.check_runs()
            assert time.monotonic() < deadline, f"{len(lacking)} words lack, so {lacking.most_common(3)}"
            for record in self._consumer.consume(100, POLL_SECONDS):
                key, value = record.key(), record.value()
                assert record.error() is None and key is not None and value is not None, record.error()
                self.newest[key.decode()] = int.from_bytes(value, "big")


def produce(broker: Broker, count: int, start: int) -> Counter[str]:
    """Produce lines of common words and one that no other line has; returns how often each word was sent."""
    producer = Producer({"bootstrap.servers": broker.address})
    sent: Counter[str] = Counter()
    for number in range(start, start + count):
        words = [*COMMON, f"line{number}"]
        producer.produce("lines", " ".join(words).encode(), partition=number % PARTITIONS)
        sent.update(words)
    assert producer.flush(WAIT_SECONDS) == 0
    return sent


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"not so after {WAIT_SECONDS} s: {what}"
        time.sleep(POLL_SECONDS)


def policy_of(broker: Broker, topic: str) -> str | None:
    """What the topic's settings say about its old records."""
    resource = ConfigResource.topic(topic)
    with sync.Admin(broker.address) as admin:
        settings = admin.describe_configs([resource])[resource]
    assert not isinstance(settings, KafkaError), settings
    return settings["cleanup.policy"].value


def trimmed(broker: Broker, topic: str) -> int:
    """How many records were removed from a topic's beginning."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "watcher"})
    try:
        bounds = [consumer.get_watermark_offsets(TopicPartition(topic, n), WAIT_SECONDS) for n in range(PARTITIONS)]
    finally:
        consumer.close()
    return sum(low for low, _ in bounds)


def test_a_word_count_loses_nothing(broker: Broker, start_streams: Callable[[], JavaProcess], counts: Counts) -> None:
    first = start_streams()
    sent = produce(broker, 100, start=0)
    counts.wait_for(sent, first)
    assert counts.newest == sent

    sent += produce(broker, 100, start=100)
    first.kill()
    broker.restart()
    sent += produce(broker, 100, start=200)
    second = start_streams()
    counts.wait_for(sent, second)

    broker.kill()
    broker.start()
    sent += produce(broker, 100, start=300)
    counts.wait_for(sent, second)

    assert policy_of(broker, f"{APPLICATION}-counts-changelog") == "compact"
    assert policy_of(broker, f"{APPLICATION}-words-repartition") == "delete"
    wait_until(lambda: trimmed(broker, f"{APPLICATION}-words-repartition") > 0, "what is counted is removed")
    second.check_runs()
