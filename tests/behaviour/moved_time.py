"""An event loop whose time stands still while anything happens, and is moved on to the next timer when nothing does.

A conversation that waits 1300 ms for a session to end takes no time, and how busy the machine is does not matter: as
long as a byte, a callback or a thread is under way, no timer falls due. Broker and client must be on the same loop.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

GRACE_SECONDS: Final = 0.002
"""How long a byte may be on its way from one socket of the process to another."""

Selected = list[tuple[selectors.SelectorKey, int]]


class Threads(ThreadPoolExecutor):
    """Threads that tell how many pieces of work are under way, of all pools together."""

    under_way = 0
    _lock = threading.Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self._count(1)
        future = super().submit(fn, *args, **kwargs)
        future.add_done_callback(lambda _: self._count(-1))
        return future

    @classmethod
    def _count(cls, change: int) -> None:
        with cls._lock:
            Threads.under_way += change


class MovingSelector(selectors.BaseSelector):
    """Waits for sockets; where a wait for a timer would begin, it moves the time instead."""

    def __init__(self) -> None:
        self._sockets = selectors.DefaultSelector()
        self.is_moving = False
        self.now = time.monotonic()

    def select(self, timeout: float | None = None) -> Selected:
        if not self.is_moving:
            begin = time.monotonic()
            ready = self._sockets.select(timeout)
            self.now += time.monotonic() - begin
            return ready
        ready = self._sockets.select(0)
        while not ready and timeout != 0:
            is_busy = Threads.under_way > 0
            ready = self._sockets.select(GRACE_SECONDS)
            if not ready and not is_busy and timeout is not None:
                self.now += max(timeout, 0)
                break
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._sockets.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._sockets.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._sockets.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        found = self._sockets.get_map()
        assert found is not None
        return found

    def close(self) -> None:
        self._sockets.close()


class MovedTimeLoop(asyncio.SelectorEventLoop):
    """The loop; time runs as usual until `move_time` is called."""

    def __init__(self) -> None:
        self._moving = MovingSelector()
        super().__init__(self._moving)

    def time(self) -> float:
        return self._moving.now

    def move_time(self) -> None:
        """From now on nobody waits for a timer. Whoever needs a thread must take `Threads`."""
        self._moving.is_moving = True


class LoopClock:
    """The clock of a `MovedTimeLoop`, for the broker on it."""

    def __init__(self, loop: MovedTimeLoop) -> None:
        self._loop = loop
        self._wall_offset = time.time() - loop.time()

    def wall_ms(self) -> int:
        return int((self._loop.time() + self._wall_offset) * 1000)

    def monotonic(self) -> float:
        return self._loop.time()
