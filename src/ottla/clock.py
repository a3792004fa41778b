"""Time, handed in: the clock that everyone reads and the one heap that every timer hangs on.

This is the only module that asks the system for the time. Tests hand in `ottla.testing.clock.ManualClock` and move it.
`Timers` decides in which order what falls due; who wakes up at `next_deadline` is left to its driver: the server with
one `loop.call_at`, a test by hand.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from mypy_extensions import mypyc_attr

_monotonic: Final = time.monotonic
_time_ns: Final = time.time_ns

COMPACT_ABOVE: Final = 64
"""Below this many entries a heap with cancelled timers is not worth rebuilding."""


class Clock(Protocol):
    """What time it is, in the two senses that a broker needs."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, as records are stamped; may jump when the system's clock is set."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never going back; deadlines are points on this scale."""


class SystemClock:
    """The system's clocks."""

    __slots__ = ()

    def wall_ms(self) -> int:
        return _time_ns() // 1_000_000

    def monotonic(self) -> float:
        return _monotonic()


class Timer:
    """One callback that waits for its deadline. Made by `Timers.call_at`."""

    __slots__ = ("_callback", "_sequence", "_timers", "deadline", "is_queued")

    def __init__(self, timers: Timers, deadline: float, sequence: int, callback: Callable[[], None]) -> None:
        self._timers = timers
        self._sequence = sequence
        self._callback: Callable[[], None] | None = callback
        self.deadline = deadline
        self.is_queued = True

    def __lt__(self, other: Timer) -> bool:
        """Earlier deadlines first; among equals the one that was set first."""
        if self.deadline != other.deadline:
            return self.deadline < other.deadline
        return self._sequence < other._sequence

    @property
    def is_pending(self) -> bool:
        """True until the timer has run or was cancelled."""
        return self._callback is not None

    def take(self) -> Callable[[], None] | None:
        """Return the callback, once; None when it was taken or cancelled before."""
        callback, self._callback = self._callback, None
        return callback

    def cancel(self) -> None:
        """Never run the callback, which is dropped at once. Does nothing when it has run or was cancelled."""
        if self.take() is not None and self.is_queued:
            self._timers.note_cancelled()


@mypyc_attr(allow_interpreted_subclasses=True)
class Timers:
    """All deadlines of a process in one heap.

    Cancelling is O(1): the entry stays until it surfaces, or until cancelled entries outnumber living ones and the heap
    is rebuilt without them. So a session timer that is moved at every heartbeat costs neither a search nor memory.
    """

    __slots__ = ("_cancelled", "_heap", "_sequence", "lag_seconds")

    def __init__(self) -> None:
        self.lag_seconds = 0.0
        """How late the callbacks that run now are, because the loop was held up; told by the driver, else 0."""
        self._heap: list[Timer] = []
        self._sequence = 0
        self._cancelled = 0

    def __len__(self) -> int:
        """Timers that are still to run."""
        return len(self._heap) - self._cancelled

    def call_at(self, deadline: float, callback: Callable[[], None]) -> Timer:
        """Have `callback` run once `run_due` is given a time at or after `deadline` (seconds, monotonic)."""
        self._sequence += 1
        timer = Timer(self, deadline, self._sequence, callback)
        heapq.heappush(self._heap, timer)
        return timer

    def next_deadline(self) -> float | None:
        """The earliest deadline, None when nothing waits."""
        heap = self._heap
        while heap and not heap[0].is_pending:
            heapq.heappop(heap)
            self._cancelled -= 1
        return heap[0].deadline if heap else None

    def run_due(self, now: float) -> int:
        """Run what is due at `now` in order of deadline; returns how many ran.

        Timers set by a callback wait for the next call, even when due: a callback that always rearms itself at `now`
        cannot hold the loop. Timers cancelled by an earlier callback do not run. An exception of a callback ends the
        call; that timer counts as run, the others stay.
        """
        due: deque[Timer] = deque()
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            timer = heapq.heappop(self._heap)
            timer.is_queued = False
            due.append(timer)
        ran = 0
        try:
            while due:
                callback = due.popleft().take()
                if callback is not None:
                    ran += 1
                    callback()
        finally:
            for timer in due:
                if timer.is_pending:
                    timer.is_queued = True
                    heapq.heappush(self._heap, timer)
        return ran

    def note_cancelled(self) -> None:
        """Count a cancelled entry of the heap (called by `Timer.cancel`); rebuild the heap when most are cancelled."""
        self._cancelled += 1
        if len(self._heap) > COMPACT_ABOVE and self._cancelled * 2 > len(self._heap):
            self._heap = [timer for timer in self._heap if timer.is_pending]
            heapq.heapify(self._heap)
            self._cancelled = 0
