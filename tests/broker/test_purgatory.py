"""Who waits in purgatory leaves it once: answered, expired or cancelled."""

from __future__ import annotations

from ottla.broker.purgatory import Purgatory
from ottla.clock import Timers


class Errand:
    """A waiter that is done after so many wakes."""

    def __init__(self, wakes_needed: int = 1) -> None:
        self.wakes_needed = wakes_needed
        self.woken_by: list[str] = []
        self.finished = 0

    def is_done(self, key: str) -> bool:
        self.woken_by.append(key)
        return len(self.woken_by) >= self.wakes_needed

    def finish(self) -> None:
        self.finished += 1


def test_a_waiter_is_woken_by_each_of_its_keys_and_no_other() -> None:
    purgatory: Purgatory[str] = Purgatory(Timers())
    errand = Errand(wakes_needed=9)
    purgatory.wait(errand, ["a", "b"], deadline=5.0)

    for key in "a", "c", "b":
        purgatory.wake(key)

    assert errand.woken_by == ["a", "b"]


def test_a_waiter_that_is_done_finishes_once_and_leaves_all_its_keys() -> None:
    timers = Timers()
    purgatory: Purgatory[str] = Purgatory(timers)
    errand = Errand()
    purgatory.wait(errand, ["a", "b"], deadline=5.0)

    purgatory.wake("b")
    purgatory.wake("a")
    timers.run_due(10.0)

    assert errand.woken_by == ["b"]
    assert errand.finished == 1
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

    assert errand.finished == 1
    assert errand.woken_by == []


def test_a_cancelled_waiter_is_neither_woken_nor_finished() -> None:
    timers = Timers()
    purgatory: Purgatory[str] = Purgatory(timers)
    errand = Errand()
    waiting = purgatory.wait(errand, ["a"], deadline=5.0)

    waiting.cancel()
    waiting.cancel()
    waiting.finish_now()
    purgatory.wake("a")
    timers.run_due(10.0)

    assert (errand.woken_by, errand.finished) == ([], 0)


def test_who_is_hurried_finishes_and_leaves() -> None:
    purgatory: Purgatory[str] = Purgatory(Timers())
    errand = Errand()
    waiting = purgatory.wait(errand, ["a"], deadline=5.0)

    waiting.finish_now()

    assert errand.finished == 1
    assert len(purgatory) == 0


def test_a_waiter_cancelled_by_an_earlier_one_is_not_woken() -> None:
    purgatory: Purgatory[str] = Purgatory(Timers())
    second = Errand()

    class First(Errand):
        def is_done(self, key: str) -> bool:
            waiting_second.cancel()
            return True

    purgatory.wait(First(), ["a"], deadline=5.0)
    waiting_second = purgatory.wait(second, ["a"], deadline=5.0)

    purgatory.wake("a")

    assert second.woken_by == []


def test_a_waiter_whose_answer_wakes_its_own_key_answers_once() -> None:
    purgatory: Purgatory[str] = Purgatory(Timers())

    class Talkative(Errand):
        def finish(self) -> None:
            super().finish()
            purgatory.wake("a")

    errand = Talkative()
    purgatory.wait(errand, ["a"], deadline=5.0)

    purgatory.wake("a")

    assert errand.finished == 1
    assert len(purgatory) == 0


def test_a_long_chain_of_answers_that_wake_each_other_is_no_deep_one() -> None:
    purgatory: Purgatory[str] = Purgatory(Timers())

    class Link(Errand):
        def __init__(self, following: str) -> None:
            super().__init__()
            self.following = following

        def finish(self) -> None:
            super().finish()
            purgatory.wake(self.following)

    links = [Link(str(number + 1)) for number in range(5_000)]
    for number, link in enumerate(links):
        purgatory.wait(link, [str(number)], deadline=5.0)

    purgatory.wake("0")

    assert all(link.finished == 1 for link in links)
