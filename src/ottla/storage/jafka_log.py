"""A partition as Jafka keeps it: `<20 digits>.jafka` segments of messages as they were sent, offsets are bytes.

A segment's name is the position of its first byte in the partition; the next one is named by its end, so positions
never repeat. What is readable ends where was flushed last. Beside the segments lies `jafka.positions`, which knows the
records of Kafka that stand there.

What all such logs have in common is here. Where one ends after a crash, and what of its flushes is noted down, is up to
its kind: a topic's only log (`jafka_topic_log`), or a copy of a log in Kafka's format (`jafka_copy`).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.errors import KafkaStorageError, OffsetOutOfRange
from ottla.storage.flush_work import FlushWork
from ottla.storage.host import LogHost
from ottla.storage.jafka_positions import Flushed, Positions
from ottla.storage.jafka_segment import JafkaSegment, find_starts, segment_path
from ottla.storage.open_files import SegmentFile

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JafkaLogSettings:
    """Jafka's own, by its names: log.file.size and log.flush.interval."""

    file_size_bytes: int = 1 << 30
    flush_messages: int = 500

    @classmethod
    def from_config(cls, config: BrokerConfig) -> JafkaLogSettings:
        return cls(
            file_size_bytes=config.integer("ottla.jafka.file.size"),
            flush_messages=config.integer("ottla.jafka.flush.messages"),
        )


class JafkaLog(ABC):
    """One partition's messages, a `flush_work.Flushable`. Lives on the owner's loop; only syncs run elsewhere."""

    def __init__(self, host: LogHost, directory: str, config: LogConfig, settings: JafkaLogSettings) -> None:
        """Open what is in `directory`. Raises `OSError`, `KafkaStorageError` where a segment is missing."""
        self.config = config
        self.failure: KafkaStorageError | None = None
        self.flush_state = 0
        self.unsynced_names: tuple[Sequence[str], Sequence[str]] | None = None
        """Files and directories of a log that was just created, for its first flush to sync."""
        self._host = host
        self._directory = directory
        self._settings = settings
        self._unflushed_messages = 0
        self._has_new_names = False
        self._positions = Positions(host.filesystem, host.open_files, directory)
        self._segments = self._find_segments()
        self.readable = self._find_end()
        """Up to where was flushed, and when."""
        self.next_kafka_offset = self.readable.kafka_offset
        """The record of Kafka that comes next, behind all that was appended."""
        self._flushing = self.readable
        self._synced_end = self.end

    @abstractmethod
    def _find_end(self) -> Flushed:
        """Find where the log ends, cutting off what cannot be used. Raises as `__init__`."""

    @abstractmethod
    def _take_flush(self, reached: Flushed) -> None:
        """Make readable what was flushed."""

    def _find_segments(self) -> list[JafkaSegment]:
        filesystem = self._host.filesystem
        starts = find_starts(filesystem, self._directory)
        segments = [self._segment(start, filesystem.size(self._path(start))) for start in starts]
        if not segments:
            segments = [self._make_segment(self._positions.last.position if self._positions else 0)]
        return self._without_unnoted(segments)

    def _without_unnoted(self, segments: list[JafkaSegment]) -> list[JafkaSegment]:
        """Drop what a crash left behind a gap: the name of a new segment may outlive what was not synced before it."""
        for index in range(1, len(segments)):
            if segments[index - 1].end != segments[index].start:
                if not self._positions or segments[index].start <= self._positions.last.position:
                    raise KafkaStorageError(f"{segments[index].path} does not begin where the segment before it ends")
                for segment in segments[index:]:
                    self._remove(segment)
                self._sync_names()
                return segments[:index]
        return segments

    def _path(self, start: int) -> str:
        return segment_path(self._directory, start)

    def _segment(self, start: int, size: int) -> JafkaSegment:
        path = self._path(start)
        return JafkaSegment(path, SegmentFile(self._host.open_files, path), start, size)

    def _make_segment(self, start: int) -> JafkaSegment:
        segment = self._segment(start, 0)
        segment.file.get()
        self._has_new_names = True
        return segment

    def _cut(self, end: int) -> None:
        """Cut off everything behind a position of the log."""
        while len(self._segments) > 1 and self._segments[-1].start > end:
            self._remove(self._segments.pop())
        last = self._segments[-1]
        if last.end > end:
            last.file.get().truncate(end - last.start)
            last.size = end - last.start
            if self._host.syncs_appends:  # else what is appended next could be lost with what stood here before
                last.file.get().sync()
        self._positions.cut(end)
        self._sync_names()

    def _sync_names(self) -> None:
        """Have no file come back that was removed, and none go that is there."""
        if self._host.syncs_appends:
            self._host.filesystem.sync_directory(self._directory)

    # -- appending ------------------------------------------------------------------------------------------------

    @property
    def start(self) -> int:
        """The first position that can be read."""
        return self._segments[0].start

    @property
    def end(self) -> int:
        return self._segments[-1].end

    @property
    def readable_end(self) -> int:
        """The position up to which was flushed."""
        return self.readable.position

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    def append(self, data: bytes | memoryview, count: int, next_kafka_offset: int) -> None:
        """Append a set of `count` messages; flushed when there are enough of them. Raises `KafkaStorageError`."""
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        segment = self._segments[-1]
        try:
            segment.file.get().append(data)
        except OSError as error:
            raise self._undo_append(segment, error) from error
        segment.size += len(data)
        self.next_kafka_offset = next_kafka_offset
        self._unflushed_messages += count
        if segment.size > self._settings.file_size_bytes:
            self._roll()
        elif self._unflushed_messages >= self._settings.flush_messages:
            self.flush()

    def _undo_append(self, segment: JafkaSegment, error: OSError) -> KafkaStorageError:
        """Cut off what a failed write may have left, so that the next append may try; else give the log up."""
        failure = KafkaStorageError(f"{segment.path}: append failed: {error.strerror}")
        if segment.file.is_open:  # else it could not even be opened: nothing was written
            try:
                segment.file.get().truncate(segment.size)
            except OSError:
                self.fail(failure)
        return failure

    def _roll(self) -> None:
        """Flush, and begin a new segment; where the disk does not let us, the next append tries again."""
        self.flush()
        try:
            self._segments.append(self._make_segment(self.end))
        except OSError as error:
            _log.warning("%s: no new segment: %s", self._directory, error)
        self._host.schedule_flush(self)

    # -- flushing -------------------------------------------------------------------------------------------------

    @property
    def has_unread(self) -> bool:
        """True where messages wait for a flush to be readable."""
        return self.readable.position < self.end

    @property
    def has_unflushed(self) -> bool:
        """True where something is not on the disk."""
        return self._synced_end < self.end or self._has_new_names

    def flush(self) -> None:
        """Make what was appended readable, once it is on the disk where that is wanted."""
        if not self.has_unread or self.failure is not None:
            return
        if self._host.syncs_appends:
            self._host.schedule_flush(self)
        else:
            self._unflushed_messages = 0
            self._take_flush(self._reached())

    def _reached(self) -> Flushed:
        return Flushed(self.end, self.next_kafka_offset, self._host.clock.wall_ms())

    def begin_flush(self) -> FlushWork:
        """Lease what a flush has to sync: everything that was appended before this call."""
        self._unflushed_messages = 0
        self._flushing = self._reached()
        files = [segment.file for segment in self._segments if segment.end > self._synced_end]
        work = self._new_work(files)
        if self._has_new_names:
            work.add_names((), [self._directory])
            self._has_new_names = False
        if self.unsynced_names is not None:
            work.add_names(*self.unsynced_names)
            self.unsynced_names = None
        return work

    def _new_work(self, files: Sequence[SegmentFile]) -> FlushWork:
        return FlushWork(self._host.filesystem, self.end, files)

    def end_flush(self, work: FlushWork, error: BaseException | None) -> None:
        """Take note of a flush that ran."""
        work.release()
        if error is not None:
            self.fail_flush(error)
        elif self.failure is None:
            self._synced_end = work.end_offset
            if self._flushing.position > self.readable.position:
                self._take_flush(self._flushing)

    def fail_flush(self, error: BaseException) -> None:
        """Give the log up: what a failed sync left unwritten, the kernel may have dropped."""
        self.fail(KafkaStorageError(f"{self._directory}: flush failed: {error}"))

    def fail(self, failure: KafkaStorageError) -> None:
        """Refuse appends from now on. What is readable stays readable."""
        if self.failure is None:
            self.failure = failure
            _log.error("a log takes no more messages: %s", failure)

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, position: int, max_bytes: int) -> bytes:
        """Return bytes from a position on, of one segment.

        Raises `OffsetOutOfRange` outside of what is readable, `KafkaStorageError`.
        """
        if not self.start <= position <= self.readable_end:
            raise OffsetOutOfRange
        segment = self._segments[self._index_of(position)]
        left = min(segment.end, self.readable_end) - position
        if left <= 0:
            return b""
        try:
            return segment.file.get().pread(min(max_bytes, left), position - segment.start)
        except OSError as error:
            raise KafkaStorageError(f"{segment.path} cannot be read: {error}") from error

    def _index_of(self, position: int) -> int:
        """Which segment holds a position: the newest that begins there or before."""
        return next(index for index in reversed(range(len(self._segments))) if self._segments[index].start <= position)

    def positions_before(self, time_ms: int | None, max_count: int) -> list[int]:
        """Return starts of segments, and the readable end, that are not younger than a time (None: any), newest first.

        A segment is as old as the last flush to it. Unlike Jafka, which begins one too far back.
        """
        candidates = [(max(segment.start, self.start), self._age_of(segment)) for segment in self._segments]
        if self._segments[-1].size:
            candidates.append((self.readable_end, self._host.clock.wall_ms()))
        found = [position for position, age_ms in reversed(candidates) if time_ms is None or age_ms <= time_ms]
        return found[:max_count]

    def _age_of(self, segment: JafkaSegment) -> int:
        """When the segment was flushed to its end, the last flush where it was not yet."""
        reached = self._positions.reaching(segment.end)
        return self.readable.time_ms if reached is None else reached.time_ms

    # -- retention ------------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Remove segments that are too old or too many. Positions go on, whatever is removed. Raises `OSError`.

        Where `cleanup.policy` is empty nothing goes; what it names otherwise does not matter, as nothing is compacted.
        """
        if not self.config.cleanup_policy:
            return
        now_ms = self._host.clock.wall_ms()
        size = self.size_bytes
        while self._segments[0].end <= self.readable_end:
            oldest = self._segments[0]
            if not oldest.size or not (self._is_old(oldest, now_ms) or self._is_spare(oldest, size)):
                return
            if len(self._segments) == 1:
                self._segments.append(self._make_segment(oldest.end))
                self._host.schedule_flush(self)
            self._forget_before(oldest.end)
            size -= oldest.size
            self._remove(self._segments.pop(0))
            self._sync_names()

    def _is_old(self, segment: JafkaSegment, now_ms: int) -> bool:
        return 0 <= self.config.retention_ms < now_ms - self._age_of(segment)

    def _is_spare(self, segment: JafkaSegment, size: int) -> bool:
        return len(self._segments) > 1 and 0 <= self.config.retention_bytes <= size - segment.size

    @abstractmethod
    def _forget_before(self, position: int) -> None:
        """Have nothing more to do with what stands before the start of a segment, whose file goes after this."""

    def _remove(self, segment: JafkaSegment) -> None:
        segment.file.retire()
        self._host.filesystem.remove(segment.path)

    # -- closing --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the files. The data must be flushed already. Raises `OSError`."""
        for segment in self._segments:
            segment.file.retire()
        self._positions.close()

    def discard(self, error: KafkaStorageError) -> None:
        """End a log that is being deleted: no flush touches its files any more."""
        self.failure = error
        for segment in self._segments:
            segment.file.retire()
        self._positions.close()
