"""Codec numbers to compressing and inflating functions, and the bound on what records may inflate to.

Damage in a compressed payload is `InvalidRecord`: the batch's checksum has been right by then, so sending it again
would not help, which is what `CorruptMessage` would tell a producer to do. Kafka answers UNKNOWN_SERVER_ERROR there.

Every function that inflates stops at a limit before it has allocated much more, so that a bomb costs bounded memory.

The library of the codecs but gzip is loaded with the first batch that needs it: a start has no time for it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ottla.errors import UnsupportedCompressionType
from ottla.records.gzip_stream import deflate_gzip, inflate_gzip

MAX_INFLATED_BYTES: Final = 256 * 1024 * 1024
"""What one batch may inflate to where no topic sets a lower bound: far above what a client's buffer holds (32 MiB)."""


class Codec(IntEnum):
    """How a batch's records are compressed; the value is the low three bits of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of(cls, number: int) -> Codec:
        """Raises `UnsupportedCompressionType` for a number without a codec."""
        if number > Codec.ZSTD:
            raise UnsupportedCompressionType(f"no codec has the number {number}")
        return _CODECS[number]

    @classmethod
    def named(cls, name: str) -> Codec:
        """Return the codec of a `compression.type` of a producer (`none`, `gzip`, ...). Raises `KeyError`."""
        return cls["NONE" if name in ("none", "uncompressed") else name.upper()]


_CODECS: Final = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)

DEFAULT_LEVELS: Final[dict[Codec, int]] = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}
"""Kafka's `compression.<codec>.level` defaults; none and snappy have no levels."""

_GZIP_WINDOW: Final = 31  # zlib's way of asking for a gzip wrapper around the largest window

_GZIP_FLAGS_AT: Final = 3
_GZIP_RESERVED_FLAGS: Final = 0xE0


def deflate(codec: Codec, data: bytes | bytearray | memoryview, level: int | None = None) -> bytes:
    """Compress records in the framing that Kafka's clients read. `level` None is Kafka's default."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.SNAPPY:
        from ottla.records.snappy_stream import deflate_snappy

        return deflate_snappy(data)
    level = DEFAULT_LEVELS[codec] if level is None else level
    if codec == Codec.LZ4:
        from ottla.records.lz4_frame import deflate_lz4

        return deflate_lz4(data, level)
    if codec == Codec.ZSTD:
        from ottla.records.zstd_frame import deflate_zstd

        return deflate_zstd(data, level)
    return deflate_gzip(data, level)


def inflate(codec: Codec, data: memoryview, limit_bytes: int = MAX_INFLATED_BYTES) -> bytes:
    """Return the records' bytes. Raises `InvalidRecord` where they are damaged or would exceed `limit_bytes`."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.SNAPPY:
        from ottla.records.snappy_stream import inflate_snappy

        return inflate_snappy(data, limit_bytes)
    if codec == Codec.LZ4:
        from ottla.records.lz4_frame import inflate_lz4

        return inflate_lz4(data, limit_bytes)
    if codec == Codec.ZSTD:
        from ottla.records.zstd_frame import inflate_zstd

        return inflate_zstd(data, limit_bytes)
    return inflate_gzip(data, limit_bytes)
