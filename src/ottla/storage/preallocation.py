"""Room on the disk for a file that will grow, by Linux' `fallocate`, for which Python has no function of its own.

Kafka makes the file as large as it will be, and a crash leaves it so, with zeros at its end. Here only blocks are
reserved: the file is as large as what was written, so appends, copies and other programs need not know.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

_KEEP_SIZE: Final = 1
_NOT_SUPPORTED: Final = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


def reserve(descriptor: int, size_bytes: int) -> None:
    """Reserve blocks for a file of this size. Raises `OSError` where there is no room.

    Does nothing on systems and file systems that have no such thing.
    """
    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is None:
        return
    if fallocate(descriptor, _KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(size_bytes)) == 0:
        return
    number = ctypes.get_errno()
    if number not in _NOT_SUPPORTED:
        raise OSError(number, os.strerror(number))
