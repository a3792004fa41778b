"""Turns of a loop, counted: on a clock that moves with every look at it work takes time, and nobody waits."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from ottla.broker.turns import TURN_SECONDS
from ottla.testing.clock import ManualClock

T = TypeVar("T")


class BusyClock(ManualClock):
    """Each look at the time takes a part of a turn: after `looks_a_turn` of them the turn is over."""

    def __init__(self, looks_a_turn: int = 4) -> None:
        super().__init__()
        self._look_seconds = TURN_SECONDS / looks_a_turn

    def monotonic(self) -> float:
        self.advance(self._look_seconds)
        return super().monotonic()


def finish(steps: Generator[None, None, T]) -> tuple[T, int]:
    """Do steps to their end; returns what came of them, and how often they could have been put off."""
    yields = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result, yields
        yields += 1
