"""`OffsetIndex` and `TimeIndex`: where in a segment to begin looking.

Both are sparse and hold fixed-width big-endian entries in rising order:

* `.index`: 4 bytes of offset minus the segment's base offset, 4 bytes of file position. The offset is the *last*
  offset of the batch that begins at the position, as Kafka writes it.
* `.timeindex`: 8 bytes of timestamp, 4 bytes of relative offset; the largest timestamp so far and the last offset of
  the batch that brought it.

The entries live in memory while the segment is warm and go to the file in one piece when the segment is rolled or
closed; nothing is preallocated (an index that a crash cut short is rebuilt from the log, which recovery reads anyway).
So appending here costs no system call. After a clean stop nobody checks whether an index is whole, so one that was
written is synced before its log may count as cleanly closed (`take_unsynced`).
"""

from __future__ import annotations

import operator
import struct
import sys
from abc import ABC, abstractmethod
from array import array
from itertools import islice
from typing import Final, NamedTuple

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32

from ottla.model import NO_TIMESTAMP_MS
from ottla.storage.files import FileSystem

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
_WARM_ENTRIES: Final = 8192 // _OFFSET_ENTRY.size
"""The end of an index that Kafka searches first, since it is in memory most likely."""
MAX_RELATIVE_OFFSET: Final = 2**31 - 1
MAX_POSITION: Final = 2**31 - 1
_LOW_32_BITS: Final = 2**32 - 1


class CorruptIndex(ValueError):
    """An index file that does not agree with its own rules; it can be rebuilt from the log."""


class OffsetPosition(NamedTuple):
    """The last offset of a batch and the file position where that batch begins."""

    offset: int
    position: int


class TimestampPosition(NamedTuple):
    """A timestamp and the last offset of the batch that brought it."""

    timestamp_ms: int
    offset: int


class _IndexFile(ABC):
    """What both indexes share: entries of one width, in memory while the segment is warm, and the file."""

    __slots__ = (
        "_added",
        "_base_offset",
        "_count",
        "_entry_bytes",
        "_filesystem",
        "_is_dirty",
        "_is_synced",
        "_stored",
        "max_entries",
        "path",
    )

    def __init__(
        self, filesystem: FileSystem, path: str, base_offset: int, max_size_bytes: int, entry_bytes: int
    ) -> None:
        self.path = path
        self.max_entries = max_size_bytes // entry_bytes
        self._is_synced = True
        self._filesystem = filesystem
        self._base_offset = base_offset
        self._entry_bytes = entry_bytes
        self._stored = bytearray()
        self._added: BytesWriter | None = None  # entries behind those, which cost least to add this way
        self._is_dirty = False
        self._count = 0

    @property
    def room(self) -> int:
        """How many entries more there may be."""
        return self.max_entries - self._count

    def __len__(self) -> int:
        return self._count

    @property
    def _entries(self) -> bytearray:
        """All entries as they stand in the file."""
        if self._added is not None:
            self._stored += self._added.getvalue()
            self._added = None
        return self._stored

    def _replace(self, entries: bytearray) -> None:
        self._stored = entries
        self._added = None
        self._note_entries()

    def _relative(self, offset: int) -> int:
        """What stands for an offset. Raises `OverflowError` where that has no place: a log rolls before."""
        relative_offset = offset - self._base_offset
        if not -MAX_RELATIVE_OFFSET <= relative_offset <= MAX_RELATIVE_OFFSET:
            raise OverflowError(f"{self.path}: offset {offset} is too far from {self._base_offset}")
        return relative_offset

    def _writer(self) -> BytesWriter:
        """What takes entries behind those that are there, made when it is needed: it is half a kilobyte."""
        added = self._added
        if added is None:
            added = self._added = BytesWriter()
        return added

    def truncate_to(self, offset: int) -> None:
        """Drop all entries at or above `offset`."""
        kept = self._count
        while kept and self._offset_at(kept - 1) >= offset:
            kept -= 1
        self._is_dirty = True
        self._replace(self._entries[: kept * self._entry_bytes])

    def load(self) -> None:
        """Read the file. Raises `CorruptIndex` when it breaks the rules below, `OSError` when it cannot be read."""
        data = self._filesystem.read(self.path)
        self._is_dirty = False
        self._replace(bytearray(data[: len(data) - len(data) % self._entry_bytes]))
        if len(data) % self._entry_bytes:
            raise CorruptIndex(f"{self.path} has {len(data)} bytes, which is no multiple of {self._entry_bytes}")
        self.check_sane()

    @abstractmethod
    def check_sane(self) -> None:
        """Raise `CorruptIndex` where Kafka's own, cheap check would find fault."""

    def clear(self) -> None:
        self._is_dirty = True
        self._replace(bytearray())

    def unload(self) -> None:
        """Give the memory back; `load` brings the entries again."""
        self._is_dirty = False
        self._replace(bytearray())

    def store(self) -> None:
        """Bring the file up to date."""
        is_there = self._filesystem.exists(self.path)
        if self._is_dirty or not is_there:
            self._filesystem.write(self.path, self._entries)
            self._is_dirty = False
            if is_there or self._entries:  # else it is empty if it is there at all, and made again if it is not
                self._is_synced = False

    def take_unsynced(self) -> list[str]:
        """Return the file's path where the disk may not have it yet, once: whoever asks syncs it."""
        if self._is_synced:
            return []
        self._is_synced = True
        return [self.path]

    @abstractmethod
    def _offset_at(self, slot: int) -> int:
        """Return the offset of an entry."""

    def _note_entries(self) -> None:
        """Count the entries, and work out what an append compares with."""
        self._count = len(self._entries) // self._entry_bytes


class OffsetIndex(_IndexFile):
    """Last offset of a batch to its file position, for one segment."""

    __slots__ = ("_last_offset",)

    def __init__(self, filesystem: FileSystem, path: str, base_offset: int, max_size_bytes: int) -> None:
        super().__init__(filesystem, path, base_offset, max_size_bytes, _OFFSET_ENTRY.size)
        self._last_offset = base_offset

    def __getitem__(self, slot: int) -> OffsetPosition:
        relative_offset, position = _OFFSET_ENTRY.unpack_from(self._entries, slot * _OFFSET_ENTRY.size)
        return OffsetPosition(self._base_offset + relative_offset, position)

    @property
    def is_full(self) -> bool:
        return self._count >= self.max_entries

    @property
    def last_offset(self) -> int:
        """Offset of the last entry; the base offset when there is none."""
        return self._last_offset

    def append(self, offset: int, position: int, *, beyond_limit: bool = False) -> None:
        """Add an entry. Raises `ValueError` when the offset does not rise and, but for `beyond_limit`, without room.

        Raises `OverflowError` for a position or an offset that 4 bytes cannot hold.
        """
        if self._count >= self.max_entries and not beyond_limit:
            raise ValueError(f"{self.path} has no room for offset {offset}")
        if self._count and offset <= self._last_offset:
            raise ValueError(f"{self.path}: offset {offset} is not above {self._last_offset}")
        relative_offset = self._relative(offset)
        if position > MAX_POSITION:
            raise OverflowError(f"{self.path}: position {position} is more than an index can hold")
        added = self._writer()
        write_i32_be(added, i32(relative_offset))
        write_i32_be(added, i32(position))
        self._count += 1
        self._last_offset = offset
        self._is_dirty = True

    def lookup(self, offset: int) -> OffsetPosition:
        """Return the last entry at or below `offset`; the beginning of the segment when there is none."""
        low, high = 0, len(self)
        relative_offset = offset - self._base_offset
        while low < high:
            middle = (low + high) >> 1
            if _OFFSET_ENTRY.unpack_from(self._entries, middle * _OFFSET_ENTRY.size)[0] <= relative_offset:
                low = middle + 1
            else:
                high = middle
        return self[low - 1] if low else OffsetPosition(self._base_offset, 0)

    def find_upper_bound(self, position: int) -> OffsetPosition | None:
        """Return an entry behind a file position, as the bound of what a read up to there can have touched.

        None when there is none. At an entry's own position Kafka answers that entry or the following one, depending on
        where its search meets it; which aborted transactions a fetch names depends on this, so the search is the same.
        """
        last = len(self) - 1
        warm = max(0, last - _WARM_ENTRIES)
        if last < 0 or self[0].position > position:
            return self[0] if last >= 0 else None
        low, high = (warm, last) if self[warm].position < position else (0, warm)
        while low < high:
            middle = (low + high + 1) >> 1
            found = self[middle]
            if found.position == position:
                return found
            if found.position < position:
                low = middle
            else:
                high = middle - 1
        return self[low + 1] if low < last else None

    def load(self) -> None:
        super().load()
        if self._count and not self[self._count - 1].position:
            raise CorruptIndex(f"{self.path} ends in zeros, as a preallocated index does after a crash")

    def check_sane(self) -> None:
        """Raise `CorruptIndex` when the last entry lies below the segment (Kafka's own, cheap check)."""
        if self._count and self.last_offset < self._base_offset:
            raise CorruptIndex(f"{self.path} ends with offset {self.last_offset}, below {self._base_offset}")

    def check_order(self, log_bytes: int) -> None:
        """Raise `CorruptIndex` for entries out of order, or behind the end of a log of so many bytes."""
        offsets, positions = _columns(self._entries, 2)
        if not _is_rising(offsets) or not _is_rising(positions) or positions[-1:] >= [log_bytes]:
            raise CorruptIndex(f"{self.path} has entries out of order, or behind the log's {log_bytes} bytes")

    def _offset_at(self, slot: int) -> int:
        return self[slot].offset

    def _note_entries(self) -> None:
        super()._note_entries()
        self._last_offset = self[self._count - 1].offset if self._count else self._base_offset

    def entries(self) -> list[OffsetPosition]:
        return [self[slot] for slot in range(len(self))]


class TimeIndex(_IndexFile):
    """Largest timestamp so far to the offset that brought it, for one segment."""

    __slots__ = ("_last",)

    def __init__(self, filesystem: FileSystem, path: str, base_offset: int, max_size_bytes: int) -> None:
        super().__init__(filesystem, path, base_offset, max_size_bytes, _TIME_ENTRY.size)
        self._last = TimestampPosition(NO_TIMESTAMP_MS, base_offset)

    def __getitem__(self, slot: int) -> TimestampPosition:
        timestamp_ms, relative_offset = _TIME_ENTRY.unpack_from(self._entries, slot * _TIME_ENTRY.size)
        return TimestampPosition(timestamp_ms, self._base_offset + relative_offset)

    @property
    def is_full(self) -> bool:
        """One slot is kept free for the entry that a roll adds."""
        return self._count >= self.max_entries - 1

    @property
    def last_entry(self) -> TimestampPosition:
        """The newest entry; (-1, base offset) when there is none."""
        return self._last

    def maybe_append(self, timestamp_ms: int, offset: int, *, use_last_slot: bool = False) -> None:
        """Add an entry when the timestamp is above the last one; beyond the index's limit with `use_last_slot`.

        Raises `ValueError` when the offset falls, and without `use_last_slot` when there is no room left.
        """
        if not use_last_slot and self._count >= self.max_entries - 1:
            raise ValueError(f"{self.path} has no room for timestamp {timestamp_ms}")
        last_timestamp_ms, last_offset = self._last
        if timestamp_ms <= last_timestamp_ms:
            return
        if self._count and offset < last_offset:
            raise ValueError(f"{self.path}: offset {offset} is below {last_offset}")
        relative_offset = self._relative(offset)
        added = self._writer()
        write_i64_be(added, timestamp_ms)
        write_i32_be(added, i32(relative_offset))
        self._count += 1
        self._last = TimestampPosition(timestamp_ms, offset)
        self._is_dirty = True

    def lookup(self, timestamp_ms: int) -> TimestampPosition:
        """Return the last entry at or below `timestamp_ms`; (-1, base offset) when there is none."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) >> 1
            if _TIME_ENTRY.unpack_from(self._entries, middle * _TIME_ENTRY.size)[0] <= timestamp_ms:
                low = middle + 1
            else:
                high = middle
        return self[low - 1] if low else TimestampPosition(NO_TIMESTAMP_MS, self._base_offset)

    def check_sane(self) -> None:
        """Raise `CorruptIndex` when the last entry lies below the first in time, or below the segment."""
        if not self._count:
            return
        first, last = self[0], self.last_entry
        if last.timestamp_ms < first.timestamp_ms:
            raise CorruptIndex(f"{self.path} ends at {last.timestamp_ms}, before its first entry {first.timestamp_ms}")
        if last.offset < self._base_offset:
            raise CorruptIndex(f"{self.path} ends with offset {last.offset}, below {self._base_offset}")

    def check_order(self) -> None:
        """Raise `CorruptIndex` for entries out of order."""
        high, low, offsets = _columns(self._entries, 3)
        timestamps = [(above << 32) | (below & _LOW_32_BITS) for above, below in zip(high, low, strict=True)]
        if not _is_rising(timestamps) or any(map(operator.gt, offsets, islice(offsets, 1, None))):
            raise CorruptIndex(f"{self.path} has entries out of order")

    def _offset_at(self, slot: int) -> int:
        return self[slot].offset

    def _note_entries(self) -> None:
        super()._note_entries()
        self._last = self[self._count - 1] if self._count else TimestampPosition(NO_TIMESTAMP_MS, self._base_offset)

    def entries(self) -> list[TimestampPosition]:
        return [self[slot] for slot in range(len(self))]


def _columns(entries: bytearray, count: int) -> list[list[int]]:
    """Return the 4-byte columns of big-endian entries."""
    numbers = array("i", bytes(entries))
    if sys.byteorder == "little":
        numbers.byteswap()
    return [numbers[column::count].tolist() for column in range(count)]


def _is_rising(numbers: list[int]) -> bool:
    return all(map(operator.lt, numbers, islice(numbers, 1, None)))


def is_relative_offset(offset: int, base_offset: int) -> bool:
    """True when an index of this segment can hold the offset in its 4 bytes."""
    return 0 <= offset - base_offset <= MAX_RELATIVE_OFFSET
