"""Producers that go on while the broker is killed under them, and remember what it acknowledged.

Each writes numbers from 0 on to partition 0 of a topic of its own, in a thread of its own, until it is told to stop.
What was acknowledged is handed over once, as pairs of number and offset.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from ottla.client import Delivery, ProducerSettings
from ottla.client import Producer as OurProducer
from ottla.errors import KafkaError

BURST: Final = 100
"""Records between two short rests: the broker is to be killed in the middle of work, not of a traffic jam."""
REST_S: Final = 0.02
KEYS: Final = 50
DELIVERY_TIMEOUT_S: Final = 600
PADDING: Final = b" " * 60


class Writer:
    """One producer. `is_exactly_once` says what may be expected of it: every number, once, without a gap."""

    is_exactly_once = True

    def __init__(self, address: str, topic: str) -> None:
        self.address = address
        self.topic = topic
        self.sent = 0
        self.error: str | None = None
        """What ended it before its time."""
        self._acknowledged: deque[tuple[int, int]] = deque()
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=topic, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Have it send what it has, which needs a broker that runs, and wait until all of it is settled."""
        self._is_stopping.set()
        self._thread.join(DELIVERY_TIMEOUT_S)
        assert not self._thread.is_alive(), f"{self.topic}: the producer does not end"

    def take_acknowledged(self) -> list[tuple[int, int]]:
        """Return number and offset of what was acknowledged since the last call."""
        return [self._acknowledged.popleft() for _ in range(len(self._acknowledged))]

    def _run(self) -> None:
        try:
            self._write()
        except (KafkaException, KafkaError) as error:
            self.error = f"{self.topic}: {error}"

    def _write(self) -> None:
        raise AssertionError("every writer says how it writes")


def value_of(number: int) -> bytes:
    return b"%d" % number + PADDING


class ConfluentWriter(Writer):
    """librdkafka's producer, idempotent and with retries without end; each key in turn."""

    settings: ClassVar[Mapping[str, Any]] = {
        "enable.idempotence": True,
        "message.timeout.ms": DELIVERY_TIMEOUT_S * 1000,
    }

    def _write(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.address,
                "acks": "all",
                "linger.ms": 2,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 10,
                "log_level": 0,
                **self.settings,
            }
        )
        while not self._is_stopping.is_set() and self.error is None:
            try:
                for _ in range(BURST):
                    key = b"%d" % (self.sent % KEYS)
                    producer.produce(self.topic, value_of(self.sent), key, 0, on_delivery=self._note)
                    self.sent += 1
            except BufferError:
                pass  # the broker is away
            producer.poll(REST_S)
        left = producer.flush(DELIVERY_TIMEOUT_S)
        assert not left, f"{self.topic}: {left} records are not settled"

    def _note(self, error: Any, message: Any) -> None:
        if error is None:
            self._acknowledged.append((int(message.value()), message.offset()))
        elif self.is_exactly_once:
            self.error = f"{self.topic}: record {int(message.value())} was given up: {error}"


class PlainWriter(ConfluentWriter):
    """The same without idempotence and without a second try: what is not acknowledged may be there or not."""

    is_exactly_once = False
    settings: ClassVar[Mapping[str, Any]] = {"enable.idempotence": False, "retries": 0, "message.timeout.ms": 5_000}


class OurWriter(Writer):
    """Our own producer, with its defaults."""

    def _write(self) -> None:
        asyncio.run(self._send_all())

    async def _send_all(self) -> None:
        settings = ProducerSettings(delivery_timeout_ms=DELIVERY_TIMEOUT_S * 1000)
        async with OurProducer(self.address, settings=settings) as producer:
            waiting: asyncio.Queue[tuple[int, Delivery] | None] = asyncio.Queue(maxsize=BURST * 20)
            async with asyncio.TaskGroup() as group:
                settling = group.create_task(self._settle(waiting))
                while not self._is_stopping.is_set() and not settling.done():
                    for _ in range(BURST):
                        delivery = await producer.send(self.topic, value_of(self.sent), partition=0)
                        await waiting.put((self.sent, delivery))
                        self.sent += 1
                    await asyncio.sleep(REST_S)
                await waiting.put(None)

    async def _settle(self, waiting: asyncio.Queue[tuple[int, Delivery] | None]) -> None:
        while (one := await waiting.get()) is not None:
            number, delivery = one
            try:
                metadata = await delivery
            except KafkaError as error:
                self.error = f"{self.topic}: record {number} was given up: {error}"
                return
            self._acknowledged.append((number, metadata.offset))


class Committer(Writer):
    """Commits one offset after the other for a group, without its members; `committed` is the newest acknowledged."""

    def __init__(self, address: str, topic: str, group: str) -> None:
        super().__init__(address, topic)
        self.group = group
        self.committed = 0

    def _write(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": self.group,
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        while not self._is_stopping.wait(REST_S):
            self.sent += 1
            try:
                consumer.commit(offsets=[TopicPartition(self.topic, 0, self.sent)], asynchronous=False)
            except KafkaException:
                continue  # it may have been written or not
            self.committed = self.sent
        consumer.close()
