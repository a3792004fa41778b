"""`DirectoryNames`: the right to rename files in one partition's directory, until the directory itself goes.

Threads rename segments while the loop may delete the topic, and another one may take its place under the same name:
what was meant for the old directory must not happen in the new one. So threads make their changes through `change`,
and whoever moves the directory away calls `give_up` first.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock


class DirectoryNames:
    """Shared between a log's owner and the threads that work for it."""

    __slots__ = ("_is_gone", "_lock")

    def __init__(self) -> None:
        self._is_gone = False
        self._lock = Lock()

    def change(self, work: Callable[[], None]) -> None:
        """Run `work` on files that are meant by name; does nothing once the directory is given up."""
        with self._lock:
            if not self._is_gone:
                work()

    def give_up(self) -> None:
        """Let nothing more happen here. Waits for a change that is under way."""
        with self._lock:
            self._is_gone = True
