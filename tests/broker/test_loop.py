"""The bridge to the event loop: timers know how late they are."""

from __future__ import annotations

import asyncio
import time

from ottla.broker.loop import LoopTimers
from ottla.clock import SystemClock


def test_callbacks_are_told_how_long_the_loop_was_held_up() -> None:
    lags: list[float] = []

    async def run() -> None:
        clock = SystemClock()
        timers = LoopTimers(asyncio.get_running_loop(), clock)
        done = asyncio.Event()

        def due() -> None:
            lags.append(timers.lag_seconds)
            done.set()

        for held_up_seconds in (0.0, 0.3):
            done.clear()
            timers.call_at(clock.monotonic() + 0.02, due)
            await asyncio.sleep(0)
            hold_up(held_up_seconds)
            await done.wait()
        timers.close()

    asyncio.run(run())

    assert lags[0] < 0.2
    assert 0.2 < lags[1] < 3


def test_a_callback_that_raises_stops_no_other_timer() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        faults: list[str] = []
        loop.set_exception_handler(lambda _, context: faults.append(str(context["exception"])))
        clock = SystemClock()
        timers = LoopTimers(loop, clock)
        done = asyncio.Event()

        def fail() -> None:
            raise RuntimeError("a fault")

        timers.call_at(clock.monotonic(), fail)
        timers.call_at(clock.monotonic() + 0.005, done.set)
        await asyncio.wait_for(done.wait(), 10)
        timers.close()
        assert faults == ["a fault"]

    asyncio.run(run())


def hold_up(seconds: float) -> None:
    """Keep the loop from running, as a long computation does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
