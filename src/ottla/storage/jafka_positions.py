"""`jafka.positions`: which record of Kafka stands at which byte of a Jafka log, and when the log was flushed to there.

Entries of 28 bytes, in order: position, the Kafka offset of the record that comes next there, time in ms, and the
CRC-32 of these. They are written after what they speak of is on the disk. The first entry is where the log starts;
`begin_at` brings it to the disk.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ottla.storage.files import FileSystem
from ottla.storage.open_files import OpenFiles, SegmentFile

POSITIONS_NAME: Final = "jafka.positions"
_FIELDS: Final = struct.Struct(">QQQ")
ENTRY_BYTES: Final = 28


class Flushed(NamedTuple):
    """Up to where messages were flushed, which Kafka record comes next, and when that was."""

    position: int
    kafka_offset: int
    time_ms: int


class Positions:
    """The entries of one log. Raises `OSError`."""

    __slots__ = ("_file", "_filesystem", "_offsets", "_open_files", "_path", "_positions", "_times")

    def __init__(self, filesystem: FileSystem, open_files: OpenFiles, directory: str) -> None:
        """Read what is there, and cut it off where an entry is damaged or does not follow the one before it."""
        self._filesystem = filesystem
        self._open_files = open_files
        self._path = f"{directory}/{POSITIONS_NAME}"
        self._file = SegmentFile(open_files, self._path)
        self._positions = array("Q")
        self._offsets = array("Q")
        self._times = array("Q")
        if filesystem.exists(self._path):
            self._read()

    def _read(self) -> None:
        data = self._file.get().pread(self._file.get().size(), 0)
        for start in range(0, len(data) - ENTRY_BYTES + 1, ENTRY_BYTES):
            entry = data[start : start + ENTRY_BYTES]
            found = Flushed(*_FIELDS.unpack_from(entry))
            if entry != encode_entry(found) or (self and found.position <= self.last.position):
                break
            self._remember(found)
        if len(self) * ENTRY_BYTES < len(data):
            self._truncate()

    @property
    def file(self) -> SegmentFile:
        """For whoever writes and syncs an entry off the loop; see `encode_entry`."""
        return self._file

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, index: int) -> Flushed:
        return Flushed(self._positions[index], self._offsets[index], self._times[index])

    @property
    def last(self) -> Flushed:
        return self[-1]

    def at_position(self, position: int) -> Flushed:
        """The last entry that is not behind a position; the first where all are."""
        return self[max(bisect_right(self._positions, position) - 1, 0)]

    def at_offset(self, kafka_offset: int) -> Flushed:
        """The last entry that is not behind a Kafka offset; the first where all are."""
        return self[max(bisect_right(self._offsets, kafka_offset) - 1, 0)]

    def reaching(self, position: int) -> Flushed | None:
        """The first flush that reached a position."""
        index = bisect_left(self._positions, position)
        return self[index] if index < len(self) else None

    def append(self, entry: Flushed) -> None:
        """Add an entry, if the log has grown since the last one."""
        if self and entry.position == self.last.position:
            return
        self._file.get().append(encode_entry(entry))
        self._remember(entry)

    def remember(self, entry: Flushed) -> None:
        """Take note of an entry that was written through `file`, if the log has grown since the last one."""
        if entry.position != self.last.position:
            self._remember(entry)

    def _remember(self, entry: Flushed) -> None:
        self._positions.append(entry.position)
        self._offsets.append(entry.kafka_offset)
        self._times.append(entry.time_ms)

    def forget_inner(self, segment_start: int) -> None:
        """Drop the last entry but one from memory, not from the file, where it reached no segment's end."""
        if len(self) > 1 and self[-2].position > segment_start:
            del self._positions[-2], self._offsets[-2], self._times[-2]

    def cut(self, position: int) -> None:
        """Take back what is said of places behind a position. The first entry stays. Not after `forget_inner`."""
        count = max(bisect_right(self._positions, position), 1)
        if count < len(self):
            del self._positions[count:], self._offsets[count:], self._times[count:]
            self._truncate()

    def _truncate(self) -> None:
        """Cut the file off behind what is remembered, on the disk, too: what comes next must not tear what stays."""
        self._file.get().truncate(len(self) * ENTRY_BYTES)
        self._file.get().sync()

    def begin_at(self, first: Flushed) -> None:
        """Have this as the first entry, with those behind it; on the disk when this returns."""
        self.keep([first, *self.behind(first.position)])

    def behind(self, position: int) -> Iterator[Flushed]:
        """The entries behind a position, in order."""
        return (self[index] for index in range(bisect_right(self._positions, position), len(self)))

    def keep(self, entries: Sequence[Flushed]) -> None:
        """Have these entries and no others; on the disk when this returns."""
        self._file.retire()
        self._filesystem.replace(self._path, b"".join(encode_entry(entry) for entry in entries))
        self._file = SegmentFile(self._open_files, self._path)
        for column in (self._positions, self._offsets, self._times):
            del column[:]
        for entry in entries:
            self._remember(entry)

    def close(self) -> None:
        self._file.retire()


def encode_entry(entry: Flushed) -> bytes:
    fields = _FIELDS.pack(*entry)
    return fields + zlib.crc32(fields).to_bytes(4, "big")
