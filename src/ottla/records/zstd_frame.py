"""zstd frames within a bound: what a stream can inflate to at most is told by its block headers.

A block gives at most 128 KiB, a raw or run-length block exactly what its header says. Honest streams are far below any
limit by that count and are inflated at once; a stream that could pass it is inflated into a buffer of just that size.
"""

from __future__ import annotations

from typing import Final

from cramjam import DecompressionError, zstd
from mypy_extensions import i64

from ottla.errors import InvalidRecord

_MAGIC: Final = 0xFD2FB528
_SKIPPABLE_MAGIC: Final = 0x184D2A5
_MAX_BLOCK_BYTES: Final = 128 * 1024
_DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
_RAW: Final = 0
_RUN_LENGTH: Final = 1


def deflate_zstd(data: bytes | bytearray | memoryview, level: int) -> bytes:
    """Return `data` as one frame, flushed before it is ended: byte for byte what Kafka's own stream writes."""
    compressor = zstd.Compressor(level)
    compressor.compress(data)
    return bytes(compressor.flush()) + bytes(compressor.finish())


def inflate_zstd(data: memoryview, limit_bytes: int) -> bytes:
    """Return what all frames in `data` hold. Raises `InvalidRecord` for damage, and above `limit_bytes`."""
    packed = bytes(data)
    try:
        if inflated_bound(packed, limit_bytes) <= limit_bytes:
            return bytes(zstd.decompress(packed))
        scratch = bytearray(limit_bytes)
        inflated_bytes = zstd.decompress_into(packed, scratch)
        return bytes(memoryview(scratch)[:inflated_bytes])
    except DecompressionError as error:
        raise InvalidRecord(f"zstd data is damaged or inflates to more than {limit_bytes} bytes: {error}") from error


def inflated_bound(data: bytes, enough: i64) -> int:
    """Return a size that no decoder of `data` can exceed; it stops counting above `enough`.

    Where the structure ends, so does the count: what follows is not inflated but refused.
    """
    total: i64 = 0
    position: i64 = 0
    end: i64 = len(data)
    while end - position >= 8 and total <= enough:
        magic = _read_little(data, position, 4)
        if magic >> 4 == _SKIPPABLE_MAGIC:
            position += 8 + _read_little(data, position + 4, 4)
            continue
        if magic != _MAGIC:
            break
        descriptor: i64 = data[position + 4]
        position += 5 + _header_rest(descriptor)
        is_last = False
        while not is_last and end - position >= 3 and total <= enough:
            header = _read_little(data, position, 3)
            size: i64 = header >> 3
            kind: i64 = header >> 1 & 3
            total += size if kind in (_RAW, _RUN_LENGTH) else _MAX_BLOCK_BYTES
            position += 3 + (1 if kind == _RUN_LENGTH else size)
            is_last = header & 1 != 0
        position += 4 if descriptor & 0x04 else 0
    return int(total)


def _header_rest(descriptor: i64) -> i64:
    """Bytes between a frame's descriptor and its first block: window, dictionary id, content size."""
    is_single_segment: bool = descriptor & 0x20 != 0
    content_size: i64 = _CONTENT_SIZE_BYTES[descriptor >> 6]
    if is_single_segment:
        content_size = max(content_size, 1)
    return (0 if is_single_segment else 1) + _DICTIONARY_ID_BYTES[descriptor & 3] + content_size


def _read_little(data: bytes, position: i64, size: i64) -> i64:
    return int.from_bytes(data[position : position + size], "little")
