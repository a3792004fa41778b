"""Where connections come in: accepts them, ends those that say nothing for long, and drains at the end.

Knows no dialect. Who is let in, and when, the `ConnectionGate` decides. One timer watches the idle connections of all
listeners together (connections.max.idle.ms): it is set to the moment when the one that is silent for longest would be
over its time, so that nothing ticks.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Self

from ottla.clock import Clock, Timer, Timers
from ottla.config.broker_config import BrokerConfig
from ottla.config.values import Value
from ottla.dialects.connection_gate import IPV4_BYTES, ConnectionGate, packed_address, usual_form
from ottla.dialects.session import Dialect, Peer
from ottla.dialects.stream import Stream
from ottla.engine import Offload

ROOMY_BACKLOG: Final = 1024
ANY_ADDRESS: Final = ("", "::")
"""Hosts that mean every address of this machine. By one socket, as in Kafka: loops would make one for each family, and
with port 0 give them different ports."""

_log = logging.getLogger(__name__)


class SocketSettings(NamedTuple):
    """What the system is told about a listener's sockets. Buffers are in bytes, None leaves them to the system."""

    backlog: int = ROOMY_BACKLOG
    send_buffer: int | None = None
    receive_buffer: int | None = None

    @classmethod
    def from_config(cls, config: BrokerConfig) -> Self:
        """Take what was set, and not Kafka's defaults: buffers of 100 KiB make large fetches slower than the system's,
        which grow, and in a burst of more than 50 connections some would have to try again after a second.
        """
        return cls(
            _told(config.explicit("socket.listen.backlog.size")) or ROOMY_BACKLOG,
            _told(config.explicit("socket.send.buffer.bytes")),
            _told(config.explicit("socket.receive.buffer.bytes")),
        )


def _told(value: Value) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


class IdleConnections:
    """Ends connections over which nothing went for `max_idle_seconds`. One timer serves all of them."""

    __slots__ = ("_clock", "_max_idle_seconds", "_streams", "_timer", "_timers")

    def __init__(self, timers: Timers, clock: Clock, max_idle_seconds: float) -> None:
        self._timers = timers
        self._clock = clock
        self._max_idle_seconds = max_idle_seconds
        self._streams: set[Stream] = set()
        self._timer: Timer | None = None

    def add(self, stream: Stream) -> None:
        """Watch a new connection."""
        self._streams.add(stream)
        if self._timer is None and self._max_idle_seconds > 0:
            self._timer = self._timers.call_at(stream.last_active + self._max_idle_seconds, self._end_idle)

    def remove(self, stream: Stream) -> None:
        """A connection is gone. Without any left no timer runs."""
        self._streams.discard(stream)
        if not self._streams and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_idle(self) -> None:
        over = self._clock.monotonic() - self._max_idle_seconds
        for stream in [stream for stream in self._streams if stream.last_active <= over]:
            self._streams.discard(stream)
            stream.abort()
        self._timer = None
        if self._streams:
            oldest = min(stream.last_active for stream in self._streams)
            self._timer = self._timers.call_at(oldest + self._max_idle_seconds, self._end_idle)


class HostNames:
    """Looks host names up on another thread: the gate's `Resolver`."""

    __slots__ = ("_offload",)

    def __init__(self, offload: Offload) -> None:
        self._offload = offload

    def resolve(self, host: str, then: Callable[[Sequence[str]], None]) -> None:
        addresses: list[str] = []

        def look_up() -> None:
            addresses.extend(str(found[4][0]) for found in socket.getaddrinfo(host, None))

        def done(error: BaseException | None) -> None:
            if error is not None:
                _log.warning("a host name has no address", extra={"host": host})
            then(addresses)

        self._offload.submit(look_up, done)


class Connection:
    """One connection of a listener, from its arrival to its end: the gate's `Visitor`."""

    __slots__ = ("_listener", "_port", "_stream", "host")

    def __init__(self, listener: Listener, stream: Stream, host: str, port: int) -> None:
        self._listener = listener
        self._stream = stream
        self.host = usual_form(host)
        self._port = port

    @property
    def listener_name(self) -> str:
        return self._listener.name

    @property
    def last_active(self) -> float:
        return self._stream.last_active

    def enter(self) -> None:
        self._listener.begin(self._stream, Peer(self._listener.name, self.host, self._port))

    def refuse(self) -> None:
        _log.warning("connection refused: too many", extra={"listener": self._listener.name, "peer": self.host})
        self._stream.abort()


class Listener:
    """One address at which one dialect is spoken."""

    def __init__(
        self,
        name: str,
        dialect: Dialect,
        *,
        gate: ConnectionGate,
        idle: IdleConnections,
        offload: Offload,
        clock: Clock,
        sockets: SocketSettings,
    ) -> None:
        self.name = name
        self.host = ""
        self.port = 0
        self._dialect = dialect
        self._gate = gate
        self._idle = idle
        self._offload = offload
        self._clock = clock
        self._socket_settings = sockets
        self._server: asyncio.Server | None = None
        self._connections: dict[Stream, Connection] = {}  # in order of arrival
        self._all_gone = asyncio.Event()
        self._all_gone.set()

    @property
    def connection_count(self) -> int:
        """Connections that stand, those included that still wait to be let in."""
        return len(self._connections)

    async def bind(self, host: str, port: int) -> None:
        """Take the address without accepting yet; `host` and `port` are then the real ones. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        backlog = self._socket_settings.backlog
        bound = _bind_address(host, port)
        if bound is not None:
            self._server = await loop.create_server(self._new_stream, sock=bound, backlog=backlog, start_serving=False)
        else:
            self._server = await loop.create_server(
                self._new_stream, host or None, port, backlog=backlog, start_serving=False
            )
        for listening in self._server.sockets:  # those that it accepts have the same buffers
            _size_buffers(listening, self._socket_settings)
        self.host, self.port = self._server.sockets[0].getsockname()[:2]

    async def start(self) -> None:
        """Accept connections from now on."""
        assert self._server is not None
        await self._server.start_serving()

    def stop_accepting(self) -> None:
        """Give the address up; connections that stand go on."""
        if self._server is not None:
            self._server.close()

    async def drain(self, seconds: float) -> None:
        """Let every session answer what it was asked, then close; whoever is not done in time is cut off."""
        for stream in list(self._connections):
            if stream.session is None:
                stream.abort()
            else:
                stream.session.finish()
        try:
            await asyncio.wait_for(self._all_gone.wait(), seconds)
        except TimeoutError:
            for stream in list(self._connections):
                stream.abort()
            await self._all_gone.wait()

    def begin(self, stream: Stream, peer: Peer) -> None:
        """Listen to a connection that was let in."""
        self._idle.add(stream)
        stream.begin(self._dialect.connect(stream, peer))

    def _new_stream(self) -> Stream:
        return Stream(self._arrive, self._forget, self._offload, self._clock)

    def _arrive(self, stream: Stream, transport: asyncio.Transport) -> None:
        host, port = (transport.get_extra_info("peername") or ("", 0))[:2]
        connection = self._connections[stream] = Connection(self, stream, host, port)
        self._all_gone.clear()
        self._gate.arrive(connection)

    def _forget(self, stream: Stream) -> None:
        connection = self._connections.pop(stream, None)
        if connection is None:
            return
        self._idle.remove(stream)
        self._gate.leave(connection)
        if not self._connections:
            self._all_gone.set()


def _size_buffers(bound: socket.socket, settings: SocketSettings) -> None:
    """Before it listens: a connection's window is agreed upon as it comes. Raises `OSError`."""
    if settings.send_buffer is not None:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer)
    if settings.receive_buffer is not None:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer)


def _bind_address(host: str, port: int) -> socket.socket | None:
    """Bind where it is plain what to bind: to an address, or to every one, which IPv6 and IPv4 peers can connect to.

    None for a name, which may have several addresses: the loop looks it up, and makes a socket for each. It would look
    an address up, too, with all that Python knows about names in other scripts. Raises `OSError`.
    """
    is_any = host in ANY_ADDRESS and socket.has_dualstack_ipv6()
    packed = packed_address("::" if is_any else host)
    if packed is None or "%" in host:
        return None
    family = socket.AF_INET if len(packed) == IPV4_BYTES else socket.AF_INET6
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not is_any)
        bound.bind((host or "::", port))
    except OSError:
        bound.close()
        raise
    return bound
