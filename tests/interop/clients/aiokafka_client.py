"""aiokafka; each verb runs in an event loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code

from tests.interop.clients.client import BATCH_BYTES, TIMEOUT_S, Acks, Client, Codec, Row


class AiokafkaClient(Client):
    name = "aiokafka"

    def create_topic(self, topic: str, configs: Mapping[str, str] | None = None) -> None:
        async def create() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.address)
            await admin.start()
            try:
                new = NewTopic(topic, num_partitions=1, replication_factor=1, topic_configs=dict(configs or {}))
                answer = await admin.create_topics([new])
            finally:
                await admin.close()
            for _, code, *_ in answer.topic_errors:
                if code:
                    raise for_code(code)

        asyncio.run(create())

    def produce(
        self,
        topic: str,
        rows: Sequence[Row],
        *,
        codec: Codec = "none",
        acks: Acks = -1,
        is_idempotent: bool = False,
    ) -> None:
        async def produce() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.address,
                acks="all" if acks == -1 else acks,
                compression_type=None if codec == "none" else codec,
                enable_idempotence=is_idempotent,
                max_request_size=BATCH_BYTES,
                linger_ms=5,
            )
            await producer.start()
            try:
                sent = [await producer.send(topic, row.value.encode(), row.key.encode(), partition=0) for row in rows]
                await asyncio.wait_for(asyncio.gather(*sent), TIMEOUT_S)
            finally:
                await producer.stop()

        asyncio.run(produce())

    def consume(self, topic: str, count: int, *, offset: int = 0) -> list[Row]:
        async def consume() -> list[Row]:
            async with self._consumer(topic) as (consumer, partition):
                consumer.seek(partition, offset)
                return [await self._next(consumer) for _ in range(count)]

        return asyncio.run(consume())

    def consume_new(self, topic: str, produce: Callable[[], None]) -> Row:
        async def consume() -> Row:
            async with self._consumer(topic) as (consumer, partition):
                await consumer.seek_to_end(partition)
                await consumer.position(partition)
                await asyncio.to_thread(produce)
                return await self._next(consumer)

        return asyncio.run(consume())

    @asynccontextmanager
    async def _consumer(self, topic: str) -> AsyncIterator[tuple[Any, Any]]:
        partition = TopicPartition(topic, 0)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.address, group_id=None, auto_offset_reset="none", enable_auto_commit=False
        )
        await consumer.start()
        try:
            consumer.assign([partition])
            yield consumer, partition
        finally:
            await consumer.stop()

    async def _next(self, consumer: Any) -> Row:
        record = await asyncio.wait_for(consumer.getone(), TIMEOUT_S)
        return Row(record.key.decode(), record.value.decode())
