"""What the two ways to talk to Jafka have in common: bytes pile up until a request is whole, then it is answered.

What was announced takes no memory, only what came. Anything that is no request, or cannot be done and has no error of
its own, ends the connection in silence; earlier answers still leave. A request is done in steps: while it is others'
turn, or the peer does not take its answers, nothing is read from it. What was begun is done to its end, even if the
peer is gone.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Final

from ottla.broker.turns import Steps
from ottla.dialects.jafka.codec import Malformed
from ottla.dialects.jafka.handlers import JafkaHandlers
from ottla.dialects.session import Carrier, Peer
from ottla.errors import KafkaError

RECEIVE_BYTES: Final = 64 * 1024

_log = logging.getLogger(__name__)


class Conversation(ABC):
    """The `Session` of one connection. `buffer` is one for all of a listener, which each empties at once."""

    __slots__ = ("_buffer", "_is_finishing", "_is_over", "_peer", "_steps", "_turns", "carrier", "pile")

    def __init__(self, handlers: JafkaHandlers, buffer: memoryview, carrier: Carrier, peer: Peer) -> None:
        self._turns = handlers.topics.broker.turns
        self._steps: Steps[None] | None = None  # of the request that is being done
        self.carrier = carrier
        self.pile = bytearray()
        """What came and was not taken yet."""
        self._buffer = buffer
        self._peer = peer
        self._is_finishing = False
        self._is_over = False

    @abstractmethod
    def take_next(self) -> Steps[None] | None:
        """Take one request off the pile; the steps do it and say the answer. None where no request is whole.

        Both raise `Malformed` where it is none, the steps also `KafkaError`, `OSError` where it cannot be done.
        """

    def get_buffer(self) -> memoryview:
        return self._buffer

    def received(self, received_bytes: int) -> None:
        self.pile += self._buffer[:received_bytes]
        self.resume()

    def resume(self) -> None:
        """Do requests as long as they are whole, it is this peer's turn and it takes its answers."""
        try:
            self._go_on()
        except (Malformed, KafkaError) as error:
            _log.info("connection ended: %s", error, extra={"peer": self._peer.host})
            self.end()
        except Exception as error:
            _log.error("connection ended: a request met a fault", exc_info=error, extra={"peer": self._peer.host})
            self.end()

    def _go_on(self) -> None:
        is_first = True
        while self._steps is not None or self._may_begin():
            if self._steps is None:
                self._steps = self.take_next()
            if self._steps is None:
                if not self._is_over:
                    self.carrier.resume_reading()
                return
            if not is_first and self._turns.is_over():
                self._turns.wait(self.resume)
                break
            is_first = False
            self._step(self._steps)
        if not self._is_over:
            self.carrier.pause_reading()

    def _may_begin(self) -> bool:
        return not (self._is_over or self.carrier.is_congested)

    def _step(self, steps: Steps[None]) -> None:
        """Go on with a request. One that fails ends with that, as does one that is done."""
        self._steps = None
        try:
            next(steps)
        except StopIteration:
            if self._is_finishing:
                self.end()
        else:
            self._steps = steps

    def say(self, answer: bytes) -> None:
        if not self._is_over:
            self.carrier.write(answer)

    def ended(self) -> bool:
        """All that came was answered already, unless the peer does not take its answers."""
        return False

    def finish(self) -> None:
        if self._steps is None:
            self.end()
        else:
            self._is_finishing = True

    def lost(self) -> None:
        self._is_over = True

    def end(self) -> None:
        """Close the connection once the answers have left."""
        if not self._is_over:
            self._is_over = True
            self.carrier.close()
