"""`Segment`: one `.log` file with its three indexes.

A segment knows where batches lie and what its indexes say; which offsets come next, who may write and when to roll is
its log's business. Positions are bytes in the file, offsets count records.

Where a batch is found: among the last appended ones from memory (`_TailIndex`), else the offset index gives a position
at or before it and the batch headers from there are walked with one buffered read.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, final

from ottla.config.log_config import LogConfig
from ottla.engine import ReadLimit
from ottla.errors import KafkaStorageError
from ottla.model import NO_TIMESTAMP_MS
from ottla.storage.files import File, FileSystem
from ottla.storage.index import MAX_RELATIVE_OFFSET, CorruptIndex, OffsetIndex, TimeIndex, is_relative_offset
from ottla.storage.open_files import OpenFiles, SegmentFile
from ottla.storage.producer_state import BatchFacts
from ottla.storage.txn_index import TransactionIndex

LOG_SUFFIX: Final = ".log"
OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
DELETED_SUFFIX: Final = ".deleted"

SWAP_SUFFIX: Final = ".swap"
CLEANED_SUFFIX: Final = ".cleaned"
OFFSET_DIGITS: Final = 20
"""Digits of a base offset in a file name."""

LOG_OVERHEAD_BYTES: Final = 12
CURRENT_MAGIC: Final = 2

_WALK_HEAD: Final = struct.Struct(">qi4xb6xi8xq")
"""Base offset, length, magic, last offset delta, max timestamp: the first 43 bytes of a v2 batch."""
_LEGACY_TIMESTAMP: Final = struct.Struct(">q")
_LEGACY_TIMESTAMP_AT: Final = 18
_MIN_LENGTH: Final = 14
_HEADER_TO_MAGIC_BYTES: Final = 17
_WALK_BYTES: Final = 8 * 1024
_TAIL_BATCHES: Final = 256


@final
class BatchSpan:
    """Where a batch lies. `last_offset` of a magic 0 or 1 message set is its wrapper's offset."""

    __slots__ = ("base_offset", "last_offset", "magic", "max_timestamp_ms", "position", "size_bytes")

    def __init__(
        self, position: int, size_bytes: int, base_offset: int, last_offset: int, max_timestamp_ms: int, magic: int
    ) -> None:
        self.position = position
        self.size_bytes = size_bytes
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.max_timestamp_ms = max_timestamp_ms
        self.magic = magic


@final
class SegmentSlice:
    """What a read of one segment gives: a run of bytes that begins with a batch and may end within one.

    `available_bytes` is how long it would be without a limit of bytes.
    """

    __slots__ = ("available_bytes", "is_first_batch_cut", "position", "size_bytes")

    def __init__(self, position: int, size_bytes: int, available_bytes: int, is_first_batch_cut: bool) -> None:
        self.position = position
        self.size_bytes = size_bytes
        self.available_bytes = available_bytes
        self.is_first_batch_cut = is_first_batch_cut


def format_offset(offset: int) -> str:
    """Return an offset as it stands in file names: 20 digits."""
    return f"{offset:0{OFFSET_DIGITS}d}"


def walk_batches(file: File, position: int, end: int) -> Iterator[BatchSpan]:
    """Yield the batches from `position`, reading headers only; ends before a torn batch.

    Raises `KafkaStorageError` where no batch can begin.
    """
    window = b""
    window_position = position
    while position < end - _HEADER_TO_MAGIC_BYTES:
        at = position - window_position
        if at + _WALK_HEAD.size > len(window):
            window = file.pread(min(_WALK_BYTES, end - position), position)
            window_position, at = position, 0
            if len(window) < _WALK_HEAD.size:
                window = window.ljust(_WALK_HEAD.size, b"\0")
        base_offset, length, magic, last_offset_delta, max_timestamp_ms = _WALK_HEAD.unpack_from(window, at)
        if length < _MIN_LENGTH:
            raise KafkaStorageError(f"no batch begins at position {position}: it would be {length} bytes long")
        size_bytes = length + LOG_OVERHEAD_BYTES
        if position + size_bytes > end:
            return
        if magic >= CURRENT_MAGIC:
            last_offset = base_offset + last_offset_delta
        else:  # the wrapper of a compressed set has the offset of its last message
            last_offset, max_timestamp_ms = base_offset, _legacy_timestamp(window, at, magic)
        yield BatchSpan(position, size_bytes, base_offset, last_offset, max_timestamp_ms, magic)
        position += size_bytes


def _legacy_timestamp(window: bytes, at: int, magic: int) -> int:
    """Return the timestamp of a magic 1 message; magic 0 has none."""
    if magic < 1:
        return NO_TIMESTAMP_MS
    timestamp_ms: int = _LEGACY_TIMESTAMP.unpack_from(window, at + _LEGACY_TIMESTAMP_AT)[0]
    return timestamp_ms


class Segment:
    """One segment of a log. `next_offset` is one past the last record that it holds."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_filesystem",
        "_has_indexes",
        "_index_interval_bytes",
        "_tail_offsets",
        "_tail_positions",
        "base_offset",
        "created_ms",
        "file",
        "has_torn_end",
        "is_full",
        "max_timestamp_ms",
        "next_offset",
        "offset_index",
        "offset_of_max_timestamp",
        "path",
        "rolling_timestamp_ms",
        "size_bytes",
        "time_index",
        "txn_index",
    )

    def __init__(
        self,
        filesystem: FileSystem,
        open_files: OpenFiles,
        directory: str,
        base_offset: int,
        config: LogConfig,
        ending: str = "",
    ) -> None:
        """`ending` comes behind the names of all files, see `take_names`."""
        self._filesystem = filesystem
        self.base_offset = base_offset
        self.path = path = f"{directory}/{format_offset(base_offset)}"
        self.file = SegmentFile(open_files, path + LOG_SUFFIX + ending)
        index_bytes = config.segment_index_bytes
        self.offset_index = OffsetIndex(filesystem, path + OFFSET_INDEX_SUFFIX + ending, base_offset, index_bytes)
        self.time_index = TimeIndex(filesystem, path + TIME_INDEX_SUFFIX + ending, base_offset, index_bytes)
        self.txn_index = TransactionIndex(filesystem, path + TXN_INDEX_SUFFIX + ending, base_offset)
        self.size_bytes = 0
        self.next_offset = base_offset
        self.max_timestamp_ms = NO_TIMESTAMP_MS
        self.offset_of_max_timestamp = base_offset
        self.rolling_timestamp_ms: int | None = None
        """Largest timestamp of the first batch, from which `segment.ms` counts."""
        self.created_ms = 0
        self.is_full = self.offset_index.is_full or self.time_index.is_full
        """True when an index has no room for another entry, or nothing else may be appended."""
        self.has_torn_end = False
        """True when bytes that are no whole batch follow in the file. They stay until a log has something to append."""
        self._has_indexes = True
        self._index_interval_bytes = config.index_interval_bytes
        self._bytes_since_index_entry = 0
        self._tail_offsets: list[int] = []
        self._tail_positions: list[int] = []

    @property
    def roll_timestamp_ms(self) -> int:
        """From when `segment.ms` counts: the first batch's time, or when it has none, the segment's own."""
        timestamp_ms = self.rolling_timestamp_ms
        return self.created_ms if timestamp_ms is None or timestamp_ms < 0 else timestamp_ms

    def configure(self, config: LogConfig) -> None:
        self._index_interval_bytes = config.index_interval_bytes

    def can_hold(self, offset: int) -> bool:
        return is_relative_offset(offset, self.base_offset)

    # ---- writing

    def append(self, batch: bytes | bytearray | memoryview, last_offset: int, max_timestamp_ms: int) -> None:
        """Write one batch at the end and index it when the interval is due.

        Raises `OSError`, and `ValueError` for an offset that is too far from the base or an index that is full: a log
        rolls before either.
        """
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            raise ValueError(f"offset {last_offset} is too far from segment {self.base_offset}")
        self.file.get().append(batch)
        self.note_batch(len(batch), last_offset, max_timestamp_ms)

    def append_all(self, batches: list[memoryview | bytearray], facts: list[BatchFacts]) -> None:
        """Write several batches at the end at once, of each of which there is a fact.

        Raises `OSError`; then none is noted. A log looks beforehand whether there is room for all of them.
        """
        self.file.get().append_all(batches)
        for at in range(len(batches)):
            self.note_batch(len(batches[at]), facts[at].last_offset, facts[at].max_timestamp_ms)

    def has_index_room(self, batches: int) -> bool:
        """True when the indexes take so many entries more."""
        return self.offset_index.room >= batches and self.time_index.room > batches

    def note_batch(
        self, size_bytes: int, last_offset: int, max_timestamp_ms: int, *, beyond_limit: bool = False
    ) -> None:
        """Take a batch that stands at the end of the file into sizes and indexes (recovery does this too).

        `beyond_limit` lets the indexes outgrow theirs, for what was written when it was higher: it tells when to roll.
        """
        position = self.size_bytes
        self.size_bytes = position + size_bytes
        self.next_offset = last_offset + 1
        self._tail_offsets.append(last_offset)
        self._tail_positions.append(position)
        if len(self._tail_offsets) >= 2 * _TAIL_BATCHES:
            del self._tail_offsets[:_TAIL_BATCHES]
            del self._tail_positions[:_TAIL_BATCHES]
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms
            self.offset_of_max_timestamp = last_offset
        if self.rolling_timestamp_ms is None:
            self.rolling_timestamp_ms = max_timestamp_ms
        if self._bytes_since_index_entry > self._index_interval_bytes:
            self.offset_index.append(last_offset, position, beyond_limit=beyond_limit)
            self.time_index.maybe_append(
                self.max_timestamp_ms, self.offset_of_max_timestamp, use_last_slot=beyond_limit
            )
            self._bytes_since_index_entry = 0
            self._note_fullness()
        self._bytes_since_index_entry += size_bytes

    def _note_fullness(self) -> None:
        self.is_full = self.has_torn_end or self.offset_index.is_full or self.time_index.is_full

    def end_time_index(self) -> None:
        """Add the last time entry, for which one slot is kept. Raises `ValueError` where offsets went back."""
        self.time_index.maybe_append(self.max_timestamp_ms, self.offset_of_max_timestamp, use_last_slot=True)
        self._note_fullness()

    def create(self, config: LogConfig) -> None:
        """Make the file, with room for what will come where that is asked for. Raises `OSError`; then none is made."""
        file = self.file.get()
        if config.preallocate:
            try:
                file.preallocate(config.internal_segment_bytes or config.segment_bytes)
            except OSError:
                self.file.retire()
                self._filesystem.remove(self.file.path)
                raise

    def trim(self) -> None:
        """Give back the room that was reserved and is not used, or what stands there and is no batch."""
        self.file.get().truncate(self.size_bytes)
        self.has_torn_end = False

    def become_inactive(self) -> None:
        """Bring the indexes to disk, with a last time index entry, as no append will follow."""
        self.load_indexes()
        self.end_time_index()
        self.store_indexes()
        self.forget_tail()

    def store_indexes(self) -> None:
        if self._has_indexes:
            self.offset_index.store()
            self.time_index.store()

    def take_unsynced_indexes(self) -> list[str]:
        """Return the index files that the disk may not have as they are, once: whoever asks syncs them."""
        return self.offset_index.take_unsynced() + self.time_index.take_unsynced()

    def take_names(self, ending: str = "") -> None:
        """Use from now on the names to which somebody renames, or has renamed, the files."""
        self.file.path = self.path + LOG_SUFFIX + ending
        self.offset_index.path = self.path + OFFSET_INDEX_SUFFIX + ending
        self.time_index.path = self.path + TIME_INDEX_SUFFIX + ending
        self.txn_index.path = self.path + TXN_INDEX_SUFFIX + ending

    def take_directory(self, directory: str) -> None:
        """Use from now on the files of these names in another directory, or of a directory that was renamed."""
        self.path = f"{directory}/{format_offset(self.base_offset)}"
        self.take_names()

    def forget_tail(self) -> None:
        """Drop what is kept in memory about the last appended batches; headers are walked instead."""
        self._tail_offsets = []
        self._tail_positions = []

    # ---- opening and closing

    def attach(self, size_bytes: int) -> None:
        """Begin with a file that is there: its size is known, its indexes are read when first needed."""
        self.size_bytes = size_bytes
        self._has_indexes = False

    def start_over(self) -> None:
        """Begin as an empty segment whose indexes replace what the files hold, for `note_batch` to fill again."""
        self._has_indexes = True
        self.offset_index.clear()
        self.time_index.clear()
        self.size_bytes = self._bytes_since_index_entry = 0
        self.next_offset = self.offset_of_max_timestamp = self.base_offset
        self.max_timestamp_ms = NO_TIMESTAMP_MS
        self.rolling_timestamp_ms = None
        self.forget_tail()

    @property
    def has_indexes(self) -> bool:
        return self._has_indexes

    def load_indexes(self) -> None:
        """Read the index files; those that are missing or damaged are made anew from the log. Raises `OSError`."""
        if self._has_indexes:
            return
        try:
            self.offset_index.load()
            self.offset_index.check_order(self.size_bytes)
            self.time_index.load()
            self.time_index.check_order()
            self._check_against_log()
        except (CorruptIndex, FileNotFoundError):
            self._rebuild_indexes()
            return
        last = self.time_index.last_entry
        if last.timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms, self.offset_of_max_timestamp = last
        self._note_fullness()
        self._has_indexes = True

    def _check_against_log(self) -> None:
        """Raise `CorruptIndex` for indexes that are good ones, of another log, or empty where they cannot be.

        Looks at what their last entries point to; the log itself is not checked here.
        """
        first = next(self.batches_from(0), None)
        if first is None:
            if len(self.offset_index) or len(self.time_index):
                raise CorruptIndex(f"{self.offset_index.path} is of another log")
            return
        indexed = self.offset_index.lookup(self.offset_index.last_offset)
        if not len(self.offset_index) and self.size_bytes > max(first.size_bytes, 2 * self._index_interval_bytes):
            raise CorruptIndex(f"{self.offset_index.path} is empty")
        last = self.time_index.last_entry
        if not len(self.time_index):
            if first.max_timestamp_ms != NO_TIMESTAMP_MS:
                raise CorruptIndex(f"{self.time_index.path} is empty")
            last = last._replace(offset=self.base_offset)
        try:
            pointed_to = next(self.batches_from(indexed.position), None)
            near = self.offset_index.lookup(last.offset).position
            timed = next((span for span in self.batches_from(near) if span.last_offset >= last.offset), None)
        except KafkaStorageError as error:
            raise CorruptIndex(f"{self.offset_index.path} is of another log: {error}") from error
        if pointed_to is None or (len(self.offset_index) and pointed_to.base_offset > indexed.offset):
            raise CorruptIndex(f"{self.offset_index.path} is of another log")
        if len(self.time_index) and (timed is None or timed.max_timestamp_ms != last.timestamp_ms):
            raise CorruptIndex(f"{self.time_index.path} is of another log")

    def _rebuild_indexes(self) -> None:
        """Index the file anew from its batch headers."""
        size_bytes, next_offset = self.size_bytes, self.next_offset
        self.start_over()
        for span in walk_batches(self.file.get(), 0, size_bytes):
            if span.last_offset < self.next_offset:  # damage that no checksum shows; indexes take rising offsets only
                self.size_bytes += span.size_bytes
                continue
            self.note_batch(span.size_bytes, span.last_offset, span.max_timestamp_ms, beyond_limit=True)
        self.end_time_index()
        self.store_indexes()
        self.size_bytes, self.next_offset = size_bytes, next_offset
        self.forget_tail()

    def load_timestamps(self) -> None:
        """Make `max_timestamp_ms` right; costs a read of the index once."""
        if self.max_timestamp_ms == NO_TIMESTAMP_MS:
            self.load_indexes()

    def unload_indexes(self) -> None:
        """Give the memory back; the files are up to date for a segment that is not active."""
        self.store_indexes()
        self._has_indexes = False
        self.offset_index.unload()
        self.time_index.unload()

    def retire(self) -> None:
        """Close the file, with its last reader."""
        self.file.retire()

    def paths(self) -> list[str]:
        suffixes = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
        return [self.path + suffix for suffix in suffixes]

    def all_paths(self) -> list[str]:
        """The segment's own files, and the producers as of its base."""
        return [*self.paths(), self.path + SNAPSHOT_SUFFIX]

    def take_side_paths(self) -> list[str]:
        """Return the files beside the log, for whoever syncs them: indexes, and the producers as of the end."""
        snapshot = f"{self.path[:-OFFSET_DIGITS]}{format_offset(self.next_offset)}{SNAPSHOT_SUFFIX}"
        return [*self.take_unsynced_indexes(), self.path + TXN_INDEX_SUFFIX, snapshot]

    # ---- reading

    def batches_from(self, position: int) -> Iterator[BatchSpan]:
        return walk_batches(self.file.get(), position, self.size_bytes)

    def locate(self, offset: int) -> BatchSpan | None:
        """Return the first batch whose last offset is at or above `offset`; None behind the last batch."""
        if offset >= self.next_offset:
            return None
        if self._tail_offsets and offset > self._tail_offsets[0]:
            return self._locate_in_tail(offset)
        self.load_indexes()
        for span in self.batches_from(self.offset_index.lookup(offset).position):
            if span.last_offset >= offset:
                return span
        return None

    def _locate_in_tail(self, offset: int) -> BatchSpan:
        """Find a batch behind the first of the tail. Its base offset is told as if the log had no gap before it."""
        slot = bisect_left(self._tail_offsets, offset)
        position = self._tail_positions[slot]
        end = self._tail_positions[slot + 1] if slot + 1 < len(self._tail_positions) else self.size_bytes
        base_offset = self._tail_offsets[slot - 1] + 1
        last_offset = self._tail_offsets[slot]
        return BatchSpan(position, end - position, base_offset, last_offset, NO_TIMESTAMP_MS, CURRENT_MAGIC)

    def position_of(self, offset: int) -> int:
        """Return the position of the batch that holds `offset`; the size of the file behind the last one."""
        if offset >= self.next_offset:
            return self.size_bytes
        span = self.locate(offset)
        return self.size_bytes if span is None else span.position

    def read(self, offset: int, limit: ReadLimit) -> SegmentSlice | None:
        """Return the run of bytes from the batch that holds `offset`; None when no batch of the segment does.

        The run ends at `up_to_offset` or after `max_bytes`, wherever that is, as Kafka's does; with
        `at_least_one_batch` the first batch is whole whatever its size.
        """
        max_bytes = limit.max_bytes
        first = self.locate(offset)
        if first is None:
            return None
        available = max(self.position_of(limit.up_to_offset) - first.position, 0)
        if available <= max_bytes:
            return SegmentSlice(first.position, available, available, is_first_batch_cut=False)
        size_bytes = max(max_bytes, first.size_bytes) if limit.at_least_one_batch else max_bytes
        is_cut = 0 < size_bytes < first.size_bytes
        return SegmentSlice(first.position, min(size_bytes, available), available, is_first_batch_cut=is_cut)

    def upper_bound_offset(self, position: int) -> int | None:
        """Return an offset that bounds what a read up to `position` can hold; None when the index knows none."""
        self.load_indexes()
        entry = self.offset_index.find_upper_bound(position)
        return None if entry is None else entry.offset

    def truncate_to(self, offset: int) -> int:
        """Cut off the batch that holds `offset` and all after it; returns how many bytes that were."""
        self.load_indexes()
        self.forget_tail()
        span = self.locate(offset)
        removed = 0 if span is None else self.size_bytes - span.position
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        if span is not None:
            self.cut(span.position)
            self.next_offset = max(span.base_offset, self.base_offset)
        self.max_timestamp_ms, self.offset_of_max_timestamp = self.time_index.last_entry
        self._note_fullness()
        return removed

    def cut(self, size_bytes: int) -> None:
        """Shorten the file."""
        self.file.get().truncate(size_bytes)
        self.size_bytes = size_bytes
        self._bytes_since_index_entry = 0
        if not size_bytes:
            self.rolling_timestamp_ms = None
