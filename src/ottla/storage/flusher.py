"""`Flusher`: group commit. When an fsync runs, and that only one at a time runs per log.

Every append asks for a flush. It begins after the callbacks that the loop is running now, so that appends of the same
turn share it, and flushes of several logs are begun together; whoever comes while it runs is served by the next one. So
under load one fsync serves all appends that came during the one before, and a lone append waits for its own only.

A flush that has one open file to sync, as nearly all have, is the kernel's to run (`Offload.sync`); one that has names,
or small files, runs on a thread.

A flush for which no file can be opened waits a moment and is tried again: nothing was lost by it. Any other failure is
the log's to judge.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from ottla.engine import Offload, Sync
from ottla.storage.files import is_out_of_descriptors
from ottla.storage.flush_work import Flushable, FlushWork

_log = logging.getLogger(__name__)

MOST_AT_ONCE: Final = 64
"""Flushes under way, not thousands: each keeps its files open."""
PAUSE_SECONDS: Final = 0.1
"""How long flushes wait that found no descriptor."""
IDLE: Final = 0
SCHEDULED: Final = 1
RUNNING: Final = 2
RUNNING_AND_ASKED: Final = 3


def flushes_at_once(descriptor_limit: int) -> int:
    """Return how many flushes may be under way in a process that may have so many open files."""
    return max(1, min(MOST_AT_ONCE, descriptor_limit // 8))


def _pause() -> None:
    time.sleep(PAUSE_SECONDS)


class Flusher:
    """Flushes logs off the owner's loop. All methods run on the loop."""

    __slots__ = (
        "_begun",
        "_is_beginning",
        "_is_short",
        "_most_at_once",
        "_offload",
        "_pause",
        "_queue",
        "_waiting",
        "_when_idle",
        "running",
    )

    def __init__(
        self, offload: Offload, pause: Callable[[], None] = _pause, *, most_at_once: int = MOST_AT_ONCE
    ) -> None:
        """`pause` is run on a thread while flushes wait for descriptors.

        So many flushes keep their files open at once, and each may need one descriptor more for a moment: where there
        are few, all would wait for each other.
        """
        self._offload = offload
        self._most_at_once = most_at_once
        self._pause = pause
        self._begun = 0
        self._queue: deque[Flushable] = deque()
        """Logs whose turn comes next."""
        self._is_beginning = False
        """True while flushes are to begin after the loop's present callbacks."""
        self._waiting: list[Callable[[], None]] = []
        """Flushes to be tried again after the pause that is under way."""
        self._is_short = False
        """True since descriptors ran out, which is said once, until a flush has worked again."""
        self._when_idle: list[Callable[[], None]] = []
        self.running = 0
        """Flushes that are scheduled or under way."""

    def schedule(self, log: Flushable) -> None:
        """Have everything that was appended to `log` so far flushed soon."""
        state = log.flush_state
        if state == IDLE:
            self.running += 1
            self._enqueue(log)
        elif state == RUNNING:
            log.flush_state = RUNNING_AND_ASKED

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call `callback` once no flush is scheduled or under way; at once when that is so already."""
        if self.running:
            self._when_idle.append(callback)
        else:
            callback()

    def _enqueue(self, log: Flushable) -> None:
        log.flush_state = SCHEDULED
        self._queue.append(log)
        self._begin_soon()

    def _begin_soon(self) -> None:
        if not self._is_beginning:
            self._is_beginning = True
            self._offload.call_soon(self._begin_queued)

    def _begin_queued(self) -> None:
        """Begin the flushes of the logs that wait, unless many are under way."""
        self._is_beginning = False
        syncs: list[Sync] = []
        while self._queue and self._begun < self._most_at_once:
            log = self._queue.popleft()
            work = self._begin(log)
            if work is None:
                continue
            self._begun += 1
            file = work.only_file
            if file is None:
                self._run(log, work)
            else:
                syncs.append((file, partial(self._finish, log, work)))
        if syncs:
            self._offload.sync(syncs)

    def _begin(self, log: Flushable) -> FlushWork | None:
        """Return what is to be flushed; None when nothing is, or nothing can be now."""
        if log.failure is not None:  # deleted meanwhile, say: its paths may be another log's by now
            self._rest(log)
            return None
        try:
            work = log.begin_flush()
        except OSError as error:
            if is_out_of_descriptors(error):
                self._try_again(partial(self._enqueue, log), error)
            else:
                log.fail_flush(error)
                self._rest(log)
            return None
        log.flush_state = RUNNING
        return work

    def _run(self, log: Flushable, work: FlushWork) -> None:
        self._offload.submit(work.run, partial(self._finish, log, work))

    def _finish(self, log: Flushable, work: FlushWork, error: BaseException | None) -> None:
        if log.failure is None and is_out_of_descriptors(error):
            self._try_again(partial(self._run_again, log, work, error), error)
            return
        self._is_short = self._is_short and error is not None
        self._begun -= 1
        try:
            log.end_flush(work, error)
        finally:  # whoever hears of progress may append more, or meet a fault; flushes go on
            if log.flush_state == RUNNING_AND_ASKED and log.has_unflushed:
                self._enqueue(log)
            else:
                self._rest(log)
                if self._queue:
                    self._begin_soon()

    def _run_again(self, log: Flushable, work: FlushWork, error: BaseException | None) -> None:
        if log.failure is None:
            self._run(log, work)
        else:  # deleted meanwhile: its paths may be another log's by now
            self._finish(log, work, error)

    def _try_again(self, flush: Callable[[], None], error: BaseException | None) -> None:
        if not self._is_short:
            self._is_short = True
            _log.warning("flushes wait for file descriptors; raise the limit of open files: %s", error)
        self._waiting.append(flush)
        if len(self._waiting) == 1:
            self._offload.submit(self._pause, self._resume)

    def _resume(self, _: BaseException | None) -> None:
        waiting, self._waiting = self._waiting, []
        for flush in waiting:
            flush()

    def _rest(self, log: Flushable) -> None:
        log.flush_state = IDLE
        self.running -= 1
        if not self.running:
            waiting, self._when_idle = self._when_idle, []
            for callback in waiting:
                callback()
