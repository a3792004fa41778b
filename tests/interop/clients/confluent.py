"""confluent-kafka, which is librdkafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stubs forget to export it

from tests.interop.clients.client import BATCH_BYTES, TIMEOUT_S, Acks, Client, Codec, Row

END = -1  # librdkafka's OFFSET_END


class ConfluentClient(Client):
    name = "confluent-kafka"

    def create_topic(self, topic: str, configs: Mapping[str, str] | None = None) -> None:
        admin = AdminClient({"bootstrap.servers": self.address})
        new = NewTopic(topic, num_partitions=1, replication_factor=1, config=dict(configs or {}))
        admin.create_topics([new], request_timeout=TIMEOUT_S)[topic].result(TIMEOUT_S)

    def produce(
        self,
        topic: str,
        rows: Sequence[Row],
        *,
        codec: Codec = "none",
        acks: Acks = -1,
        is_idempotent: bool = False,
    ) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.address,
                "acks": acks,
                "compression.type": codec,
                "enable.idempotence": is_idempotent,
                "message.max.bytes": BATCH_BYTES,
                "linger.ms": 5,
            }
        )
        errors: list[object] = []

        def delivered(error: object, _message: object) -> None:
            if error is not None:
                errors.append(error)

        for row in rows:
            producer.produce(topic, row.value.encode(), row.key.encode(), partition=0, on_delivery=delivered)
        left = producer.flush(TIMEOUT_S)
        assert left == 0, f"{left} records were not delivered"
        if errors:
            raise KafkaException(errors[0])

    def consume(self, topic: str, count: int, *, offset: int = 0) -> list[Row]:
        consumer = self._consumer(topic, offset)
        try:
            rows: list[Row] = []
            deadline = time.monotonic() + TIMEOUT_S
            while len(rows) < count:
                assert time.monotonic() < deadline, f"{len(rows)} of {count} rows in {TIMEOUT_S} s"
                rows += self._poll(consumer, count - len(rows))
            return rows
        finally:
            consumer.close()

    def consume_new(self, topic: str, produce: Callable[[], None]) -> Row:
        consumer = self._consumer(topic, END)
        try:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S)
            consumer.assign([TopicPartition(topic, 0, end)])
            produce()
            return self._poll(consumer, 1)[0]
        finally:
            consumer.close()

    def _consumer(self, topic: str, offset: int) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "interop",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "check.crcs": True,
            }
        )
        consumer.assign([TopicPartition(topic, 0, offset)])
        return consumer

    def _poll(self, consumer: Consumer, count: int) -> list[Row]:
        messages = consumer.consume(count, TIMEOUT_S) if count == 1 else consumer.consume(count, 1.0)
        assert messages or count > 1, f"nothing came in {TIMEOUT_S} s"
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
        return [Row((message.key() or b"").decode(), (message.value() or b"").decode()) for message in messages]
