"""The lock on a log directory's `.lock`: one broker that writes, or any number that only read.

On Linux it is a lock of the open file description, which Apache Kafka's own lock, an ordinary `fcntl` one, excludes and
is excluded by: neither broker starts on a directory that the other one is using. Elsewhere it is a `flock`, which the
BSDs weigh against `fcntl` locks too. The kernel drops it with the process.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
from typing import Final

_FLOCK: Final = struct.Struct("@hhqqi0q")
"""`struct flock`: type, whence, start, length (0: to the end, wherever that is), process."""
_HELD: Final = (errno.EAGAIN, errno.EACCES)


def take_lock(descriptor: int, *, is_shared: bool) -> bool:
    """Lock an open file, which must be writable unless `is_shared`; False when another holds it. Raises `OSError`."""
    try:
        if sys.platform == "linux":
            kind = fcntl.F_RDLCK if is_shared else fcntl.F_WRLCK
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0))
        else:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True
