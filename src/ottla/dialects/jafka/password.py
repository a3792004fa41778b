"""The password for DELETE as Jafka's configuration has it: `plain:x`, `md5:<hex>` or `crc32:<decimal>`.

None of these is safe; whoever listens knows it. It keeps topics from being deleted by mistake.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from hashlib import md5
from hmac import compare_digest


def password_check(configured: str | None) -> Callable[[str], bool]:
    """Return what says whether a password is right; without a configured one all are. Raises `ValueError`."""
    if not configured:
        return lambda password: True
    kind, colon, secret = configured.partition(":")
    if not colon or kind not in ("plain", "md5", "crc32"):
        raise ValueError(f"{configured!r} is none of plain:<password>, md5:<hex>, crc32:<decimal>")

    def is_right(password: str) -> bool:
        data = password.encode()
        if kind == "md5":
            return compare_digest(md5(data, usedforsecurity=False).hexdigest(), secret.lower())
        if kind == "crc32":
            return compare_digest(str(zlib.crc32(data)), secret)
        return compare_digest(data, secret.encode())

    return is_right
