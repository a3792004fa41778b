"""When the metadata's snapshot is due by age: `metadata.log.max.snapshot.interval.ms` after a record that is in none.

While everything is in a snapshot, nothing waits. A snapshot that fails is tried again after the same time.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.clock import Clock, Timer, Timers


class SnapshotTimer:
    """Calls `write` when a record has waited for so long; `write` tells `note_snapshot` when it succeeds."""

    __slots__ = ("_clock", "_interval_s", "_timer", "_timers", "_write")

    def __init__(self, timers: Timers, clock: Clock, interval_ms: int, write: Callable[[], None]) -> None:
        self._timers = timers
        self._clock = clock
        self._interval_s = interval_ms / 1000
        self._write = write
        self._timer: Timer | None = None

    def note_append(self) -> None:
        """Something was appended that is in no snapshot."""
        if self._timer is None:
            self._timer = self._timers.call_at(self._clock.monotonic() + self._interval_s, self._run)

    def note_snapshot(self) -> None:
        """Everything is in a snapshot."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        self._timer = None
        self.note_append()
        self._write()
