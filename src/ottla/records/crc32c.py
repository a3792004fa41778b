"""CRC-32C (Castagnoli), the checksum of v2 batches, snapshots of producers and fetch-session caches.

The `crc32c` wheel uses the processor's own instruction and takes any buffer without copying it. CRC-32 of the older
formats is `zlib.crc32`.

The wheel's package reads its own version through `importlib.metadata`, which brings in the parser of e-mails: a tenth
of a broker's start. So its extension is loaded without the package around it where it can be found.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Final


def _load_extension() -> ModuleType:
    package = PathFinder.find_spec("crc32c")
    folders = package.submodule_search_locations if package is not None else None
    found = PathFinder.find_spec("crc32c._crc32c", folders) if folders else None
    if found is None or found.loader is None:
        import crc32c as whole_package

        return whole_package
    extension = importlib.util.module_from_spec(found)
    found.loader.exec_module(extension)
    return extension


_crc32c: Final[Callable[[bytes | bytearray | memoryview, int], int]] = _load_extension().crc32c


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the unsigned checksum of `data`, continuing from the checksum `value` of what came before."""
    return _crc32c(data, value)
