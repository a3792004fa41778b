"""`OverlayFileSystem`: files below that stay as they are, and in memory above them whatever was changed.

A broker that serves read-only starts on it as any other does: recovery cuts torn ends, completes swaps and makes
indexes again, and all of that is seen by whoever reads here and by nobody else. Memory holds what is written; the
bytes of a file that was only cut, renamed or removed stay below. A file from below is copied into memory when it is
appended to: of a broker that takes no records that is the newest segment of the metadata log, where it notes its start.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from ottla.clock import Clock
from ottla.storage.files import File, Lock
from ottla.storage.read_only_files import ReadableFiles, open_anonymous


class _Entry:
    """What a name stands for: the front of a file below, or bytes in memory."""

    __slots__ = ("below", "data", "modified_ms", "size_bytes")

    def __init__(self, below: str | None, size_bytes: int, modified_ms: int) -> None:
        self.below = below
        """Path of the file below; None once the bytes are in memory."""
        self.size_bytes = size_bytes
        """How much of it counts."""
        self.data = bytearray()
        self.modified_ms = modified_ms


class OverlayFile:
    """One open file."""

    __slots__ = ("_copy", "_entry", "_file", "_files")

    def __init__(self, files: OverlayFileSystem, entry: _Entry, file: File | None) -> None:
        self._files = files
        self._entry = entry
        self._file = file
        self._copy: File | None = None

    @property
    def sync_descriptor(self) -> int:
        return -1

    @property
    def descriptor(self) -> int:
        """That of the file below; of one in memory, a copy's, as it is when somebody first asks."""
        if self._entry.below is not None and self._file is not None:
            return self._file.descriptor
        if self._copy is None:
            self._copy = open_anonymous(self._entry.data)
        return self._copy.descriptor

    def append(self, data: bytes | bytearray | memoryview) -> None:
        self._files.lift(self._entry)
        self._entry.data += data

    def append_all(self, parts: Sequence[memoryview | bytearray]) -> None:
        for part in parts:
            self.append(part)

    def pread(self, size_bytes: int, position: int) -> bytes:
        entry = self._entry
        if entry.below is None or self._file is None:
            return bytes(entry.data[position : position + size_bytes])
        return self._file.pread(max(0, min(size_bytes, entry.size_bytes - position)), position)

    def size(self) -> int:
        return self._files.size_of(self._entry)

    def sync(self) -> None:
        """There is no disk above."""

    def truncate(self, size_bytes: int) -> None:
        entry = self._entry
        if entry.below is not None and size_bytes <= entry.size_bytes:
            entry.size_bytes = size_bytes
            return
        self._files.lift(entry)
        del entry.data[size_bytes:]
        entry.data += bytes(size_bytes - len(entry.data))

    def preallocate(self, size_bytes: int) -> None:
        """Memory is not reserved."""

    def is_resident(self, position: int, size_bytes: int) -> bool:
        if self._entry.below is None or self._file is None:
            return True
        return self._file.is_resident(position, size_bytes)

    def close(self) -> None:
        for file in (self._file, self._copy):
            if file is not None:
                file.close()
        self._file = self._copy = None


class OverlayFileSystem:
    """A `files.FileSystem` that changes nothing below it. Directories hold files, or directories, to any depth."""

    __slots__ = ("_below", "_changes", "_clock", "_gone", "_made")

    def __init__(self, below: ReadableFiles, clock: Clock) -> None:
        self._below = below
        self._clock = clock
        self._changes: dict[str, dict[str, _Entry | None]] = {}
        """By directory and name, what is not as it is below; None: it is gone."""
        self._made: set[str] = set()
        self._gone: set[str] = set()
        """Directories below that were removed or renamed."""

    # ---- files

    def open(self, path: str, *, create: bool = False) -> OverlayFile:
        entry = self._find(path)
        if entry is None:
            if not create:
                raise _missing(path)
            entry = self._make(path)
        self._put(path, entry)  # so that all who open it see one and the same
        return OverlayFile(self, entry, None if entry.below is None else self._below.open(entry.below))

    def read(self, path: str) -> bytes:
        return self._bytes_of(self._get(path))

    def write(self, path: str, data: bytes | bytearray | memoryview) -> None:
        self._make(path).data += data

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.write(path, data)

    def size(self, path: str) -> int:
        return self.size_of(self._get(path))

    def modified_ms(self, path: str) -> int:
        entry = self._get(path)
        return entry.modified_ms if entry.below is None else self._below.modified_ms(entry.below)

    def remove(self, path: str) -> None:
        if self._find(path) is not None:
            self._put(path, None)

    def rename(self, source: str, target: str) -> None:
        if self.is_directory(source):
            self._rename_directory(source, target)
            return
        self._put(target, self._get(source))
        self._put(source, None)

    # ---- directories

    def list(self, path: str) -> list[str]:
        if not self.is_directory(path):
            raise _missing(path)
        names = set[str]()
        if self._is_below(path):
            names.update(name for name in self._below.list(path) if f"{path}/{name}" not in self._gone)
        for name, entry in self._changes.get(path, {}).items():
            if entry is None:
                names.discard(name)
            else:
                names.add(name)
        names.update(made.rpartition("/")[2] for made in self._made if made.rpartition("/")[0] == path)
        return sorted(names)

    def exists(self, path: str) -> bool:
        return self.is_directory(path) or self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        return path in self._made or self._is_below(path)

    def make_directory(self, path: str) -> None:
        while path and not self.is_directory(path):
            self._made.add(path)
            path = path.rpartition("/")[0]

    def remove_tree(self, path: str) -> None:
        if not self.is_directory(path):
            return
        for directory in [known for known in self._changes if known == path or known.startswith(path + "/")]:
            del self._changes[directory]
        self._made = {made for made in self._made if made != path and not made.startswith(path + "/")}
        self._gone.add(path)

    # ---- what a disk would do

    def sync_file(self, path: str) -> None:
        self._get(path)

    def sync_directory(self, path: str) -> None:
        """There is no disk above."""

    def make_read_only(self, path: str) -> None:
        self._get(path)

    def lock(self, path: str) -> Lock | None:
        """Take the lock below, which is a shared one."""
        return self._below.lock(path)

    def descriptor_limit(self) -> int:
        return self._below.descriptor_limit()

    def volume_bytes(self, path: str) -> tuple[int, int]:
        return self._below.volume_bytes(path)

    # ---- for open files

    def lift(self, entry: _Entry) -> None:
        """Have the bytes of a file in memory, where they can be changed."""
        if entry.below is not None:
            entry.data = bytearray(self._bytes_of(entry))
            entry.below = None
        entry.modified_ms = self._clock.wall_ms()

    def size_of(self, entry: _Entry) -> int:
        return len(entry.data) if entry.below is None else entry.size_bytes

    # ---- inside

    def _bytes_of(self, entry: _Entry) -> bytes:
        if entry.below is None:
            return bytes(entry.data)
        return self._below.read(entry.below)[: entry.size_bytes]

    def _find(self, path: str) -> _Entry | None:
        directory, _, name = path.rpartition("/")
        changes = self._changes.get(directory)
        if changes is not None and name in changes:
            return changes[name]
        if not self._is_below(directory) or not self._below.exists(path) or self._below.is_directory(path):
            return None
        return _Entry(path, self._below.size(path), 0)

    def _get(self, path: str) -> _Entry:
        entry = self._find(path)
        if entry is None:
            raise _missing(path)
        return entry

    def _put(self, path: str, entry: _Entry | None) -> None:
        directory, _, name = path.rpartition("/")
        self._changes.setdefault(directory, {})[name] = entry

    def _make(self, path: str) -> _Entry:
        if not self.is_directory(path.rpartition("/")[0]):
            raise _missing(path)
        entry = _Entry(None, 0, self._clock.wall_ms())
        self._put(path, entry)
        return entry

    def _is_below(self, path: str) -> bool:
        """Whether a directory is there below, and is still seen."""
        if self._gone:
            known = path
            while known:
                if known in self._gone:
                    return False
                known = known.rpartition("/")[0]
        return self._below.is_directory(path)

    def _rename_directory(self, source: str, target: str) -> None:
        """Move a directory's files; those from below stay where they are, under a new name."""
        if any(self.is_directory(f"{source}/{name}") for name in self.list(source)):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), source)
        moved = {name: self._get(f"{source}/{name}") for name in self.list(source)}
        self.remove_tree(source)
        self._made.add(target)
        self._changes[target] = {**moved}


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
