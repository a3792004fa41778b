"""Random numbers and ids, from the system's source, so that nobody can guess the next one.

The standard library's `uuid` and `random` would do, but bring modules with them that cost a start several milliseconds.
"""

from __future__ import annotations

import os


def random_uuid() -> bytes:
    """Return 16 random bytes with the version and the variant of a random UUID in them (RFC 9562, version 4)."""
    uuid = bytearray(os.urandom(16))
    uuid[6] = uuid[6] & 0x0F | 0x40
    uuid[8] = uuid[8] & 0x3F | 0x80
    return bytes(uuid)


def random_below(limit: int) -> int:
    """Return a random number from 0 to `limit` - 1. For limits of 32 bits it is as good as fair."""
    return int.from_bytes(os.urandom(8), "big") % limit
