"""Snappy as Kafka writes it: in the framing of snappy-java, called xerial.

A stream is a 16-byte header (magic, version 1, oldest compatible version 1; readers look at the magic only), then
blocks of a 4-byte big-endian length and that many bytes of raw snappy. A header may stand again between blocks, since
streams can be joined. Input without the header is one block of raw snappy, which is how snappy-java reads what other
libraries wrote.
"""

from __future__ import annotations

import struct
from typing import Final

from cramjam import DecompressionError, snappy

from ottla.errors import InvalidRecord

_MAGIC: Final = b"\x82SNAPPY\x00"
_HEADER: Final = _MAGIC + struct.pack(">ii", 1, 1)
_HEADER_BYTES: Final = 16
_MAGIC_INT: Final = int.from_bytes(_MAGIC[:4], "big", signed=True)
_BLOCK_BYTES: Final = 32 * 1024
_INT: Final = struct.Struct(">i")


def deflate_snappy(data: bytes | bytearray | memoryview) -> bytes:
    """Return `data` in xerial framing, in blocks of 32 KiB."""
    view = memoryview(data)
    parts: list[bytes] = [_HEADER]
    for position in range(0, len(view), _BLOCK_BYTES):
        packed = bytes(snappy.compress_raw(view[position : position + _BLOCK_BYTES]))
        parts += (_INT.pack(len(packed)), packed)
    return b"".join(parts)


def inflate_snappy(data: memoryview, limit_bytes: int) -> bytes:
    """Return what `data` holds. Raises `InvalidRecord` where snappy-java fails, and above `limit_bytes`."""
    header = bytes(data[:_HEADER_BYTES])
    if len(header) < _HEADER_BYTES or header[:8] != _MAGIC:
        return _inflate_block(data, limit_bytes)
    parts: list[bytes] = []
    left = limit_bytes
    position = _HEADER_BYTES
    end = len(data)
    while position < end:
        if end - position < _INT.size:
            break  # too little for another block; snappy-java takes that for the end
        size: int = _INT.unpack_from(data, position)[0]
        if size == _MAGIC_INT and bytes(data[position : position + 8]) == _MAGIC:
            position += _HEADER_BYTES
            continue
        position += 4
        if size < 0 or size > end - position:
            raise InvalidRecord(f"a snappy block of {size} bytes, with {end - position} bytes left")
        part = _inflate_block(data[position : position + size], left)
        position += size
        left -= len(part)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _inflate_block(block: memoryview, limit_bytes: int) -> bytes:
    """The raw format begins with the inflated size, so nothing is allocated that is not allowed."""
    try:
        if snappy.decompress_raw_len(block) > limit_bytes:
            raise InvalidRecord(f"the records inflate to more than {limit_bytes} bytes")
        return bytes(snappy.decompress_raw(block))
    except DecompressionError as error:
        raise InvalidRecord(f"snappy data is damaged: {error}") from error
