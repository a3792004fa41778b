"""`Trash`: files and directories that are out of use and wait for their removal (`file.delete.delay.ms`).

What lies here has a name that says so (`.deleted`, `-delete`), so that the next start removes it when this process does
not come to it. Somebody may still read from an open file; the delay is for tools that look at names.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count

from ottla.clock import Clock
from ottla.storage.files import FileSystem


class Trash:
    """What waits, by deadline (seconds on the monotonic clock)."""

    __slots__ = ("_clock", "_heap", "_numbers", "on_add")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, str]] = []
        self._numbers = count()
        self.on_add: Callable[[], None] | None = None
        """Told when something more waits."""

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, paths: Sequence[str], delay_ms: int) -> None:
        """Have files or whole directories removed after a delay."""
        deadline = self._clock.monotonic() + delay_ms / 1000
        for path in paths:
            heapq.heappush(self._heap, (deadline, next(self._numbers), path))
        if paths and self.on_add is not None:
            self.on_add()

    def next_deadline(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def take_due(self) -> list[str]:
        """Return the paths whose time has come; whoever takes them removes them."""
        now = self._clock.monotonic()
        due: list[str] = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        return due


def remove_all(filesystem: FileSystem, paths: Sequence[str], after: Sequence[str] = ()) -> None:
    """Remove files and directories; those that are gone already are no failure. Raises `OSError`.

    Before that, the files `after` are brought to disk, which say that these are out of use.
    """
    for path in after:
        filesystem.sync_file(path)
    for path in paths:
        if filesystem.is_directory(path):
            filesystem.remove_tree(path)
        else:
            filesystem.remove(path)
