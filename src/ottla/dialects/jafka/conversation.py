"""What the two ways to talk to Jafka have in common: bytes pile up until a request is whole, then it is answered.

What was announced takes no memory, only what came. Anything that is no request, or cannot be done and has no error of
its own, ends the connection in silence; earlier answers still leave. While the peer does not take its answers, or it is
others' turn, nothing is read from it.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Final

from ottla.dialects.jafka.codec import Malformed
from ottla.dialects.jafka.handlers import JafkaHandlers
from ottla.dialects.session import Carrier, Peer
from ottla.errors import KafkaError

RECEIVE_BYTES: Final = 64 * 1024

_log = logging.getLogger(__name__)


class Conversation(ABC):
    """The `Session` of one connection. `buffer` is one for all of a listener, which each empties at once."""

    __slots__ = ("_buffer", "_is_over", "_peer", "_topics", "carrier", "pile")

    def __init__(self, handlers: JafkaHandlers, buffer: memoryview, carrier: Carrier, peer: Peer) -> None:
        self._topics = handlers.topics
        self.carrier = carrier
        self.pile = bytearray()
        """What came and was not taken yet."""
        self._buffer = buffer
        self._peer = peer
        self._is_over = False

    @abstractmethod
    def answer_next(self) -> bool:
        """Take one request off the pile and answer it; False where none is whole.

        Raises `Malformed` where it is none, and `KafkaError`, `OSError` where it cannot be done.
        """

    def get_buffer(self) -> memoryview:
        return self._buffer

    def received(self, received_bytes: int) -> None:
        self.pile += self._buffer[:received_bytes]
        self.resume()

    def resume(self) -> None:
        """Answer requests as long as they are whole, it is this peer's turn and it takes its answers."""
        try:
            while not (self._is_over or self.carrier.is_congested or self._topics.must_wait(self.resume)):
                if not self.answer_next():
                    self.carrier.resume_reading()
                    return
        except (Malformed, KafkaError) as error:
            _log.info("connection ended: %s", error, extra={"peer": self._peer.host})
            self.end()
        except Exception as error:
            _log.error("connection ended: a request met a fault", exc_info=error, extra={"peer": self._peer.host})
            self.end()
        if not self._is_over:
            self.carrier.pause_reading()

    def ended(self) -> bool:
        """All that came was answered already, unless the peer does not take its answers."""
        return False

    def finish(self) -> None:
        self.end()

    def lost(self) -> None:
        self._is_over = True

    def end(self) -> None:
        """Close the connection once the answers have left."""
        if not self._is_over:
            self._is_over = True
            self.carrier.close()
