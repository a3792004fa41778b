"""gzip as Java's streams read it, within a bound.

Members may follow each other; what comes after the last one and is none is ignored. zlib does the work, which stops at
a given size of output, and it is fed piece by piece, so that many tiny members cost no more than their length.
"""

from __future__ import annotations

import zlib
from typing import Final

from ottla.errors import InvalidRecord

_MAGIC: Final = b"\x1f\x8b"
_WINDOW: Final = 31  # zlib's way of asking for a gzip wrapper around the largest window
_PIECE_BYTES: Final = 16 * 1024
_FLAGS_AT: Final = 3
_RESERVED_FLAGS: Final = 0xE0


def deflate_gzip(data: bytes | bytearray | memoryview, level: int) -> bytes:
    """Return `data` as one member; level -1 is zlib's own choice."""
    return zlib.compress(data, level, _WINDOW)


def inflate_gzip(data: memoryview, limit_bytes: int) -> bytes:
    """Return what all members hold. Raises `InvalidRecord` for damage, and above `limit_bytes`."""
    packed = bytes(data)
    parts: list[bytes] = []
    left = limit_bytes
    position = 0
    while True:
        try:
            position, left = _inflate_member(packed, position, left, parts)
        except zlib.error as error:
            raise InvalidRecord(f"gzip data is damaged: {error}") from error
        if left < 0:
            raise InvalidRecord(f"the records inflate to more than {limit_bytes} bytes")
        if packed[position : position + 2] != _MAGIC:
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _inflate_member(packed: bytes, position: int, left: int, parts: list[bytes]) -> tuple[int, int]:
    """Add to `parts` what the member at `position` holds; return where it ends, and `left` less what it gave."""
    stream = zlib.decompressobj(_WINDOW)
    piece = _without_reserved_flags(packed[position : position + _PIECE_BYTES])
    while True:
        if not piece:
            raise InvalidRecord("a gzip stream is cut short")
        part = stream.decompress(piece, left + 1)
        parts.append(part)
        position += len(piece)
        left -= len(part)
        if stream.eof or left < 0:
            return position - len(stream.unused_data), left
        piece = packed[position : position + _PIECE_BYTES]


def _without_reserved_flags(piece: bytes) -> bytes:
    """Java does not look at these bits, zlib refuses them."""
    if len(piece) <= _FLAGS_AT or not piece[_FLAGS_AT] & _RESERVED_FLAGS:
        return piece
    return piece[:_FLAGS_AT] + bytes([piece[_FLAGS_AT] & ~_RESERVED_FLAGS]) + piece[_FLAGS_AT + 1 :]
