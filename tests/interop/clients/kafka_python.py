"""kafka-python."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from tests.interop.clients.client import BATCH_BYTES, TIMEOUT_S, Acks, Client, Codec, Row


class KafkaPythonClient(Client):
    name = "kafka-python"

    def create_topic(self, topic: str, configs: Mapping[str, str] | None = None) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.address)
        try:
            new = NewTopic(topic, num_partitions=1, replication_factor=1, topic_configs=dict(configs or {}))
            admin.create_topics([new])
        finally:
            admin.close()

    def produce(
        self,
        topic: str,
        rows: Sequence[Row],
        *,
        codec: Codec = "none",
        acks: Acks = -1,
        is_idempotent: bool = False,
    ) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.address,
            acks="all" if acks == -1 else acks,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=is_idempotent,
            max_request_size=BATCH_BYTES,
            linger_ms=5,
        )
        try:
            sent = [producer.send(topic, row.value.encode(), row.key.encode(), partition=0) for row in rows]
            producer.flush(TIMEOUT_S)
            for future in sent:
                future.get(TIMEOUT_S)
        finally:
            producer.close(TIMEOUT_S)

    def consume(self, topic: str, count: int, *, offset: int = 0) -> list[Row]:
        consumer, partition = self._consumer(topic)
        try:
            consumer.seek(partition, offset)
            return self._poll(consumer, count)
        finally:
            consumer.close()

    def consume_new(self, topic: str, produce: Callable[[], None]) -> Row:
        consumer, partition = self._consumer(topic)
        try:
            consumer.seek_to_end(partition)
            consumer.position(partition)
            produce()
            return self._poll(consumer, 1)[0]
        finally:
            consumer.close()

    def _consumer(self, topic: str) -> tuple[Any, Any]:
        consumer = KafkaConsumer(
            bootstrap_servers=self.address, group_id=None, auto_offset_reset="none", enable_auto_commit=False
        )
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        return consumer, partition

    def _poll(self, consumer: Any, count: int) -> list[Row]:
        rows: list[Row] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(rows) < count:
            assert time.monotonic() < deadline, f"{len(rows)} of {count} rows in {TIMEOUT_S} s"
            polled = consumer.poll(timeout_ms=500, max_records=count - len(rows))
            rows += [Row(r.key.decode(), r.value.decode()) for records in polled.values() for r in records]
        return rows
