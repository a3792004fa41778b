"""File systems that go wrong where they are told to.

`FaultyFileSystem` passes every call on to another file system and counts those that change something. At a chosen one
it ends: `PowerCut` comes out of that call, of an append any prefix was written, and nothing is done any more. What is
left then is asked from the file system beneath. It may also fail a call with an errno, as full or broken disks do, once
or from there on.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from random import Random

from ottla.storage.files import File, FileSystem, Lock


class PowerCut(BaseException):
    """The end of everything, in the middle of a call. No `except Exception` may catch it."""


class Faults:
    """What goes wrong, and when. Calls are counted from 0."""

    __slots__ = ("calls", "cut_at", "error", "fails", "is_cut", "random")

    def __init__(self, random: Random, cut_at: int | None = None) -> None:
        self.random = random
        self.calls = 0
        self.cut_at = cut_at
        """The call that is the last one."""
        self.is_cut = False
        self.error = errno.EIO
        self.fails: Callable[[str, str], bool] | None = None
        """Asked with the name of each call and its path: True makes it fail with `error`."""

    def meet(self, call: str, path: str) -> bool:
        """Count a call; True when it is the last one. Raises `OSError` and, behind the last one, `PowerCut`."""
        if self.is_cut:
            raise PowerCut
        self.check(call, path)
        self.is_cut = self.calls == self.cut_at
        self.calls += 1
        return self.is_cut

    def check(self, call: str, path: str) -> None:
        """Let a call that changes nothing fail, too. Raises `OSError`."""
        if self.fails is not None and self.fails(call, path):
            raise OSError(self.error, os.strerror(self.error), path)


class FaultyFile:
    """A file whose changes are counted, and go wrong."""

    __slots__ = ("_faults", "_file", "_path")

    def __init__(self, file: File, path: str, faults: Faults) -> None:
        self._file = file
        self._path = path
        self._faults = faults

    @property
    def sync_descriptor(self) -> int:
        return -1

    @property
    def descriptor(self) -> int:
        return self._file.descriptor

    def append(self, data: bytes | bytearray | memoryview) -> None:
        try:
            is_last = self._faults.meet("append", self._path)
        except OSError:
            self._file.append(memoryview(data)[: self._faults.random.randrange(len(data))])
            raise
        if is_last:
            self._file.append(memoryview(data)[: self._faults.random.randrange(len(data) + 1)])
            raise PowerCut
        self._file.append(data)

    def append_all(self, parts: Sequence[memoryview | bytearray]) -> None:
        for part in parts:
            self.append(part)

    def pread(self, size_bytes: int, position: int) -> bytes:
        self._faults.check("pread", self._path)
        return self._file.pread(size_bytes, position)

    def size(self) -> int:
        return self._file.size()

    def sync(self) -> None:
        if self._faults.meet("sync", self._path):
            raise PowerCut
        self._file.sync()

    def truncate(self, size_bytes: int) -> None:
        if self._faults.meet("truncate", self._path):
            raise PowerCut
        self._file.truncate(size_bytes)

    def preallocate(self, size_bytes: int) -> None:
        self._faults.check("preallocate", self._path)
        self._file.preallocate(size_bytes)

    def is_resident(self, position: int, size_bytes: int) -> bool:
        return self._file.is_resident(position, size_bytes)

    def close(self) -> None:
        self._file.close()


class FaultyFileSystem:
    """A file system whose changes are counted, and go wrong."""

    __slots__ = ("_files", "faults")

    def __init__(self, files: FileSystem, faults: Faults) -> None:
        self._files = files
        self.faults = faults

    def open(self, path: str, *, create: bool = False) -> FaultyFile:
        self.faults.check("open", path)
        if create and not self._files.exists(path):
            self._meet("create", path)
        return FaultyFile(self._files.open(path, create=create), path, self.faults)

    def read(self, path: str) -> bytes:
        return self._files.read(path)

    def write(self, path: str, data: bytes | bytearray | memoryview) -> None:
        if self.faults.meet("write", path):
            self._files.write(path, memoryview(data)[: self.faults.random.randrange(len(data) + 1)])
            raise PowerCut
        self._files.write(path, data)

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """The steps of a replacement one by one, as each may be the last."""
        temporary = path + ".tmp"
        self.remove(temporary)
        self.write(temporary, data)
        if durable:
            self.sync_file(temporary)
        self.rename(temporary, path)
        if durable:
            self.sync_directory(os.path.dirname(path))

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

    def make_directory(self, path: str) -> None:
        if not self._files.is_directory(path):
            self._meet("make_directory", path)
        self._files.make_directory(path)

    def rename(self, source: str, target: str) -> None:
        self._meet("rename", source)
        self._files.rename(source, target)

    def remove(self, path: str) -> None:
        if self._files.exists(path):
            self._meet("remove", path)
        self._files.remove(path)

    def remove_tree(self, path: str) -> None:
        if self._files.exists(path):
            self._meet("remove_tree", path)
        self._files.remove_tree(path)

    def sync_file(self, path: str) -> None:
        self._meet("sync_file", path)
        self._files.sync_file(path)

    def sync_directory(self, path: str) -> None:
        self._meet("sync_directory", path)
        self._files.sync_directory(path)

    def make_read_only(self, path: str) -> None:
        self._files.make_read_only(path)

    def lock(self, path: str) -> Lock | None:
        return self._files.lock(path)

    def descriptor_limit(self) -> int:
        return self._files.descriptor_limit()

    def volume_bytes(self, path: str) -> tuple[int, int]:
        return self._files.volume_bytes(path)

    def _meet(self, call: str, path: str) -> None:
        if self.faults.meet(call, path):
            raise PowerCut
