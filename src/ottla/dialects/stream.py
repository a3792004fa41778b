"""One connection: socket bytes to a session, and a session's parts to the socket.

The only module that touches a socket. It alone chooses how output leaves:

* small parts are joined into one write;
* a large span of a file goes by `sendfile` from the page cache to the socket, as long as the transport holds nothing
  back. When the socket is full, one copied chunk goes through the transport, whose `resume_writing` then tells when to
  go on;
* a span that is not in the page cache is read once on another thread first, so that no disk holds up the loop.

Output is bounded: the transport is told to hold back nothing willingly, so a reader that is slow costs what could not
be sent of one answer plus the spans, not the bytes, of what follows; meanwhile the session is told `is_congested`.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, cast

from ottla.clock import Clock
from ottla.dialects.session import Part, Session
from ottla.engine import FileSpan, Offload

SENDFILE_FROM_BYTES: Final = 32 * 1024
"""Below it one read and one joined write are cheaper than two calls."""
CHUNK_BYTES: Final = 64 * 1024
WARM_BYTES: Final = 1024 * 1024
EARLY_BYTES: Final = 4096


class Stream(asyncio.BufferedProtocol):
    """The carrier of one connection. `connect` is told that it stands, and calls `begin` or `abort`, now or later."""

    __slots__ = (
        "_clock",
        "_connect",
        "_early",
        "_is_closing",
        "_is_lost",
        "_is_paused",
        "_is_reading",
        "_is_warming",
        "_left",
        "_offload",
        "_on_lost",
        "_position",
        "_queue",
        "_ready",
        "_sending",
        "_session",
        "_socket_fd",
        "_transport",
        "last_active",
    )

    def __init__(
        self,
        connect: Callable[[Stream, asyncio.Transport], None],
        on_lost: Callable[[Stream], None],
        offload: Offload,
        clock: Clock,
    ) -> None:
        self._connect = connect
        self._on_lost = on_lost
        self._offload = offload
        self._clock = clock
        self._transport: asyncio.Transport | None = None
        self._session: Session | None = None
        self._early = bytearray()  # what came before the session
        self._socket_fd = -1
        self._queue: deque[Part] = deque()
        self._sending: FileSpan | None = None  # a span of which a beginning was sent
        self._position = 0
        self._left = 0
        self._ready: FileSpan | None = None  # a span whose pages were there: sent now even if they went again
        self._is_paused = False
        self._is_warming = False
        self._is_reading = True
        self._is_closing = False
        self._is_lost = False
        self.last_active = clock.monotonic()
        """When bytes last came or went, in seconds of the clock's monotonic scale."""

    # -- what the transport calls ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)
        self._transport = transport
        transport.set_write_buffer_limits(0, 0)
        self._socket_fd = transport.get_extra_info("socket").fileno()
        self._connect(self, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._session is None:
            self._early = bytearray(EARLY_BYTES)
            return memoryview(self._early)
        return self._session.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self._session is None:  # must wait: keep the first bytes, and leave the others where they are
            self._early = self._early[:nbytes]
            self.pause_reading()
            return
        self.last_active = self._clock.monotonic()
        self._session.received(nbytes)

    def eof_received(self) -> bool:
        """The peer ended its sending: whether it may still want to hear something is the session's to know."""
        return self._session is not None and not self._is_closing and self._session.ended()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._pump()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._is_lost = True
        self._release_all()
        if self._session is not None:
            self._session.lost()
        self._on_lost(self)

    # -- what the listener calls ----------------------------------------------------------------------------------

    def begin(self, session: Session) -> None:
        """Carry this session from now on."""
        self._session = session
        self.last_active = self._clock.monotonic()
        self.resume_reading()
        early, self._early = self._early, bytearray()
        while early and not self._is_closing:
            buffer = session.get_buffer()
            taken = min(len(buffer), len(early))
            buffer[:taken] = early[:taken]
            del early[:taken]
            session.received(taken)

    # -- what the session calls -----------------------------------------------------------------------------------

    @property
    def is_congested(self) -> bool:
        return self._is_paused or self._is_warming or bool(self._queue)

    @property
    def session(self) -> Session | None:
        return self._session

    def write(self, data: bytes) -> None:
        """Send bytes after all that was written before."""
        if self._is_paused or self._is_warming or self._queue:
            self._queue.append(data)
        elif self._transport is not None and not self._is_closing:
            self._transport.write(data)

    def write_parts(self, parts: Sequence[Part]) -> None:
        """Send parts in order after all that was written before; spans are released in any case."""
        if self._is_lost or self._is_closing:
            _release(parts)
            return
        self._queue.extend(parts)
        if not (self._is_paused or self._is_warming):
            self._send()

    def pause_reading(self) -> None:
        if self._is_reading and self._transport is not None and not self._transport.is_closing():
            self._is_reading = False
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._is_reading and self._transport is not None and not self._transport.is_closing():
            self._is_reading = True
            self._transport.resume_reading()

    def close(self) -> None:
        """End the connection once all output has left."""
        self._is_closing = True
        if self.is_congested:
            self.pause_reading()
        elif self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the connection now."""
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()

    # -- sending --------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Send on what waits; when all has left, tell the session or close."""
        if self._is_lost or self._is_warming:
            return
        self.last_active = self._clock.monotonic()
        self._send()
        if self.is_congested:
            return
        if self._is_closing:
            assert self._transport is not None
            self._transport.close()
        elif self._session is not None:
            self._session.resume()

    def _send(self) -> None:
        """Send from the queue until it is empty, the socket is full, or a thread must read first."""
        gathered: list[bytes | memoryview] = []
        queue = self._queue
        while queue and not self._is_paused:
            part = queue[0]
            if isinstance(part, (bytes, memoryview)):
                gathered.append(part)
                queue.popleft()
                continue
            if part is not self._sending and part is not self._ready:
                if not part.is_resident:
                    self._write(gathered)
                    self._warm(part)
                    return
                self._ready = part
            if part.size_bytes < SENDFILE_FROM_BYTES:
                gathered.append(part.read())
                part.release()
                queue.popleft()
                continue
            if gathered:
                self._write(gathered)
                gathered = []
                continue  # look again whether the socket took it
            if not self._send_file(part):
                return
            queue.popleft()
        self._write(gathered)

    def _write(self, gathered: list[bytes | memoryview]) -> None:
        assert self._transport is not None
        if len(gathered) == 1:
            self._transport.write(gathered[0])
        elif gathered:
            self._transport.write(b"".join(gathered))

    def _send_file(self, span: FileSpan) -> bool:
        """Send a span from its file. False when the socket is full: the rest follows at `resume_writing`."""
        transport = self._transport
        assert transport is not None
        if self._sending is None:
            self._sending = span
            self._position = span.position
            self._left = span.size_bytes
        file_descriptor = span.file_descriptor
        while self._left:
            if transport.is_closing():  # its descriptor may belong to another connection any moment
                return False
            sent = 0
            if not transport.get_write_buffer_size():
                try:
                    sent = os.sendfile(self._socket_fd, file_descriptor, self._position, self._left)
                    if not sent:  # the file is shorter than the span: the answer cannot be completed
                        self.abort()
                        return False
                except BlockingIOError:
                    pass
                except OSError:  # the peer is gone
                    self.abort()
                    return False
            if not sent:
                chunk = os.pread(file_descriptor, min(self._left, CHUNK_BYTES), self._position)
                transport.write(chunk)
                sent = len(chunk)
            self._position += sent
            self._left -= sent
            if self._is_paused and self._left:
                return False
        self._sending = self._ready = None
        span.release()
        return True

    def _warm(self, span: FileSpan) -> None:
        """Bring a span's pages into memory on another thread, then go on."""
        self._is_warming = True
        file_descriptor, position, size_bytes = span.file_descriptor, span.position, span.size_bytes

        def read() -> None:
            scratch = bytearray(min(size_bytes, WARM_BYTES))
            at = position
            while at < position + size_bytes:
                read_bytes = os.preadv(file_descriptor, [scratch], at)
                if not read_bytes:
                    return
                at += read_bytes

        def done(error: BaseException | None) -> None:
            self._is_warming = False
            self._ready = span
            if self._is_lost:
                span.release()
            elif error is not None:
                self.abort()
            else:
                self._pump()

        self._offload.submit(read, done)

    def _release_all(self) -> None:
        """Give back the spans that will not be sent. One that a thread is reading is given back when it is done."""
        queue, self._queue = self._queue, deque()
        if self._is_warming:
            queue.popleft()
        _release(queue)
        self._sending = None


def _release(parts: Iterable[Part]) -> None:
    for part in parts:
        if not isinstance(part, (bytes, memoryview)):
            part.release()
