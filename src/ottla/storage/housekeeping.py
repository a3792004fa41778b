"""`Housekeeper`: what a log manager has to do from time to time, all of it on one timer.

| chore | how often |
| --- | --- |
| offset checkpoints, and before them a flush of rolled segments | `log.flush.offset.checkpoint.interval.ms` |
| retention | `log.retention.check.interval.ms` |
| producers that are silent for too long | `producer.id.expiration.check.interval.ms` |
| compaction | `log.cleaner.backoff.ms` |
| `flush.ms` | the shortest of any log; never where none has it |
| removal of what lies in the trash | when its delay is over |

Decides when; each chore decides what, and does on threads what blocks. Without a housekeeper a manager works as well,
only that nothing is ever tidied up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.clock import Clock, Timer, Timers
from ottla.config.broker_config import BrokerConfig

SHORTEST_MS: Final = 10
"""No chore comes round faster, whatever the settings say."""


class Chore:
    """Something to be done again and again. `interval_ms` None: not for now."""

    __slots__ = ("due", "interval_ms", "run")

    def __init__(self, run: Callable[[], None], interval_ms: int | None) -> None:
        self.run = run
        self.interval_ms = interval_ms
        self.due: float | None = None

    def plan(self, now: float, within_ms: int | None = None) -> None:
        """Fall due an interval from now, the first time within `within_ms`."""
        if self.interval_ms is None:
            self.due = None
            return
        wait_ms = self.interval_ms if within_ms is None else min(self.interval_ms, within_ms)
        self.due = now + max(wait_ms, SHORTEST_MS) / 1000


class Housekeeper:
    """Runs chores when they are due. All methods run on the owner's loop."""

    __slots__ = ("_chores", "_clock", "_is_running", "_next_removal", "_remove", "_timer", "_timers")

    def __init__(
        self,
        timers: Timers,
        clock: Clock,
        *,
        remove: Callable[[], None],
        next_removal: Callable[[], float | None],
    ) -> None:
        """`next_removal` tells when (seconds, monotonic) `remove` has something to do."""
        self._timers = timers
        self._clock = clock
        self._remove = remove
        self._next_removal = next_removal
        self._chores: dict[str, Chore] = {}
        self._timer: Timer | None = None
        self._is_running = False

    def add(self, name: str, run: Callable[[], None], interval_ms: int | None) -> None:
        self._chores[name] = Chore(run, interval_ms)

    def start(self, settings: BrokerConfig) -> None:
        """Begin; every chore comes within `log.initial.task.delay.ms` the first time."""
        self._is_running = True
        now = self._clock.monotonic()
        for chore in self._chores.values():
            chore.plan(now, settings.integer("log.initial.task.delay.ms"))
        self._arm()

    def stop(self) -> None:
        """Wake up no more."""
        self._is_running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def change_interval(self, name: str, interval_ms: int | None) -> None:
        """Let a chore come round at another pace from now on."""
        chore = self._chores[name]
        if chore.interval_ms != interval_ms:
            chore.interval_ms = interval_ms
            if self._is_running:
                chore.plan(self._clock.monotonic())
                self._arm()

    def note_trash(self) -> None:
        """Look anew at when something has to be removed."""
        if self._is_running:
            self._arm()

    def _arm(self) -> None:
        deadlines = [chore.due for chore in self._chores.values() if chore.due is not None]
        removal = self._next_removal()
        if removal is not None:
            deadlines.append(removal)
        deadline = min(deadlines, default=None)
        if self._timer is not None and self._timer.is_pending:
            if self._timer.deadline == deadline:
                return
            self._timer.cancel()
        self._timer = None if deadline is None else self._timers.call_at(deadline, self._run_due)

    def _run_due(self) -> None:
        try:
            self._run(self._clock.monotonic())
        finally:  # a chore that meets a fault, as one whose code no descriptor is left to read, comes round again
            if self._is_running:
                self._arm()

    def _run(self, now: float) -> None:
        removal = self._next_removal()
        if removal is not None and removal <= now:
            self._remove()
        for chore in self._chores.values():
            if chore.due is not None and chore.due <= now:
                chore.plan(now)
                chore.run()
