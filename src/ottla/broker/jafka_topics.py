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
from ottla.broker.turns import Steps
from ottla.broker.visible import STRETCH_BYTES, read_values
from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.config.topic_settings import FORMAT, JAFKA_FORMAT
from ottla.errors import KafkaError, MessageTooLarge, TopicAlreadyExists, UnknownTopicOrPartition
from ottla.model import TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.records.jafka import PIECE_BYTES, Piece, SetWalk, build_set
from ottla.records.rules import max_inflated_bytes

BATCH_OVERHEAD_BYTES: Final = 4096
HOUR_MS: Final = 3_600_000


class ByteLog(Protocol):
    """A partition's messages and their places; local: `storage.jafka_log`."""

    next_kafka_offset: int

    @property
    def readable_end(self) -> int: ...

    def append(self, data: bytes | memoryview, count: int, next_kafka_offset: int) -> None: ...

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


class BatchesBuilder:
    """Makes record batches of payloads that a topic takes. Raises `MessageTooLarge`."""

    __slots__ = ("_builder", "_max_bytes", "_now_ms", "batches")

    def __init__(self, now_ms: int, config: LogConfig) -> None:
        self._now_ms = now_ms
        self._max_bytes = config.max_message_bytes
        self._builder = BatchBuilder()
        self.batches: list[bytearray] = []

    def add(self, payloads: Iterable[bytes]) -> None:
        for payload in payloads:
            if self._builder.count and self._builder.size_with(self._now_ms, None, payload) > self._max_bytes:
                self._end_batch()
            self._builder.append(self._now_ms, None, payload)
            if self._builder.size_in_bytes > self._max_bytes:
                raise MessageTooLarge

    def finish(self) -> Sequence[bytearray]:
        """Return all batches."""
        if self._builder.count:
            self._end_batch()
        return self.batches

    def _end_batch(self) -> None:
        self.batches.append(bytearray(self._builder.build()))
        self._builder = BatchBuilder()


class JafkaTopics:
    """The Jafka side of a broker's topics."""

    def __init__(self, broker: Broker, logs: ByteLogs, settings: JafkaTopicSettings) -> None:
        self.broker = broker
        self.settings = settings
        self._logs = logs
        self._unflushed: dict[int, set[ByteLog]] = {}
        """Logs to be flushed when their time comes, by how long they wait."""

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

    def produce(self, topic: str, choose: Callable[[], Partition], messages: bytes | memoryview) -> Steps[None]:
        """Check a set, then append all of it as it was sent; in Kafka's format, its payloads as records, too.

        `choose` gives a partition of the topic, which may be made only then. Where others' records are not in the copy
        yet and cannot be by now, this set comes after them, converted, and so does one of more than a piece. Pieces of
        that size are appended in turns of their own, between which others may append. Raises `KafkaError`, `OSError`.
        """
        known = self.broker.find_topic(topic)
        config = known.partitions[0].config if known is not None else None
        builder = None if config is None or config.is_jafka else BatchesBuilder(self.broker.clock.wall_ms(), config)
        most = self.settings.max_message_bytes
        walk = SetWalk(messages, most, max_inflated_bytes=max_inflated_bytes(most))
        while not walk.is_over:
            payloads = walk.take()
            if builder is not None:
                builder.add(payloads)
            if not walk.is_over:
                yield
        partition = choose()
        if not walk.pieces:
            return
        self.broker.check_writable()
        if partition.config.is_jafka:
            yield from self._append_pieces(partition, messages, walk.pieces)
        elif builder is not None:
            yield from self._append_batches(partition, messages, walk.pieces, builder.finish())
        else:
            raise UnknownTopicOrPartition("the topic was made anew while messages for it were looked at")

    def _append_pieces(
        self, partition: Partition, messages: bytes | memoryview, pieces: Sequence[Piece]
    ) -> Steps[None]:
        start = 0
        for piece in pieces:
            if start:
                yield
            log = self.log(partition)
            count = piece.payload_count
            log.append(messages[start : piece.end], count, log.next_kafka_offset + count)
            self._flush_later(partition, log)
            start = piece.end

    def _append_batches(
        self,
        partition: Partition,
        messages: bytes | memoryview,
        pieces: Sequence[Piece],
        batches: Sequence[bytearray],
    ) -> Steps[None]:
        log = self.log(partition)
        is_one_piece = sum(map(len, batches)) <= PIECE_BYTES and len(pieces) == 1
        is_next = is_one_piece and log.next_kafka_offset == partition.offsets().log_end_offset
        for number, batch in enumerate(batches):
            if number and not is_one_piece:
                yield
            self.broker.append(partition, memoryview(batch))
        if is_next:
            count = max(pieces[0].payload_count, 1)
            log.append(messages[: pieces[0].end], count, partition.offsets().log_end_offset)
            self._flush_later(partition, log)

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

        The next question goes on. Where this turn of the loop is over, nothing is.
        """
        left_bytes = STRETCH_BYTES
        while left_bytes > 0:
            offsets = partition.offsets()
            position = max(log.next_kafka_offset, offsets.log_start_offset)
            if position >= offsets.high_watermark or self.broker.turns.is_over():
                return
            stretch = read_values(partition, position)
            messages = build_set(stretch.values)
            left_bytes -= stretch.size_bytes + len(messages)
            if messages:
                log.append(messages, len(stretch.values), stretch.next_offset)
                log.flush()
            log.next_kafka_offset = stretch.next_offset
            if stretch.problem is not None:
                raise stretch.problem
            if stretch.next_offset <= position:
                return

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
