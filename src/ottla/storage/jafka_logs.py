"""`JafkaLogs`: all logs of Jafka's form on this machine; for topics in Jafka's format, the local `engine.RecordLog`.

Where a partition lies, what its settings are and when it goes is `manager`'s to know; here is who has it open. Opened
are a topic's own log when something is asked of it, and a copy of a log in Kafka's format when a Jafka client asks.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from ottla.config.log_config import LogConfig
from ottla.engine import (
    AbortedTransaction,
    ActiveProducer,
    EpochEndOffset,
    LogDirectoryFacts,
    LogOffsets,
    ReadLimit,
    ReadResult,
    RecordLog,
    Ticket,
    TimestampOffset,
)
from ottla.errors import KafkaError, KafkaStorageError
from ottla.model import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NO_LEADER_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP_MS,
    AppendOrigin,
    TopicId,
    TopicPartition,
)
from ottla.records.validation import ValidatedBatch
from ottla.storage.directory import LogDirectory
from ottla.storage.host import LogHost
from ottla.storage.jafka_copy import JafkaCopy
from ottla.storage.jafka_log import JafkaLog, JafkaLogSettings
from ottla.storage.jafka_topic_log import JafkaTopicLog

_log = logging.getLogger(__name__)

SWEPT_AT_ONCE: Final = 20
_NO_EPOCH: Final = EpochEndOffset(NO_LEADER_EPOCH, NO_OFFSET)


class Place(Protocol):
    """What the manager knows of a partition."""

    config: LogConfig
    is_clean: bool

    @property
    def directory(self) -> LogDirectory: ...


class PlacedLogs(RecordLog, Protocol):
    """The manager, which has every partition's directory."""

    def jafka_places(self) -> Mapping[TopicPartition, Place]:
        """The partitions of topics in Jafka's format."""

    def is_moving(self, partition: TopicPartition) -> bool:
        """True while a log is on its way to another directory."""

    def place(self, partition: TopicPartition) -> Place:
        """Return what is known of a partition. Raises `UnknownTopicOrPartition`."""

    def make(self, partition: TopicPartition) -> None:
        """Have the directory of a partition there now. Raises `UnknownTopicOrPartition`, `KafkaStorageError`."""

    def take_new_names(self, partition: TopicPartition) -> tuple[Sequence[str], Sequence[str]] | None:
        """Return, once, the files and directories of a new partition that are to be synced before its first record."""


class JafkaLogs:
    """Every log of Jafka's form. All methods run on the owner's loop, but for `recover`."""

    __slots__ = ("_copies", "_host", "_places", "_settings", "_to_be_swept", "_topic_logs")

    def __init__(self, places: PlacedLogs, host: LogHost, settings: JafkaLogSettings) -> None:
        self._places = places
        self._host = host
        self._settings = settings
        self._topic_logs: dict[TopicPartition, JafkaTopicLog] = {}
        self._copies: dict[TopicPartition, JafkaCopy] = {}
        self._to_be_swept: deque[TopicPartition] = deque()

    # ---- logs

    def of_topic(self, partition: TopicPartition) -> JafkaTopicLog:
        """Return the log of a partition whose topic is in Jafka's format.

        Raises `UnknownTopicOrPartition`, `KafkaStorageError`.
        """
        log = self._topic_logs.get(partition)
        if log is None:
            place = self._places.place(partition)
            path = place.directory.partition_path(partition)
            try:
                names = self._places.take_new_names(partition)
                log = JafkaTopicLog(self._host, partition, path, place.config, self._settings, is_clean=place.is_clean)
            except OSError as error:
                raise KafkaStorageError(f"{partition} cannot be opened: {error}") from error
            log.unsynced_names = names
            place.is_clean = True
            self._topic_logs[partition] = log
        return log

    def beside(self, partition: TopicPartition, kafka_offset: int) -> JafkaCopy:
        """Return the copy of a log in Kafka's format; a new one begins with the record of `kafka_offset`.

        Raises `UnknownTopicOrPartition`, `KafkaStorageError`.
        """
        log = self._copies.get(partition)
        if log is None:
            place = self._places.place(partition)
            if self._places.is_moving(partition):
                raise KafkaStorageError(f"{partition} is moving; a copy in Jafka's form is made when it has arrived")
            self._places.make(partition)
            path = place.directory.partition_path(partition)
            try:
                log = JafkaCopy(self._host, path, place.config, self._settings, kafka_offset=kafka_offset)
            except OSError as error:
                raise KafkaStorageError(f"the copy of {partition} cannot be opened: {error}") from error
            self._copies[partition] = log
        return log

    def opened(self) -> Iterator[JafkaLog]:
        yield from self._topic_logs.values()
        yield from self._copies.values()

    # ---- for the manager

    def recover(self) -> None:
        """Check the logs of directories that were not left cleanly. One that cannot be opened raises when asked for."""
        for partition, place in self._places.jafka_places().items():
            if not place.is_clean:
                try:
                    self.of_topic(partition)
                except KafkaError as error:
                    _log.error("%s", error)

    def sweep(self) -> None:
        """Remove what is too old or too much, in all topics' logs and in copies that are used, a few at a time."""
        if not self._to_be_swept:
            self._to_be_swept.extend(dict.fromkeys([*self._places.jafka_places(), *self._copies]))
            self._sweep_some()

    def _sweep_some(self) -> None:
        for _ in range(min(SWEPT_AT_ONCE, len(self._to_be_swept))):
            partition = self._to_be_swept.popleft()
            try:
                if partition in self._copies:
                    self._copies[partition].sweep()
                elif self._places.contains(partition) and self._places.place(partition).config.is_jafka:
                    self.of_topic(partition).sweep()
            except (OSError, KafkaError) as error:
                _log.warning("retention cannot be applied to %s: %s", partition, error)
        if self._to_be_swept:
            self._host.offload.call_soon(self._sweep_some)

    def note_config(self, partition: TopicPartition, config: LogConfig) -> None:
        """Use these settings of a partition from now on."""
        for log in (self._topic_logs.get(partition), self._copies.get(partition)):
            if log is not None:
                log.config = config

    def discard(self, partition: TopicPartition) -> None:
        """End the logs of a partition that is being deleted."""
        for log in (self._topic_logs.pop(partition, None), self._copies.pop(partition, None)):
            if log is not None:
                log.discard(KafkaStorageError(f"{partition} was deleted"))

    def prepare_close(self) -> None:
        """Have flushed what is not, on threads. Nothing is swept any more."""
        self._to_be_swept.clear()
        for log in self.opened():
            if log.has_unflushed and log.failure is None:
                self._host.schedule_flush(log)

    def close(self) -> None:
        """Close all. The data must be flushed already. Raises `OSError`."""
        for log in self.opened():
            log.close()
        self._topic_logs.clear()
        self._copies.clear()

    # ---- the engine's `RecordLog`

    def keeping(self, config: LogConfig) -> RecordLog:
        return self if config.is_jafka else self._places

    def create(self, partition: TopicPartition, topic_id: TopicId, config: LogConfig) -> None:
        self._places.create(partition, topic_id, config)

    def delete(self, partition: TopicPartition) -> None:
        self._places.delete(partition)

    def contains(self, partition: TopicPartition) -> bool:
        return self._places.contains(partition)

    def partitions(self) -> Mapping[TopicPartition, TopicId]:
        return self._places.partitions()

    def configure(self, partition: TopicPartition, config: LogConfig) -> None:
        self._places.configure(partition, config)

    def offsets(self, partition: TopicPartition) -> LogOffsets:
        return self.of_topic(partition).offsets()

    def begin_append(
        self,
        partition: TopicPartition,
        batch: bytearray | memoryview,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        log_append_time_ms: int = NO_TIMESTAMP_MS,
    ) -> Ticket:
        """See the engine; raises `UnsupportedForMessageFormat` besides. Epoch and time of an append are not kept."""
        return self.of_topic(partition).append_batch(batch)

    def begin_appends(
        self, partition: TopicPartition, batches: Sequence[ValidatedBatch], leader_epoch: int
    ) -> Sequence[Ticket]:
        """Each is converted for itself."""
        return ()

    def read(self, partition: TopicPartition, offset: int, limit: ReadLimit) -> ReadResult:
        try:
            return self.of_topic(partition).read_records(offset, limit)
        except OSError as error:
            raise KafkaStorageError(f"{partition} cannot be read at {offset}: {error}") from error

    def aborted_transactions(
        self, partition: TopicPartition, first_offset: int, up_to_offset: int
    ) -> Sequence[AbortedTransaction]:
        return ()

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> TimestampOffset | None:
        """As records have no times, what counts is when they were flushed, see `JafkaTopicLog.find_since`."""
        log = self.of_topic(partition)
        if timestamp_ms in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            return TimestampOffset(NO_TIMESTAMP_MS, log.log_start_offset, NO_LEADER_EPOCH)
        if timestamp_ms == LATEST_TIMESTAMP:
            return TimestampOffset(NO_TIMESTAMP_MS, log.next_kafka_offset, NO_LEADER_EPOCH)
        return log.find_since(log.readable.time_ms if timestamp_ms == MAX_TIMESTAMP else timestamp_ms)

    def end_offset_for_epoch(self, partition: TopicPartition, leader_epoch: int) -> EpochEndOffset:
        return _NO_EPOCH

    def latest_leader_epoch(self, partition: TopicPartition) -> int | None:
        return None

    def delete_records(self, partition: TopicPartition, before_offset: int) -> int:
        try:
            return self.of_topic(partition).delete_records(before_offset)
        except OSError as error:
            raise KafkaStorageError(f"{partition} cannot be shortened: {error}") from error

    def truncate_to(self, partition: TopicPartition, offset: int) -> None:
        self.of_topic(partition).truncate_to(offset)

    def size_bytes(self, partition: TopicPartition) -> int:
        return self._places.size_bytes(partition)

    def producers(self, partition: TopicPartition) -> Sequence[ActiveProducer]:
        return ()

    def describe_directories(self) -> Sequence[LogDirectoryFacts]:
        return self._places.describe_directories()

    def keep_in(self, partition: TopicPartition, path: str) -> None:
        self._places.keep_in(partition, path)

    def on_moved(self, callback: Callable[[TopicPartition, bytes], None]) -> None:
        self._places.on_moved(callback)

    def on_advance(self, callback: Callable[[TopicPartition], None]) -> None:
        self._places.on_advance(callback)
