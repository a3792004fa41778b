"""`MetadataRecoveryPoint`: up to where the metadata log is on disk, known on disk before anybody hears of it.

After a power cut the newest part of a log may have holes with whole batches behind them. Whether such a hole took
something that was acknowledged, only this file tells: every flush of the metadata log adds an entry before its records
are answered. Kafka has nothing like it, leaves the file alone, and cuts at any hole.

The file has entries of 16 bytes, big-endian: offset (8), leader epoch (4), CRC-32C of both (4). The last whole one
counts, and only while `quorum-state` has the same epoch: else another broker has written since.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from ottla.records.crc32c import crc32c
from ottla.storage.files import FileSystem, is_out_of_descriptors

FILE_NAME: Final = "recovery-point"
_ENTRY: Final = struct.Struct(">qi")
_CRC: Final = struct.Struct(">I")
_ENTRY_BYTES: Final = _ENTRY.size + _CRC.size
_MOST_ENTRIES: Final = 4096
"""As many are added before the file is begun anew."""


class RecoveryPoint(NamedTuple):
    """All records below `offset` were on disk, as a broker of this epoch knew."""

    offset: int
    leader_epoch: int


class MetadataRecoveryPoint:
    """The file in one directory. `read` at a start, `begin` with an epoch, then `advance` on the threads of flushes."""

    __slots__ = ("_count", "_filesystem", "_leader_epoch", "_offset", "path")

    def __init__(self, filesystem: FileSystem, directory: str) -> None:
        self.path = f"{directory}/{FILE_NAME}"
        self._filesystem = filesystem
        self._leader_epoch = 0
        self._offset = -1
        self._count = 0

    def read(self) -> RecoveryPoint | None:
        """Return the newest entry, None where there is none. Raises `OSError`."""
        if not self._filesystem.exists(self.path):
            return None
        data = self._filesystem.read(self.path)
        newest: RecoveryPoint | None = None
        for position in range(0, len(data) - _ENTRY_BYTES + 1, _ENTRY_BYTES):
            entry = data[position : position + _ENTRY_BYTES]
            if entry != _seal(entry[: _ENTRY.size]):
                break
            newest = RecoveryPoint(*_ENTRY.unpack_from(entry))
        return newest

    def begin(self, offset: int, leader_epoch: int) -> None:
        """Begin the file anew; durable on return. Raises `OSError`."""
        self._leader_epoch = leader_epoch
        self._replace(offset)

    def advance(self, offset: int) -> None:
        """Note that all below an offset is on disk; durable on return.

        Where that cannot be written, the file goes: then nothing counts as not acknowledged. Raises `OSError` where
        that cannot be either, or for want of a descriptor, which waiting may bring.
        """
        if offset <= self._offset:
            return
        try:
            if self._offset < 0 or self._count >= _MOST_ENTRIES:
                self._replace(offset)
            else:
                self._append(offset)
        except OSError as error:
            if is_out_of_descriptors(error):
                raise
            self._withdraw()

    def _append(self, offset: int) -> None:
        file = self._filesystem.open(self.path)
        try:
            file.append(_seal(_ENTRY.pack(offset, self._leader_epoch)))
            file.sync()
        finally:
            file.close()
        self._offset = offset
        self._count += 1

    def _replace(self, offset: int) -> None:
        self._filesystem.replace(self.path, _seal(_ENTRY.pack(offset, self._leader_epoch)))
        self._offset, self._count = offset, 1

    def _withdraw(self) -> None:
        self._offset = -1
        self._filesystem.remove(self.path)
        self._filesystem.sync_directory(self.path.rpartition("/")[0])


def _seal(entry: bytes) -> bytes:
    """Return an entry with its checksum."""
    return entry + _CRC.pack(crc32c(entry))
