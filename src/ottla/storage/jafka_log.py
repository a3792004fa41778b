"""A partition as Jafka keeps it: `<20 digits>.jafka` segments of messages as they were sent, offsets are bytes.

A segment's name is the position of its first byte in the partition; the next one is named by its end, so positions
never repeat. What is readable ends where was flushed last. Each flush adds an entry to `jafka.positions`: position (8
bytes), the Kafka offset of the record that comes next (8), time in ms (8). So this file knows up to which record of the
Kafka log beside it the messages here go, and how old a segment is.

After a crash everything behind the last entry is cut off: nobody has seen it, and the records are in the Kafka log.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.clock import Clock
from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.engine import Offload
from ottla.errors import KafkaStorageError, OffsetOutOfRange
from ottla.storage.files import File, FileSystem

SUFFIX: Final = ".jafka"
POSITIONS_NAME: Final = "jafka.positions"
_DIGITS: Final = 20
_ENTRY: Final = struct.Struct(">QQQ")


@dataclass(frozen=True, slots=True)
class JafkaLogSettings:
    """Jafka's own, by its names: log.file.size, log.flush.interval, log.retention.hours and log.retention.size."""

    file_size_bytes: int = 1 << 30
    flush_messages: int = 500
    is_synced: bool = True
    """False: a flush only makes messages readable, as with `ottla.flush.policy=os`."""
    retention_ms: int = 168 * 3_600_000
    retention_bytes: int = -1

    @classmethod
    def from_config(cls, config: BrokerConfig) -> JafkaLogSettings:
        """Retention is that of topics without settings of their own."""
        topic = LogConfig.resolve(config, {}, {})
        return cls(
            file_size_bytes=config.integer("ottla.jafka.file.size"),
            flush_messages=config.integer("ottla.jafka.flush.messages"),
            is_synced=config.flushes_before_ack,
            retention_ms=topic.retention_ms,
            retention_bytes=topic.retention_bytes,
        )


class Flushed(NamedTuple):
    """Up to where messages were flushed, which Kafka record comes next, and when that was."""

    position: int
    kafka_offset: int
    time_ms: int


class _Segment:
    __slots__ = ("file", "path", "size", "start")

    def __init__(self, path: str, file: File, start: int) -> None:
        self.path = path
        self.file = file
        self.start = start
        self.size = file.size()

    @property
    def end(self) -> int:
        return self.start + self.size


class JafkaLog:
    """One partition's messages. Lives on the broker's loop; only syncs run elsewhere."""

    def __init__(
        self,
        directory: str,
        filesystem: FileSystem,
        clock: Clock,
        offload: Offload,
        settings: JafkaLogSettings,
        *,
        kafka_offset: int,
    ) -> None:
        """Open what is in `directory`, or begin at position 0 with the Kafka record `kafka_offset`.

        Raises `OSError`, `KafkaStorageError` where a segment is missing.
        """
        self._directory = directory
        self._filesystem = filesystem
        self._clock = clock
        self._offload = offload
        self._settings = settings
        self._unflushed = 0
        self._is_flushing = False
        self._is_closed = False
        self._positions = filesystem.open(self._positions_path, create=True)
        self._entries = self._read_positions()
        self._segments = self._open_segments()
        if not self._entries:
            self._enter(Flushed(self._segments[-1].end, kafka_offset, clock.wall_ms()))
        self._cut_unflushed()
        self._forget_old_entries()
        self.next_kafka_offset = self._entries[-1].kafka_offset
        """The record of the Kafka log that is to come next."""

    @property
    def _positions_path(self) -> str:
        return f"{self._directory}/{POSITIONS_NAME}"

    def _read_positions(self) -> list[Flushed]:
        data = self._positions.pread(self._positions.size(), 0)
        whole = len(data) - len(data) % _ENTRY.size
        if whole < len(data):
            self._positions.truncate(whole)
        return [Flushed(*entry) for entry in _ENTRY.iter_unpack(data[:whole])]

    def _open_segments(self) -> list[_Segment]:
        names = sorted(name for name in self._filesystem.list(self._directory) if name.endswith(SUFFIX))
        segments = [self._open_segment(int(name.removesuffix(SUFFIX))) for name in names]
        if not segments:
            segments = [self._open_segment(self._entries[-1].position if self._entries else 0)]
        for before, after in pairwise(segments):
            if before.end != after.start:
                raise KafkaStorageError(f"{after.path} does not begin where the segment before it ends")
        return segments

    def _open_segment(self, start: int) -> _Segment:
        path = f"{self._directory}/{start:0{_DIGITS}d}{SUFFIX}"
        return _Segment(path, self._filesystem.open(path, create=True), start)

    def _cut_unflushed(self) -> None:
        """Let the last entry and the last segment end at the same place, the smaller of the two."""
        while len(self._entries) > 1 and self._entries[-1].position > self._segments[-1].end:
            self._entries.pop()
            self._positions.truncate(len(self._entries) * _ENTRY.size)
        end = self._entries[-1].position
        while len(self._segments) > 1 and self._segments[-1].start > end:
            self._remove(self._segments.pop())
        last = self._segments[-1]
        if not last.start <= end <= last.end:
            raise KafkaStorageError(f"{last.path} goes from {last.start} to {last.end}, and the log ends at {end}")
        last.file.truncate(end - last.start)
        last.size = end - last.start

    def _forget_old_entries(self) -> None:
        """Keep of the entries those that tell a segment's age, and the last one; write them anew if that is few."""
        covering = {self._covering_entry(segment.end) for segment in self._segments}
        kept = sorted({*covering, self._entries[-1]})
        if 2 * len(kept) < len(self._entries):
            self._positions.close()
            self._filesystem.replace(self._positions_path, b"".join(_ENTRY.pack(*entry) for entry in kept))
            self._positions = self._filesystem.open(self._positions_path)
        self._entries = kept

    # -- appending ------------------------------------------------------------------------------------------------

    @property
    def start(self) -> int:
        return self._segments[0].start

    @property
    def readable_end(self) -> int:
        """The position up to which was flushed."""
        return self._entries[-1].position

    @property
    def end(self) -> int:
        return self._segments[-1].end

    def append(self, data: bytes, count: int, next_kafka_offset: int) -> None:
        """Append a set of `count` messages; flushed when there are enough of them. Raises `OSError`."""
        segment = self._segments[-1]
        try:
            segment.file.append(data)
        except OSError:
            segment.file.truncate(segment.size)
            raise
        segment.size += len(data)
        self.next_kafka_offset = next_kafka_offset
        self._unflushed += count
        if segment.size > self._settings.file_size_bytes:
            self.flush()
            self._segments.append(self._open_segment(segment.end))
        elif self._unflushed >= self._settings.flush_messages:
            self.flush()

    @property
    def has_unflushed(self) -> bool:
        return self._unflushed > 0

    def flush(self) -> None:
        """Make what was appended readable, once it is on the disk where that is wanted."""
        if self._is_flushing or not self._unflushed:
            return
        reached = Flushed(self.end, self.next_kafka_offset, self._clock.wall_ms())
        self._unflushed = 0
        if not self._settings.is_synced:
            self._enter(reached)
            return
        self._is_flushing = True
        files = [segment.file for segment in self._segments if segment.end > self.readable_end]
        self._offload.submit(_sync_all(files), lambda error: self._synced(reached, error))

    def _synced(self, reached: Flushed, error: BaseException | None) -> None:
        self._is_flushing = False
        if self._is_closed:
            return
        if error is None:
            self._enter(reached)
            if self._unflushed >= self._settings.flush_messages:
                self.flush()
        else:
            self._unflushed += 1  # the next flush tries again

    def _enter(self, reached: Flushed) -> None:
        self._positions.append(_ENTRY.pack(*reached))
        if len(self._entries) > 1 and self._entries[-2].position >= self._segments[-1].start:
            self._entries.pop()  # it covers no segment's end
        self._entries.append(reached)

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, position: int, max_bytes: int) -> bytes:
        """Return bytes from a position on, of one segment. Raises `OffsetOutOfRange` outside of what is readable."""
        if not self.start <= position <= self.readable_end:
            raise OffsetOutOfRange
        segment = next(found for found in reversed(self._segments) if found.start <= position)
        left = min(segment.end, self.readable_end) - position
        return segment.file.pread(min(max_bytes, left), position - segment.start) if left > 0 else b""

    def positions_before(self, time_ms: int | None, max_count: int) -> list[int]:
        """Return starts of segments, and the readable end, that are not younger than a time (None: any), newest first.

        A segment is as old as the last flush to it. Unlike Jafka, which begins one too far back.
        """
        candidates = [(segment.start, self._age_of(segment)) for segment in self._segments]
        if self._segments[-1].size:
            candidates.append((self.readable_end, self._clock.wall_ms()))
        found = [position for position, age_ms in reversed(candidates) if time_ms is None or age_ms <= time_ms]
        return found[:max_count]

    def _age_of(self, segment: _Segment) -> int:
        """When the segment was flushed to its end."""
        return self._covering_entry(segment.end).time_ms

    def _covering_entry(self, position: int) -> Flushed:
        """The first flush that reached a position, the last one where none did yet."""
        return next((entry for entry in self._entries if entry.position >= position), self._entries[-1])

    # -- retention ------------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Remove segments that are too old or too many. Positions go on, whatever is removed."""
        now_ms = self._clock.wall_ms()
        settings = self._settings
        size = sum(segment.size for segment in self._segments)
        while self._segments[0].end <= self.readable_end:
            oldest = self._segments[0]
            is_old = settings.retention_ms >= 0 and now_ms - self._age_of(oldest) > settings.retention_ms
            is_spare = 0 <= settings.retention_bytes <= size - oldest.size
            if not oldest.size or not (is_old or (is_spare and len(self._segments) > 1)):
                return
            if len(self._segments) == 1:
                self._segments.append(self._open_segment(oldest.end))
            size -= oldest.size
            self._remove(self._segments.pop(0))

    def _remove(self, segment: _Segment) -> None:
        segment.file.close()
        self._filesystem.remove(segment.path)

    def close(self) -> None:
        """Make all of it readable for the next start, and close the files."""
        self._is_closed = True
        if self._unflushed or self._is_flushing:
            if self._settings.is_synced:
                _sync_all([segment.file for segment in self._segments])()
            self._enter(Flushed(self.end, self.next_kafka_offset, self._clock.wall_ms()))
        for segment in self._segments:
            segment.file.close()
        self._positions.close()


def _sync_all(files: list[File]) -> Callable[[], None]:
    def work() -> None:
        for file in files:
            file.sync()

    return work
