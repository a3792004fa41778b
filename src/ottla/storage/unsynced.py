"""`Unsynced`: what a log owes the disk besides the records of its active segment, until a flush takes it over.

Rolled segments, new names and what they are the names of, leader epochs, and indexes that will not grow any more. When
a flush runs is `flusher`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.storage.directory_names import DirectoryNames
from ottla.storage.flush_work import FlushWork
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.segment import Segment


class Unsynced:
    __slots__ = ("_directories", "_files", "_has_names", "_has_written_epoch", "_indexes", "has_epoch", "rolled")

    def __init__(self) -> None:
        self.rolled: list[Segment] = []
        """Segments that are not active any more, the newest last."""
        self.has_epoch = False
        """True when the file of epochs is not as they are now."""
        self._has_written_epoch = False
        self._has_names = False
        self._indexes: list[str] = []
        self._files: list[str] = []
        self._directories: list[str] = []

    def __bool__(self) -> bool:
        return self._has_names or self.has_epoch or self._has_written_epoch or bool(self._indexes)

    # ---- taking note

    def add_rolled(self, segment: Segment) -> None:
        self.rolled.append(segment)
        self._has_names = True

    def forget(self, segment: Segment) -> None:
        """Take note that a segment is gone."""
        if segment in self.rolled:
            self.rolled.remove(segment)

    def add_made(self, files: Sequence[str], directories: Sequence[str]) -> None:
        """Take note of files that were made, and of directories whose entries are new."""
        self._files += [path for path in files if path not in self._files]
        self._directories += [path for path in directories if path not in self._directories]

    def add_indexes(self, paths: Sequence[str]) -> None:
        self._indexes += paths

    def note_names(self) -> None:
        """Take note of new names in the log's directory."""
        self._has_names = True

    def note_written_epoch(self) -> None:
        """Take note that the file of epochs was written, in memory only."""
        self._has_written_epoch = True

    def move(self, old: str, new: str) -> None:
        """Take note that the log's directory is another, or has another name."""
        self._indexes = [_moved(path, old, new) for path in self._indexes]
        self._files = [_moved(path, old, new) for path in self._files]
        self._directories = [_moved(path, old, new) for path in self._directories]

    # ---- handing over

    def hand_over(self, work: FlushWork, directory: str, names: DirectoryNames, epochs: LeaderEpochs) -> None:
        """Have a flush do it all: it has leased the files of the rolled segments already."""
        if self._has_names:
            work.add_side_files([path for segment in self.rolled for path in segment.take_side_paths()])
            work.add_names((), [directory])
            self._has_names = False
        self.rolled.clear()
        work.add_names(self._files, self._directories)
        self._files, self._directories = [], []
        if self.has_epoch or self._has_written_epoch:
            work.add_replacement(names, epochs.path, epochs.encode())
            self.has_epoch = self._has_written_epoch = False
        work.add_side_files(self._indexes)
        self._indexes = []


def _moved(path: str, old: str, new: str) -> str:
    """The path in the new directory; a path that is not in the old one stays."""
    return new + path[len(old) :] if path == old or path.startswith(f"{old}/") else path
