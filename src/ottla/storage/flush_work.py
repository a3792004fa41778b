"""`FlushWork`: what one fsync round of one log has to bring to disk; and `Flushable`, the log as a flusher sees it.

Put together on the owner's loop, run on a thread, released on the loop again; decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from ottla.errors import KafkaError
from ottla.storage.directory_names import DirectoryNames
from ottla.storage.files import File, FileSystem, is_out_of_space
from ottla.storage.open_files import SegmentFile


class FlushWork:
    """One fsync round of one log: files leased on the loop, synced by `run` on a thread."""

    __slots__ = (
        "_directories",
        "_files",
        "_filesystem",
        "_last",
        "_last_file",
        "_new_files",
        "_replacements",
        "_side_files",
        "end_offset",
        "lacks_replacement",
    )

    def __init__(self, filesystem: FileSystem, end_offset: int, files: Sequence[SegmentFile]) -> None:
        """Lease the files. Raises `OSError`; then none is leased."""
        self.end_offset = end_offset
        self.lacks_replacement = False
        """True when there was no room for one of the small files: it has to be written another time."""
        self._filesystem = filesystem
        self._files: list[tuple[SegmentFile, File]] = []
        self._new_files: list[str] = []
        self._side_files: list[str] = []
        self._directories: list[str] = []
        self._replacements: list[tuple[DirectoryNames, str, bytes]] = []
        self._last: Callable[[], None] | None = None
        self._last_file: SegmentFile | None = None
        try:
            for file in files:
                self._files.append((file, file.lease()))
        except OSError:
            self.release()
            raise

    @property
    def only_file(self) -> File | None:
        """The open file whose sync is all there is to do, when it is."""
        has_more = self.uses_names or self._side_files or self._replacements or self._last is not None
        return None if has_more or len(self._files) != 1 else self._files[0][1]

    @property
    def uses_names(self) -> bool:
        """True when it has files or directories to find by name."""
        return bool(self._new_files or self._directories)

    def add_names(self, files: Sequence[str], directories: Sequence[str]) -> None:
        """Have files synced that are not open, and then the names in directories."""
        self._new_files += files
        self._directories += directories

    def add_side_files(self, files: Sequence[str]) -> None:
        """Have files synced that need not exist, or may be removed before their turn comes."""
        self._side_files += files

    def add_replacement(self, names: DirectoryNames, path: str, data: bytes) -> None:
        """Have a small file replaced first; on a full disk the old one stays, see `lacks_replacement`."""
        self._replacements.append((names, path, data))

    def add_last(self, work: Callable[[], None], uses: SegmentFile | None = None) -> None:
        """Have something done once all is synced; what it raises is a failure of the flush.

        `uses` is a file that was leased for it, and is released with the others.
        """
        self._last = work
        self._last_file = uses

    def run(self, synced: set[str] | None = None) -> None:
        """Sync everything. Raises `OSError`.

        `synced` are directories that need no sync any more; those that got one are added.
        """
        for names, path, data in self._replacements:
            try:
                names.change(partial(self._filesystem.replace, path, data))
            except OSError as error:
                if not is_out_of_space(error):
                    raise
                self.lacks_replacement = True
        for _, file in self._files:
            file.sync()
        for path in self._new_files:
            self._filesystem.sync_file(path)
        for path in self._side_files:
            with suppress(FileNotFoundError):
                self._filesystem.sync_file(path)
        for path in self._directories:
            if synced is None or path not in synced:
                self._filesystem.sync_directory(path)
                if synced is not None:
                    synced.add(path)
        if self._last is not None:
            self._last()

    def release(self) -> None:
        for segment_file, _ in self._files:
            segment_file.release()
        if self._last_file is not None:
            self._last_file.release()


class Flushable(Protocol):
    """What a flusher asks of a log. All of it is called on the owner's loop."""

    flush_state: int
    """Kept here by the flusher, so that asking for a flush costs no look-up."""

    @property
    def failure(self) -> KafkaError | None: ...

    @property
    def has_unflushed(self) -> bool: ...

    def begin_flush(self) -> FlushWork:
        """Lease what a flush has to sync. Raises `OSError`."""

    def end_flush(self, work: FlushWork, error: BaseException | None) -> None:
        """Take note of a flush that ran."""

    def fail_flush(self, error: BaseException) -> None:
        """Take note of a flush that could not begin."""
