"""Topics as Jafka's clients see them: a partition is a stream of bytes, and an offset is a place in it.

Beside a partition's Kafka log lies, once a Jafka client has used the partition, the same as a Jafka log: the messages
that such clients produced, as they were sent, and all others converted. Records go into both:

* what a Jafka client produces is appended to the Kafka log as records, and as it came to the Jafka log;
* what others produce reaches the Jafka log when a Jafka client looks: `log` catches up with the Kafka log first.

So an offset of a Jafka client is a position in files that stay, whatever compaction, retention or a restart make of the
Kafka log. A message has no key and no time; what Kafka records have of that is left out, a null value is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ottla.broker.broker import Broker
from ottla.broker.metadata.create_partitions import GrownTopic
from ottla.broker.metadata.create_topics import CreatedTopic, NewTopic
from ottla.broker.metadata.delete_topics import TopicReference
from ottla.broker.partition import Partition
from ottla.broker.visible import take_bytes
from ottla.clock import Timer
from ottla.errors import KafkaError, MessageTooLarge
from ottla.model import IsolationLevel, TopicId, TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.records.jafka import ProducedSet, build_set
from ottla.records.reading import RecordReader, split_readable

STEP_BYTES: Final = 1024 * 1024
STEPS_AT_ONCE: Final = 8
"""How much of a Kafka log is converted before a question is answered; the next question goes on."""
BATCH_OVERHEAD_BYTES: Final = 4096


class ByteLog(Protocol):
    """A partition's messages and their places; local: `storage.jafka_log`."""

    next_kafka_offset: int

    @property
    def readable_end(self) -> int: ...

    @property
    def has_unflushed(self) -> bool: ...

    def append(self, data: bytes, count: int, next_kafka_offset: int) -> None: ...

    def flush(self) -> None: ...

    def read(self, position: int, max_bytes: int) -> bytes: ...

    def positions_before(self, time_ms: int | None, max_count: int) -> list[int]: ...

    @property
    def start(self) -> int: ...

    def sweep(self) -> None: ...

    def close(self) -> None: ...


OpenLog = Callable[[TopicPartition, int], ByteLog]
"""Opens a partition's log; a new one begins with the record of that Kafka offset."""


@dataclass(frozen=True, slots=True)
class JafkaTopicSettings:
    """What topics made by Jafka's clients get, and when logs are flushed and looked through."""

    partition_counts: dict[str, int]
    max_message_bytes: int = 1024 * 1024
    flush_seconds: float = 3.0
    sweep_seconds: float = 600.0


class JafkaTopics:
    """The Jafka side of a broker's topics."""

    def __init__(self, broker: Broker, open_log: OpenLog, settings: JafkaTopicSettings) -> None:
        self.broker = broker
        self.settings = settings
        self._open_log = open_log
        self._logs: dict[TopicPartition, tuple[TopicId, ByteLog]] = {}
        self._flush_timer: Timer | None = None
        self._sweep_timer: Timer | None = None

    # -- topics ---------------------------------------------------------------------------------------------------

    def partition(self, topic: str, number: int) -> Partition:
        """Return a partition of a topic, which is made where it is missing. Raises `KafkaError`."""
        if self.broker.find_topic(topic) is None:
            self.create(topic, self.settings.partition_counts.get(topic, self.broker.config.num_partitions))
        return self.broker.partition(topic, number)

    def create(self, topic: str, count: int) -> int:
        """Create a topic, or raise its number of partitions; returns the number then. Raises `KafkaError`."""
        found = self.broker.find_topic(topic)
        if found is None and count:
            # a record needs a little more room than a message, and its batch a header
            room = self.settings.max_message_bytes + BATCH_OVERHEAD_BYTES
            new = NewTopic(topic, count, configs=[("max.message.bytes", str(room))])
            created = self.broker.metadata.create_topics([new]).answer[topic]
            if not isinstance(created, CreatedTopic):
                raise created
            return count
        has = 0 if found is None else len(found.partitions)
        if count > has:
            error = self.broker.metadata.create_partitions([GrownTopic(topic, count)]).answer[topic]
            if isinstance(error, KafkaError):
                raise error
        return max(count, has)

    def delete(self, topic: str) -> int:
        """Delete a topic with its files; returns how many partitions it had."""
        found = self.broker.find_topic(topic)
        if found is None:
            return 0
        self.broker.metadata.delete_topics([TopicReference(name=topic)])
        return 0 if self.broker.find_topic(topic) is not None else len(found.partitions)

    # -- messages -------------------------------------------------------------------------------------------------

    def produce(self, partition: Partition, produced: ProducedSet) -> None:
        """Append a set: its payloads as Kafka records, its bytes to the Jafka log. Raises `KafkaError`, `OSError`.

        Where others' records are not in the Jafka log yet and cannot be by now, this set comes after them, converted.
        """
        batches = self._to_batches(produced.payloads, partition.config.max_message_bytes)
        log = self.log(partition)
        is_next = log.next_kafka_offset == partition.offsets().log_end_offset
        for batch in batches:
            self.broker.append(partition, memoryview(batch))
        if is_next and produced.data:
            log.append(produced.data, max(len(produced.payloads), 1), partition.offsets().log_end_offset)
        self._flush_later()

    def _to_batches(self, payloads: Sequence[bytes], max_bytes: int) -> list[bytearray]:
        """Make record batches that the topic takes. Raises `MessageTooLarge`."""
        now_ms = self.broker.clock.wall_ms()
        builders = [BatchBuilder()] if payloads else []
        for payload in payloads:
            if builders[-1].count and builders[-1].size_with(now_ms, None, payload) > max_bytes:
                builders.append(BatchBuilder())
            builders[-1].append(now_ms, None, payload)
            if builders[-1].size_in_bytes > max_bytes:
                raise MessageTooLarge
        return [bytearray(builder.build()) for builder in builders]

    def log(self, partition: Partition) -> ByteLog:
        """Return a partition's messages, as far as the Kafka log is converted. Raises `KafkaError`, `OSError`."""
        topic_id, log = self._logs.get(partition.topic_partition, (None, None))
        if log is None or topic_id != partition.topic_id:
            if log is not None:  # of a topic that is gone
                log.close()
            offsets = partition.offsets()
            log = self._open_log(partition.topic_partition, offsets.log_start_offset)
            log.next_kafka_offset = min(log.next_kafka_offset, offsets.log_end_offset)
            self._logs[partition.topic_partition] = (partition.topic_id, log)
            self._sweep_later()
        self._catch_up(partition, log)
        return log

    def _catch_up(self, partition: Partition, log: ByteLog) -> None:
        """Convert what came to the Kafka log from elsewhere, as far as consumers may see it."""
        for _ in range(STEPS_AT_ONCE):
            offsets = partition.offsets()
            position = max(log.next_kafka_offset, offsets.log_start_offset)
            if position >= offsets.high_watermark:
                break
            read = partition.read(position, STEP_BYTES, IsolationLevel.READ_UNCOMMITTED, at_least_one_batch=True)
            batches, end = split_readable(take_bytes(read), with_legacy=True)
            reader = RecordReader(batches, position, end=end, limit=offsets.high_watermark)
            payloads: list[bytes] = []
            while records := reader.next_records():
                payloads += [record.value or b"" for record in records]
            if payloads:
                log.append(build_set(payloads), len(payloads), reader.next_fetch_offset)
                log.flush()
            log.next_kafka_offset = reader.next_fetch_offset
            if reader.problem is not None:
                raise reader.problem.error

    # -- what happens by itself -----------------------------------------------------------------------------------

    def _flush_later(self) -> None:
        if self._flush_timer is None and any(log.has_unflushed for _, log in self._logs.values()):
            now = self.broker.clock.monotonic()
            self._flush_timer = self.broker.timers.call_at(now + self.settings.flush_seconds, self._flush_all)

    def _flush_all(self) -> None:
        self._flush_timer = None
        for _, log in self._logs.values():
            log.flush()

    def _sweep_later(self) -> None:
        if self._sweep_timer is None:
            now = self.broker.clock.monotonic()
            self._sweep_timer = self.broker.timers.call_at(now + self.settings.sweep_seconds, self._sweep_all)

    def _sweep_all(self) -> None:
        self._sweep_timer = None
        for partition, (topic_id, log) in list(self._logs.items()):
            if self.broker.topic_name(topic_id) is None:
                log.close()
                del self._logs[partition]
            else:
                log.sweep()
        if self._logs:
            self._sweep_later()

    def close(self) -> None:
        """Flush and close all logs; the next start goes on where they end."""
        for _, log in self._logs.values():
            log.close()
        self._logs.clear()
