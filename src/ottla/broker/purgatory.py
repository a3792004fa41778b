"""Purgatory: where requests wait until something happens or their time is over.

A waiter watches keys (partitions, groups) and has a deadline. `wake(key)` asks each waiter of that key whether it is
done now; whoever is done, expires or is cancelled leaves all its keys at once, and answers after that: an answer lets
its connection go on, and what comes next there may well wake the same key. What being done means, and what is answered,
is the waiter's own business. The name and the idea are Kafka's.

Deadlines hang on the process's one heap of timers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from ottla.clock import Timer, Timers

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)


class Waiter(Protocol[K_contra]):
    """A request that waits."""

    def is_done(self, key: K_contra) -> bool:
        """Something happened to `key`: whether the wait is over now. Not asked again after True."""

    def finish(self) -> None:
        """The wait is over, be it that it is done or that the deadline has passed: answer with what there is. Once."""


class Waiting(Generic[K]):
    """A waiter's stay in purgatory."""

    __slots__ = ("_purgatory", "_timer", "is_over", "keys", "waiter")

    def __init__(self, purgatory: Purgatory[K], waiter: Waiter[K], keys: Sequence[K]) -> None:
        self._purgatory = purgatory
        self._timer: Timer | None = None
        self.waiter = waiter
        self.keys = keys
        self.is_over = False

    def start_timer(self, timers: Timers, deadline: float) -> None:
        """Expire at `deadline` (called by `Purgatory.wait`)."""
        self._timer = timers.call_at(deadline, self.finish_now)

    def cancel(self) -> None:
        """Leave without an answer. Does nothing when the stay is over."""
        if not self.is_over:
            self.is_over = True
            self._purgatory.remove(self)
            if self._timer is not None:
                self._timer.cancel()

    def finish_now(self) -> None:
        """Let the waiter leave and answer with what there is. Does nothing when the stay is over."""
        if not self.is_over:
            self.cancel()
            self.waiter.finish()


class Wakes(Generic[K]):
    """Which keys were woken while somebody who takes several turns of the loop was not yet waiting for them."""

    __slots__ = ("keys",)

    def __init__(self) -> None:
        self.keys: dict[K, None] = {}  # a dict as an ordered set


class Purgatory(Generic[K]):
    """All waiters of one kind, by the keys that they watch."""

    __slots__ = ("_by_key", "_is_waking", "_notes", "_timers", "_woken")

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._by_key: dict[K, dict[Waiting[K], None]] = {}  # a dict as an ordered set: first come, first woken
        self._notes: list[Wakes[K]] = []
        self._woken: deque[K] = deque()
        self._is_waking = False

    def __len__(self) -> int:
        """How many waiters there are; counts a waiter once for each key."""
        return sum(len(waitings) for waitings in self._by_key.values())

    def wait(self, waiter: Waiter[K], keys: Sequence[K], deadline: float) -> Waiting[K]:
        """Keep `waiter` until it is done, cancelled, or `deadline` (seconds, monotonic) has passed."""
        waiting = Waiting(self, waiter, keys)
        for key in keys:
            self._by_key.setdefault(key, {})[waiting] = None
        waiting.start_timer(self._timers, deadline)
        return waiting

    def wake(self, key: K) -> None:
        """Let every waiter of `key` look again. What an answer wakes in turn is woken after it, not within it."""
        for wakes in self._notes:
            wakes.keys[key] = None
        if key not in self._by_key:
            return
        self._woken.append(key)
        if self._is_waking:
            return
        self._is_waking = True
        try:
            while self._woken:
                self._ask_waiters(self._woken.popleft())
        finally:
            self._is_waking = False

    def note_wakes(self) -> Wakes[K]:
        """Note every key that is woken from now on, until `forget_wakes`."""
        wakes: Wakes[K] = Wakes()
        self._notes.append(wakes)
        return wakes

    def forget_wakes(self, wakes: Wakes[K]) -> None:
        """Note no more."""
        self._notes.remove(wakes)

    def _ask_waiters(self, key: K) -> None:
        for waiting in list(self._by_key.get(key, ())):
            if not waiting.is_over and waiting.waiter.is_done(key):
                waiting.finish_now()

    def remove(self, waiting: Waiting[K]) -> None:
        """Take a waiter off its keys (called by `Waiting.cancel`)."""
        for key in waiting.keys:
            waitings = self._by_key.get(key)
            if waitings is not None:
                waitings.pop(waiting, None)
                if not waitings:
                    del self._by_key[key]
