"""A segment of a log in Jafka's form: a file of messages, nothing around them, named by the place of its first byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ottla.records.jafka import SIZE_BYTES, entry_size
from ottla.records.jafka_reading import Walked
from ottla.storage.directory import JAFKA_SUFFIX
from ottla.storage.files import File, FileSystem
from ottla.storage.open_files import SegmentFile

READ_BYTES: Final = 32 * 1024
_DIGITS: Final = 20


class JafkaSegment:
    """One file of messages. `start` and `end` are positions in the partition."""

    __slots__ = ("file", "path", "size", "start")

    def __init__(self, path: str, file: SegmentFile, start: int, size: int) -> None:
        self.path = path
        self.file = file
        self.start = start
        self.size = size

    @property
    def end(self) -> int:
        return self.start + self.size


def find_starts(filesystem: FileSystem, directory: str) -> list[int]:
    """Return where the segments in a directory begin, in order. Raises `OSError`."""
    names = (name for name in filesystem.list(directory) if name.endswith(JAFKA_SUFFIX))
    return sorted(int(name.removesuffix(JAFKA_SUFFIX)) for name in names)


def segment_path(directory: str, start: int) -> str:
    return f"{directory}/{start:0{_DIGITS}d}{JAFKA_SUFFIX}"


def walk_file(
    open_file: Callable[[], File], position: int, limit: int, step: Callable[[bytes], Walked]
) -> Iterator[Walked]:
    """Walk the messages of a file piece by piece, from a position on; yields how far each step came, and where that is.

    `open_file` is called whenever something is to be read. Ends where a step is over, at `limit`, or before a message
    that is cut there. Raises what a step raises.
    """
    size = READ_BYTES
    while position < limit:
        data = open_file().pread(min(size, limit - position), position)
        walked = step(data)
        position += walked.end
        size = READ_BYTES
        if walked.end or walked.is_over:
            yield walked._replace(end=position)
            if walked.is_over:
                return
        else:  # the message is larger than what was read, or cut
            size = entry_size(data) if len(data) >= SIZE_BYTES else 0
            if not len(data) < size <= limit - position:
                return
