"""`Background`: work off the owner's loop that a stop has to wait for.

Counts what is under way and what is to follow it, so that a manager closes its files after the last thread has let go
of them. Decides nothing about order: each chore sees to it itself that it runs once at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ottla.engine import Offload


class Background:
    """Work under way. All methods are called on the owner's loop."""

    __slots__ = ("_offload", "_when_idle", "is_stopping", "running")

    def __init__(self, offload: Offload) -> None:
        self._offload = offload
        self._when_idle: list[Callable[[], None]] = []
        self.running = 0
        self.is_stopping = False
        """Set by a stop: long chores end at their next step."""

    def submit(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        """Run `work` on a thread, then `done` on the loop with what it raised. `done` may submit again."""
        self.running += 1
        self._offload.submit(work, partial(self._finish, done))

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call `callback` once nothing is under way; at once when that is so already."""
        if self.running:
            self._when_idle.append(callback)
        else:
            callback()

    def _finish(self, done: Callable[[BaseException | None], None], error: BaseException | None) -> None:
        try:
            done(error)
        finally:
            self.running -= 1
            if not self.running:
                waiting, self._when_idle = self._when_idle, []
                for callback in waiting:
                    callback()
