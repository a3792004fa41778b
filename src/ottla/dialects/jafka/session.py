"""One connection that speaks Jafka: sizes and bodies in, answers out, in order.

A size of 4 bytes, then exactly so many; a size that is not positive or above the limit ends the connection before
anything else comes.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.turns import Steps
from ottla.dialects.jafka.codec import Malformed, decode_request
from ottla.dialects.jafka.conversation import RECEIVE_BYTES, Conversation
from ottla.dialects.jafka.handlers import JafkaHandlers
from ottla.dialects.session import Carrier, Peer

SIZE_BYTES: Final = 4
COPIED_BYTES: Final = 64 * 1024
"""Requests of up to so many bytes are copied off the pile, and then faster to look at; larger ones take it over."""


class JafkaDialect:
    """Makes sessions that share the handlers and a buffer."""

    __slots__ = ("buffer", "handlers", "max_request_bytes")

    def __init__(self, handlers: JafkaHandlers, max_request_bytes: int) -> None:
        self.handlers = handlers
        self.max_request_bytes = max_request_bytes
        self.buffer = memoryview(bytearray(RECEIVE_BYTES))

    def connect(self, carrier: Carrier, peer: Peer) -> JafkaSession:
        return JafkaSession(self, carrier, peer)


class JafkaSession(Conversation):
    """The `Session` of a Jafka connection."""

    __slots__ = ("_dialect",)

    def __init__(self, dialect: JafkaDialect, carrier: Carrier, peer: Peer) -> None:
        super().__init__(dialect.handlers, dialect.buffer, carrier, peer)
        self._dialect = dialect

    def take_next(self) -> Steps[None] | None:
        if len(self.pile) < SIZE_BYTES:
            return None
        size = int.from_bytes(self.pile[:SIZE_BYTES], "big", signed=True)
        if not 0 < size <= self._dialect.max_request_bytes:
            raise Malformed(f"a request of {size} bytes")
        end = SIZE_BYTES + size
        if len(self.pile) < end:
            return None
        if size > COPIED_BYTES:
            frame, self.pile = self.pile, self.pile[end:]
            return self._do(memoryview(frame)[SIZE_BYTES:end])
        small = bytes(self.pile[SIZE_BYTES:end])
        del self.pile[:end]
        return self._do(small)

    def _do(self, frame: bytes | memoryview) -> Steps[None]:
        request = yield from decode_request(frame)
        answer = yield from self._dialect.handlers.handle(request)
        if answer is not None:
            self.say(answer)
