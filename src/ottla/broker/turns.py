"""Turns of the loop: how long what one client asked for may hold it up before everybody else is heard.

Work that may be long is a generator (`Steps`): between two of its steps it may be put off. All such work shares what a
turn has time for, whoever asked for it; what is not done by then goes on in the next turn, first come first served,
and after each turn all other connections get theirs. What is asked for usually is done long before and never notices.

Time is looked at, and not counted work, as the same entry costs ten times more in one build, or on one machine, than
on another.

While such work goes on over several turns Python's collector pauses: it would look through all that one request is made
of, at once and time and again, and find nothing. What is not in cycles, which is nearly all, goes at once as ever;
where there always is such work, the collector is at it now and then for what is, as connections that ended.

What was begun is brought to its end, also when whoever asked for it is gone: a request that came is done as a whole.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar, cast

from ottla.clock import Clock, Timers

TURN_SECONDS: Final = 0.01
"""Long enough that giving a turn back costs nothing to speak of, and short beside what clients notice."""

PAUSE_SECONDS: Final = 10.0
"""How long Python's collector pauses at most. Some megabytes of connections that ended gather in that time."""
COLLECT_SECONDS: Final = 1.0
"""How long it then does not pause again."""

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work whose result is T. At each yield what it has done so far is whole, and others may do theirs."""


def at_once(steps: Steps[T]) -> T:
    """Do all steps in this turn, where it is known that there are few."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(T, end.value)


class Turns:
    """What is left of this turn, and who goes on in the next one. One for each loop."""

    __slots__ = (
        "_clock",
        "_ends_at",
        "_is_begun",
        "_is_collector_paused",
        "_long_count",
        "_may_pause_at",
        "_pause_ends_at",
        "_timers",
        "_waiting",
    )

    def __init__(self, timers: Timers, clock: Clock) -> None:
        self._timers = timers
        self._clock = clock
        self._is_begun = False
        self._ends_at = 0.0
        self._waiting: dict[Callable[[], None], None] = {}  # a dict as an ordered set
        self._long_count = 0  # work that is being done over several turns
        self._is_collector_paused = False
        self._may_pause_at = 0.0
        self._pause_ends_at = 0.0

    def is_over(self) -> bool:
        """Whether others shall have their turn now. The first question of a turn begins it."""
        now = self._clock.monotonic()
        if not self._is_begun:
            self._begin(now)
        return now >= self._ends_at

    def wait(self, resume: Callable[[], None]) -> None:
        """Have `resume` called in a later turn, once. Whoever waits already keeps his place."""
        if not self._is_begun:
            self._begin(self._clock.monotonic())
        self._waiting.setdefault(resume)

    def run(self, steps: Steps[T], done: Callable[[T], None], failed: Callable[[Exception], None]) -> LongWork:
        """Do the steps, now and in as many turns as it takes; then one of the callbacks is called, maybe at once."""
        work = LongWork(self, steps, done, failed)
        work.go_on()
        return work

    def begin_long(self) -> None:
        """Some work takes another turn (called by `LongWork`)."""
        self._long_count += 1
        now = self._clock.monotonic()
        if gc.isenabled():
            if now >= self._may_pause_at:
                gc.disable()
                self._is_collector_paused = True
                self._pause_ends_at = now + PAUSE_SECONDS
        elif self._is_collector_paused and now >= self._pause_ends_at:
            self.close()
            self._may_pause_at = now + COLLECT_SECONDS

    def end_long(self) -> None:
        """It is done; what it was made of will be gone when the loop comes around."""
        self._long_count -= 1
        if not self._long_count and self._is_collector_paused:
            self._timers.call_at(self._clock.monotonic(), self._collect_again)

    def _collect_again(self) -> None:
        if not self._long_count:
            self.close()

    def close(self) -> None:
        """The loop is about to end: leave the collector as it was found."""
        if self._is_collector_paused:
            self._is_collector_paused = False
            gc.enable()

    def _begin(self, now: float) -> None:
        self._is_begun = True
        self._ends_at = now + TURN_SECONDS
        self._timers.call_at(now, self._next)

    def _next(self) -> None:
        """The loop has come around: a new turn, in which those go on that wait."""
        self._is_begun = False
        if not self._waiting:
            return
        try:
            for _ in range(len(self._waiting)):
                if self.is_over():
                    break
                resume = next(iter(self._waiting))
                del self._waiting[resume]
                resume()
        finally:
            if self._waiting and not self._is_begun:
                self._begin(self._clock.monotonic())


class LongWork:
    """Steps that are being done. Made by `Turns.run`."""

    __slots__ = ("_done", "_failed", "_is_long", "_steps", "_turns", "is_over")

    def __init__(
        self, turns: Turns, steps: Steps[Any], done: Callable[[Any], None], failed: Callable[[Exception], None]
    ) -> None:
        self._turns = turns
        self._steps = steps
        self._done = done
        self._failed = failed
        self._is_long = False
        self.is_over = False

    def go_on(self) -> None:
        """Do what this turn has time for, one step at least."""
        try:
            while True:
                next(self._steps)
                if self._turns.is_over():
                    break
        except StopIteration as end:
            self._end()
            self._done(end.value)
        except Exception as error:
            self._end()
            self._failed(error)
        else:
            if not self._is_long:
                self._is_long = True
                self._turns.begin_long()
            self._turns.wait(self.go_on)

    def _end(self) -> None:
        self.is_over = True
        if self._is_long:
            self._turns.end_long()
