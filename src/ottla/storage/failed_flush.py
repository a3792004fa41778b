"""What a failed fsync leaves behind, and how the next start makes up for it.

Linux tells of a failed write once. The pages then count as written: they can be read until they fall out of memory, the
next fsync says that all is well, and the disk never gets them. So records that follow them could be acknowledged and
stand behind a hole, at which a recovery cuts.

A log whose flush failed is therefore given up, and a small file in its directory says so. Whoever opens the log again
first writes anew what was not on disk: into new files, which are synced before they take the old ones' names. What can
be read is on disk then, or the log stays closed. The mark itself need not be synced: where it is lost, so are the
pages, and the log is what the disk has. Kafka has nothing like it, and leaves the file alone.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from ottla.storage.files import File, FileSystem

MARK: Final = "flush-failed"
_COPY_BYTES: Final = 1 << 20

_log = logging.getLogger(__name__)


def mark_failed_flush(filesystem: FileSystem, directory: str, flushed_offset: int) -> None:
    """Note that a log's records from an offset on may not be on disk, whatever later syncs say."""
    try:
        filesystem.write(f"{directory}/{MARK}", b"%d\n" % flushed_offset)
    except OSError as error:
        _log.error("%s: that a flush failed cannot be noted; do not start on it before a reboot: %s", directory, error)


def write_anew(filesystem: FileSystem, directory: str, log_paths: Sequence[tuple[int, str]]) -> None:
    """Copy the segments that a failed flush left in doubt, and take the mark away.

    `log_paths` are base offsets and files, in their order. Raises `OSError`: then the mark stays.
    """
    mark = f"{directory}/{MARK}"
    text = filesystem.read(mark).decode("ascii", "replace").strip()
    flushed_offset = int(text) if text.isdecimal() else 0
    ends = [base_offset for base_offset, _ in log_paths[1:]]
    last = flushed_offset + 1
    doubtful = [path for (_, path), end in zip(log_paths, [*ends, last], strict=True) if end > flushed_offset]
    for path in doubtful:
        _copy(filesystem, path)
    filesystem.sync_directory(directory)
    filesystem.remove(mark)
    what = f"{len(doubtful)} segments from offset {flushed_offset} on"
    _log.warning("%s: a flush had failed; %s are written anew", directory, what)


def _copy(filesystem: FileSystem, path: str) -> None:
    """Put a synced copy of a file in its place."""
    filesystem.remove(path + ".tmp")
    source, copy = filesystem.open(path), filesystem.open(path + ".tmp", create=True)
    try:
        _copy_bytes(source, copy)
        copy.sync()
    finally:
        source.close()
        copy.close()
    filesystem.rename(path + ".tmp", path)


def _copy_bytes(source: File, copy: File) -> None:
    position = 0
    while data := source.pread(_COPY_BYTES, position):
        copy.append(data)
        position += len(data)
