"""CRC-32C (Castagnoli), the checksum of v2 batches, snapshots of producers and fetch-session caches.

The `crc32c` wheel uses the processor's own instruction and takes any buffer without copying it. CRC-32 of the older
formats is `zlib.crc32`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from ottla.extensions import load_extension

Checksum: TypeAlias = Callable[[bytes | bytearray | memoryview, int], int]


def _load() -> Checksum:
    try:
        checksum: Checksum = load_extension("crc32c", "_crc32c").crc32c
    except ImportError:  # a package that is built in another way
        from crc32c import crc32c as checksum
    return checksum


_crc32c: Final = _load()


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the unsigned checksum of `data`, continuing from the checksum `value` of what came before."""
    return _crc32c(data, value)
