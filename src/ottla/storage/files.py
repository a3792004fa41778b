"""Everything that storage asks of the operating system.

`FileSystem` and `File` are the seam: tests hand in one that tears writes, a server hands in `LocalFileSystem`. No other
module of this room changes files, so what a crash can undo is decided here: data is safe after `File.sync`, a name
(created, renamed, removed) is safe after `sync_directory`, and `replace` does both.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Sequence
from typing import Final, Protocol

from mypy_extensions import mypyc_attr

from ottla.storage.file_locks import take_lock
from ottla.storage.preallocation import reserve

_NEW_FILE_MODE: Final = 0o644
_READ_ONLY_MODE: Final = 0o400
_RESIDENT_PROBE_FLAGS: Final = getattr(os, "RWF_NOWAIT", 0)
_NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_MOST_DESCRIPTORS: Final = 1 << 20
"""What the kernel lets a process have (fs.nr_open) unless somebody changed it."""


def is_out_of_descriptors(error: BaseException | None) -> bool:
    """True when a file could not be opened because too many are: nothing is lost, and it may work later."""
    return isinstance(error, OSError) and error.errno in _NO_DESCRIPTORS


def is_out_of_space(error: BaseException | None) -> bool:
    """True when something could not be written for want of room: what was written before is still there."""
    return isinstance(error, OSError) and error.errno in _NO_SPACE


def raise_descriptor_limit() -> int:
    """Let this process have as many open files as it may (its hard limit); returns how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # a kernel that allows less than it says
        return soft
    return wanted


class File(Protocol):
    """One open file that is appended to and read by position."""

    @property
    def descriptor(self) -> int: ...

    @property
    def sync_descriptor(self) -> int:
        """The descriptor by which the kernel may sync the file alone; -1 when only `sync` will do."""

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at the end. Raises `OSError`; then an unknown part of it may be there."""

    def append_all(self, parts: Sequence[memoryview | bytearray]) -> None:
        """Write several pieces at the end, one behind the other, with one call where there is one.

        Raises `OSError`; then an unknown part of them may be there.
        """

    def pread(self, size_bytes: int, position: int) -> bytes:
        """Return up to `size_bytes` from `position`; fewer only at the end of the file."""

    def size(self) -> int: ...

    def sync(self) -> None:
        """Return when the data, and the size it needs, would survive a power cut."""

    def truncate(self, size_bytes: int) -> None:
        """Shorten the file, and give back what was reserved behind its end."""

    def preallocate(self, size_bytes: int) -> None:
        """Reserve room on the disk for a file of this size, which keeps the size that it has. Raises `OSError`.

        Nothing happens where the system cannot do that.
        """

    def is_resident(self, position: int, size_bytes: int) -> bool:
        """False when reading the range could wait for the disk."""

    def close(self) -> None: ...


class Lock(Protocol):
    """An exclusive lock that the process holds until `release` or its end."""

    def release(self) -> None: ...


class FileSystem(Protocol):
    """The calls that storage makes. All raise `OSError`."""

    def open(self, path: str, *, create: bool = False) -> File: ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, data: bytes | bytearray | memoryview) -> None:
        """Make `path` hold exactly `data`. Not atomic and not synced: for files that can be rebuilt."""

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Make `path` hold `data` or, if the process dies, what it held before; with `durable`, on the disk too."""

    def list(self, path: str) -> list[str]: ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int:
        """When the file's content last changed, in ms since 1970."""

    def make_directory(self, path: str) -> None:
        """Make a directory and its missing parents; silent when it is there."""

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None:
        """Remove a file; silent when it is gone."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all that is in it; silent when it is gone."""

    def sync_file(self, path: str) -> None:
        """Sync a file that is not open."""

    def sync_directory(self, path: str) -> None:
        """Sync the names in a directory."""

    def make_read_only(self, path: str) -> None:
        """Give a finished file the mode 0400, as Kafka does with metadata snapshots."""

    def lock(self, path: str) -> Lock | None:
        """Take the exclusive lock of a file, or return None when another process holds it."""

    def descriptor_limit(self) -> int:
        """How many files this process may have open."""

    def volume_bytes(self, path: str) -> tuple[int, int]:
        """The size of the volume that holds `path`, and what is free of it; -1 where that cannot be told."""


@mypyc_attr(allow_interpreted_subclasses=True)
class LocalFile:
    """A `File` of the machine's own file system."""

    __slots__ = ("descriptor",)

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @property
    def sync_descriptor(self) -> int:
        return self.descriptor

    def append(self, data: bytes | bytearray | memoryview) -> None:
        written = os.write(self.descriptor, data)
        if written != len(data):
            self._append_rest(memoryview(data)[written:])

    def append_all(self, parts: Sequence[memoryview | bytearray]) -> None:
        written = os.writev(self.descriptor, parts)
        for part in parts:
            size_bytes = len(part)
            if written < size_bytes:
                self._append_rest(memoryview(part)[written:])
                written = size_bytes
            written -= size_bytes

    def _append_rest(self, rest: memoryview) -> None:
        """Go on after a short write; a disk that is really full answers the next one with ENOSPC."""
        while len(rest):
            written = os.write(self.descriptor, rest)  # not within the slice: mypyc 2.4.1 would call it twice
            rest = rest[written:]

    def pread(self, size_bytes: int, position: int) -> bytes:
        data = os.pread(self.descriptor, size_bytes, position)
        if len(data) == size_bytes or not data:
            return data
        return self._pread_rest(data, size_bytes, position)

    def _pread_rest(self, data: bytes, size_bytes: int, position: int) -> bytes:
        parts = [data]
        read = len(data)
        while read < size_bytes and (part := os.pread(self.descriptor, size_bytes - read, position + read)):
            parts.append(part)
            read += len(part)
        return b"".join(parts)

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def sync(self) -> None:
        os.fdatasync(self.descriptor)

    def truncate(self, size_bytes: int) -> None:
        os.ftruncate(self.descriptor, size_bytes)

    def preallocate(self, size_bytes: int) -> None:
        reserve(self.descriptor, size_bytes)

    def is_resident(self, position: int, size_bytes: int) -> bool:
        """Probe the first and the last byte with `RWF_NOWAIT`: what lies between was read or written with them."""
        if not _RESIDENT_PROBE_FLAGS:
            return True
        probe = [bytearray(1)]
        try:
            os.preadv(self.descriptor, probe, position, _RESIDENT_PROBE_FLAGS)
            os.preadv(self.descriptor, probe, position + size_bytes - 1, _RESIDENT_PROBE_FLAGS)
        except BlockingIOError:
            return False
        except OSError:  # a file system without RWF_NOWAIT: nothing to be learned, so read as if warm
            return True
        return True

    def close(self) -> None:
        os.close(self.descriptor)


class LocalLock:
    """A lock on a file, see `file_locks`; the kernel drops it with the process."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        os.close(self._descriptor)


@mypyc_attr(allow_interpreted_subclasses=True)
class LocalFileSystem:
    """The machine's own file system."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return LocalFile(os.open(path, flags, _NEW_FILE_MODE))

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write(self, path: str, data: bytes | bytearray | memoryview) -> None:
        with open(path, "wb") as file:
            file.write(data)

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        temporary = path + ".tmp"
        with open(temporary, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fdatasync(file.fileno())
        os.replace(temporary, path)
        if durable:
            self.sync_directory(os.path.dirname(path))

    def list(self, path: str) -> list[str]:
        return os.listdir(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        import shutil  # which brings along what a start can do without

        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def sync_file(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def make_read_only(self, path: str) -> None:
        os.chmod(path, _READ_ONLY_MODE)

    def lock(self, path: str) -> LocalLock | None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _NEW_FILE_MODE)
        if take_lock(descriptor, is_shared=False):
            return LocalLock(descriptor)
        os.close(descriptor)
        return None

    def descriptor_limit(self) -> int:
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    def volume_bytes(self, path: str) -> tuple[int, int]:
        try:
            found = os.statvfs(path)
        except OSError:
            return -1, -1
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
