"""Who may connect now, who waits, and who is refused: `max.connections` and its relatives.

Kafka's rules. Where the broker or a listener has all the connections it takes, or takes them faster than it should
(`max.connection.creation.rate`, KIP-612), newcomers wait in order, connected but unheard, until there is room; so many
of them as `socket.listen.backlog.size` says, the others are refused. An address that has its share
(`max.connections.per.ip` and its exceptions) is refused. Where brokers have a listener of their own
(`inter.broker.listener.name`), room is made for it: the connection elsewhere that was silent for longest goes.

Limits may change at any time and count for those that come or wait; nobody is put out for them. Opens no sockets.
"""

from __future__ import annotations

import socket
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from ottla.clock import Clock, Timer, Timers
from ottla.config.broker_config import BrokerConfig
from ottla.config.values import INT32_MAX

UNLIMITED: Final = INT32_MAX

IPV4_BYTES: Final = 4
MAPPED_PREFIX: Final = bytes(10) + b"\xff\xff"
"""What stands before the bytes of an IPv4 address where it is written as one of IPv6."""

Resolver = Callable[[str, Callable[[Sequence[str]], None]], None]
"""Looks a host name up and hands its addresses over, later and on the loop; none where there are none."""


class Visitor(Protocol):
    """Somebody who connected to a listener."""

    @property
    def listener_name(self) -> str: ...

    @property
    def host(self) -> str:
        """Where the visitor comes from: an address in its usual form."""

    @property
    def last_active(self) -> float:
        """When the visitor was heard last, on the clock's monotonic scale."""

    def enter(self) -> None:
        """There is room: begin to listen."""

    def refuse(self) -> None:
        """There is none: hang up. The gate has forgotten the visitor already, or never knew it."""


class CreationRate:
    """How fast connections may come: a mean rate, with what was saved up in the last seconds spent at once."""

    __slots__ = ("_per_second", "_saved_seconds", "_spent_until")

    def __init__(self, per_second: int, saved_seconds: float) -> None:
        self._per_second = per_second
        self._saved_seconds = saved_seconds
        self._spent_until = 0.0

    def free_at(self, now: float) -> float:
        """When one may come: `now`, later, or never (infinity)."""
        if self._per_second >= UNLIMITED:
            return now
        if self._per_second == 0:
            return float("inf")
        return max(now, self._spent_until - self._saved_seconds + 1 / self._per_second)

    def take(self, now: float) -> None:
        """One came."""
        if 0 < self._per_second < UNLIMITED:
            self._spent_until = max(self._spent_until, now) + 1 / self._per_second

    def change(self, per_second: int) -> None:
        """Use another rate from now on."""
        self._per_second = per_second


class _Side:
    """One listener: who is in, who waits, and its own limits."""

    __slots__ = ("inside", "limit", "rate", "waiting")

    def __init__(self, saved_seconds: float) -> None:
        self.inside: set[Visitor] = set()
        self.waiting: deque[Visitor] = deque()
        self.limit = UNLIMITED
        self.rate = CreationRate(UNLIMITED, saved_seconds)


class ConnectionGate:
    """Lets visitors of all listeners in. `configure` comes first, and again whenever the limits changed."""

    def __init__(self, config: BrokerConfig, timers: Timers, clock: Clock, resolve: Resolver) -> None:
        self._resolve = resolve
        self._timers = timers
        self._clock = clock
        self._timer: Timer | None = None
        self._waiting_at_most = config.integer("socket.listen.backlog.size")
        saved_seconds = (config.integer("quota.window.num") - 1) * config.integer("quota.window.size.seconds")
        self._sides = {listener.name: _Side(float(saved_seconds)) for listener in config.listeners}
        own_name = config.text("inter.broker.listener.name") or config.text("security.inter.broker.protocol") or ""
        self._always_open = own_name.upper() if len(self._sides) > 1 else None
        self._limit = UNLIMITED
        self._rate = CreationRate(UNLIMITED, float(saved_seconds))
        self._per_host_limit = UNLIMITED
        self._exceptions: dict[str, int] = {}
        self._per_host: Counter[str] = Counter()
        self.configure(config)

    @property
    def connection_count(self) -> int:
        """Visitors who were let in and have not left."""
        return sum(len(side.inside) for side in self._sides.values())

    def configure(self, config: BrokerConfig) -> None:
        """Use these limits from now on."""
        self._limit = config.integer("max.connections")
        self._rate.change(config.integer("max.connection.creation.rate"))
        self._per_host_limit = config.integer("max.connections.per.ip")
        self._exceptions = exceptions = {}
        for host, limit in config.max_connections_per_ip_overrides.items():
            exceptions[usual_form(host)] = limit
            if packed_address(host) is None:
                self._resolve(host, partial(_except, exceptions, limit))
        for name, side in self._sides.items():
            side.limit = config.listener_integer(name, "max.connections")
            side.rate.change(config.listener_integer(name, "max.connection.creation.rate"))
        self._let_in()

    def arrive(self, visitor: Visitor) -> None:
        """Let somebody in, now or when there is room, or refuse."""
        side = self._sides[visitor.listener_name]
        if len(side.waiting) >= self._waiting_at_most:
            visitor.refuse()
            return
        side.waiting.append(visitor)
        self._let_in()

    def leave(self, visitor: Visitor) -> None:
        """Somebody has gone, from within or while waiting; for whoever was refused nothing happens."""
        side = self._sides[visitor.listener_name]
        if visitor in side.inside:
            self._forget(visitor)
            self._let_in()
        elif visitor in side.waiting:
            side.waiting.remove(visitor)

    # -- deciding -------------------------------------------------------------------------------------------------

    def _let_in(self) -> None:
        """Let in whoever there is room for, each listener's visitors in their order."""
        next_look = float("inf")
        for name, side in self._sides.items():
            while side.waiting:
                now = self._clock.monotonic()
                free_at = max(self._rate.free_at(now), side.rate.free_at(now))
                if free_at > now:
                    next_look = min(next_look, free_at)
                    break
                if not self._has_room(name, side):
                    break
                self._take(side, side.waiting.popleft(), now)
        self._look_again_at(next_look)

    def _has_room(self, name: str, side: _Side) -> bool:
        """Whether one more may enter; for brokers' own listener room is made."""
        if len(side.inside) >= side.limit:
            return False
        return self.connection_count < self._limit or (name == self._always_open and self._make_room(name))

    def _make_room(self, name: str) -> bool:
        """Put out the visitor of another listener who was silent for longest."""
        others = [visitor for other, side in self._sides.items() if other != name for visitor in side.inside]
        if not others:
            return False
        silent = min(others, key=lambda visitor: visitor.last_active)
        self._forget(silent)
        silent.refuse()
        return True

    def _forget(self, visitor: Visitor) -> None:
        self._sides[visitor.listener_name].inside.remove(visitor)
        self._per_host[visitor.host] -= 1
        if not self._per_host[visitor.host]:
            del self._per_host[visitor.host]

    def _take(self, side: _Side, visitor: Visitor, now: float) -> None:
        self._rate.take(now)
        side.rate.take(now)
        host = visitor.host
        if self._per_host[host] >= self._exceptions.get(host, self._per_host_limit):
            visitor.refuse()
            return
        self._per_host[host] += 1
        side.inside.add(visitor)
        visitor.enter()

    def _look_again_at(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline != float("inf"):
            self._timer = self._timers.call_at(deadline, self._let_in)


def _except(exceptions: dict[str, int], limit: int, addresses: Sequence[str]) -> None:
    """A name was resolved, perhaps after the exceptions were replaced."""
    for address in addresses:
        exceptions.setdefault(usual_form(address), limit)


def packed_address(host: str) -> bytes | None:
    """The 4 or 16 bytes of an address; None for a name."""
    address = host.partition("%")[0]
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            return socket.inet_pton(family, address)
    return None


def usual_form(host: str) -> str:
    """The one text for an address that may be written in several ways; a name stays as it is."""
    packed = packed_address(host)
    if packed is None:
        return host
    packed = packed.removeprefix(MAPPED_PREFIX)
    return socket.inet_ntop(socket.AF_INET if len(packed) == IPV4_BYTES else socket.AF_INET6, packed)
