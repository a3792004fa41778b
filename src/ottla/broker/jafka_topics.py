"""Topics as Jafka's clients see them: a partition is a stream of bytes, and an offset is a place in it.

A topic that such a client makes is in Jafka's format: its only log has the messages as they were sent, and whoever
speaks another dialect reads them converted (`storage.jafka_topic_log`). Any other topic is in Kafka's format. Beside
a partition of that kind lies, once a Jafka client has used it, a copy in Jafka's form. Records go into both:

* what a Jafka client produces is appended to the Kafka log as records, and as it came to the copy;
* what others produce reaches the copy when a Jafka client looks: `log` catches up with the Kafka log first.

So an offset of a Jafka client is a position in files that stay, whatever compaction, retention or a restart make of the
Kafka log. A message has no key and no time; what Kafka records have of that is left out, a null value is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from ottla.broker.broker import Broker
from ottla.broker.metadata.controller import MetadataController
from ottla.broker.metadata.create_partitions import GrownTopic
from ottla.broker.metadata.create_topics import CreatedTopic, NewTopic
from ottla.broker.metadata.delete_topics import TopicReference
from ottla.broker.partition import Partition
from ottla.broker.visible import STRETCH_BYTES, read_values
from ottla.config.broker_config import BrokerConfig
from ottla.config.topic_settings import FORMAT, JAFKA_FORMAT
from ottla.errors import KafkaError, MessageTooLarge, TopicAlreadyExists
from ottla.model import TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.records.jafka import ProducedSet, build_set

AT_ONCE_BYTES: Final = 4 * STRETCH_BYTES
"""How many bytes of Kafka's logs are read and converted in one turn of the loop, about."""
BATCH_OVERHEAD_BYTES: Final = 4096
HOUR_MS: Final = 3_600_000


class ByteLog(Protocol):
    """A partition's messages and their places; local: `storage.jafka_log`."""

    next_kafka_offset: int

    @property
    def readable_end(self) -> int: ...

    def append(self, data: bytes, count: int, next_kafka_offset: int) -> None: ...

    def flush(self) -> None: ...

    def read(self, position: int, max_bytes: int) -> bytes: ...

    def positions_before(self, time_ms: int | None, max_count: int) -> list[int]: ...

    @property
    def start(self) -> int: ...


class ByteLogs(Protocol):
    """Where these logs are; local: `storage.jafka_logs`. Raises `KafkaStorageError`."""

    def of_topic(self, partition: TopicPartition) -> ByteLog:
        """Return the log of a partition whose topic is in Jafka's format."""

    def beside(self, partition: TopicPartition, kafka_offset: int) -> ByteLog:
        """Return the copy of a partition in Kafka's format; a new one begins with the record of that offset."""


@dataclass(frozen=True, slots=True)
class JafkaTopicSettings:
    """What topics made by Jafka's clients get, and when logs are flushed."""

    partition_counts: Mapping[str, int]
    retention_hours: Mapping[str, int]
    flush_intervals_ms: Mapping[str, int]
    flush_ms: int
    max_message_bytes: int

    @classmethod
    def from_config(cls, config: BrokerConfig) -> JafkaTopicSettings:
        return cls(
            partition_counts=_by_topic(config.items("ottla.jafka.partition.counts")),
            retention_hours=_by_topic(config.items("ottla.jafka.retention.hours")),
            flush_intervals_ms=_by_topic(config.items("ottla.jafka.flush.intervals")),
            flush_ms=config.integer("ottla.jafka.flush.ms"),
            max_message_bytes=config.integer("ottla.jafka.max.message.bytes"),
        )

    def new_topic(self, name: str, count: int) -> NewTopic:
        """Return a topic of Jafka's clients. A record needs a little more room than a message, its batch a header."""
        room = self.max_message_bytes + BATCH_OVERHEAD_BYTES
        configs = [("max.message.bytes", str(room)), (FORMAT, JAFKA_FORMAT)]
        if name in self.retention_hours:
            configs.append(("retention.ms", str(self.retention_hours[name] * HOUR_MS)))
        return NewTopic(name, count, configs=configs)


def _by_topic(items: Iterable[str]) -> dict[str, int]:
    """Read `topic:number` items."""
    pairs = (item.split(":") for item in items)
    return {topic: int(number) for topic, number in pairs}


def take_over(metadata: MetadataController, logs: Sequence[TopicPartition]) -> None:
    """Make topics of logs that Jafka's own server left. Raises `KafkaError`, before any is made, if one cannot be."""
    settings = JafkaTopicSettings.from_config(metadata.settings.values)
    counts: dict[str, int] = {}
    for log in logs:
        counts[log.topic] = max(counts.get(log.topic, 0), log.partition + 1)
    new: list[NewTopic] = []
    grown: list[GrownTopic] = []
    for name, count in counts.items():
        known = metadata.view.topic(name)
        if known is None:
            least = settings.partition_counts.get(name, metadata.settings.values.num_partitions)
            new.append(settings.new_topic(name, max(count, least)))
        elif known.configs.get(FORMAT) != JAFKA_FORMAT:
            raise TopicAlreadyExists(f"there is a log of Jafka's for the topic {name}, which is in Kafka's format")
        elif count > len(known.partitions):
            grown.append(GrownTopic(name, count))
    for is_trial in (True, False):
        made = metadata.create_topics(new, validate_only=is_trial).answer
        more = metadata.create_partitions(grown, validate_only=is_trial).answer
        for result in (*made.values(), *more.values()):
            if isinstance(result, KafkaError):
                raise type(result)(f"a log of Jafka's cannot be taken over: {result}")


class JafkaTopics:
    """The Jafka side of a broker's topics."""

    def __init__(self, broker: Broker, logs: ByteLogs, settings: JafkaTopicSettings) -> None:
        self.broker = broker
        self.settings = settings
        self._logs = logs
        self._unflushed: dict[int, set[ByteLog]] = {}
        """Logs to be flushed when their time comes, by how long they wait."""
        self._left_bytes = AT_ONCE_BYTES
        self._waiting: dict[Callable[[], None], None] = {}
        """Who goes on when more may be converted, first come first served."""

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
            created = self.broker.metadata.create_topics([self.settings.new_topic(topic, count)]).answer[topic]
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
        """Append a set as it was sent; in Kafka's format, its payloads as records, too. Raises `KafkaError`, `OSError`.

        Where others' records are not in the copy yet and cannot be by now, this set comes after them, converted.
        """
        if not produced.data:
            return
        self.broker.check_writable()
        log = self.log(partition)
        if partition.config.is_jafka:
            log.append(produced.data, len(produced.payloads), log.next_kafka_offset + len(produced.payloads))
            self._flush_later(partition, log)
            return
        batches = self._to_batches(produced.payloads, partition.config.max_message_bytes)
        is_next = log.next_kafka_offset == partition.offsets().log_end_offset
        for batch in batches:
            self.broker.append(partition, memoryview(batch))
        if is_next:
            log.append(produced.data, max(len(produced.payloads), 1), partition.offsets().log_end_offset)
        self._flush_later(partition, log)

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
        if partition.config.is_jafka:
            return self._logs.of_topic(partition.topic_partition)
        offsets = partition.offsets()
        log = self._logs.beside(partition.topic_partition, offsets.log_start_offset)
        log.next_kafka_offset = min(log.next_kafka_offset, offsets.log_end_offset)
        self._catch_up(partition, log)
        return log

    def _catch_up(self, partition: Partition, log: ByteLog) -> None:
        """Convert a stretch of what came to the Kafka log from elsewhere, as far as consumers may see it.

        The next question goes on. Where this turn of the loop has converted enough, nothing is.
        """
        most_left = self._left_bytes - STRETCH_BYTES
        while self._left_bytes > max(most_left, 0):
            offsets = partition.offsets()
            position = max(log.next_kafka_offset, offsets.log_start_offset)
            if position >= offsets.high_watermark:
                return
            stretch = read_values(partition, position)
            messages = build_set(stretch.values)
            self._spend(stretch.size_bytes + len(messages))
            if messages:
                log.append(messages, len(stretch.values), stretch.next_offset)
                log.flush()
            log.next_kafka_offset = stretch.next_offset
            if stretch.problem is not None:
                raise stretch.problem
            if stretch.next_offset <= position:
                return

    def _spend(self, size_bytes: int) -> None:
        """Count what was converted, until the loop's next turn."""
        if self._left_bytes == AT_ONCE_BYTES:
            self.broker.timers.call_at(self.broker.clock.monotonic(), self._refill)
        self._left_bytes -= size_bytes

    def _refill(self) -> None:
        self._left_bytes = AT_ONCE_BYTES
        waiting, self._waiting = self._waiting, {}
        for resume in waiting:
            resume()

    def must_wait(self, resume: Callable[[], None]) -> bool:
        """Say whether enough was converted in this turn; `resume` is called in the next one, then."""
        if self._left_bytes > 0:
            return False
        self._waiting[resume] = None
        return True

    # -- what happens by itself -----------------------------------------------------------------------------------

    def _flush_later(self, partition: Partition, log: ByteLog) -> None:
        """Have what was appended flushed when its topic's time comes, should it not be by then."""
        wait_ms = self.settings.flush_intervals_ms.get(partition.topic_partition.topic, self.settings.flush_ms)
        waiting = self._unflushed.setdefault(wait_ms, set())
        if not waiting:
            now = self.broker.clock.monotonic()
            self.broker.timers.call_at(now + wait_ms / 1000, partial(self._flush, wait_ms))
        waiting.add(log)

    def _flush(self, wait_ms: int) -> None:
        for log in self._unflushed.pop(wait_ms):
            log.flush()
