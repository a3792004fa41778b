"""`SegmentSpan`: one read on its way to a socket, the local form of `engine.FileSpan`."""

from __future__ import annotations

from typing import final

from ottla.storage.open_files import SegmentFile


@final
class SegmentSpan:
    """A run of bytes in a segment file that stays open until `release`."""

    __slots__ = ("_file", "file_descriptor", "position", "size_bytes")

    def __init__(self, file: SegmentFile, position: int, size_bytes: int) -> None:
        self._file = file
        self.file_descriptor = file.lease().descriptor
        self.position = position
        self.size_bytes = size_bytes

    @property
    def is_resident(self) -> bool:
        return self._file.get().is_resident(self.position, self.size_bytes)

    def read(self) -> bytes:
        """Return the bytes. May run on another thread: the lease keeps the file open."""
        return self._file.get().pread(self.size_bytes, self.position)

    def release(self) -> None:
        self._file.release()
