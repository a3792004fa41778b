"""`MemoryFileSystem`: files in memory that know what a power cut would leave of them.

Written data is in the page cache until its file is synced; a name (made, renamed, removed) is in the page cache until
its directory is. `kill` gives the file system as another process would find it: everything that was written is there.
`cut_power` gives one as the disk might have it: of what was not synced, any part, in any order. A file that was
appended to may have any prefix of the new bytes, zeros in their place, or a hole of zeros before the last of them; one
that was rewritten may have the old content, the new, or a part of it; of the names, any subset of the changes may have
been made, but a rename is whole or not at all.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from random import Random

from ottla.clock import Clock

_DESCRIPTORS = 100_000


class _Inode:
    """A file's content, as it is and as it is surely on disk."""

    __slots__ = ("_unwritten", "data", "durable", "modified_ms")

    def __init__(self, data: bytes = b"", durable: bytes = b"") -> None:
        self.data = bytearray(data)
        self.durable = durable
        self.modified_ms = 0
        self._unwritten: list[slice] = []
        """What the system takes for written, and is not on disk."""

    def sync(self) -> None:
        self.durable = self._as_written()

    def fail_sync(self) -> None:
        """Forget that anything waits to be written, as Linux does after it has told of an error."""
        begin = len(self.durable) if self.data.startswith(self.durable) else 0
        self._unwritten.append(slice(begin, len(self.data)))

    def rewrite(self, data: bytes | bytearray | memoryview) -> None:
        self.data[:] = data
        self._unwritten.clear()

    def truncate(self, size_bytes: int) -> None:
        del self.data[size_bytes:]
        self._unwritten = [
            slice(one.start, min(one.stop, size_bytes)) for one in self._unwritten if one.start < size_bytes
        ]

    def _as_written(self) -> bytes:
        """Return what the disk would have after a sync."""
        data = bytearray(self.data)
        for one in self._unwritten:
            data[one] = self.durable[one].ljust(one.stop - one.start, b"\0")
        return bytes(data)

    def after_power_cut(self, dice: Random) -> _Inode:
        content = self._torn(dice)
        return _Inode(content, content)

    def _torn(self, dice: Random) -> bytes:
        data, durable = self._as_written(), self.durable
        if data == durable:
            return durable
        if durable.startswith(data):  # it was shortened
            return dice.choice((durable, data))
        if not data.startswith(durable):
            return dice.choice((durable, data, data[: dice.randrange(len(data) + 1)], bytes(len(data))))
        unsynced = data[len(durable) :]
        kept = dice.choice((0, len(unsynced), dice.randrange(len(unsynced) + 1)))
        chosen = dice.random()
        if chosen < 1 / 4:  # the size is there, the blocks are not
            return durable + unsynced[:kept] + bytes(len(unsynced) - kept)
        if chosen < 1 / 2:  # later blocks are there, an earlier one is not
            hole = dice.randrange(len(unsynced) - kept + 1)
            return durable + unsynced[:kept] + bytes(hole) + unsynced[kept + hole :]
        return durable + unsynced[:kept]


class _NameChange:
    """One change of names that its directory has not been synced for. `inode` None: `path` is removed."""

    __slots__ = ("inode", "path", "source")

    def __init__(self, path: str, inode: _Inode | None, source: str | None = None) -> None:
        self.path = path
        self.inode = inode
        self.source = source

    def apply(self, names: dict[str, _Inode]) -> None:
        if self.source is not None and names.pop(self.source, None) is None:
            return  # the file was never there under its old name
        if self.inode is None:
            names.pop(self.path, None)
        else:
            names[self.path] = self.inode


class MemoryFile:
    """A `File` in memory."""

    __slots__ = ("_clock", "_files", "_inode", "_path", "descriptor", "sync_descriptor")

    def __init__(self, files: MemoryFileSystem, path: str, inode: _Inode, descriptor: int, clock: Clock) -> None:
        self._files = files
        self._path = path
        self._inode = inode
        self._clock = clock
        self.descriptor = descriptor
        self.sync_descriptor = -1

    def append(self, data: bytes | bytearray | memoryview) -> None:
        self._inode.data += data
        self._inode.modified_ms = self._clock.wall_ms()

    def append_all(self, parts: Sequence[memoryview | bytearray]) -> None:
        for part in parts:
            self.append(part)

    def pread(self, size_bytes: int, position: int) -> bytes:
        return bytes(self._inode.data[position : position + size_bytes])

    def size(self) -> int:
        return len(self._inode.data)

    def sync(self) -> None:
        self._files.sync_inode(self._path, self._inode)

    def truncate(self, size_bytes: int) -> None:
        self._inode.truncate(size_bytes)

    def preallocate(self, size_bytes: int) -> None: ...

    def is_resident(self, position: int, size_bytes: int) -> bool:
        return True

    def close(self) -> None: ...


class MemoryLock:
    """A lock that lasts until its release."""

    __slots__ = ("_held", "_path")

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class MemoryFileSystem:
    """A `storage.files.FileSystem` in memory. Directories are durable at once: nothing here depends on theirs."""

    __slots__ = ("_changes", "_clock", "_directories", "_durable_names", "_locks", "_names", "_opened", "sync_fails")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._names: dict[str, _Inode] = {}
        self._durable_names: dict[str, _Inode] = {}
        self._changes: list[_NameChange] = []
        self._directories: set[str] = {"/"}
        self._locks: set[str] = set()
        self._opened = 0
        self.sync_fails: Callable[[str], bool] | None = None
        """Asked with the path at each sync of a file: True makes it fail."""

    # ---- what a crash leaves

    def kill(self) -> MemoryFileSystem:
        """Return what is there after the process has died: all of it."""
        found = self._successor(self._names)
        found._durable_names = dict(self._durable_names)
        found._changes = list(self._changes)
        return found

    def cut_power(self, dice: Random) -> MemoryFileSystem:
        """Return what may be on the disk after a power cut."""
        names = dict(self._durable_names)
        for change in self._changes:
            if dice.random() < 1 / 2:
                change.apply(names)
        torn = {id(inode): inode.after_power_cut(dice) for inode in names.values()}
        survivors = {path: torn[id(inode)] for path, inode in names.items()}
        found = self._successor(survivors)
        found._durable_names = dict(survivors)
        return found

    def _successor(self, names: dict[str, _Inode]) -> MemoryFileSystem:
        found = MemoryFileSystem(self._clock)
        found._names = dict(names)
        found._directories = set(self._directories)
        return found

    # ---- the calls of storage

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        inode = self._names.get(path)
        if inode is None:
            if not create:
                raise _missing(path)
            inode = self._make(path)
        self._opened += 1
        return MemoryFile(self, path, inode, _DESCRIPTORS + self._opened, self._clock)

    def read(self, path: str) -> bytes:
        return bytes(self._inode(path).data)

    def write(self, path: str, data: bytes | bytearray | memoryview) -> None:
        inode = self._names.get(path) or self._make(path)
        inode.rewrite(data)
        inode.modified_ms = self._clock.wall_ms()

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        temporary = path + ".tmp"
        self._names.pop(temporary, None)
        self.write(temporary, data)
        if durable:
            self.sync_file(temporary)
        self.rename(temporary, path)
        if durable:
            self.sync_directory(os.path.dirname(path))

    def list(self, path: str) -> list[str]:
        if path not in self._directories:
            raise _missing(path)
        prefix = path.rstrip("/") + "/"
        entries = [*self._names, *self._directories]
        return sorted({name[len(prefix) :].split("/")[0] for name in entries if name.startswith(prefix)} - {""})

    def exists(self, path: str) -> bool:
        return path in self._names or path in self._directories

    def is_directory(self, path: str) -> bool:
        return path in self._directories

    def size(self, path: str) -> int:
        return len(self._inode(path).data)

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def make_directory(self, path: str) -> None:
        while path not in self._directories:
            self._directories.add(path)
            path = os.path.dirname(path)

    def rename(self, source: str, target: str) -> None:
        if source in self._directories:
            self._rename_directory(source, target)
            return
        inode = self._inode(source)
        self._check_parent(target)
        del self._names[source]
        self._names[target] = inode
        self._changes.append(_NameChange(target, inode, source))

    def remove(self, path: str) -> None:
        if self._names.pop(path, None) is not None:
            self._changes.append(_NameChange(path, None))

    def remove_tree(self, path: str) -> None:
        for name in self._below(path, self._names):
            self.remove(name)
        self._directories -= {path, *self._below(path, self._directories)}

    def sync_file(self, path: str) -> None:
        self.sync_inode(path, self._inode(path))

    def sync_inode(self, path: str, inode: _Inode) -> None:
        """Sync a file, or fail as a broken disk does: once, and what was not written then never will be."""
        if self.sync_fails is not None and self.sync_fails(path):
            inode.fail_sync()
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        inode.sync()

    def sync_directory(self, path: str) -> None:
        if path not in self._directories:
            raise _missing(path)
        waiting = self._changes
        self._changes = [change for change in waiting if os.path.dirname(change.path) != path]
        for change in waiting:
            if os.path.dirname(change.path) == path:
                change.apply(self._durable_names)

    def make_read_only(self, path: str) -> None:
        self._inode(path)

    def lock(self, path: str) -> MemoryLock | None:
        if path in self._locks:
            return None
        self._locks.add(path)
        return MemoryLock(self._locks, path)

    def descriptor_limit(self) -> int:
        return 1024

    def volume_bytes(self, path: str) -> tuple[int, int]:
        return -1, -1

    # ---- inside

    def _inode(self, path: str) -> _Inode:
        inode = self._names.get(path)
        if inode is None:
            raise _missing(path)
        return inode

    def _make(self, path: str) -> _Inode:
        self._check_parent(path)
        inode = self._names[path] = _Inode()
        inode.modified_ms = self._clock.wall_ms()
        self._changes.append(_NameChange(path, inode))
        return inode

    def _check_parent(self, path: str) -> None:
        if os.path.dirname(path) not in self._directories:
            raise _missing(path)

    def _rename_directory(self, source: str, target: str) -> None:
        """Move a whole directory, durably: its files keep what is and is not synced of them."""
        for names in (self._names, self._durable_names):
            for name in self._below(source, names):
                names[target + name[len(source) :]] = names.pop(name)
        for change in self._changes:
            change.path = _moved(change.path, source, target)
            change.source = None if change.source is None else _moved(change.source, source, target)
        self._directories -= {source}
        self.make_directory(target)

    @staticmethod
    def _below(path: str, names: Iterable[str]) -> Sequence[str]:
        return [name for name in names if name.startswith(path + "/")]


def _moved(path: str, source: str, target: str) -> str:
    return target + path[len(source) :] if path.startswith(source + "/") else path


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
