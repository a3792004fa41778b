"""A disk of a few megabytes: files and directories are real, and what is more than the disk's size is refused.

Counts blocks of 4 KiB, as file systems do: a file's last block has room for a few more bytes when the disk is full, and
blocks that a file has reserved are its own. A write that does not fit is written as far as it does. Threads come here
as well, so what is gone through is a copy.
"""

from __future__ import annotations

import errno
import os

from ottla.storage.files import LocalFile, LocalFileSystem

BLOCK_BYTES = 4096


class SmallDisk(LocalFileSystem):
    """A file system with room for `blocks` blocks in all."""

    __slots__ = ("_blocks", "_reserved", "_used")

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self._used: dict[str, int] = {}
        """Blocks of each file or directory."""
        self._reserved: dict[str, int] = {}

    @property
    def free_blocks(self) -> int:
        return self._blocks - sum(list(self._used.values()))

    def take(self, path: str, size_bytes: int) -> None:
        """Have a file of this size. Raises `OSError` where it does not fit."""
        wanted = max(-(-size_bytes // BLOCK_BYTES), self._reserved.get(path, 0))
        if wanted - self._used.get(path, 0) > self.free_blocks:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self._used[path] = wanted

    def room_for(self, path: str) -> int:
        """How many bytes a file may have now."""
        return (self._used.get(path, 0) + self.free_blocks) * BLOCK_BYTES

    def reserve(self, path: str, size_bytes: int) -> None:
        self.take(path, size_bytes)
        self._reserved[path] = -(-size_bytes // BLOCK_BYTES)

    def give_up_reserve(self, path: str, size_bytes: int) -> None:
        """A file is cut: what it had reserved goes as well."""
        self._reserved.pop(path, None)
        self.take(path, size_bytes)

    def open(self, path: str, *, create: bool = False) -> SmallDiskFile:
        if create and not self.exists(path):
            self.take(path, 0)
        return SmallDiskFile(super().open(path, create=create).descriptor, path, self)

    def write(self, path: str, data: bytes | bytearray | memoryview) -> None:
        self.take(path, len(data))
        super().write(path, data)

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.take(path + ".tmp", len(data))
        super().replace(path, data, durable=durable)
        self._used[path] = self._used.pop(path + ".tmp")

    def make_directory(self, path: str) -> None:
        if not self.exists(path):
            self.take(path, BLOCK_BYTES)
        super().make_directory(path)

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        for blocks in (self._used, self._reserved):
            for path in [path for path in list(blocks) if path == source or path.startswith(source + "/")]:
                blocks[target + path.removeprefix(source)] = blocks.pop(path)

    def remove(self, path: str) -> None:
        super().remove(path)
        self._forget(path)

    def remove_tree(self, path: str) -> None:
        super().remove_tree(path)
        self._forget(path)

    def _forget(self, gone: str) -> None:
        for blocks in (self._used, self._reserved):
            for path in [path for path in list(blocks) if path == gone or path.startswith(gone + "/")]:
                del blocks[path]

    def volume_bytes(self, path: str) -> tuple[int, int]:
        return self._blocks * BLOCK_BYTES, self.free_blocks * BLOCK_BYTES


class SmallDiskFile(LocalFile):
    """A file on it."""

    __slots__ = ("_disk", "_path")

    def __init__(self, descriptor: int, path: str, disk: SmallDisk) -> None:
        super().__init__(descriptor)
        self._path = path
        self._disk = disk

    @property
    def sync_descriptor(self) -> int:
        return -1

    def append(self, data: bytes | bytearray | memoryview) -> None:
        end = self.size() + len(data)
        try:
            self._disk.take(self._path, end)
        except OSError:
            room = self._disk.room_for(self._path)
            self._disk.take(self._path, room)
            super().append(memoryview(data)[: room - self.size()])
            raise
        super().append(data)

    def truncate(self, size_bytes: int) -> None:
        super().truncate(size_bytes)
        self._disk.give_up_reserve(self._path, size_bytes)

    def preallocate(self, size_bytes: int) -> None:
        self._disk.reserve(self._path, size_bytes)
