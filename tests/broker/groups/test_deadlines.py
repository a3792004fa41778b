"""Deadlines that are moved away again and again."""

from __future__ import annotations

from ottla.broker.groups.deadlines import Deadline
from ottla.clock import Timers
from ottla.testing.clock import ManualClock


class Watch:
    """One deadline, and how often it expired."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers()
        self.expired = 0
        self.deadline = Deadline(self.timers, self.clock, self._expire)

    def _expire(self) -> None:
        self.expired += 1

    def advance(self, seconds: float, lag_seconds: float = 0.0) -> int:
        self.clock.advance(seconds)
        self.timers.lag_seconds = lag_seconds
        self.timers.run_due(self.clock.monotonic())
        return self.expired


def test_it_expires_once_when_its_time_is_over() -> None:
    watch = Watch()
    watch.deadline.set(1000)
    assert [watch.advance(seconds) for seconds in (0.5, 0.4, 0.1, 5)] == [0, 0, 1, 1]
    assert not watch.deadline.is_set


def test_it_moves_as_often_as_it_is_set_on_one_timer() -> None:
    watch = Watch()
    for _ in range(100):
        watch.deadline.set(1000)
        assert watch.advance(0.9) == 0
    assert len(watch.timers) == 1
    assert watch.advance(0.1) == 1


def test_it_can_be_set_to_an_earlier_time() -> None:
    watch = Watch()
    watch.deadline.set(300_000)
    watch.deadline.set(1000)
    assert watch.advance(1) == 1
    assert len(watch.timers) == 0


def test_a_cancelled_one_does_not_expire_until_it_is_set_again() -> None:
    watch = Watch()
    watch.deadline.set(1000)
    watch.deadline.cancel()
    assert watch.advance(5) == 0
    watch.deadline.set(1000)
    assert watch.advance(1) == 1


def test_time_for_which_the_loop_was_held_up_is_given_back() -> None:
    watch = Watch()
    watch.deadline.set(10_000)
    assert watch.advance(16, lag_seconds=6) == 0
    assert [watch.advance(seconds) for seconds in (5.9, 0.1)] == [0, 1]


def test_no_more_is_given_back_than_the_deadline_is_long() -> None:
    watch = Watch()
    watch.deadline.set(1000)
    assert watch.advance(60, lag_seconds=59) == 0
    assert watch.advance(1) == 1


def test_a_loop_that_is_always_late_lets_it_expire_in_the_end() -> None:
    watch = Watch()
    watch.deadline.set(1000)
    watch.advance(1.2, lag_seconds=0.2)
    rounds = 0
    while not watch.expired:
        watch.advance(0.4, lag_seconds=0.2)
        rounds += 1
    assert rounds <= 5


def test_the_usual_lateness_of_timers_is_no_lag() -> None:
    watch = Watch()
    watch.deadline.set(1000)
    assert watch.advance(1.002, lag_seconds=0.002) == 1
