"""Where connections come in: accepts them, counts them, ends those that say nothing for long, and drains at the end.

Knows no dialect. One timer watches the idle connections of all listeners together (connections.max.idle.ms): it is set
to the moment when the one that is silent for longest would be over its time, so that nothing ticks.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from typing import Final

from ottla.clock import Clock, Timer, Timers
from ottla.dialects.session import Dialect, Peer, Session
from ottla.dialects.stream import Stream
from ottla.engine import Offload

BACKLOG: Final = 1024

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections one listener takes (max.connections, max.connections.per.ip)."""

    total: int = 2**31 - 1
    per_host: int = 2**31 - 1


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


class Listener:
    """One address at which one dialect is spoken."""

    def __init__(
        self,
        name: str,
        dialect: Dialect,
        *,
        idle: IdleConnections,
        offload: Offload,
        clock: Clock,
        limits: ConnectionLimits = ConnectionLimits(),
    ) -> None:
        self.name = name
        self.host = ""
        self.port = 0
        self._dialect = dialect
        self._idle = idle
        self._offload = offload
        self._clock = clock
        self._limits = limits
        self._server: asyncio.Server | None = None
        self._streams: dict[Stream, str] = {}  # in order of arrival, with the host of the peer
        self._per_host: Counter[str] = Counter()
        self._all_gone = asyncio.Event()
        self._all_gone.set()

    @property
    def connection_count(self) -> int:
        return len(self._streams)

    async def bind(self, host: str, port: int) -> None:
        """Take the address without accepting yet; `host` and `port` are then the real ones. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._new_stream, host or None, port, backlog=BACKLOG, start_serving=False
        )
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
        for stream in list(self._streams):
            if stream.session is not None:
                stream.session.finish()
        try:
            await asyncio.wait_for(self._all_gone.wait(), seconds)
        except TimeoutError:
            for stream in list(self._streams):
                stream.abort()
            await self._all_gone.wait()

    def _new_stream(self) -> Stream:
        return Stream(self._accept, self._forget, self._offload, self._clock)

    def _accept(self, stream: Stream, transport: asyncio.Transport) -> Session | None:
        """Make the session of a new connection, or refuse it (None) when there are too many."""
        host, port = (transport.get_extra_info("peername") or ("", 0))[:2]
        if len(self._streams) >= self._limits.total or self._per_host[host] >= self._limits.per_host:
            _log.warning("connection refused: too many", extra={"listener": self.name, "peer": host})
            return None
        self._streams[stream] = host
        self._per_host[host] += 1
        self._all_gone.clear()
        self._idle.add(stream)
        return self._dialect.connect(stream, Peer(self.name, host, port))

    def _forget(self, stream: Stream) -> None:
        host = self._streams.pop(stream, None)
        if host is None:
            return
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]
        self._idle.remove(stream)
        if not self._streams:
            self._all_gone.set()
