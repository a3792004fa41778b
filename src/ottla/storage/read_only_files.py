"""`ReadOnlyFiles`: the machine's own files for whoever must not change them, not even a time of theirs.

Has only what reads. Files are opened for reading, so that mounts and directories without write permission will do, and
the lock of a directory is shared: any number may read while nobody writes. Where there is no lock file none is made:
a directory that a broker is using has one.
"""

from __future__ import annotations

import os
from typing import Protocol

from ottla.storage.file_locks import take_lock
from ottla.storage.files import File, LocalFile, LocalFileSystem, LocalLock, Lock


class ReadableFiles(Protocol):
    """Those calls of `files.FileSystem` that change nothing. All raise `OSError`."""

    def open(self, path: str) -> File: ...

    def read(self, path: str) -> bytes: ...

    def list(self, path: str) -> list[str]: ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def lock(self, path: str) -> Lock | None:
        """Take the shared lock of a file, or return None when somebody has it for writing."""

    def descriptor_limit(self) -> int: ...

    def volume_bytes(self, path: str) -> tuple[int, int]: ...


class _NoLock:
    """Stands for the lock of a directory that has no lock file."""

    __slots__ = ()

    def release(self) -> None:
        """There is nothing to give up."""


class ReadOnlyFiles:
    """`ReadableFiles` of this machine."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files = LocalFileSystem()

    def open(self, path: str) -> LocalFile:
        return LocalFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def read(self, path: str) -> bytes:
        return self._files.read(path)

    def list(self, path: str) -> list[str]:
        return self._files.list(path)

    def exists(self, path: str) -> bool:
        return self._files.exists(path)

    def is_directory(self, path: str) -> bool:
        return self._files.is_directory(path)

    def size(self, path: str) -> int:
        return self._files.size(path)

    def modified_ms(self, path: str) -> int:
        return self._files.modified_ms(path)

    def lock(self, path: str) -> Lock | None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return _NoLock()
        if take_lock(descriptor, is_shared=True):
            return LocalLock(descriptor)
        os.close(descriptor)
        return None

    def descriptor_limit(self) -> int:
        return self._files.descriptor_limit()

    def volume_bytes(self, path: str) -> tuple[int, int]:
        return self._files.volume_bytes(path)


def open_anonymous(data: bytes | bytearray) -> LocalFile:
    """Return a file without a name that holds `data` in memory until it is closed (Linux, FreeBSD)."""
    file = LocalFile(os.memfd_create("ottla", os.MFD_CLOEXEC))
    file.append(data)
    return file
