"""`Flusher`: group commit. When an fsync runs, and that only one at a time runs per log.

Every append asks for a flush. The first one of a round is started after the callbacks that the loop is running now, so
that appends of the same round share it; whoever comes while it runs is served by the next one, which starts as soon as
it has ended. So under load one fsync serves all appends that came during the one before, and a lone append waits for
its own only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from ottla.engine import Offload
from ottla.storage.flush_work import Flushable, FlushWork

IDLE: Final = 0
SCHEDULED: Final = 1
RUNNING: Final = 2
RUNNING_AND_ASKED: Final = 3


class Flusher:
    """Flushes logs off the owner's loop. All methods run on the loop."""

    __slots__ = ("_offload", "_when_idle", "running")

    def __init__(self, offload: Offload) -> None:
        self._offload = offload
        self._when_idle: list[Callable[[], None]] = []
        self.running = 0
        """Flushes that are scheduled or under way."""

    def schedule(self, log: Flushable) -> None:
        """Have everything that was appended to `log` so far flushed soon."""
        state = log.flush_state
        if state == IDLE:
            log.flush_state = SCHEDULED
            self.running += 1
            self._offload.call_soon(partial(self._start, log))
        elif state == RUNNING:
            log.flush_state = RUNNING_AND_ASKED

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call `callback` once no flush is scheduled or under way; at once when that is so already."""
        if self.running:
            self._when_idle.append(callback)
        else:
            callback()

    def _start(self, log: Flushable) -> None:
        if log.failure is not None:  # deleted meanwhile, say: its paths may be another log's by now
            self._rest(log)
            return
        try:
            work = log.begin_flush()
        except OSError as error:
            log.fail_flush(error)
            self._rest(log)
            return
        log.flush_state = RUNNING
        self._offload.submit(work.run, partial(self._finish, log, work))

    def _finish(self, log: Flushable, work: FlushWork, error: BaseException | None) -> None:
        is_asked = log.flush_state == RUNNING_AND_ASKED
        try:
            log.end_flush(work, error)
        finally:  # whoever hears of progress may meet a fault; flushes go on
            if is_asked and log.has_unflushed:
                self._start(log)
            else:
                self._rest(log)

    def _rest(self, log: Flushable) -> None:
        log.flush_state = IDLE
        self.running -= 1
        if not self.running:
            waiting, self._when_idle = self._when_idle, []
            for callback in waiting:
                callback()
