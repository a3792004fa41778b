"""CRC-32C (Castagnoli), the checksum of v2 batches, snapshots of producers and fetch-session caches.

The `crc32c` wheel uses the processor's own instruction and takes any buffer without copying it. CRC-32 of the older
formats is `zlib.crc32`.
"""

from __future__ import annotations

from crc32c import crc32c as _crc32c


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the unsigned checksum of `data`, continuing from the checksum `value` of what came before."""
    return _crc32c(data, value)
