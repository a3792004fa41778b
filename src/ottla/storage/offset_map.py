"""`OffsetMap`: the newest offset of each key in the part of a log that is to be compacted, within a bound of memory."""

from __future__ import annotations

from hashlib import md5
from typing import Final

from ottla.model import NO_OFFSET

ENTRY_BYTES: Final = 144
"""What an entry costs beside its key, about: two objects, and their places in a table that is half full."""
LONGEST_KEY_BYTES: Final = 40
"""Longer keys are known by their digest; a UUID as text is shorter."""
_DIGEST_BYTES: Final = 16


class OffsetMap:
    """Keys to offsets. Long keys are known by their MD5 digest, as all are in Kafka.

    `latest_offset` is how far the log has been read into the map.
    """

    __slots__ = ("_offsets", "_room_bytes", "latest_offset")

    def __init__(self, memory_bytes: int) -> None:
        self.latest_offset = NO_OFFSET
        self._room_bytes = memory_bytes
        self._offsets: dict[bytes | int, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        """True when the memory is used up; the first key goes in, however little there is."""
        return self._room_bytes <= 0 and bool(self._offsets)

    def put(self, key: bytes, offset: int) -> None:
        size_bytes = len(key)
        offsets = self._offsets
        count = len(offsets)
        if size_bytes > LONGEST_KEY_BYTES:
            offsets[_digest(key)] = offset
            size_bytes = _DIGEST_BYTES
        else:
            offsets[key] = offset
        if len(offsets) != count:
            self._room_bytes -= ENTRY_BYTES + size_bytes

    def get(self, key: bytes) -> int:
        """Return the newest known offset of a key, -1 when there is none."""
        return self._offsets.get(_digest(key) if len(key) > LONGEST_KEY_BYTES else key, NO_OFFSET)


def _digest(key: bytes) -> int:
    """Return the digest of a long key as a number, which equals no key."""
    return int.from_bytes(md5(key, usedforsecurity=False).digest(), "big")
