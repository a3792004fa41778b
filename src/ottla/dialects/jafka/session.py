"""One connection that speaks Jafka: sizes and bodies in, answers out, in order.

A size of 4 bytes, then exactly so many; a size that is not positive or above the limit ends the connection before
anything else comes. What was announced takes no memory, only what came. Anything that is no request, or cannot be done
and has no error of its own, ends the connection in silence; earlier answers still leave.
"""

from __future__ import annotations

import logging

from ottla.dialects.jafka.codec import Malformed, decode_request
from ottla.dialects.jafka.handlers import JafkaHandlers
from ottla.dialects.session import Carrier, Peer
from ottla.errors import KafkaError

SIZE_BYTES = 4
RECEIVE_BYTES = 64 * 1024

_log = logging.getLogger(__name__)


class JafkaDialect:
    """Makes sessions that share the handlers, and a buffer which each empties at once."""

    __slots__ = ("buffer", "handlers", "max_request_bytes")

    def __init__(self, handlers: JafkaHandlers, max_request_bytes: int) -> None:
        self.handlers = handlers
        self.max_request_bytes = max_request_bytes
        self.buffer = memoryview(bytearray(RECEIVE_BYTES))

    def connect(self, carrier: Carrier, peer: Peer) -> JafkaSession:
        return JafkaSession(self, carrier, peer)


class JafkaSession:
    """The `Session` of a Jafka connection."""

    __slots__ = ("_carrier", "_dialect", "_is_over", "_peer", "_received")

    def __init__(self, dialect: JafkaDialect, carrier: Carrier, peer: Peer) -> None:
        self._dialect = dialect
        self._carrier = carrier
        self._peer = peer
        self._received = bytearray()
        self._is_over = False

    def get_buffer(self) -> memoryview:
        return self._dialect.buffer

    def received(self, received_bytes: int) -> None:
        self._received += self._dialect.buffer[:received_bytes]
        self.resume()

    def resume(self) -> None:
        """Answer requests as long as they are whole and the peer takes its answers."""
        try:
            while not (self._is_over or self._carrier.is_congested):
                frame = self._next_frame()
                if frame is None:
                    self._carrier.resume_reading()
                    return
                answer = self._dialect.handlers.handle(decode_request(frame))
                if answer is not None:
                    self._carrier.write(answer)
        except (Malformed, KafkaError) as error:
            _log.info("connection ended: %s", error, extra={"peer": self._peer.host})
            self._end()
        except Exception as error:
            _log.error("connection ended: a request met a fault", exc_info=error, extra={"peer": self._peer.host})
            self._end()
        if not self._is_over:
            self._carrier.pause_reading()

    def _next_frame(self) -> bytes | None:
        received = self._received
        if len(received) < SIZE_BYTES:
            return None
        size = int.from_bytes(received[:SIZE_BYTES], "big", signed=True)
        if not 0 < size <= self._dialect.max_request_bytes:
            raise Malformed(f"a request of {size} bytes")
        if len(received) < SIZE_BYTES + size:
            return None
        frame = bytes(received[SIZE_BYTES : SIZE_BYTES + size])
        del received[: SIZE_BYTES + size]
        return frame

    def ended(self) -> bool:
        """All that came was answered already, unless the peer does not take its answers."""
        return False

    def finish(self) -> None:
        self._end()

    def lost(self) -> None:
        self._is_over = True

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._carrier.close()
