"""`Deadline`: a moment that is moved away again and again, such as the end of a member's session.

Moving it costs no more than an assignment: its one timer stays where it is, and looks when it fires whether it was in
vain. A loop that was held up does not count against anybody: who missed a deadline meanwhile gets the lost time back,
since what would have kept the deadline may wait to be read. All in all no more than the deadline's own length, so that
an overloaded broker still notices who is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.clock import Clock, Timer, Timers

TOLERATED_LAG_SECONDS: Final = 0.05
"""Timers are never quite exact; only more than this is a loop that was held up."""


class Deadline:
    """Calls `expire` once when it has passed. One that was never set, or was cancelled, never does."""

    __slots__ = ("_at", "_clock", "_expire", "_grace", "_timer", "_timers")

    def __init__(self, timers: Timers, clock: Clock, expire: Callable[[], None]) -> None:
        self._timers = timers
        self._clock = clock
        self._expire = expire
        self._timer: Timer | None = None
        self._at = 0.0
        self._grace = 0.0

    @property
    def is_set(self) -> bool:
        return self._timer is not None

    def set(self, milliseconds: int) -> None:
        """Expire so long from now, and not when it was set to before."""
        self._grace = milliseconds / 1000
        self._at = self._clock.monotonic() + self._grace
        if self._timer is not None:
            if self._timer.deadline <= self._at:
                return
            self._timer.cancel()
        self._timer = self._timers.call_at(self._at, self._look)

    def cancel(self) -> None:
        """Never expire, unless it is set again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        now = self._clock.monotonic()
        lost = min(self._timers.lag_seconds, self._grace)
        if self._at <= now and lost > TOLERATED_LAG_SECONDS:
            self._grace -= lost
            self._at = now + lost
        if self._at > now:
            self._timer = self._timers.call_at(self._at, self._look)
        else:
            self._timer = None
            self._expire()
