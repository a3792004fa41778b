"""The client for scripts: the same producer, consumer and admin without an event loop of one's own.

    with Producer("localhost:9092") as producer:
        producer.send("orders", "value")

    with Consumer("localhost:9092", auto_offset_reset="earliest") as consumer:
        consumer.assign_topics("orders")
        for record in consumer:
            print(record.value)

Everything runs on one loop in a thread that all objects share and that ends with the process. Methods wait for their
result; what has no method here is done with `call`, which hands over the asyncio object. For throughput hand over many
records at once (`send_many`), or use the asyncio client: a hop between threads costs more than a record.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, TypeVar

from ottla.client import admin as async_admin
from ottla.client import consumer as async_consumer
from ottla.client import producer as async_producer
from ottla.client.admin import BROKER_DEFAULT, ClusterDescription, CreatedTopic
from ottla.client.cluster import ClusterSettings
from ottla.client.committed import OffsetAndMetadata
from ottla.client.configs import ConfigEntry, ConfigResource, ConfigValue
from ottla.client.consumer_record import ConsumerBatch, ConsumerRecord
from ottla.client.fetcher import FetchSettings
from ottla.client.membership import GroupSettings, RebalanceListener
from ottla.client.offsets import OffsetAndTimestamp
from ottla.client.producer import ProducerSettings
from ottla.client.producer_batch import RecordMetadata
from ottla.client.serializers import Deserializer, Serializer
from ottla.client.topology import TopicInfo
from ottla.errors import KafkaError
from ottla.model import IsolationLevel, TopicPartition
from ottla.records.record import Headers

T = TypeVar("T")
OpenedT = TypeVar("OpenedT", bound=AbstractAsyncContextManager[Any])


class LoopThread:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="ottla-client", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for it; Ctrl-C cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


_shared: LoopThread | None = None
_lock = threading.Lock()


def shared_loop() -> LoopThread:
    """Return the loop that all objects of this module use, starting it the first time."""
    global _shared  # noqa: PLW0603 - one thread for the whole process is the point
    with _lock:
        if _shared is None:
            _shared = LoopThread()
        return _shared


async def _opened(make: type[OpenedT], *arguments: object, **options: object) -> OpenedT:
    """Make an object on the loop that it will live on, and reach the cluster; closed again where that fails."""
    made = make(*arguments, **options)
    await made.__aenter__()
    return made


class _UntilClosed(ABC):
    """What a `with` statement closes."""

    @abstractmethod
    def close(self) -> None:
        """Say what is still to be said, and hang up."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class Producer(_UntilClosed):
    """See `ottla.client.Producer`."""

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        *,
        settings: ProducerSettings | None = None,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        cluster: ClusterSettings | None = None,
    ) -> None:
        """Raises `ValueError` for settings that make no sense, `ClusterUnreachable`."""
        self._loop = shared_loop()
        self._producer = self._loop.run(
            _opened(
                async_producer.Producer,
                bootstrap,
                settings=settings,
                key_serializer=key_serializer,
                value_serializer=value_serializer,
                cluster=cluster,
            )
        )

    def send(
        self,
        topic: str,
        value: Any,
        *,
        key: Any = None,
        partition: int | None = None,
        headers: Headers | Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Send one record and wait until it is written."""
        return self._loop.run(
            self._producer.send_and_wait(
                topic, value, key=key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
            )
        )

    def send_many(self, topic: str, values: Iterable[Any]) -> int:
        """Send records without keys and wait until all are written; returns how many."""
        return self._loop.run(self._send_many(topic, values))

    async def _send_many(self, topic: str, values: Iterable[Any]) -> int:
        count = 0
        for value in values:
            await self._producer.send(topic, value)
            count += 1
        await self._producer.flush()
        return count

    def call(self, work: Callable[[async_producer.Producer], Coroutine[Any, Any, T]]) -> T:
        """Do something with the asyncio producer: `producer.call(lambda it: it.flush())`."""
        return self._loop.run(work(self._producer))

    def close(self) -> None:
        """Send what is waiting and close."""
        self._loop.run(self._producer.close())


class Consumer(_UntilClosed):
    """See `ottla.client.Consumer`."""

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        *,
        settings: FetchSettings | None = None,
        auto_offset_reset: str | None = None,
        isolation_level: IsolationLevel | None = None,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        group: GroupSettings | str | None = None,
        cluster: ClusterSettings | None = None,
    ) -> None:
        """Raises `ValueError` for settings that make no sense, `ClusterUnreachable`."""
        self._loop = shared_loop()
        self._consumer = self._loop.run(
            _opened(
                async_consumer.Consumer,
                bootstrap,
                settings=settings,
                auto_offset_reset=auto_offset_reset,
                isolation_level=isolation_level,
                key_deserializer=key_deserializer,
                value_deserializer=value_deserializer,
                group=group,
                cluster=cluster,
            )
        )

    def subscribe(self, *topics: str, pattern: str | None = None, listener: RebalanceListener | None = None) -> None:
        """Read these topics with the other members of the group. `listener` is called on the shared loop."""
        self._loop.run(self._consumer.subscribe(*topics, pattern=pattern, listener=listener))

    def unsubscribe(self) -> None:
        self._loop.run(self._consumer.unsubscribe())

    def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        self._loop.run(self._consumer.commit(offsets))

    def committed(self, *partitions: TopicPartition) -> Mapping[TopicPartition, OffsetAndMetadata]:
        return self._loop.run(self._consumer.committed(*partitions))

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self._loop.run(self._consumer.assign(partitions))

    def assign_topics(self, *topics: str) -> None:
        self._loop.run(self._consumer.assign_topics(*topics))

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        self._loop.run(self._call(self._consumer.seek, partition, offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self._loop.run(self._call(self._consumer.seek_to_beginning, *partitions))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._loop.run(self._call(self._consumer.seek_to_end, *partitions))

    def seek_to_time(self, timestamp_ms: int, *partitions: TopicPartition) -> None:
        self._loop.run(self._call(self._consumer.seek_to_time, timestamp_ms, *partitions))

    def position(self, partition: TopicPartition) -> int:
        return self._loop.run(self._consumer.position(partition))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        return self._loop.run(self._consumer.end_offsets(partitions))

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        return self._loop.run(self._consumer.beginning_offsets(partitions))

    def next_batch(self, timeout_ms: int | None = None) -> ConsumerBatch | None:
        return self._loop.run(self._consumer.next_batch(timeout_ms))

    def next_record(self, timeout_ms: int) -> ConsumerRecord | None:
        return self._loop.run(self._consumer.next_record(timeout_ms))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Iterate over records for ever."""
        while True:
            yield self._loop.run(self._consumer.__anext__())

    def call(self, work: Callable[[async_consumer.Consumer], Coroutine[Any, Any, T]]) -> T:
        """Do something with the asyncio consumer."""
        return self._loop.run(work(self._consumer))

    def close(self) -> None:
        """Leave the group, stop fetching and close the connections."""
        self._loop.run(self._consumer.close())

    @staticmethod
    async def _call(method: Any, *arguments: object) -> None:
        """Call a method of the consumer on its loop."""
        method(*arguments)


class Admin(_UntilClosed):
    """See `ottla.client.Admin`."""

    def __init__(self, bootstrap: str | Iterable[str], *, cluster: ClusterSettings | None = None) -> None:
        """Raises `ClusterUnreachable`."""
        self._loop = shared_loop()
        self._admin = self._loop.run(_opened(async_admin.Admin, bootstrap, cluster=cluster))

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, str] | None = None,
    ) -> CreatedTopic:
        return self._loop.run(
            self._admin.create_topic(
                name, partitions=partitions, replication_factor=replication_factor, configs=configs
            )
        )

    def delete_topic(self, name: str) -> None:
        self._loop.run(self._admin.delete_topic(name))

    def grow_topic(self, name: str, partitions: int) -> None:
        self._loop.run(self._admin.grow_topic(name, partitions))

    def list_topics(self, *, include_internal: bool = False) -> list[TopicInfo]:
        return self._loop.run(self._admin.list_topics(include_internal=include_internal))

    def describe_topic(self, name: str) -> TopicInfo:
        return self._loop.run(self._admin.describe_topic(name))

    def list_offsets(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError]:
        return self._loop.run(self._admin.list_offsets(timestamps_ms))

    def delete_records(self, before_offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | KafkaError]:
        return self._loop.run(self._admin.delete_records(before_offsets))

    def describe_configs(
        self, resources: Sequence[ConfigResource]
    ) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
        return self._loop.run(self._admin.describe_configs(resources))

    def alter_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, ConfigValue]]
    ) -> dict[ConfigResource, KafkaError | None]:
        return self._loop.run(self._admin.alter_configs(changes))

    def describe_cluster(self) -> ClusterDescription:
        return self._loop.run(self._admin.describe_cluster())

    def call(self, work: Callable[[async_admin.Admin], Coroutine[Any, Any, T]]) -> T:
        """Do something with the asyncio admin: `admin.call(lambda it: it.groups.list_groups())`."""
        return self._loop.run(work(self._admin))

    def close(self) -> None:
        """Close the connections."""
        self._loop.run(self._admin.close())
