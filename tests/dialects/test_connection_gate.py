"""Who is let in, who waits and who is refused, with time moved by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ottla.clock import Timers
from ottla.config.broker_config import BrokerConfig
from ottla.dialects.connection_gate import ConnectionGate, usual_form
from ottla.testing.clock import ManualClock

INSIDE, OUTSIDE = "INSIDE", "OUTSIDE"
TWO_LISTENERS = {
    "listeners": "INSIDE://127.0.0.1:1,OUTSIDE://127.0.0.1:2",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
}


class Caller:
    """A visitor that remembers what became of it."""

    def __init__(self, host: str = "10.0.0.1", listener_name: str = "PLAINTEXT", last_active: float = 0.0) -> None:
        self.host = host
        self.listener_name = listener_name
        self.last_active = last_active
        self.fate = "waits"

    def enter(self) -> None:
        self.fate = "in"

    def refuse(self) -> None:
        self.fate = "refused"


class Scene:
    """A gate with a clock."""

    def __init__(self, **settings: str) -> None:
        self.clock = ManualClock()
        self.timers = Timers()
        self.static = BrokerConfig.from_properties(dotted(settings))
        self.asked: list[tuple[str, Callable[[Sequence[str]], None]]] = []
        self.gate = ConnectionGate(self.static, self.timers, self.clock, lambda *asked: self.asked.append(asked))

    def call(self, *callers: Caller) -> list[str]:
        for caller in callers:
            self.gate.arrive(caller)
        return fates(callers)

    def change(self, **settings: str) -> None:
        self.gate.configure(self.static.with_changes(dotted(settings)))

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.run_due(self.clock.monotonic())


def dotted(settings: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in settings.items()}


def fates(callers: Sequence[Caller]) -> list[str]:
    return [caller.fate for caller in callers]


def callers(count: int, host: str = "10.0.0.1", listener_name: str = "PLAINTEXT") -> list[Caller]:
    return [Caller(host, listener_name) for _ in range(count)]


def test_without_limits_everybody_enters() -> None:
    assert set(Scene().call(*callers(100))) == {"in"}


def test_beyond_the_limit_callers_wait_in_order_for_somebody_to_leave() -> None:
    scene = Scene(max_connections="2")
    first, second, _, fourth = people = callers(4)
    assert scene.call(*people) == ["in", "in", "waits", "waits"]
    scene.gate.leave(second)
    assert fates(people) == ["in", "in", "in", "waits"]
    scene.gate.leave(fourth)
    scene.gate.leave(first)
    assert (fourth.fate, scene.gate.connection_count) == ("waits", 1)


def test_no_more_wait_than_the_backlog_holds() -> None:
    scene = Scene(max_connections="1", socket_listen_backlog_size="2")
    assert scene.call(*callers(4)) == ["in", "waits", "waits", "refused"]


def test_an_address_that_has_its_share_is_refused() -> None:
    scene = Scene(max_connections_per_ip="2", max_connections_per_ip_overrides="10.0.0.9:3")
    people = callers(3)
    assert scene.call(*people) == ["in", "in", "refused"]
    assert scene.call(*callers(4, "10.0.0.9")) == ["in", "in", "in", "refused"]
    scene.gate.leave(people[2])
    assert scene.call(Caller()) == ["refused"], "whoever was refused leaves no room"
    scene.gate.leave(people[0])
    assert scene.call(Caller()) == ["in"]


def test_nobody_enters_by_default_where_only_exceptions_do() -> None:
    scene = Scene(max_connections_per_ip="0", max_connections_per_ip_overrides="[::1]:1")
    assert scene.call(Caller("10.0.0.1"), Caller("::1"), Caller("::1")) == ["refused", "in", "refused"]


def test_an_exception_may_be_a_name_which_counts_once_it_is_looked_up() -> None:
    scene = Scene(max_connections_per_ip="1", max_connections_per_ip_overrides="a.example:2,10.0.0.9:1")
    ((name, answer),) = scene.asked
    assert scene.call(*callers(2)) == ["in", "refused"]
    answer(["10.0.0.1", "::1", "10.0.0.9"])
    assert name == "a.example"
    assert scene.call(*callers(2)) == ["in", "refused"]
    assert scene.call(*callers(2, "10.0.0.9")) == ["in", "refused"]
    scene.change(max_connections_per_ip_overrides="")
    answer(["10.0.0.7"])
    assert scene.call(*callers(2, "10.0.0.7")) == ["in", "refused"], "what was replaced counts no more"


def test_limits_change_while_people_wait_and_put_nobody_out() -> None:
    scene = Scene(max_connections="1")
    people = callers(3)
    assert scene.call(*people) == ["in", "waits", "waits"]
    scene.change(max_connections="2")
    assert fates(people) == ["in", "in", "waits"]
    scene.change(max_connections="1", max_connections_per_ip="1")
    assert fates(people) == ["in", "in", "waits"]
    scene.gate.leave(people[0])
    scene.gate.leave(people[1])
    assert people[2].fate == "in"
    assert scene.call(Caller()) == ["waits"]


def test_connections_come_no_faster_than_the_rate_once_what_was_saved_is_spent() -> None:
    scene = Scene(max_connection_creation_rate="2")
    people = callers(24)
    assert scene.call(*people).count("in") == 20, "ten seconds' worth may come at once"
    scene.advance(0.5)
    assert fates(people).count("in") == 21
    scene.advance(1.0)
    assert fates(people).count("in") == 23
    scene.change(max_connection_creation_rate="2147483647")
    assert fates(people).count("in") == 24


def test_a_rate_of_zero_lets_nobody_in_until_it_changes() -> None:
    scene = Scene(max_connection_creation_rate="0")
    people = callers(1)
    assert scene.call(*people) == ["waits"]
    assert scene.timers.next_deadline() is None
    scene.change(max_connection_creation_rate="1")
    assert fates(people) == ["in"]


def test_a_listener_may_have_its_own_limit() -> None:
    scene = Scene(**TWO_LISTENERS, **{"listener.name.outside.max.connections": "1"})
    assert scene.call(*callers(2, listener_name=OUTSIDE)) == ["in", "waits"]
    assert scene.call(*callers(3, listener_name=INSIDE)) == ["in"] * 3


def test_room_is_made_for_brokers_by_whoever_was_silent_for_longest() -> None:
    scene = Scene(**TWO_LISTENERS, max_connections="2")
    busy, silent = Caller(listener_name=OUTSIDE, last_active=9.0), Caller(listener_name=OUTSIDE, last_active=5.0)
    scene.call(busy, silent)
    assert scene.call(Caller(listener_name=OUTSIDE)) == ["waits"]
    assert scene.call(Caller(listener_name=INSIDE)) == ["in"]
    assert (busy.fate, silent.fate, scene.gate.connection_count) == ("in", "refused", 2)
    scene.gate.leave(silent)
    assert scene.gate.connection_count == 2


@pytest.mark.parametrize(
    ("host", "usual"),
    [("127.0.0.1", "127.0.0.1"), ("0:0::1", "::1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("fe80::1%lo", "fe80::1")],
)
def test_an_address_has_one_form(host: str, usual: str) -> None:
    assert usual_form(host) == usual
