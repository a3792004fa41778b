"""The bridge between a broker on its event loop and what would hold that loop up: blocking work, and time.

`LoopOffload` runs blocking work on threads and brings its end back to the loop. `LoopTimers` drives the one heap of
timers with at most one timer of the loop, so that an idle broker has nothing to wake up for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ottla.broker.kernel_syncs import KernelSyncs
from ottla.clock import Clock, Timer, Timers
from ottla.engine import Sync

THREADS: Final = 8
SYNCED_BY_THREADS: Final = 64
"""Files that threads sync before the kernel is asked to."""
SHORTEST_SECONDS: Final = 0.001
"""Timers of loops are about as exact as this; asking for less would only ask again."""


class LoopOffload:
    """The `engine.Offload` of an event loop. Threads are started when there is work for them."""

    __slots__ = ("_executor", "_is_closed", "_kernel", "_loop", "_synced_by_threads")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_closed = False
        self._kernel = KernelSyncs(loop)
        self._synced_by_threads = 0
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="ottla-blocking")

    def submit(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        """Run `work` on a thread, then `done` on the loop with what it raised. Neither is run after `close`."""
        if not self._is_closed:
            self._executor.submit(self._run, work, done)

    def sync(self, syncs: Sequence[Sync]) -> None:
        """Sync open files, then tell each one's end on the loop. Nothing is run after `close`.

        Threads do the first ones: to have the kernel do it takes a moment once, which a broker under load can spare
        and one that just started can't.
        """
        if self._is_closed:
            return
        begun = 0
        if self._kernel.is_open or (self._synced_by_threads >= SYNCED_BY_THREADS and self._kernel.open()):
            begun = self._kernel.begin(syncs)
        self._synced_by_threads += len(syncs) - begun
        for file, done in syncs[begun:]:
            self.submit(file.sync, done)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run `callback` on the loop after the current callbacks."""
        self._loop.call_soon(callback)

    def close(self) -> None:
        """Wait for the work that was submitted; its ends still come to the loop."""
        self._is_closed = True
        self._kernel.close()
        self._executor.shutdown(wait=True)

    def _run(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as raised:
            error = raised
        self._loop.call_soon_threadsafe(done, error)


class LoopTimers(Timers):
    """The heap of timers, driven by the loop on the clock that it is given."""

    __slots__ = ("_armed_for", "_clock", "_due_at", "_handle", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        super().__init__()
        self._loop = loop
        self._clock = clock
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for = 0.0
        self._due_at = 0.0  # on the loop's own clock, which nobody moves

    def call_at(self, deadline: float, callback: Callable[[], None]) -> Timer:
        timer = super().call_at(deadline, callback)
        if self._handle is None or deadline < self._armed_for:
            self._arm(deadline)
        return timer

    def close(self) -> None:
        """Wake up no more."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _arm(self, deadline: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        seconds = max(deadline - self._clock.monotonic(), SHORTEST_SECONDS)
        self._armed_for = deadline
        self._due_at = self._loop.time() + seconds
        self._handle = self._loop.call_later(seconds, self._run_due)

    def _run_due(self) -> None:
        self._handle = None
        self.lag_seconds = self._loop.time() - self._due_at
        try:
            self.run_due(self._clock.monotonic())
        finally:  # a callback that meets a fault costs the others no more than a turn
            self.lag_seconds = 0.0
            deadline = self.next_deadline()
            if deadline is not None:
                self._arm(deadline)
