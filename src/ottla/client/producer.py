"""`Producer`: batches records and sends them to their partitions, once and in order.

    async with Producer("localhost:9092") as producer:
        delivery = await producer.send("orders", b"value", key=b"key")
        print((await delivery).offset)

`send` waits only for room in memory and, where batches are ready to go, for a turn of the event loop. The `Delivery`
it returns is awaited for the record's place, or not at all: then `flush` (and leaving the `async with`) raises the
first error that nobody awaited. Defaults are those of Kafka's producer since 4.0 (idempotent, acks=all, linger of
5 ms), except that batches are larger: in Python the cost is per request.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

from ottla.client.accumulator import Accumulator, AccumulatorSettings
from ottla.client.cluster import Cluster, ClusterSettings
from ottla.client.errors import BufferFull
from ottla.client.partitioner import Partitioner, StickyChoice, partition_for_key
from ottla.client.producer_batch import Delivery, PartitionQueue, RecordMetadata, Written
from ottla.client.sender import Sender, SenderSettings
from ottla.client.serializers import Serializer, as_bytes
from ottla.client.topology import TopicInfo
from ottla.clock import Clock, SystemClock
from ottla.errors import KafkaError, UnknownTopicOrPartition
from ottla.model import TopicPartition
from ottla.records.compression import Codec
from ottla.records.record import Headers

LAST_TIMESTAMP_MS: Final = 2**63 - 1
ACKS: Final = {"all": -1, "-1": -1, "0": 0, "1": 1, -1: -1, 0: 0, 1: 1}


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """How records are sent. Names are those of Kafka's producer."""

    acks: int | str = "all"
    """0, 1 or "all"; also as the text that Kafka's producer takes."""
    enable_idempotence: bool = True
    """Needs acks=all; with other acks it is off."""
    compression_type: str = "none"
    compression_level: int | None = None
    batch_size: int = 65_536
    linger_ms: float = 5
    buffer_memory: int = 33_554_432
    max_block_ms: int = 60_000
    max_request_size: int = 1_048_576
    max_in_flight: int = 5
    delivery_timeout_ms: int = 120_000


class TopicQueues:
    """A topic's partitions as the producer fills them, as of one metadata answer."""

    __slots__ = ("info", "queues", "sticky")

    def __init__(self, info: TopicInfo, sticky: StickyChoice) -> None:
        self.info = info
        self.queues = [PartitionQueue(TopicPartition(info.name, row.partition)) for row in info.partitions]
        self.sticky = sticky

    def update(self, info: TopicInfo) -> None:
        """Take over newer metadata. Partitions only grow, unless the topic was made anew."""
        self.info = info
        have = len(self.queues)
        self.queues += [PartitionQueue(TopicPartition(info.name, row.partition)) for row in info.partitions[have:]]

    def draw(self) -> int:
        """Take a new partition for records without a key, among those with a leader where there are any."""
        partitions = [row.partition for row in self.info.partitions if row.leader >= 0]
        if not partitions:
            partitions = list(range(len(self.info.partitions)))
        return self.sticky.draw(partitions, [self.queues[partition].length for partition in partitions])


class Producer:
    """Sends records to any Kafka-compatible cluster. Use it on one event loop."""

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        *,
        settings: ProducerSettings | None = None,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner | None = None,
        cluster: ClusterSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises `ValueError` for settings that make no sense."""
        self._settings = settings = settings or ProducerSettings()
        self._key_serializer: Serializer = key_serializer or as_bytes
        self._value_serializer: Serializer = value_serializer or as_bytes
        self._partitioner = partitioner
        self._clock = clock or SystemClock()
        self._cluster = Cluster(bootstrap, cluster)
        acks = _acks(settings.acks)
        self._accumulator = Accumulator(
            AccumulatorSettings(
                batch_size=settings.batch_size,
                linger_ms=settings.linger_ms,
                buffer_memory=settings.buffer_memory,
                max_request_size=settings.max_request_size,
                delivery_timeout_ms=settings.delivery_timeout_ms,
                codec=_codec(settings.compression_type),
                level=settings.compression_level,
            ),
            on_due=self._wake_sender,
        )
        self._sender = Sender(
            self._cluster,
            self._accumulator,
            SenderSettings(
                acks=acks,
                is_idempotent=settings.enable_idempotence and acks == -1,
                max_in_flight=settings.max_in_flight,
                max_request_size=settings.max_request_size,
            ),
            self._note_unseen,
        )
        self._topics: dict[str, TopicQueues] = {}
        self._unseen: KafkaError | None = None

    # ---- life

    async def start(self) -> None:
        """Reach the cluster. Raises `ClusterUnreachable`."""
        await self._cluster.start()

    async def close(self) -> None:
        """Send what is waiting, then close. Raises as `flush`."""
        try:
            await self.flush()
        finally:
            await self.abandon()

    async def abandon(self) -> None:
        """Close at once; what was not delivered fails."""
        self._accumulator.close()
        await self._sender.close()
        await self._cluster.close()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.abandon()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            await self.close()
        else:
            await self.abandon()

    # ---- records

    async def send(
        self,
        topic: str,
        value: Any,
        *,
        key: Any = None,
        partition: int | None = None,
        headers: Headers | Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Put a record into its batch and return its delivery; waits for memory up to max.block.ms.

        A `value` of None is a tombstone. Raises `ValueError` for a timestamp that records cannot have,
        `MessageTooLarge`, `UnknownTopicOrPartition`, `BufferFull`, and what ended the producer.
        """
        if self._sender.is_woken:
            await asyncio.sleep(0)  # a program that does nothing but send must not keep full batches from leaving
        queues = self._topics.get(topic)
        if queues is None or queues.info is not self._cluster.topics.get(topic):
            queues = await self._queues_of(topic)
        value = None if value is None else self._value_serializer(value)
        if key is not None:
            key = self._key_serializer(key)
        is_sticky = partition is None and key is None and self._partitioner is None
        if partition is None:
            partition = self._partition_for(queues, key, value)
        elif not 0 <= partition < len(queues.queues):
            raise UnknownTopicOrPartition(f"topic {topic!r} has {len(queues.queues)} partitions, none is {partition}")
        if timestamp_ms is None:
            timestamp_ms = self._clock.wall_ms()
        elif not 0 <= timestamp_ms <= LAST_TIMESTAMP_MS:
            raise ValueError(f"timestamp_ms is {timestamp_ms}; 0 to {LAST_TIMESTAMP_MS} are possible")
        headers = tuple(headers) if headers else ()
        queue = queues.queues[partition]
        delivery = self._accumulator.append(queue, timestamp_ms, key, value, headers)
        if delivery is None:
            delivery = await self._append_when_room(queue, timestamp_ms, key, value, headers)
        if is_sticky:
            self._count_sticky(queues, queue, len(value) if value is not None else 0)
        return delivery

    async def send_and_wait(
        self,
        topic: str,
        value: Any,
        *,
        key: Any = None,
        partition: int | None = None,
        headers: Headers | Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Send one record and wait until it is written. Raises what kept it from being so."""
        delivery = await self.send(
            topic, value, key=key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
        )
        return await delivery

    async def flush(self) -> None:
        """Send everything now and wait until it is settled. Raises the first error of a record that nobody awaited."""
        self._accumulator.flush()
        unsettled = list(self._accumulator.unsettled)
        while unsettled:
            await asyncio.wait([batch.done for batch in unsettled])
            unsettled = [part for batch in unsettled for part in batch.parts]
        error, self._unseen = self._unseen, None
        if error is not None:
            raise error

    async def partitions_of(self, topic: str, patience_ms: int | None = None) -> list[TopicPartition]:
        """Return a topic's partitions, creating it where the cluster does so by itself.

        Raises `UnknownTopicOrPartition` when it is not there after `patience_ms` (default: max.block.ms).
        """
        queues = await self._queues_of(topic, patience_ms)
        return [queue.partition for queue in queues.queues]

    @property
    def delivered_count(self) -> int:
        """Records that were written, or with acks=0 sent."""
        return self._accumulator.delivered_count

    @property
    def failed_count(self) -> int:
        """Records that were given up."""
        return self._accumulator.failed_count

    @property
    def written(self) -> Mapping[TopicPartition, Written]:
        """What was written to each partition: how many records, in how many bytes, and the range of their offsets."""
        return MappingProxyType(self._accumulator.written)

    # ---- within

    async def _queues_of(self, topic: str, patience_ms: int | None = None) -> TopicQueues:
        patience_ms = self._settings.max_block_ms if patience_ms is None else patience_ms
        info = await self._cluster.topic(topic, patience_ms)
        queues = self._topics.get(topic)
        if queues is None:
            sticky = StickyChoice(self._settings.batch_size, random.random)
            queues = self._topics[topic] = TopicQueues(info, sticky)
        else:
            queues.update(info)
        return queues

    def _partition_for(self, queues: TopicQueues, key: bytes | None, value: bytes | None) -> int:
        if self._partitioner is not None:
            return self._partitioner(queues.info.name, key, value, len(queues.queues))
        if key is not None:
            return partition_for_key(key, len(queues.info.partitions))
        partition = queues.sticky.partition
        return partition if 0 <= partition < len(queues.queues) else queues.draw()

    def _count_sticky(self, queues: TopicQueues, queue: PartitionQueue, size_bytes: int) -> None:
        if queues.sticky.count(size_bytes, batch_is_full=bool(queue.waiting) or queue.open is None):
            queues.draw()

    async def _append_when_room(
        self, queue: PartitionQueue, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Delivery:
        try:
            async with asyncio.timeout(self._settings.max_block_ms / 1000):
                while True:
                    delivery = self._accumulator.append(queue, timestamp_ms, key, value, headers)
                    if delivery is not None:
                        return delivery
                    await self._accumulator.room()
        except TimeoutError:
            raise BufferFull(
                f"{queue.partition}: no room within {self._settings.max_block_ms} ms; "
                f"buffer.memory is {self._settings.buffer_memory} bytes"
            ) from None

    def _wake_sender(self) -> None:
        self._sender.wake()

    def _note_unseen(self, error: KafkaError) -> None:
        if self._unseen is None:
            self._unseen = error


def _acks(acks: int | str) -> int:
    try:
        return ACKS[acks]
    except KeyError:
        raise ValueError(f"acks must be 0, 1 or 'all', not {acks!r}") from None


def _codec(name: str) -> Codec:
    try:
        return Codec.named(name)
    except KeyError:
        raise ValueError(f"no compression type is called {name!r}; try none, gzip, snappy, lz4 or zstd") from None
