"""LZ4 frames, block by block, with the rules of Kafka's own reader and writer.

Kafka takes less than the LZ4 frame format allows: version 1, independent blocks, no dictionary, one frame; it checks
the header checksum and block checksums, and does not check a content size or content checksum. Message sets of magic 0
were written with a header checksum that also covers the magic number (KAFKA-3160), so theirs is not looked at.

Going block by block also bounds what a frame can inflate to: no block is larger than 4 MiB.
"""

from __future__ import annotations

import struct
from typing import Final

from cramjam import DecompressionError, lz4

from ottla.errors import InvalidRecord
from ottla.records.xxhash32 import xxhash32

_MAGIC: Final = b"\x04\x22\x4d\x18"
_BLOCK_BYTES: Final = 64 * 1024
_LIKELY_RATIO: Final = 8
_STORED_BIT: Final = 0x80000000
_INT: Final = struct.Struct("<I")

_DESCRIPTOR: Final = b"\x60\x40"  # version 1, independent blocks, no checksums; blocks of up to 64 KiB
_HEADER: Final = _MAGIC + _DESCRIPTOR + bytes([xxhash32(_DESCRIPTOR) >> 8 & 0xFF])
_END_MARK: Final = bytes(4)

_CONTENT_CHECKSUM_BIT: Final = 0x04
_CONTENT_SIZE_BIT: Final = 0x08
_BLOCK_CHECKSUM_BIT: Final = 0x10
_INDEPENDENT_BIT: Final = 0x20

FAST_LEVEL: Final = 9
"""Kafka's default level, at which it uses the fast compressor; every other level is a high-compression one."""


def deflate_lz4(data: bytes | bytearray | memoryview, level: int = FAST_LEVEL) -> bytes:
    """Return `data` as one frame of independent 64 KiB blocks, as Kafka's producers write it."""
    view = memoryview(data)
    parts: list[bytes] = [_HEADER]
    for position in range(0, len(view), _BLOCK_BYTES):
        block = view[position : position + _BLOCK_BYTES]
        packed = _deflate_block(block, level)
        if len(packed) < len(block):
            parts += (_INT.pack(len(packed)), packed)
        else:
            parts += (_INT.pack(len(block) | _STORED_BIT), bytes(block))
    parts.append(_END_MARK)
    return b"".join(parts)


def _deflate_block(block: memoryview, level: int) -> bytes:
    if level == FAST_LEVEL:
        return bytes(lz4.compress_block(block, store_size=False))
    return bytes(lz4.compress_block(block, mode="high_compression", compression=level, store_size=False))


def inflate_lz4(data: memoryview, limit_bytes: int, *, check_header: bool = True) -> bytes:
    """Return what the frame at the start of `data` holds; what follows it is ignored.

    Raises `InvalidRecord` where Kafka refuses the frame, and above `limit_bytes`.
    """
    flags, max_block_bytes, position = _read_header(data, check_header)
    parts: list[bytes] = []
    total = 0
    while True:
        word = _read_int(data, position)
        position += 4
        size = word & ~_STORED_BIT
        if size == 0:
            break
        if size > max_block_bytes:
            raise InvalidRecord(f"an LZ4 block of {size} bytes, above the frame's own limit of {max_block_bytes}")
        block = data[position : position + size]
        if len(block) < size:
            raise InvalidRecord("an LZ4 frame is cut short")
        position += size
        if flags & _BLOCK_CHECKSUM_BIT:
            if xxhash32(bytes(block)) != _read_int(data, position):
                raise InvalidRecord("an LZ4 block fails its checksum")
            position += 4
        part = bytes(block) if word & _STORED_BIT else _inflate_block(block, max_block_bytes)
        total += len(part)
        if total > limit_bytes:
            raise InvalidRecord(f"the records inflate to more than {limit_bytes} bytes")
        parts.append(part)
    if flags & _CONTENT_CHECKSUM_BIT:
        _read_int(data, position)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _read_header(data: memoryview, check_header: bool) -> tuple[int, int, int]:
    """Return the flags, the largest block that the frame may have, and where its blocks begin."""
    if bytes(data[:4]) != _MAGIC:
        raise InvalidRecord("not an LZ4 frame")
    if len(data) < 7:
        raise InvalidRecord("an LZ4 frame is cut short")
    flags, size_code = data[4], data[5]
    if flags >> 6 != 1 or flags & 0x03 or not flags & _INDEPENDENT_BIT:
        raise InvalidRecord(f"LZ4 frame flags {flags:#04x}: only independent blocks of version 1 are read")
    if size_code & 0x8F or size_code >> 4 < 4:
        raise InvalidRecord(f"an LZ4 frame with the block size code {size_code:#04x}")
    end = 14 if flags & _CONTENT_SIZE_BIT else 6
    if len(data) <= end:
        raise InvalidRecord("an LZ4 frame is cut short")
    if check_header and xxhash32(bytes(data[4:end])) >> 8 & 0xFF != data[end]:
        raise InvalidRecord("an LZ4 frame header fails its checksum")
    return flags, 1 << (8 + 2 * (size_code >> 4)), end + 1


def _read_int(data: memoryview, position: int) -> int:
    if len(data) - position < 4:
        raise InvalidRecord("an LZ4 frame is cut short")
    value: int = _INT.unpack_from(data, position)[0]
    return value


def _inflate_block(block: memoryview, max_block_bytes: int) -> bytes:
    """Inflate into a guess first: some clients declare 4 MiB and send a few hundred bytes."""
    size = min(max_block_bytes, max(_BLOCK_BYTES, _LIKELY_RATIO * len(block)))
    while True:
        scratch = bytearray(size)
        try:
            inflated_bytes = lz4.decompress_block_into(block, scratch)
            return bytes(memoryview(scratch)[:inflated_bytes])
        except DecompressionError as error:
            if size == max_block_bytes:
                raise InvalidRecord(f"an LZ4 block is damaged: {error}") from error
        size = min(max_block_bytes, _LIKELY_RATIO * size)
