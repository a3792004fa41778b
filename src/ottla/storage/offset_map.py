"""`OffsetMap`: the newest offset of each key in the part of a log that is to be compacted, within a bound of memory."""

from __future__ import annotations

from hashlib import md5
from typing import Final

from ottla.model import NO_OFFSET

ENTRY_BYTES: Final = 160
"""What an entry costs here, about: a digest, an offset, and their places in a table that is two thirds full."""
_DIGEST_BYTES: Final = 16


class OffsetMap:
    """Keys to offsets. Long keys are known by their MD5 digest, as in Kafka: it takes no memory by length.

    `latest_offset` is how far the log has been read into the map.
    """

    __slots__ = ("_offsets", "capacity", "latest_offset")

    def __init__(self, memory_bytes: int) -> None:
        self.capacity = max(memory_bytes // ENTRY_BYTES, 1)
        self.latest_offset = NO_OFFSET
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self.capacity

    def put(self, key: bytes, offset: int) -> None:
        self._offsets[_short(key)] = offset

    def get(self, key: bytes) -> int:
        """Return the newest known offset of a key, -1 when there is none."""
        return self._offsets.get(_short(key), NO_OFFSET)


def _short(key: bytes) -> bytes:
    """Return a key of less than 16 bytes, or a digest of 16: the two cannot meet."""
    return key if len(key) < _DIGEST_BYTES else md5(key, usedforsecurity=False).digest()
