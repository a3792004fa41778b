"""`KernelSyncs`: fsyncs that Linux does by itself, and tells the event loop of through a descriptor (`io_submit`).

A thread that syncs one file is woken for it, takes the interpreter's lock from the loop when it is done, and wakes the
loop: with a file for each partition that costs more than the sync. Here one call hands over all files of a turn.

Decides what the kernel is asked. What it refuses (an older kernel, a sandbox, more files than it has room for) is the
caller's to do in another way.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ottla.engine import Sync
from ottla.extensions import load_extension

ROOM: Final = 256
"""Files that may be under way."""
_NEGATIVE: Final = 1 << 63
"""From here on the unsigned result is a negative number of an error."""


class KernelSyncs:
    """The kernel's queue of files to sync. All methods run on the loop."""

    __slots__ = ("_context", "_is_refused", "_load", "_loop", "_new_sync", "_running")

    def __init__(self, loop: asyncio.AbstractEventLoop, load: Callable[[str, str], Any] = load_extension) -> None:
        """`load` gets the module of `caio` that has the system calls, or raises `ImportError`."""
        self._loop = loop
        self._load = load
        self._context: Any = None
        self._new_sync: Any = None
        self._is_refused = False
        self._running = 0

    @property
    def is_open(self) -> bool:
        return self._context is not None

    def open(self) -> bool:
        """Make the queue; False where there is none to be had. The first time takes some 40 ms."""
        if self._context is None and not self._is_refused:
            try:
                module = self._load("caio", "linux_aio")
                context = module.Context(ROOM)
                self._loop.add_reader(context.fileno, self._take_ended)
            except (ImportError, AttributeError, SystemError, OSError, NotImplementedError):
                self._is_refused = True  # no package or an older one, a kernel or a loop without it: threads do as well
            else:
                self._context = context
                self._new_sync = module.Operation.fdsync
        return self._context is not None

    def begin(self, syncs: Sequence[Sync]) -> int:
        """Have the first of these files synced; returns how many. The rest is not begun.

        Each one's end is called on the loop, with an `OSError` when it failed.
        """
        operations = []
        for file, done in syncs[: ROOM - self._running]:
            descriptor = file.sync_descriptor
            if descriptor < 0:
                break
            operation = self._new_sync(descriptor)
            operation.set_callback(partial(self._note_end, done))
            operations.append(operation)
        if not operations:
            return 0
        try:
            begun: int = self._context.submit(*operations)
        except (OverflowError, ValueError, SystemError, RuntimeError):  # none of them was begun
            return 0
        self._running += begun
        return begun

    def close(self) -> None:
        """Wait for what is under way; its ends still come to the loop."""
        if self._context is None:
            return
        while self._running:
            self._take(1, -1)
        self._loop.remove_reader(self._context.fileno)
        self._context = None

    def _take_ended(self) -> None:
        with suppress(BlockingIOError):
            self._context.poll()
        while self._take(0, 0):
            pass

    def _take(self, least: int, timeout_seconds: int) -> int:
        """Hear of syncs that have ended, at least of so many; returns of how many. Signals are no reason to stop."""
        while True:
            try:
                ended: int = self._context.process_events(ROOM, least, timeout_seconds)
            except SystemError as error:
                if error.args[:1] != (errno.EINTR,):
                    raise
            else:
                return ended

    def _note_end(self, done: Callable[[BaseException | None], None], result: int) -> None:
        """Called for each file within `process_events`, where an exception would be lost."""
        self._running -= 1
        error = None
        if result >= _NEGATIVE:
            number = 2 * _NEGATIVE - result
            error = OSError(number, os.strerror(number))
        self._loop.call_soon(done, error)
