"""`Chores`: what a log manager has done from time to time, and what each of it needs of the logs.

Checkpoints, retention, compaction, silent producers, `flush.ms` and removal: `housekeeping` says when, `sweeper` and
`cleaner` do the work, and here they find the logs, most of which nobody has opened. An untouched log costs a look at
its directory, on a thread, once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from ottla.clock import Timers
from ottla.config.broker_config import BrokerConfig
from ottla.config.values import INT64_MAX
from ottla.errors import KafkaStorageError
from ottla.model import TopicPartition
from ottla.storage.background import Background
from ottla.storage.checkpoints import CorruptCheckpoint
from ottla.storage.directory import LogDirectory
from ottla.storage.host import LogHost
from ottla.storage.housekeeping import Housekeeper
from ottla.storage.log import PartitionLog
from ottla.storage.place import Place
from ottla.storage.segment import LOG_SUFFIX
from ottla.storage.trash import Trash, remove_all

if TYPE_CHECKING:
    from ottla.storage.cleaner import Cleaner
    from ottla.storage.sweeper import Sweeper, SweptLog

_log = logging.getLogger(__name__)

FLUSH_CHORE: Final = "flush.ms"
CLEANER_CHORE: Final = "compaction"


class KeptLogs(Protocol):
    """The manager, as its chores see it."""

    @property
    def directories(self) -> Sequence[LogDirectory]: ...

    @property
    def places(self) -> Mapping[TopicPartition, Place]:
        """Where every partition lies."""

    @property
    def opened(self) -> Mapping[TopicPartition, PartitionLog]:
        """The logs that somebody has opened."""

    def log(self, partition: TopicPartition) -> PartitionLog:
        """Return the log, opened if need be. Raises `KafkaError`."""

    def directory_of(self, partition: TopicPartition) -> LogDirectory:
        """Return where a partition lies. Raises `KafkaError`."""

    def checkpoint_soon(self) -> None: ...

    def expire_producers(self) -> None: ...

    def sweep_jafka_logs(self) -> None: ...

    def undecided_metadata(self) -> tuple[list[str], list[str]]:
        """Return what has to be synced before the disk knows which topics there are. Raises `KafkaStorageError`."""


class Chores:
    """All methods run on the owner's loop."""

    __slots__ = (
        "_background",
        "_clean_offsets",
        "_cleaner",
        "_host",
        "_housekeeper",
        "_logs",
        "_settings",
        "_sweeper",
        "_timers",
        "_trash",
    )

    def __init__(self, logs: KeptLogs, host: LogHost, background: Background, trash: Trash) -> None:
        self._logs = logs
        self._host = host
        self._background = background
        self._trash = trash
        self._sweeper: Sweeper | None = None
        self._housekeeper: Housekeeper | None = None
        self._cleaner: Cleaner | None = None
        self._clean_offsets: dict[TopicPartition, int] = {}
        """Up to where each log is compacted; the cleaner's, once there is one."""

    # ---- when

    def start(self, timers: Timers, settings: BrokerConfig) -> None:
        """Do from now on what has to be done from time to time, see `housekeeping`."""
        logs = self._logs
        self._timers = timers
        self._settings = settings
        keeper = Housekeeper(timers, self._host.clock, remove=self._empty_trash, next_removal=self._trash.next_deadline)
        checkpoint_ms = settings.integer("log.flush.offset.checkpoint.interval.ms")
        keeper.add("rolled segments", self._flush_rolled, checkpoint_ms)
        keeper.add("checkpoints", logs.checkpoint_soon, checkpoint_ms)
        keeper.add("retention", self._sweep, settings.integer("log.retention.check.interval.ms"))
        keeper.add("producers", logs.expire_producers, settings.integer("producer.id.expiration.check.interval.ms"))
        keeper.add(FLUSH_CHORE, self._flush_due, self._shortest_flush_ms())
        keeper.add(CLEANER_CHORE, self._clean, _cleaning_interval_ms(settings))
        self._clean_offsets = self._read_clean_offsets()
        self._housekeeper = keeper
        self._trash.on_add = keeper.note_trash
        keeper.start(settings)

    def configure(self, settings: BrokerConfig) -> None:
        """Use the cleaner's settings as they are now."""
        self._settings = settings
        if self._cleaner is not None:
            self._cleaner.configure(settings)
        if self._housekeeper is not None:
            self._housekeeper.change_interval(CLEANER_CHORE, _cleaning_interval_ms(settings))

    def stop(self) -> None:
        """Begin nothing more."""
        if self._housekeeper is not None:
            self._housekeeper.stop()

    def note_flush_ms(self) -> None:
        """Take note that a log's `flush.ms` has changed."""
        if self._housekeeper is not None:
            self._housekeeper.change_interval(FLUSH_CHORE, self._shortest_flush_ms())

    def note_new_flush_ms(self, flush_ms: int) -> None:
        """Take note of a new log's `flush.ms`."""
        if flush_ms < INT64_MAX and self._housekeeper is not None:
            self._housekeeper.change_interval(FLUSH_CHORE, min(flush_ms, self._shortest_flush_ms() or INT64_MAX))

    def forget(self, partition: TopicPartition) -> None:
        """Take note that a partition is gone; another may come under its name."""
        if self._cleaner is not None:
            self._cleaner.forget(partition)
        else:
            self._clean_offsets.pop(partition, None)

    # ---- what; rooms that are entered late, or never, are imported then

    def _sweep(self) -> None:
        if self._sweeper is None:
            from ottla.storage.sweeper import Sweeper

            self._sweeper = Sweeper(self, self._host, self._background, self._trash)
        self._sweeper.sweep()
        self._logs.sweep_jafka_logs()

    def _clean(self) -> None:
        if self._cleaner is None:
            if not self.compacted_logs():
                return
            from ottla.storage.cleaner import Cleaner

            self._cleaner = Cleaner(self, self._host, self._background, self._trash, self._timers, self._clean_offsets)
            self._cleaner.configure(self._settings)
        self._cleaner.clean()

    def _flush_rolled(self) -> None:
        for log in self._logs.opened.values():
            log.flush_rolled()

    def _flush_due(self) -> None:
        for log in self._logs.opened.values():
            log.flush_when_due()

    def _shortest_flush_ms(self) -> int | None:
        shortest_ms = min((place.config.flush_ms for place in self._logs.places.values()), default=INT64_MAX)
        return None if shortest_ms == INT64_MAX else shortest_ms

    def _empty_trash(self) -> None:
        """Remove what is due, once the disk knows that its topics are gone; where it never will, nothing goes."""
        try:
            metadata_files, _ = self._logs.undecided_metadata()
        except KafkaStorageError:
            return
        work = partial(remove_all, self._host.filesystem, self._trash.take_due(), after=metadata_files)
        self._background.submit(work, _note_kept)

    # ---- of which logs

    def find_opened(self, partition: TopicPartition) -> PartitionLog | None:
        return self._logs.opened.get(partition)

    def log(self, partition: TopicPartition) -> PartitionLog:
        """Return the log, opened if need be. Raises `KafkaError`."""
        return self._logs.log(partition)

    def directory_of(self, partition: TopicPartition) -> LogDirectory:
        """Return where a partition lies. Raises `KafkaError`."""
        return self._logs.directory_of(partition)

    def swept_logs(self) -> list[SweptLog]:
        from ottla.storage.sweeper import SweptLog

        return [
            SweptLog(
                partition,
                place.directory.partition_path(partition),
                place.config,
                place.log_start_offset,
                self._logs.opened.get(partition),
            )
            for partition, place in self._logs.places.items()
            if place.is_made and not place.config.is_jafka
        ]

    def compacted_logs(self) -> list[PartitionLog]:
        opened = self._logs.opened
        places = [
            (partition, place)
            for partition, place in self._logs.places.items()
            if place.is_made and place.config.is_compacted and not place.config.is_jafka
        ]
        unknown = [one for one in places if one[0] not in opened and not one[1].is_looked_at]
        if unknown:
            self._background.submit(partial(self._look_for_old_segments, unknown), _note_unlooked)
        for partition, place in places:
            if place.has_old_segments and partition not in opened:
                with suppress(KafkaStorageError):  # said where it is asked for
                    self._logs.log(partition)
        logs = (opened.get(partition) for partition, _ in places)
        return [log for log in logs if log is not None and len(log.segments) > 1]

    def _look_for_old_segments(self, unknown: list[tuple[TopicPartition, Place]]) -> None:
        """Find out, on a thread, which logs that nobody has opened have something to compact."""
        for partition, place in unknown:
            place.is_looked_at = True
            names = self._host.filesystem.list(place.directory.partition_path(partition))
            place.has_old_segments = sum(name.endswith(LOG_SUFFIX) for name in names) > 1

    def _read_clean_offsets(self) -> dict[TopicPartition, int]:
        offsets: dict[TopicPartition, int] = {}
        for directory in self._logs.directories:
            try:
                found = directory.read_clean_offsets()
            except CorruptCheckpoint as error:  # compacting again is never wrong
                _log.warning("%s; its logs count as not compacted", error)
                continue
            for partition, offset in found.items():
                place = self._logs.places.get(partition)
                if partition not in offsets or (place is not None and place.directory is directory):
                    offsets[partition] = offset
        return offsets


def _cleaning_interval_ms(settings: BrokerConfig) -> int | None:
    """How often somebody looks for what is to be compacted; None where nothing is."""
    return settings.integer("log.cleaner.backoff.ms") if settings.boolean("log.cleaner.enable") else None


def _note_unlooked(error: BaseException | None) -> None:
    if error is not None:
        _log.warning("a compacted log cannot be looked at: %s", error)


def _note_kept(error: BaseException | None) -> None:
    if error is not None:
        _log.warning("files that are out of use cannot be removed before the next start: %s", error)
