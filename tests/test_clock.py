"""The clocks and the one heap of deadlines."""

from __future__ import annotations

from functools import partial

import pytest

from ottla.clock import COMPACT_ABOVE, SystemClock, Timers
from ottla.testing.clock import ManualClock


def test_the_system_clock_gives_milliseconds_since_1970_and_never_goes_back_on_the_other_scale() -> None:
    clock = SystemClock()
    assert clock.wall_ms() > 1_700_000_000_000
    assert clock.monotonic() <= clock.monotonic()


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(wall_ms=1000)
    clock.advance(1.5)
    assert (clock.wall_ms(), clock.monotonic()) == (2500, 1.5)
    clock.set_wall_ms(500)
    assert (clock.wall_ms(), clock.monotonic()) == (500, 1.5)
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)


def test_due_timers_run_in_order_of_deadline_and_among_equals_in_order_of_setting() -> None:
    timers, ran = Timers(), list[str]()
    for name, deadline in (("c", 2.0), ("a", 1.0), ("d", 2.0), ("later", 3.0), ("b", 1.0)):
        timers.call_at(deadline, partial(ran.append, name))
    assert timers.next_deadline() == 1.0
    assert timers.run_due(2.0) == 4
    assert ran == ["a", "b", "c", "d"]
    assert timers.next_deadline() == 3.0
    assert len(timers) == 1


def test_a_cancelled_timer_never_runs_and_its_deadline_is_gone() -> None:
    timers, ran = Timers(), list[int]()
    first = timers.call_at(1.0, lambda: ran.append(1))
    timers.call_at(2.0, lambda: ran.append(2))
    first.cancel()
    first.cancel()
    assert not first.is_pending
    assert len(timers) == 1
    assert timers.next_deadline() == 2.0
    timers.run_due(5.0)
    first.cancel()
    assert ran == [2]
    assert timers.next_deadline() is None


def test_a_callback_may_cancel_a_timer_that_is_due_with_it() -> None:
    timers, ran = Timers(), list[int]()

    def cancel_second() -> None:
        second.cancel()

    timers.call_at(1.0, cancel_second)
    second = timers.call_at(1.0, lambda: ran.append(2))
    assert timers.run_due(1.0) == 1
    assert ran == []
    assert len(timers) == 0


def test_a_callback_that_rearms_itself_at_once_does_not_hold_the_loop() -> None:
    timers, ran = Timers(), list[int]()

    def rearm() -> None:
        ran.append(1)
        timers.call_at(0.0, rearm)

    timers.call_at(0.0, rearm)
    assert timers.run_due(1.0) == 1
    assert timers.next_deadline() == 0.0


def test_a_callback_that_raises_leaves_the_other_timers_in_place() -> None:
    timers, ran = Timers(), list[int]()

    def fail() -> None:
        raise RuntimeError("on purpose")

    timers.call_at(1.0, fail)
    timers.call_at(1.0, lambda: ran.append(2))
    with pytest.raises(RuntimeError):
        timers.run_due(1.0)
    assert len(timers) == 1
    assert timers.run_due(1.0) == 1
    assert ran == [2]


def test_a_session_timer_moved_a_thousand_times_does_not_grow_the_heap() -> None:
    timers = Timers()
    timer = timers.call_at(0.0, lambda: None)
    for moment in range(1000):
        timer.cancel()
        timer = timers.call_at(moment + 30.0, lambda: None)
    assert len(timers) == 1
    assert len(timers._heap) <= COMPACT_ABOVE + 1
    assert timers.next_deadline() == 1029.0
