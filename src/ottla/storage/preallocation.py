"""Room on the disk for a file that will grow, by a request of Linux' that does what `fallocate` does.

Kafka makes the file as large as it will be, and a crash leaves it so, with zeros at its end. Here only blocks are
reserved: the file is as large as what was written, so appends, copies and other programs need not know. Python's own
`posix_fallocate` would make the file larger.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from typing import Final

_SPACE: Final = struct.Struct("hhqqiI4i")
"""`struct space_resv` of linux/falloc.h: type, whence, start, length, and what counts for nothing."""
_RESERVE: Final = 1 << 30 | _SPACE.size << 16 | ord("X") << 8 | 40
"""FS_IOC_RESVSP as all processors but a few old ones have it; on those it is another request, which no file knows."""
_NOT_SUPPORTED: Final = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.ENOTTY})


def reserve(descriptor: int, size_bytes: int) -> None:
    """Reserve blocks for a file of this size. Raises `OSError` where there is no room.

    Does nothing on systems and file systems that have no such thing.
    """
    try:
        fcntl.ioctl(descriptor, _RESERVE, _SPACE.pack(0, os.SEEK_SET, 0, size_bytes, 0, 0, 0, 0, 0, 0))
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
