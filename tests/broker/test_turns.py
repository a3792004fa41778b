"""Turns of the loop: who works for long gives it back, and all who do get on."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import pytest

from ottla.broker.turns import PAUSE_SECONDS, TURN_SECONDS, Steps, Turns
from ottla.clock import Timers
from ottla.testing.clock import ManualClock


class Loop:
    """A loop on which every step takes time, and nothing else does."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers()
        self.turns = Turns(self.timers, self.clock)
        self.done: list[tuple[str, int]] = []
        self.failed: list[Exception] = []
        self.steps_done = 0

    def steps(self, count: int, seconds: float, *, error: Exception | None = None) -> Steps[int]:
        for _ in range(count):
            self.clock.advance(seconds)
            self.steps_done += 1
            yield
        if error is not None:
            raise error
        return count

    def begin(self, name: str, count: int, seconds: float) -> None:
        self.turns.run(self.steps(count, seconds), lambda result: self.done.append((name, result)), self.failed.append)

    def turn(self) -> int:
        """Come around once; returns how many steps were done."""
        before = self.steps_done
        self.timers.run_due(self.clock.monotonic())
        return self.steps_done - before


@pytest.fixture
def loop() -> Iterator[Loop]:
    gc.enable()
    loop = Loop()
    yield loop
    loop.turns.close()
    gc.enable()


def test_what_fits_into_a_turn_is_done_at_once(loop: Loop) -> None:
    loop.begin("short", 5, TURN_SECONDS / 10)
    assert loop.done == [("short", 5)]


def test_what_is_longer_is_done_in_as_many_turns_as_it_takes(loop: Loop) -> None:
    loop.begin("long", 100, TURN_SECONDS / 10)
    turns = 0
    while not loop.done:
        assert loop.turn() <= 11
        turns += 1
    assert loop.done == [("long", 100)] and 8 <= turns <= 10
    assert loop.turn() == 0 and len(loop.timers) == 0, "a loop without work has no timer"


def test_all_share_the_time_of_one_turn_and_each_gets_on(loop: Loop) -> None:
    """However long the first one's steps are, the others are not behind it for ever."""
    for name in "abcde":
        loop.begin(name, 10, TURN_SECONDS)
    while not loop.done:
        assert loop.turn() <= 1
    assert loop.steps_done > 5 * 9, "nobody was ahead of the others"
    while len(loop.done) < 5:
        assert loop.turn() <= 1
    assert [name for name, _ in loop.done] == list("abcde")


def test_who_waits_twice_is_called_once(loop: Loop) -> None:
    called: list[int] = []
    resume: Callable[[], None] = partial(called.append, 1)
    loop.turns.wait(resume)
    loop.turns.wait(resume)
    loop.turn()
    loop.turn()
    assert called == [1]


def test_who_waits_again_waits_for_another_turn(loop: Loop) -> None:
    called: list[int] = []

    def resume() -> None:
        called.append(1)
        loop.turns.wait(resume)

    loop.turns.wait(resume)
    for turn in range(1, 4):
        loop.turn()
        assert len(called) == turn


def test_a_fault_is_told_to_whoever_asked_and_nobody_else_notices(loop: Loop) -> None:
    error = ValueError("step")
    loop.turns.run(loop.steps(3, TURN_SECONDS, error=error), lambda _: None, loop.failed.append)
    loop.begin("other", 3, TURN_SECONDS)
    while not loop.done:
        loop.turn()
    assert loop.failed == [error]


def test_a_callback_that_fails_leaves_the_others_waiting_and_not_lost(loop: Loop) -> None:
    called: list[int] = []

    def fail() -> None:
        raise ValueError("callback")

    loop.turns.wait(fail)
    loop.turns.wait(partial(called.append, 1))
    with pytest.raises(ValueError, match="callback"):
        loop.turn()
    loop.turn()
    assert called == [1]


def test_the_collector_pauses_while_something_takes_many_turns(loop: Loop) -> None:
    assert gc.isenabled()
    loop.begin("short", 5, TURN_SECONDS / 10)
    assert gc.isenabled()
    loop.begin("long", 5, TURN_SECONDS)
    loop.turns.run(loop.steps(9, TURN_SECONDS, error=ValueError("step")), lambda _: None, loop.failed.append)
    while not loop.failed:
        assert not gc.isenabled()
        loop.turn()
    assert not gc.isenabled(), "what was worked on is there still"
    loop.turn()
    assert gc.isenabled() and len(loop.done) == 2


def test_where_there_always_is_long_work_the_collector_does_not_pause_for_ever(loop: Loop) -> None:
    paused = []
    while loop.clock.monotonic() < 2 * PAUSE_SECONDS + 3:
        loop.begin("next", 40, TURN_SECONDS)
        for _ in range(20):
            loop.turn()
        paused.append(not gc.isenabled())

    changes = [now for before, now in pairwise(paused) if now != before]
    assert paused[0] and changes[:3] == [False, True, False]


def test_a_collector_that_was_not_at_work_stays_so(loop: Loop) -> None:
    gc.disable()
    try:
        loop.begin("long", 5, TURN_SECONDS)
        while not loop.done:
            loop.turn()
        loop.turn()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_loop_that_ends_leaves_the_collector_as_it_was(loop: Loop) -> None:
    loop.begin("long", 5, TURN_SECONDS)
    assert not gc.isenabled()
    loop.turns.close()
    assert gc.isenabled()
