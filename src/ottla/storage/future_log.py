"""`FutureLog`: the copy of a partition's log in the directory that it is to move to; and what a start makes of one.

The copy lies in `<topic>-<partition>.<32 hex digits>-future`, as Kafka's does. Kafka fetches batches from itself; here
files are copied, so that segments, compacted ones too, are the same on both sides. What holds at any time:

1. Segments are copied in order. All but the newest are whole, with their side files, and on disk with their names.
2. Before the log goes on in the copy, the copy is a beginning of the original; from then on it is the other way round.
3. The original is put aside only when the copy is on disk, and says so; only then does the copy get the log's name.

So a start can tell which of both is the log (`settle_futures`): the copy where it has more, and all that the original
has; and where there is a whole copy alone, it is that. When something is done is `moves`' business.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.errors import KafkaError, KafkaStorageError
from ottla.model import ZERO_TOPIC_ID, TopicPartition
from ottla.records.batch import HEADER_BYTES, RecordBatch
from ottla.records.legacy import LegacyBatch
from ottla.storage.checkpoints import PARTITION_METADATA, CorruptCheckpoint, parse_partition_metadata
from ottla.storage.directory import DELETE_SUFFIX, FUTURE_SUFFIX, LogDirectory
from ottla.storage.files import File, FileSystem
from ottla.storage.log import PartitionLog
from ottla.storage.open_files import SegmentFile
from ottla.storage.recovery import LEADER_EPOCHS
from ottla.storage.segment import (
    CURRENT_MAGIC,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    Segment,
    format_offset,
    walk_batches,
)

_log = logging.getLogger(__name__)

PIECE_BYTES: Final = 4 * 1024 * 1024
"""The most that is copied at once."""
REST_BYTES: Final = 256 * 1024
"""So much of the active segment is copied on the loop, in the step that makes the log go on in the copy."""
WHOLE_MARK: Final = "moved.tmp"
"""A file in a copy that is whole, and on disk. By its ending whoever opens the log later removes it."""
SIDE_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX)
ACTIVE_SIDE_SUFFIXES: Final = (TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX)
"""The other indexes of an active segment are in memory."""


class Piece(NamedTuple):
    """A run of bytes of one segment. With `is_last` the segment is whole then, and takes no more records."""

    file: SegmentFile
    path: str
    base_offset: int
    position: int
    size_bytes: int
    is_last: bool


class FutureLog:
    """The copy, and how far it is. `copy` runs on a thread, one piece at a time; all else on the loop."""

    __slots__ = ("_filesystem", "_sizes", "_whole", "path")

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self.path = path
        self._filesystem = filesystem
        self._sizes: dict[int, int] = {}
        """Copied bytes by base offset."""
        self._whole: set[int] = set()

    @property
    def size_bytes(self) -> int:
        return sum(self._sizes.values())

    def lag(self, log: PartitionLog) -> int:
        """How many offsets are still to be copied; counted up from an index entry, so rather too many."""
        for segment in log.segments:
            copied = self._sizes.get(segment.base_offset, 0)
            if copied < segment.size_bytes:
                reached = segment.upper_bound_offset(copied) if copied else None
                return log.log_end_offset - (segment.base_offset if reached is None else reached)
        return 0

    def take_up(self, log: PartitionLog) -> None:
        """Go on with the copy that an earlier process began; all anew where it is not what was being made here.

        Kafka's copies begin their segments elsewhere. Raises `OSError`.
        """
        segments = {segment.base_offset: segment for segment in log.segments[:-1]}
        found = segment_bases(self._filesystem, self.path)
        for base_offset in found[:-1]:
            segment = segments.get(base_offset)
            size_bytes = self._filesystem.size(self._file(base_offset, LOG_SUFFIX))
            if segment is None or segment.size_bytes != size_bytes:
                self._whole.clear()
                self._sizes.clear()
                break
            self._whole.add(base_offset)
            self._sizes[base_offset] = size_bytes
        for base_offset in found:
            if base_offset not in self._whole:
                self._drop(base_offset)

    def next_piece(self, segments: Sequence[Segment], limit_bytes: int) -> Piece | None:
        """Return what is to be copied next, up to a limit; None when little is left, and of the active segment only."""
        active = segments[-1]
        for segment in segments:
            if segment.base_offset in self._whole:
                continue
            position = self._sizes.get(segment.base_offset, 0)
            if position > segment.size_bytes:  # it was truncated
                position = 0
            left = segment.size_bytes - position
            if segment is active and left <= REST_BYTES:
                return None
            is_last = segment is not active and left <= limit_bytes
            size_bytes = min(left, limit_bytes)
            return Piece(segment.file, segment.path, segment.base_offset, position, size_bytes, is_last)
        return None

    def copy(self, piece: Piece, source: File) -> None:
        """Copy a piece; a segment that is whole then is brought to disk. Raises `OSError`, `KafkaStorageError`."""
        path = self._file(piece.base_offset, LOG_SUFFIX)
        if not piece.position:
            self._filesystem.remove(path)
        self._append(path, piece.position, source.pread(piece.size_bytes, piece.position), piece.size_bytes)
        if piece.is_last:
            self._filesystem.sync_file(path)
            self._copy_side_files(piece.path, piece.base_offset, SIDE_SUFFIXES)
            self._filesystem.sync_directory(self.path)

    def note(self, piece: Piece) -> None:
        """Take note that a piece was copied."""
        self._sizes[piece.base_offset] = piece.position + piece.size_bytes
        if piece.is_last:
            self._whole.add(piece.base_offset)

    def finish(self, log: PartitionLog) -> None:
        """Copy the rest, and drop what the log has no more: the copy is the log then. Raises as `copy`."""
        active = log.active
        position = self._sizes.get(active.base_offset, 0)
        rest = active.size_bytes - position
        path = self._file(active.base_offset, LOG_SUFFIX)
        if not position:
            self._filesystem.remove(path)
        self._append(path, position, active.file.get().pread(rest, position) if rest else b"", rest)
        self._sizes[active.base_offset] = active.size_bytes
        self._copy_side_files(active.path, active.base_offset, ACTIVE_SIDE_SUFFIXES, sync=False)
        self._filesystem.replace(f"{self.path}/{LEADER_EPOCHS}", log.epochs.encode(), durable=False)
        kept = {segment.base_offset for segment in log.segments}
        for base_offset in [base_offset for base_offset in self._sizes if base_offset not in kept]:
            self._drop(base_offset)

    def unsynced_paths(self, log: PartitionLog) -> list[str]:
        """Return the files that may not be on disk yet, once the log goes on in the copy."""
        bases = [segment.base_offset for segment in log.segments if segment.base_offset not in self._whole]
        return [self._file(base_offset, suffix) for base_offset in bases for suffix in (LOG_SUFFIX, *SIDE_SUFFIXES)]

    def _append(self, path: str, position: int, data: bytes, size_bytes: int) -> None:
        if len(data) != size_bytes:
            raise KafkaStorageError(
                f"{path} cannot be made: its original has {len(data)} bytes where {size_bytes} were"
            )
        target = self._filesystem.open(path, create=True)
        try:
            if target.size() != position:
                raise KafkaStorageError(f"{path} has {target.size()} bytes where {position} were copied")
            if data:
                target.append(data)
        finally:
            target.close()

    def _copy_side_files(self, path: str, base_offset: int, suffixes: Iterable[str], *, sync: bool = True) -> None:
        for suffix in suffixes:
            try:
                data = self._filesystem.read(path + suffix)
            except FileNotFoundError:
                continue
            self._filesystem.write(self._file(base_offset, suffix), data)
            if sync:
                self._filesystem.sync_file(self._file(base_offset, suffix))

    def _drop(self, base_offset: int) -> None:
        self._sizes.pop(base_offset, None)
        for suffix in (LOG_SUFFIX, *SIDE_SUFFIXES):
            self._filesystem.remove(self._file(base_offset, suffix))

    def _file(self, base_offset: int, suffix: str) -> str:
        return f"{self.path}/{format_offset(base_offset)}{suffix}"


class FoundFuture(NamedTuple):
    """A copy that a start found beside its original, in another directory."""

    partition: TopicPartition
    directory: LogDirectory
    path: str


def settle_futures(filesystem: FileSystem, directories: Sequence[LogDirectory]) -> list[FoundFuture]:
    """Give copies that are the newer ones their logs' names, put useless ones aside, return those to go on with.

    A copy without an original is left alone, unless it is whole: the original may be on a disk that is not here.
    Raises `OSError`, `DirectoryError`.
    """
    found: dict[TopicPartition, list[FoundFuture]] = {}
    for directory in directories:
        for partition, path in directory.futures():
            found.setdefault(partition, []).append(FoundFuture(partition, directory, path))
    if not found:
        return []
    places = {partition: directory for directory in directories for partition in directory.partitions()}
    settled = (_settle(filesystem, futures, places.get(partition)) for partition, futures in found.items())
    return [future for future in settled if future is not None]


def _settle(filesystem: FileSystem, futures: list[FoundFuture], place: LogDirectory | None) -> FoundFuture | None:
    """Settle the copies of one partition; returns the one to go on with."""

    def rank(future: FoundFuture) -> tuple[bool, int]:
        return filesystem.exists(f"{future.path}/{WHOLE_MARK}"), find_log_end(filesystem, future.path)

    *others, best = sorted(futures, key=rank)
    if place is None and not filesystem.exists(f"{best.path}/{WHOLE_MARK}"):
        _log.warning("%s is not all of a log that is not here; it is left alone", best.path)
        return None
    is_useless = place is best.directory
    for future in [*others, *([best] if is_useless else [])]:
        target = future.path.removesuffix(FUTURE_SUFFIX) + DELETE_SUFFIX
        _put_aside(filesystem, future.directory, future.path, target)
    if is_useless:
        return None
    if place is not None:
        original = place.partition_path(best.partition)
        if not is_newer(filesystem, best.path, original):
            return best
        target = place.discarded_path(best.partition, _topic_id(filesystem, original), DELETE_SUFFIX)
        _put_aside(filesystem, place, original, target)
    filesystem.rename(best.path, best.directory.partition_path(best.partition))
    filesystem.sync_directory(best.directory.path)
    _log.warning("%s had just moved to %s when the broker ended", best.partition, best.directory.path)
    return None


def _put_aside(filesystem: FileSystem, directory: LogDirectory, path: str, target: str) -> None:
    filesystem.remove_tree(target)
    filesystem.rename(path, target)
    filesystem.sync_directory(directory.path)


def _topic_id(filesystem: FileSystem, path: str) -> bytes:
    metadata = f"{path}/{PARTITION_METADATA}"
    try:
        return parse_partition_metadata(filesystem.read(metadata).decode("utf-8", "replace"), metadata)
    except (FileNotFoundError, CorruptCheckpoint):
        return ZERO_TOPIC_ID


def segment_bases(filesystem: FileSystem, directory: str) -> list[int]:
    """Return the base offsets of the segments in a partition's directory. Raises `OSError`."""
    stems = (name.removesuffix(LOG_SUFFIX) for name in filesystem.list(directory) if name.endswith(LOG_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def is_newer(filesystem: FileSystem, copy: str, original: str) -> bool:
    """Say whether a copy has all that its original has, and more. Raises `OSError`.

    After a power cut the copy's newest segments may lack anything that was not synced, whatever stands behind it.
    """
    copied = segment_bases(filesystem, copy)
    if not copied:
        return False
    kept = [base_offset for base_offset in segment_bases(filesystem, original) if base_offset >= copied[0]]
    for base_offset in kept:
        name = f"{format_offset(base_offset)}{LOG_SUFFIX}"
        if base_offset not in copied:
            return False
        if base_offset != kept[-1]:
            if filesystem.size(f"{copy}/{name}") != filesystem.size(f"{original}/{name}"):
                return False
        elif _good_part(filesystem, copy, base_offset) < _good_part(filesystem, original, base_offset):
            return False
    return find_log_end(filesystem, copy) > find_log_end(filesystem, original)


def find_log_end(filesystem: FileSystem, directory: str) -> int:
    """Return one past the last good batch of the newest segment of a log; -1 where it has none. Raises `OSError`."""
    bases = segment_bases(filesystem, directory)
    return _good_part(filesystem, directory, bases[-1]).end_offset if bases else -1


class _GoodPart(NamedTuple):
    size_bytes: int
    end_offset: int


def _good_part(filesystem: FileSystem, directory: str, base_offset: int) -> _GoodPart:
    """Return how far a segment that nobody has open is good. Raises `OSError`."""
    file = filesystem.open(f"{directory}/{format_offset(base_offset)}{LOG_SUFFIX}")
    good = _GoodPart(0, base_offset)
    try:
        for span in walk_batches(file, 0, file.size()):
            if not _is_good(file.pread(span.size_bytes, span.position), span.magic):
                break
            good = _GoodPart(span.position + span.size_bytes, span.last_offset + 1)
    except KafkaError:  # what stands there is no batch
        pass
    finally:
        file.close()
    return good


def _is_good(data: bytes, magic: int) -> bool:
    if magic < CURRENT_MAGIC:
        return LegacyBatch(data).is_crc_valid()
    return len(data) >= HEADER_BYTES and RecordBatch(data).is_crc_valid()
