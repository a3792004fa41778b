"""A commit log in one plain file: append a value, get its offset; read from an offset on.

The file is records back to back, nothing around them, integers big-endian:

    0 offset (8, unsigned): 0, 1, 2 ...    8 size of the value (4, unsigned)    12 value

There is no checksum, so damage inside a value is not noticed. Beside it lies `<path>.index`, entries of offset (8) and
position (8) for one record in every few KiB. It only makes reading start sooner: it is checked at the start, rebuilt
when it is missing or differs, and never decides what is read.

An offset is given out after its record is on the disk, and readers see records from then on. What a crash left half
written at the end is cut off at the next start. `read_log` and `check_log` read a file as it lies there, changing
nothing.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from types import TracebackType
from typing import Final, NamedTuple, Self

from ottla.errors import CorruptMessage, KafkaStorageError, MessageTooLarge
from ottla.storage.files import File, FileSystem, LocalFileSystem

_HEADER: Final = struct.Struct(">QI")
_INDEX_ENTRY: Final = struct.Struct(">QQ")
MAX_SIZE: Final = 0xFFFFFFFF
DEFAULT_MAX_VALUE_BYTES: Final = 64 * 1024 * 1024
DEFAULT_INDEX_INTERVAL_BYTES: Final = 4096
_CHUNK_BYTES: Final = 256 * 1024


class LogRecord(NamedTuple):
    """One record of a commit log."""

    offset: int
    value: bytes


class TornTail(CorruptMessage):
    """The file ends inside a record, which begins at `position`."""

    def __init__(self, position: int) -> None:
        super().__init__(f"unexpected end of the file inside the record at byte {position}")
        self.position = position


class WrongOffset(CorruptMessage):
    """A record has not the offset that follows the one before it. `position` is where it stands."""

    def __init__(self, position: int, expected: int, found: int) -> None:
        super().__init__(f"the record at byte {position} has offset {found} where {expected} must follow")
        self.position = position


class _Place(NamedTuple):
    """Where a record stands: its value begins at `position` + 12 and ends at `end`."""

    offset: int
    position: int
    end: int


def _places(file: File, position: int, end: int) -> Iterator[_Place]:
    """Walk the records in a stretch of a file, values unread. Raises `TornTail`. A size is believed only if it fits."""
    chunk, chunk_at = b"", position
    while position < end:
        if position + _HEADER.size > end:
            raise TornTail(position)
        if not chunk_at <= position <= chunk_at + len(chunk) - _HEADER.size:
            chunk, chunk_at = file.pread(min(_CHUNK_BYTES, end - position), position), position
            if len(chunk) < _HEADER.size:  # somebody cut the file meanwhile
                raise TornTail(position)
        offset, size = _HEADER.unpack_from(chunk, position - chunk_at)
        record_end = position + _HEADER.size + size
        if record_end > end:
            raise TornTail(position)
        yield _Place(offset, position, record_end)
        position = record_end


def _value(file: File, place: _Place) -> bytes:
    size = place.end - place.position - _HEADER.size
    value = file.pread(size, place.position + _HEADER.size)
    if len(value) < size:
        raise TornTail(place.position)
    return value


def read_log(path: str, start_offset: int = 0, *, filesystem: FileSystem | None = None) -> Iterator[LogRecord]:
    """Iterate the records of a file that nobody needs to own: all with an offset of `start_offset` or more.

    Offsets are taken as they are, in whatever order. Raises `OSError` when there is no such file; at the end `TornTail`
    where the last record is cut, also when it and all before it lie below `start_offset`.
    """
    return _read(_open(path, filesystem), start_offset)


def _open(path: str, filesystem: FileSystem | None) -> File:
    return (filesystem or LocalFileSystem()).open(path)


def _read(file: File, start_offset: int) -> Iterator[LogRecord]:
    try:
        for place in _places(file, 0, file.size()):
            if place.offset >= start_offset:
                yield LogRecord(place.offset, _value(file, place))
    finally:
        file.close()


@dataclass(frozen=True)
class CheckResult:
    """What a file holds: `count` good records in `valid_bytes`, and what is wrong behind them, if anything."""

    count: int
    valid_bytes: int
    size_bytes: int
    problem: TornTail | WrongOffset | None


def check_log(path: str, *, filesystem: FileSystem | None = None) -> CheckResult:
    """Check a file from its beginning: every record whole, offsets 0, 1, 2 ... Raises `OSError`."""
    file = _open(path, filesystem)
    try:
        scan = _Scan(DEFAULT_INDEX_INTERVAL_BYTES)
        scan.run(file)
        return CheckResult(scan.next_offset, scan.valid_bytes, file.size(), scan.problem)
    finally:
        file.close()


class _Scan:
    """One pass over a file: how much of it is good, and the index that it should have."""

    def __init__(self, interval_bytes: int) -> None:
        self.next_offset = 0
        self.valid_bytes = 0
        self.problem: TornTail | WrongOffset | None = None
        self.index = _Index(interval_bytes)

    def run(self, file: File) -> None:
        try:
            for place in _places(file, 0, file.size()):
                if place.offset != self.next_offset:
                    self.problem = WrongOffset(place.position, self.next_offset, place.offset)
                    return
                self.index.add(place.offset, place.position)
                self.next_offset += 1
                self.valid_bytes = place.end
        except TornTail as torn:
            self.problem = torn


class _Index:
    """Offsets and positions of some records, in order. Grows only, so that it may be read while it grows."""

    def __init__(self, interval_bytes: int) -> None:
        self._interval_bytes = interval_bytes
        self._next_at = 0
        self._offsets: list[int] = []
        self._positions: list[int] = []

    def add(self, offset: int, position: int) -> bytes:
        """Enter a record if it is time for one. Returns the entry as it stands in the file, or nothing."""
        if position < self._next_at:
            return b""
        self._next_at = position + self._interval_bytes
        self._positions.append(position)
        self._offsets.append(offset)
        return _INDEX_ENTRY.pack(offset, position)

    def position_before(self, offset: int) -> int:
        """A position from which reading meets `offset`."""
        entry = bisect_right(self._offsets, offset) - 1
        return self._positions[entry] if entry >= 0 else 0

    def to_bytes(self) -> bytes:
        return b"".join(_INDEX_ENTRY.pack(*entry) for entry in zip(self._offsets, self._positions, strict=True))


class CommitLog:
    """A commit log that this process owns. Methods may be called from any thread.

        with CommitLog("partition-0.log") as log:
            offset = log.append(b"hello")
            for record in log.read(offset):
                print(record.offset, record.value)

    A file whose offsets do not follow each other is not changed: it is read up to there and refuses appends.
    """

    def __init__(
        self,
        path: str,
        *,
        filesystem: FileSystem | None = None,
        max_value_bytes: int = DEFAULT_MAX_VALUE_BYTES,
        index_interval_bytes: int = DEFAULT_INDEX_INTERVAL_BYTES,
    ) -> None:
        """Open `path`, or make it. Raises `OSError`; `KafkaStorageError` when another process has it open."""
        self._path = path
        self._filesystem = filesystem = filesystem or LocalFileSystem()
        self._max_value_bytes = min(max_value_bytes, MAX_SIZE)
        self._mutex = Lock()
        self._is_closed = False
        self._refusal: CorruptMessage | KafkaStorageError | None = None
        is_new = not filesystem.exists(path)
        owner = filesystem.lock(path)
        if owner is None:
            raise KafkaStorageError(f"{path} is in use by another process")
        self._owner = owner
        self._file = filesystem.open(path, create=True)
        self._index_file: File | None = None
        try:
            if is_new:
                filesystem.sync_directory(_directory_of(path))
            self._load(index_interval_bytes)
        except BaseException:
            self.close()
            raise

    def _load(self, index_interval_bytes: int) -> None:
        scan = _Scan(index_interval_bytes)
        scan.run(self._file)
        if isinstance(scan.problem, TornTail):
            self._file.truncate(scan.valid_bytes)
            self._file.sync()
        self._refusal = scan.problem if isinstance(scan.problem, WrongOffset) else None
        self._index = scan.index
        self._next_offset = scan.next_offset
        self._committed_bytes = scan.valid_bytes
        self._open_index()

    def _open_index(self) -> None:
        """Have the index file hold what it should. Without it the log is as good, only slower to start reading."""
        path, wanted = self._path + ".index", self._index.to_bytes()
        with suppress(OSError):
            if not self._filesystem.exists(path) or self._filesystem.read(path) != wanted:
                self._filesystem.write(path, wanted)
            self._index_file = self._filesystem.open(path)

    @property
    def next_offset(self) -> int:
        """The offset that the next value gets: so many values there are."""
        return self._next_offset

    @property
    def problem(self) -> CorruptMessage | KafkaStorageError | None:
        """Why nothing can be appended, None while all is well."""
        return self._refusal

    def append(self, value: bytes) -> int:
        """Append one value and return its offset once it is on the disk. Raises as `append_many`."""
        return self.append_many([value])

    def append_many(self, values: Sequence[bytes]) -> int:
        """Append values one behind the other, all of them or none; returns the offset of the first.

        Raises `MessageTooLarge`; `KafkaStorageError` when the disk fails, and from then on if what was half written
        could not be removed; what `problem` says.
        """
        for value in values:
            if len(value) > self._max_value_bytes:
                raise MessageTooLarge(f"a value of {len(value)} bytes; at most {self._max_value_bytes} are taken")
        with self._mutex:
            if self._refusal is not None:
                raise self._refusal.with_traceback(None)  # not with all those it was raised with before
            base_offset, position = self._next_offset, self._committed_bytes
            parts: list[bytes] = []
            for offset, value in enumerate(values, base_offset):
                parts += (_HEADER.pack(offset, len(value)), value)
            self._write(b"".join(parts), position)
            entries = b""
            for offset, value in enumerate(values, base_offset):
                entries += self._index.add(offset, position)
                position += _HEADER.size + len(value)
            self._write_index(entries)
            self._committed_bytes = position
            self._next_offset = base_offset + len(values)
            return base_offset

    def _write(self, data: bytes, committed_bytes: int) -> None:
        """Bring `data` to the disk, or leave the file as it was."""
        try:
            self._file.append(data)
            self._file.sync()
        except OSError as error:
            failure = KafkaStorageError(f"{self._path}: {error.strerror or error}")
            try:
                self._file.truncate(committed_bytes)
            except OSError:
                self._refusal = failure
            raise failure from error

    def _write_index(self, entries: bytes) -> None:
        if entries and self._index_file is not None:
            try:
                self._index_file.append(entries)
            except OSError:  # the next start makes it anew
                self._index_file.close()
                self._index_file = None

    def read(self, start_offset: int = 0, *, max_count: int | None = None) -> Iterator[LogRecord]:
        """Iterate the records from `start_offset` on, as far as they are on the disk now; above the end there are none.

        Appends do not wait for readers.
        """
        end = self._committed_bytes
        self._check_open()
        left = self._next_offset if max_count is None else max_count
        for place in _places(self._file, self._index.position_before(start_offset), end):
            if left <= 0:
                return
            if place.offset >= start_offset:
                left -= 1
                yield LogRecord(place.offset, _value(self._file, place))
                self._check_open()

    def _check_open(self) -> None:
        """Before each use of the file by a reader: its descriptor may be another file's by now."""
        if self._is_closed:
            raise KafkaStorageError(f"{self._path} is closed")

    def close(self) -> None:
        """Close the files; all that was appended is on the disk already."""
        with self._mutex:
            if self._is_closed:
                return
            self._is_closed = True
            self._refusal = KafkaStorageError(f"{self._path} is closed")
            if self._index_file is not None:
                self._index_file.close()
                self._index_file = None
            self._file.close()
            self._owner.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _directory_of(path: str) -> str:
    folder, slash, _ = path.rpartition("/")
    return folder or slash or "."
