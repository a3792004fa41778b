"""The segment files that are open, and how many may be.

`SegmentFile` is a path that is opened when it is first touched. `OpenFiles` keeps the number of open ones under a
bound: when one more is needed, those that were not touched since the last sweep are closed first (a clock with one bit
each, so that the hot path pays one attribute store and no reordering). A leased file is never closed; a retired one
closes with its last lease, which is what keeps a reader's bytes alive while retention or a topic's deletion removes the
name.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ottla.storage.files import File, FileSystem, is_out_of_descriptors

_RESERVED_DESCRIPTORS: Final = 256
"""Kept for sockets, checkpoints and index files."""
_FEWEST_OPEN_FILES: Final = 16


class SegmentFile:
    """One file of the log, opened on first use.

    `touched` is set by whoever uses the file and cleared by the sweep. Only the owner's loop opens, leases and closes;
    other threads may read or sync what was leased for them.
    """

    __slots__ = ("_file", "_leases", "_open_files", "_retired", "path", "touched")

    def __init__(self, open_files: OpenFiles, path: str) -> None:
        self.path = path
        self.touched = False
        self._open_files = open_files
        self._file: File | None = None
        self._leases = 0
        self._retired = False

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def get(self) -> File:
        """Return the open file; valid until something else is opened, unless it is leased."""
        self.touched = True
        file = self._file
        if file is None:
            file = self._file = self._open_files.admit(self)
        return file

    def lease(self) -> File:
        """Return the open file and keep it open until `release`."""
        file = self.get()
        self._leases += 1
        return file

    def release(self) -> None:
        self._leases -= 1
        if self._retired and not self._leases:
            self._close()

    def retire(self) -> None:
        """Close now, or with the last lease. The name may be removed at once."""
        self._retired = True
        if not self._leases:
            self._close()

    def move_to(self, open_files: OpenFiles) -> None:
        """Close the file, and count it among others when it is opened next. It must not be leased."""
        self._close()
        self._open_files = open_files

    def close_if_idle(self) -> bool:
        """Close unless leased or touched since the last sweep; True when the file is closed afterwards."""
        if self._leases or self.touched:
            self.touched = False
            return False
        self._close()
        return True

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._open_files.note_closed()


class OpenFiles:
    """A bounded set of open segment files."""

    __slots__ = ("_count", "_filesystem", "_order", "limit")

    def __init__(self, filesystem: FileSystem, limit: int | None = None) -> None:
        self._filesystem = filesystem
        if limit is None:
            limit = max(_FEWEST_OPEN_FILES, (filesystem.descriptor_limit() - _RESERVED_DESCRIPTORS) // 2)
        self.limit = limit
        self._count = 0
        self._order: deque[SegmentFile] = deque()

    @property
    def count(self) -> int:
        return self._count

    @property
    def known(self) -> int:
        """Files that a sweep would look at, closed ones among them."""
        return len(self._order)

    def admit(self, segment_file: SegmentFile) -> File:
        """Open the file, closing idle ones first where the bound asks for it."""
        if self._count >= self.limit:
            self._sweep()
        try:
            file = self._filesystem.open(segment_file.path, create=True)
        except OSError as error:
            if not is_out_of_descriptors(error) or not self._close_idle():
                raise
            file = self._filesystem.open(segment_file.path, create=True)
        self._count += 1
        if len(self._order) > 2 * self._count + _FEWEST_OPEN_FILES:  # closed and retired files leave theirs behind
            self._order = deque(dict.fromkeys(known for known in self._order if known.is_open))
        self._order.append(segment_file)
        return file

    def note_closed(self) -> None:
        self._count -= 1

    def _close_idle(self) -> bool:
        """Close every file that nobody has leased, as others need the descriptors; True when there was one."""
        before = self._count
        for known in [known for known in self._order if known.is_open]:
            known.touched = False
            known.close_if_idle()
        return self._count < before

    def _sweep(self) -> None:
        """Close idle files until one more fits; two rounds see every file untouched once.

        Files that are all leased are left open: the bound then gives way, as refusing a reader would be worse.
        """
        for _ in range(2 * len(self._order)):
            if self._count < self.limit:
                return
            candidate = self._order.popleft()
            if candidate.is_open and not candidate.close_if_idle():
                self._order.append(candidate)
