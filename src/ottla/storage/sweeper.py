"""`Sweeper`: applies retention to every log, opened or not, a few at a time.

The decision is `retention`'s. What it needs of cold segments (newest timestamp, time of the file) is read on a thread;
logs that nobody has touched since the start are looked at there too, and opened only when something has to go. Segments
that go are taken out of their log on the loop, get a name that ends in `.deleted` on a thread, and lie in the trash for
`file.delete.delay.ms`.
"""

from __future__ import annotations

import logging
import struct
from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from ottla.config.log_config import LogConfig
from ottla.errors import KafkaError
from ottla.model import NO_TIMESTAMP_MS, TopicPartition
from ottla.storage.background import Background
from ottla.storage.files import FileSystem
from ottla.storage.host import LogHost
from ottla.storage.log import PartitionLog
from ottla.storage.retention import Expired, SegmentFacts, find_expired, is_timestamp_in_future
from ottla.storage.segment import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
    format_offset,
)
from ottla.storage.trash import Trash

_log = logging.getLogger(__name__)

_LOGS_AT_ONCE: Final = 50
_TIME_ENTRY: Final = struct.Struct(">qi")


class SweptLog(NamedTuple):
    """One log as a sweep sees it. `log` is None while nobody has opened it."""

    partition: TopicPartition
    directory: str
    config: LogConfig
    log_start_offset: int
    log: PartitionLog | None


class SweptLogs(Protocol):
    """Where a sweep finds its logs."""

    def swept_logs(self) -> list[SweptLog]: ...

    def find_opened(self, partition: TopicPartition) -> PartitionLog | None:
        """Return the log as it is opened now, None when it is not, or gone."""

    def log(self, partition: TopicPartition) -> PartitionLog:
        """Return the log, opened if need be. Raises `KafkaError`."""


class _Look(NamedTuple):
    """What a thread found: facts of the segments that are on disk, oldest first, with their base offsets."""

    swept: SweptLog
    bases: list[int]
    facts: list[SegmentFacts]


class Sweeper:
    """Retention over all logs. One sweep at a time; all methods run on the loop."""

    __slots__ = ("_background", "_host", "_logs", "_queue", "_trash", "_warned", "is_running")

    def __init__(self, logs: SweptLogs, host: LogHost, background: Background, trash: Trash) -> None:
        self._logs = logs
        self._host = host
        self._background = background
        self._trash = trash
        self._queue: deque[SweptLog] = deque()
        self._warned: set[str] = set()
        """Segments about whose future timestamps was spoken."""
        self.is_running = False

    def sweep(self) -> None:
        """Begin a sweep; nothing happens while the last one still runs."""
        if self.is_running:
            return
        self._queue.extend(swept for swept in self._logs.swept_logs() if _may_expire(swept))
        self._next()

    def _next(self) -> None:
        self.is_running = bool(self._queue) and not self._background.is_stopping
        if not self.is_running:
            self._queue.clear()
            return
        batch = [self._queue.popleft() for _ in range(min(_LOGS_AT_ONCE, len(self._queue)))]
        looks: list[_Look] = []
        self._background.submit(partial(self._look, batch, looks), partial(self._apply_all, looks))

    def _look(self, batch: Iterable[SweptLog], looks: list[_Look]) -> None:
        """Read what there is to know, on a thread. A log that goes away, or has no segment yet, is passed over."""
        for swept in batch:
            try:
                looks.append(look_at(self._host.filesystem, swept))
            except FileNotFoundError:
                continue
            except OSError as error:
                if self._host.filesystem.exists(swept.directory):
                    _log.warning("retention cannot look at %s: %s", swept.directory, error)

    def _apply_all(self, looks: Sequence[_Look], error: BaseException | None) -> None:
        for look in looks:
            try:
                self._apply(look)
            except (KafkaError, OSError) as failure:
                _log.warning("retention cannot be applied to %s: %s", look.swept.partition, failure)
        if error is not None:
            _log.error("retention ended early: %s", error)
        self._next()

    def _apply(self, look: _Look) -> None:
        partition = look.swept.partition
        log = self._logs.find_opened(partition)
        if log is None:
            is_gone = look.swept.log is not None
            if is_gone or not self._decide(look.swept, look.facts, look.facts[-1].end_offset).segments:
                return
            log = self._logs.log(partition)
        is_another = look.swept.log not in (None, log)
        if is_another or log.is_compacting or log.failure is not None:
            return
        known = dict(zip(look.bases, look.facts, strict=True))
        now_ms = self._host.clock.wall_ms()
        facts = [_merge(segment, known.get(segment.base_offset), now_ms) for segment in log.segments]
        self._warn_of_future(log, facts)
        expired = find_expired(
            facts,
            log.config,
            log_start_offset=log.log_start_offset,
            high_watermark=log.high_watermark,
            now_ms=now_ms,
        )
        if expired.segments:
            self._remove(log, expired)

    def _decide(self, swept: SweptLog, facts: Sequence[SegmentFacts], end: int) -> Expired:
        now_ms = self._host.clock.wall_ms()
        start = swept.log_start_offset
        return find_expired(facts, swept.config, log_start_offset=start, high_watermark=end, now_ms=now_ms)

    def _warn_of_future(self, log: PartitionLog, facts: Sequence[SegmentFacts]) -> None:
        """Say once per segment that its records' times cannot be what retention goes by."""
        for segment, fact in zip(log.segments, facts, strict=True):
            if is_timestamp_in_future(fact, self._host.clock.wall_ms()) and segment.path not in self._warned:
                self._warned.add(segment.path)
                _log.warning(
                    "%s%s has records from the future (%d ms); retention goes by the time of its file",
                    segment.path,
                    LOG_SUFFIX,
                    fact.max_timestamp_ms,
                )

    def _remove(self, log: PartitionLog, expired: Expired) -> None:
        taken = log.take_oldest(expired.segments)
        _log.info(
            "%s: %d segments of %d bytes go by %s; the log starts at %d",
            log.partition,
            len(taken),
            sum(segment.size_bytes for segment in taken),
            expired.reason,
            log.log_start_offset,
        )
        self._warned.difference_update(segment.path for segment in taken)
        self._throw_away(log, taken)

    def _throw_away(self, log: PartitionLog, segments: Sequence[Segment]) -> None:
        """Rename the files of segments that the log has no more, and have them removed after a delay."""
        renamed: list[str] = []
        paths = [path for segment in segments for path in segment.all_paths()]

        def done(error: BaseException | None) -> None:
            if error is not None:
                _log.warning("files of deleted segments cannot be renamed: %s", error)
            self._trash.add(renamed, log.config.file_delete_delay_ms)

        work = partial(mark_deleted, self._host.filesystem, paths, renamed)
        self._background.submit(partial(log.names.change, work), done)


def mark_deleted(filesystem: FileSystem, paths: Iterable[str], renamed: list[str]) -> None:
    """Give files the ending `.deleted`, in order; `renamed` gets those that there were. Raises `OSError`."""
    for path in paths:
        try:
            filesystem.rename(path, path + DELETED_SUFFIX)
        except FileNotFoundError:
            continue
        renamed.append(path + DELETED_SUFFIX)


def look_at(filesystem: FileSystem, swept: SweptLog) -> _Look:
    """Read the facts of a log's segments from its directory. Raises `OSError`, also where it has none (yet)."""
    names = filesystem.list(swept.directory)
    stems = (name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX))
    bases = sorted(int(stem) for stem in stems if stem.isdecimal())
    if not bases:
        raise FileNotFoundError(f"{swept.directory} has no segments")
    facts: list[SegmentFacts] = []
    for base_offset, following in zip(bases, [*bases[1:], None], strict=True):
        path = f"{swept.directory}/{format_offset(base_offset)}"
        size_bytes = filesystem.size(path + LOG_SUFFIX)
        end_offset = base_offset + bool(size_bytes) if following is None else following
        newest_ms = _newest_timestamp(filesystem, path + TIME_INDEX_SUFFIX)
        facts.append(SegmentFacts(end_offset, size_bytes, newest_ms, filesystem.modified_ms(path + LOG_SUFFIX)))
    return _Look(swept, bases, facts)


def _newest_timestamp(filesystem: FileSystem, path: str) -> int:
    """Return the timestamp of a time index's last entry; none where that cannot be told."""
    try:
        file = filesystem.open(path)
    except FileNotFoundError:
        return NO_TIMESTAMP_MS
    try:
        size_bytes = file.size()
        if size_bytes < _TIME_ENTRY.size or size_bytes % _TIME_ENTRY.size:
            return NO_TIMESTAMP_MS
        entry = file.pread(_TIME_ENTRY.size, size_bytes - _TIME_ENTRY.size)
    finally:
        file.close()
    timestamp_ms: int = _TIME_ENTRY.unpack(entry)[0]
    return timestamp_ms


def _may_expire(swept: SweptLog) -> bool:
    log, config = swept.log, swept.config
    if log is not None and log.log_start_offset > log.segments[0].base_offset:
        return True
    if log is not None and len(log.segments) == 1 and not log.active.size_bytes:
        return False
    return "delete" in config.cleanup_policy and (config.retention_ms >= 0 or config.retention_bytes >= 0)


def _merge(segment: Segment, found: SegmentFacts | None, now_ms: int) -> SegmentFacts:
    """Prefer what the log itself knows: the newest segment's index is not on disk yet."""
    timestamp_ms = segment.max_timestamp_ms
    modified_ms = now_ms
    if found is not None:
        timestamp_ms = max(timestamp_ms, found.max_timestamp_ms)
        modified_ms = found.modified_ms
    return SegmentFacts(segment.next_offset, segment.size_bytes, timestamp_ms, modified_ms)
