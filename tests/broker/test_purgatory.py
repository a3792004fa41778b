"""Who waits in purgatory leaves it once: answered, expired or cancelled."""

from __future__ import annotations

from ottla.broker.purgatory import Purgatory
from ottla.clock import Timers


class Errand:
    """A waiter that is done after so many wakes."""

    def __init__(self, wakes_needed: int = 1) -> None:
        self.wakes_needed = wakes_needed
        self.woken_by: list[str] = []
        self.expired = 0

    def try_complete(self, key: str) -> bool:
        self.woken_by.append(key)
        return len(self.woken_by) >= self.wakes_needed

    def expire(self) -> None:
        self.expired += 1


def test_a_waiter_is_woken_by_each_of_its_keys_and_no_other() -> None:
    purgatory: Purgatory[str] = Purgatory(Timers())
    errand = Errand(wakes_needed=9)
    purgatory.wait(errand, ["a", "b"], deadline=5.0)

    for key in "a", "c", "b":
        purgatory.wake(key)

    assert errand.woken_by == ["a", "b"]


def test_a_waiter_that_is_done_leaves_all_its_keys_and_never_expires() -> None:
    timers = Timers()
    purgatory: Purgatory[str] = Purgatory(timers)
    errand = Errand()
    purgatory.wait(errand, ["a", "b"], deadline=5.0)

    purgatory.wake("b")
    purgatory.wake("a")
    timers.run_due(10.0)

    assert errand.woken_by == ["b"]
    assert errand.expired == 0
    assert len(purgatory) == 0
    assert timers.next_deadline() is None


def test_a_waiter_expires_at_its_deadline_once() -> None:
    timers = Timers()
    purgatory: Purgatory[str] = Purgatory(timers)
    errand = Errand()
    purgatory.wait(errand, ["a"], deadline=5.0)

    assert timers.run_due(4.9) == 0
    timers.run_due(5.0)
    timers.run_due(6.0)
    purgatory.wake("a")

    assert errand.expired == 1
    assert errand.woken_by == []


def test_a_cancelled_waiter_is_neither_woken_nor_expired() -> None:
    timers = Timers()
    purgatory: Purgatory[str] = Purgatory(timers)
    errand = Errand()
    waiting = purgatory.wait(errand, ["a"], deadline=5.0)

    waiting.cancel()
    waiting.cancel()
    waiting.expire_now()
    purgatory.wake("a")
    timers.run_due(10.0)

    assert (errand.woken_by, errand.expired) == ([], 0)


def test_expiring_early_is_expiring() -> None:
    purgatory: Purgatory[str] = Purgatory(Timers())
    errand = Errand()
    waiting = purgatory.wait(errand, ["a"], deadline=5.0)

    waiting.expire_now()

    assert errand.expired == 1
    assert len(purgatory) == 0


def test_a_waiter_cancelled_by_an_earlier_one_is_not_woken() -> None:
    purgatory: Purgatory[str] = Purgatory(Timers())
    second = Errand()

    class First(Errand):
        def try_complete(self, key: str) -> bool:
            waiting_second.cancel()
            return True

    purgatory.wait(First(), ["a"], deadline=5.0)
    waiting_second = purgatory.wait(second, ["a"], deadline=5.0)

    purgatory.wake("a")

    assert second.woken_by == []
