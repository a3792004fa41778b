"""`LogManager`: all partitions' logs on this machine, the local `engine.RecordLog`.

Opens logs when they are first touched; an untouched partition costs its entry in `places`, which knows what lies
where. Everything else is one call on a `PartitionLog`.

Life: `open` (locks), `find_logs`, `begin` (nothing is changed before), `recover` (checks logs that an unclean stop
left), `start_housekeeping`, use, `prepare_close`, and when idle `close` (flushes, writes checkpoints, and the
clean-shutdown files last). All calls come from the owner's loop, but for `recover`, during which no other call is made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.clock import Clock, Timers
from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.engine import (
    AbortedTransaction,
    ActiveProducer,
    EpochEndOffset,
    LogDirectoryFacts,
    LogOffsets,
    Offload,
    ReadLimit,
    ReadResult,
    RecordLog,
    Ticket,
    TimestampOffset,
)
from ottla.errors import KafkaStorageError, UnknownTopicOrPartition
from ottla.model import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    NO_LEADER_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP_MS,
    ZERO_TOPIC_ID,
    AppendOrigin,
    TopicId,
    TopicPartition,
)
from ottla.records.validation import ValidatedBatch
from ottla.storage.background import Background
from ottla.storage.checkpointing import Checkpoint, Checkpointer
from ottla.storage.checkpoints import (
    PARTITION_METADATA,
)
from ottla.storage.chores import Chores
from ottla.storage.closing import close_log, flush_now, prepare_close
from ottla.storage.directory import (
    DELETE_SUFFIX,
    JAFKA_SUFFIX,
    NO_BROKER_EPOCH,
    STRAY_SUFFIX,
    LogDirectory,
)
from ottla.storage.files import FileSystem
from ottla.storage.flusher import Flusher, flushes_at_once
from ottla.storage.future_log import FoundFuture
from ottla.storage.host import LogHost
from ottla.storage.log import PartitionLog
from ottla.storage.log_timestamps import offset_for_timestamp
from ottla.storage.making import Making
from ottla.storage.moves import LogMoves
from ottla.storage.open_files import OpenFiles
from ottla.storage.place import Place, collect_checkpoints
from ottla.storage.places import Places
from ottla.storage.recoveries import run_recoveries
from ottla.storage.recovery import LoadPoint, load_log, truncate_log
from ottla.storage.segment import LOG_SUFFIX
from ottla.storage.trash import Trash

if TYPE_CHECKING:
    from ottla.storage.jafka_logs import JafkaLogs

_log = logging.getLogger(__name__)

RECOVERY_OPEN_FILES: Final = 16
"""Segment files that one log may have open while it is checked."""


class LogManager:
    """The local engine's `RecordLog`."""

    __slots__ = (
        "_background",
        "_checkpointer",
        "_chores",
        "_expiration_ms",
        "_flusher",
        "_futures",
        "_host",
        "_jafka",
        "_jafka_config",
        "_logs",
        "_making",
        "_moves",
        "_places",
        "_recovery_threads",
        "_trash",
    )

    def __init__(self, config: BrokerConfig, clock: Clock, offload: Offload, filesystem: FileSystem) -> None:
        self._places = Places(config, filesystem)
        self._flusher = Flusher(offload, most_at_once=flushes_at_once(filesystem.descriptor_limit()))
        self._host = LogHost(
            clock=clock,
            filesystem=filesystem,
            offload=offload,
            open_files=OpenFiles(filesystem),
            schedule_flush=self._flusher.schedule,
            syncs_appends=config.flushes_before_ack,
        )
        self._expiration_ms = config.integer("producer.id.expiration.ms")
        self._jafka: JafkaLogs | None = None
        self._jafka_config = config
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._recovery_threads = config.integer("num.recovery.threads.per.data.dir")
        self._making = Making(self._places, self._host)
        self._background = Background(offload)
        self._trash = Trash(clock)
        self._checkpointer = Checkpointer(self._collect_checkpoints, self._background)
        self._chores = Chores(self, self._host, self._background, self._trash)
        self._moves = LogMoves(self, self._host, self._background, self._trash)
        self._futures: list[FoundFuture] = []

    # ---- housekeeping

    def start_housekeeping(self, timers: Timers, settings: BrokerConfig) -> None:
        """Do from now on what has to be done from time to time, see `chores`."""
        self._chores.start(timers, settings)
        self._moves.start(timers, settings, self._futures)
        self._futures = []

    def configure_housekeeping(self, settings: BrokerConfig) -> None:
        """Use the settings of moves, of the cleaner and of log directories as they are now."""
        for directory in self.directories:
            directory.is_cordoned = settings.is_cordoned(directory.path)
        self._moves.configure(settings)
        self._chores.configure(settings)

    @property
    def places(self) -> Mapping[TopicPartition, Place]:
        """Where every partition lies; live."""
        return self._places.by_partition

    @property
    def directories(self) -> Sequence[LogDirectory]:
        return self._places.directories

    @property
    def every_directory(self) -> Sequence[LogDirectory]:
        """`directories`, and `metadata.log.dir` where that is none of them."""
        return self._places.every_directory

    @property
    def opened(self) -> Mapping[TopicPartition, PartitionLog]:
        """The logs that are open; live."""
        return self._logs

    def sweep_jafka_logs(self) -> None:
        """Apply retention to what is kept in Jafka's format."""
        if self._jafka is not None or self.jafka_places():
            self.jafka.sweep()

    def checkpoint_soon(self) -> None:
        """Write the checkpoints on a thread."""
        self._checkpointer.write_soon()

    def forget_producers_after(self, expiration_ms: int) -> None:
        """Use this `producer.id.expiration.ms` from now on."""
        self._expiration_ms = expiration_ms
        for log in self._logs.values():
            log.producers.expiration_ms = expiration_ms

    def expire_producers(self) -> None:
        """Forget silent producers; due every `producer.id.expiration.check.interval.ms`."""
        now_ms = self._host.clock.wall_ms()
        for log in self._logs.values():
            log.producers.expire(now_ms)

    # ---- life

    def open(self) -> None:
        """Lock the log directories and read who they belong to. Raises `DirectoryError`.

        Whoever finds one with `meta` None formats it before `load`.
        """
        self._places.open()

    def load(self, config_for: Callable[[str], LogConfig] | None = None) -> None:
        """All steps of a start at once: `find_logs`, `begin`, `settle_deleted` and `recover`."""
        self.find_logs()
        self.begin()
        self.settle_deleted()
        self.recover(config_for)

    def find_logs(self) -> None:
        """Find the partitions; none is opened, and nothing changed. Raises `DirectoryError`, `CorruptCheckpoint`."""
        self._places.find()

    def begin(self) -> None:
        """Take the directories over: what was found is good, and from now on they are changed. Raises as `find_logs`.

        That an earlier broker stopped cleanly is true no more, and logs that were moving get their places.
        """
        self._futures = self._places.begin()

    def settle_deleted(self, find_topic: Callable[[TopicId, int], str | None] | None = None) -> None:
        """Have the directories of deleted topics removed.

        `find_topic` names the topic that has an id and a partition: where one is there after all, as its deletion was
        not on disk before a crash, its directory gets its name back. Raises `OSError`.
        """
        for path in self._places.settle_deleted(find_topic):
            self._trash.add([path], 0)

    def recover(self, config_for: Callable[[str], LogConfig] | None = None) -> None:
        """Check the logs of directories that were not left cleanly; may run on a thread of its own.

        `config_for` gives a topic's settings, by which indexes are made again; without it, and until `create` or
        `configure` says otherwise, the broker's defaults hold. A log that cannot be opened raises when it is asked for.
        """
        for partition, place in self.places.items():
            if config_for is not None and not place.is_clean and not place.is_from_jafka:
                place.config = config_for(partition.topic)
        for directory in self.directories:
            unchecked = [
                (partition, place)
                for partition, place in self.places.items()
                if place.directory is directory and not place.is_clean and not place.config.is_jafka
            ]
            if unchecked:
                self._recover_directory(directory, unchecked)
        if self.jafka_places():
            self.jafka.recover()

    def _recover_directory(self, directory: LogDirectory, unchecked: list[tuple[TopicPartition, Place]]) -> None:
        """Check the logs of one directory on `num.recovery.threads.per.data.dir` threads, and say what was done."""
        begin = self._host.clock.monotonic()
        jobs = [
            (partition, partial(self._load, partition, place, OpenFiles(self._host.filesystem, RECOVERY_OPEN_FILES)))
            for partition, place in unchecked
        ]
        recovered = run_recoveries(jobs, self._recovery_threads)
        for partition, place in unchecked:
            log = recovered.logs.get(partition)
            place.is_told_of = log is None
            if log is not None:
                log.share_files(self._host.open_files)
                place.is_clean = True
                self._logs[partition] = log
        _log.warning(
            "%s was not left cleanly: %d logs checked in %.1f s, %s",
            directory.path,
            len(recovered.logs),
            self._host.clock.monotonic() - begin,
            recovered.describe(),
        )

    def prepare_close(self) -> None:
        """Begin to stop: no more chores, long ones end soon, and what is not flushed is, on threads."""
        self._chores.stop()
        self._background.is_stopping = True
        if self._jafka is not None:
            self._jafka.prepare_close()
        for log in self._logs.values():
            if log.failure is None:
                prepare_close(log)

    @property
    def has_unchecked(self) -> bool:
        """True when `recover` has something to do."""
        return any(not place.is_clean for place in self.places.values())

    def close(self, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Flush everything, write the checkpoints, and last the clean-shutdown files; then give up the locks.

        A directory in which something could not be written, or that has logs which nobody could check, gets no
        clean-shutdown file, nor does any while a flush is under way (see `when_idle`): its logs are checked at the
        next start.
        """
        is_whole = not self._flusher.running and not self._background.running
        synced: set[str] = set()  # no names are made while we stop, so each directory needs one sync
        for log in self._logs.values():
            is_whole = flush_now(log, synced) and is_whole
        for jafka_log in self._jafka.opened() if self._jafka is not None else ():
            is_whole = flush_now(jafka_log, synced) and is_whole
        try:
            if self._jafka is not None:
                self._jafka.close()
            for log in self._logs.values():
                is_whole = close_log(log) and is_whole
            is_whole = self._checkpoint_last() and is_whole
            unchecked = {place.directory.path for place in self.places.values() if not place.is_clean}
            for directory in self.every_directory:
                if is_whole and directory.path not in unchecked:
                    directory.write_clean_shutdown(broker_epoch)
        except OSError as error:  # a full disk, say: what was acknowledged is there, and found by the next start
            _log.error("the clean-shutdown file cannot be written, so that the next start checks the logs: %s", error)
        finally:
            self._logs.clear()
            for directory in self.every_directory:
                directory.release()

    def _checkpoint_last(self) -> bool:
        try:
            self.checkpoint()
        except OSError as error:
            _log.error("checkpoints cannot be written, so that the next start checks the logs: %s", error)
            return False
        return True

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call `callback` once nothing is scheduled or under way; at once when that is so already."""

        def flushed() -> None:
            self._background.when_idle(callback if not self._flusher.running else partial(self.when_idle, callback))

        self._flusher.when_idle(flushed)

    def checkpoint(self) -> None:
        """Write how far each log is known to be on disk, and where it starts. Raises `OSError`."""
        self._checkpointer.write_now()

    def _collect_checkpoints(self) -> list[Checkpoint]:
        return collect_checkpoints(self.directories, self.places, self._logs, self._moves.destination_of)

    # ---- partitions

    def create(self, partition: TopicPartition, topic_id: TopicId, config: LogConfig) -> None:
        place = self.places.get(partition)
        if place is not None and place.topic_id not in (topic_id, ZERO_TOPIC_ID):
            self.set_aside(partition)  # somebody else's records under our name: Kafka calls them stray
            place = None
        try:
            if place is None:
                self._create_new(partition, topic_id, config)
            else:
                self._places.complete(partition, topic_id)
                self.configure(partition, config)
        except OSError as error:
            raise KafkaStorageError(f"{partition} cannot be created: {error}") from error

    def _create_new(self, partition: TopicPartition, topic_id: TopicId, config: LogConfig) -> None:
        self._places.add_new(partition, topic_id, config)
        try:
            self._making.begin(partition)
        except OSError:
            self._places.forget(partition)
            raise
        self._chores.note_new_flush_ms(config.flush_ms)

    def make(self, partition: TopicPartition) -> None:
        """Have the directory of a partition there now, also where its turn has not come yet.

        Raises `UnknownTopicOrPartition`, `KafkaStorageError`.
        """
        try:
            self._places.make(partition)
        except OSError as error:
            raise KafkaStorageError(f"{partition} cannot be created: {error}") from error

    def delete(self, partition: TopicPartition) -> None:
        delay_ms = self.place(partition).config.file_delete_delay_ms
        self._trash.add([self._move_away(partition, DELETE_SUFFIX)], delay_ms)

    def set_aside(self, partition: TopicPartition) -> None:
        """Make the log unreachable and keep its files under a name that ends in `-stray`."""
        self._move_away(partition, STRAY_SUFFIX)

    def _move_away(self, partition: TopicPartition, suffix: str) -> str:
        self.place(partition)  # which raises where there is none
        try:
            self._moves.forget(partition)
        except OSError as error:
            raise KafkaStorageError(f"{partition} cannot be removed while it moves: {error}") from error
        log = self._logs.pop(partition, None)
        if log is not None:
            log.discard(UnknownTopicOrPartition(f"{partition} was deleted"))
        if self._jafka is not None:
            self._jafka.discard(partition)
        target = self._places.move_away(partition, suffix)
        self._chores.forget(partition)
        return target

    def open_metadata_log(self, directory: LogDirectory, config: LogConfig, log_start_offset: int) -> PartitionLog:
        """Open `__cluster_metadata-0` in one of the directories, making it where it is missing. Once.

        No checkpoint lists it, so all of it is checked after an unclean stop. `close` closes it with the others. A log
        that ends before `log_start_offset` is begun anew there. Raises `KafkaStorageError`.
        """
        partition = TopicPartition(METADATA_TOPIC, 0)
        path = directory.partition_path(partition)
        point = LoadPoint(directory.was_clean, 0, log_start_offset)
        is_new = not self._host.filesystem.exists(f"{path}/{PARTITION_METADATA}")
        try:
            if is_new:
                self._places.make_directory(path, METADATA_TOPIC_ID)
        except OSError as error:
            raise KafkaStorageError(f"{partition} cannot be created: {error}") from error
        log = load_log(self._host, partition, path, config, point, self._expiration_ms)
        if is_new:
            log.unsynced.add_made([f"{path}/{PARTITION_METADATA}"], [path, directory.path])
        self._logs[partition] = log
        return log

    def contains(self, partition: TopicPartition) -> bool:
        return partition in self.places

    def partitions(self) -> Mapping[TopicPartition, TopicId]:
        return {partition: place.topic_id for partition, place in self.places.items()}

    def configure(self, partition: TopicPartition, config: LogConfig) -> None:
        self.place(partition).config = config
        log = self._logs.get(partition)
        if log is not None:
            log.configure(config)
        if self._jafka is not None:
            self._jafka.note_config(partition, config)
        self._chores.note_flush_ms()

    # ---- topics in Jafka's format

    def keeping(self, config: LogConfig) -> RecordLog:
        return self.jafka if config.is_jafka else self

    @property
    def jafka(self) -> JafkaLogs:
        """Who has the logs in Jafka's form; few brokers have any."""
        if self._jafka is None:
            from ottla.storage.jafka_log import JafkaLogSettings
            from ottla.storage.jafka_logs import JafkaLogs

            self._jafka = JafkaLogs(self, self._host, JafkaLogSettings.from_config(self._jafka_config))
        return self._jafka

    def logs_from_jafka(self) -> Sequence[TopicPartition]:
        """Return the partitions that Jafka's own server left, and of which no topic was made yet."""
        return [partition for partition, place in self.places.items() if place.is_from_jafka]

    def count_logs_of_topics(self) -> int:
        """Return how many logs there must be topics for in the metadata."""
        return sum(not place.is_from_jafka for place in self.places.values())

    def jafka_places(self) -> Mapping[TopicPartition, Place]:
        return {partition: place for partition, place in self.places.items() if place.config.is_jafka}

    def place(self, partition: TopicPartition) -> Place:
        """Return what is known of a partition. Raises `UnknownTopicOrPartition`."""
        return self._places.place(partition)

    def take_new_names(self, partition: TopicPartition) -> tuple[Sequence[str], Sequence[str]] | None:
        """Return, once, the files and directories of a new partition that are to be synced before its first record.

        Raises `KafkaStorageError` where there will never be one.
        """
        place = self.place(partition)
        if not place.is_new:
            return None
        files, directories = self.undecided_metadata()
        self.make(partition)
        path = place.directory.partition_path(partition)
        place.is_new = False
        return [*files, f"{path}/{PARTITION_METADATA}"], [*directories, path, place.directory.path]

    @property
    def open_file_count(self) -> int:
        """Segment files that are open now."""
        return self._host.open_files.count

    def directory_of(self, partition: TopicPartition) -> LogDirectory:
        """Return the log directory that holds a partition."""
        return self.place(partition).directory

    def log(self, partition: TopicPartition) -> PartitionLog:
        """Return the log of a partition, opened if need be. Raises `UnknownTopicOrPartition`, `KafkaStorageError`."""
        log = self._logs.get(partition)
        return self._open_log(partition, self.place(partition)) if log is None else log

    def _open_log(self, partition: TopicPartition, place: Place) -> PartitionLog:
        if place.is_new:
            self.undecided_metadata()  # where that fails, nothing is made
            self.make(partition)
        try:
            log = self._load(partition, place, self._host.open_files)
        except KafkaStorageError as error:
            if not place.is_told_of:  # clients try again and again
                place.is_told_of = True
                _log.error("%s", error)
            raise
        place.is_clean = True
        names = self.take_new_names(partition)
        if names is not None:
            log.unsynced.add_made(*names)
        self._logs[partition] = log
        return log

    def undecided_metadata(self) -> tuple[list[str], list[str]]:
        """Files and directories that have to be on disk before records of a new topic are: what says that there is one.

        Topics are recorded before their logs are made, and usually that has been flushed when the first record comes.
        Raises `KafkaStorageError` where it never will be.
        """
        metadata = self._logs.get(TopicPartition(METADATA_TOPIC, 0))
        if metadata is not None and metadata.failure is not None:
            raise metadata.failure.with_traceback(None)  # nobody knows whether it has the topic
        if metadata is None or not metadata.has_unflushed:
            return [], []
        return [segment.file.path for segment in metadata.segments[-2:]], [metadata.directory]

    def _load(self, partition: TopicPartition, place: Place, open_files: OpenFiles) -> PartitionLog:
        directory = place.directory.partition_path(partition)
        point = LoadPoint(place.is_clean, place.recovery_point, place.log_start_offset)
        return load_log(self._host, partition, directory, place.config, point, self._expiration_ms, open_files)

    # ---- records

    def begin_append(
        self,
        partition: TopicPartition,
        batch: bytearray | memoryview,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        log_append_time_ms: int = NO_TIMESTAMP_MS,
        transaction_version: int = 0,
    ) -> Ticket:
        log = self._logs.get(partition)
        if log is None:
            log = self._open_log(partition, self.place(partition))
        return log.append(batch, leader_epoch, origin, log_append_time_ms, transaction_version)

    def begin_appends(
        self, partition: TopicPartition, batches: Sequence[ValidatedBatch], leader_epoch: int
    ) -> Sequence[Ticket]:
        log = self._logs.get(partition)
        return () if log is None else log.append_together(batches, leader_epoch)

    def read(self, partition: TopicPartition, offset: int, limit: ReadLimit) -> ReadResult:
        log = self._logs.get(partition)
        if log is None:
            log = self._open_log(partition, self.place(partition))
        try:
            return log.read(offset, limit)
        except OSError as error:
            raise KafkaStorageError(f"{partition} cannot be read at {offset}: {error}") from error

    def offsets(self, partition: TopicPartition) -> LogOffsets:
        return self.log(partition).offsets()

    def aborted_transactions(
        self, partition: TopicPartition, first_offset: int, up_to_offset: int
    ) -> Sequence[AbortedTransaction]:
        return self.log(partition).aborted_transactions(first_offset, up_to_offset)

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> TimestampOffset | None:
        log = self.log(partition)
        try:
            return offset_for_timestamp(log, timestamp_ms)
        except OSError as error:
            raise KafkaStorageError(f"{partition} cannot be searched for a time: {error}") from error

    def end_offset_for_epoch(self, partition: TopicPartition, leader_epoch: int) -> EpochEndOffset:
        return self.log(partition).end_offset_for_epoch(leader_epoch)

    def latest_leader_epoch(self, partition: TopicPartition) -> int | None:
        latest_epoch = self.log(partition).epochs.latest_epoch
        return None if latest_epoch == NO_LEADER_EPOCH else latest_epoch

    def delete_records(self, partition: TopicPartition, before_offset: int) -> int:
        log_start_offset = self.log(partition).delete_records(before_offset)
        self.checkpoint_soon()
        return log_start_offset

    def truncate_to(self, partition: TopicPartition, offset: int) -> None:
        truncate_log(self._host, self.log(partition), offset)

    def size_bytes(self, partition: TopicPartition) -> int:
        """Bytes of a log's segments, counted without opening it: whoever asks often asks about all there are."""
        log = self._logs.get(partition)
        if log is not None:
            return log.size_bytes
        place = self.place(partition)
        if not place.is_made:
            return 0
        path = place.directory.partition_path(partition)
        suffix = JAFKA_SUFFIX if place.config.is_jafka else LOG_SUFFIX
        filesystem = self._host.filesystem
        try:
            segments = [name for name in filesystem.list(path) if name.endswith(suffix)]
            return sum(filesystem.size(f"{path}/{name}") for name in segments)
        except OSError as error:
            raise KafkaStorageError(f"{partition} cannot be measured: {error}") from error

    def producers(self, partition: TopicPartition) -> Sequence[ActiveProducer]:
        if self.place(partition).config.is_jafka:
            return ()
        return [
            ActiveProducer(
                state.producer_id,
                state.producer_epoch,
                state.last_sequence,
                state.last_timestamp_ms,
                state.coordinator_epoch,
                NO_OFFSET if state.current_txn_first_offset is None else state.current_txn_first_offset,
            )
            for state in self.log(partition).producers
        ]

    def describe_directories(self) -> Sequence[LogDirectoryFacts]:
        found: dict[str, list[TopicPartition]] = {directory.path: [] for directory in self.directories}
        for partition, place in self.places.items():
            found[place.directory.path].append(partition)
        return [
            LogDirectoryFacts(
                directory.path,
                *self._host.filesystem.volume_bytes(directory.path),
                found[directory.path],
                self._moves.futures_in(directory),
                directory.is_cordoned,
            )
            for directory in self.directories
        ]

    def keep_in(self, partition: TopicPartition, path: str) -> None:
        directory = self._places.directory_at(path)
        if partition not in self.places:
            self._places.prefer(partition, directory)
        elif not self.is_moving(partition) and self._has_jafka_files(partition):
            raise KafkaStorageError(f"{partition} has Jafka's files, which stay where they are.")
        else:
            self._moves.begin(partition, directory)
            self.checkpoint_soon()

    def _has_jafka_files(self, partition: TopicPartition) -> bool:
        """Say whether a partition is in Jafka's format, or has a copy in Jafka's form."""
        self.make(partition)
        try:
            names = self._host.filesystem.list(self.directory_of(partition).partition_path(partition))
        except OSError as error:
            raise KafkaStorageError(f"{partition} cannot be moved: {error}") from error
        return any(name.endswith(JAFKA_SUFFIX) for name in names)

    def is_moving(self, partition: TopicPartition) -> bool:
        return self._moves.destination_of(partition) is not None

    def on_moved(self, callback: Callable[[TopicPartition, bytes], None]) -> None:
        self._moves.on_moved(callback)

    def topic_id_of(self, partition: TopicPartition) -> TopicId:
        """The id in a partition's `partition.metadata`."""
        return self.place(partition).topic_id

    def note_moved(self, partition: TopicPartition, directory: LogDirectory) -> None:
        self._places.note_moved(partition, directory)
        if self._jafka is not None:
            self._jafka.discard(partition)
        self.checkpoint_soon()

    def on_advance(self, callback: Callable[[TopicPartition], None]) -> None:
        """See `engine.RecordLog.on_advance`. Under `ottla.flush.policy=os` that is within `begin_append`."""
        self._host.on_advance = callback
