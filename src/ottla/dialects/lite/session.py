"""The conversation on one connection: feed the reader, answer, close.

One request is answered per connection, as its clients may read to the end of the stream; with `keep_alive` the next one
follows on the same connection. Whoever ends his sending after a request still gets the answer. While an answer is due,
little is read. With `errors_close` a mistake is met with silence and a close, in place of an error.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.broker import Broker
from ottla.broker.value_fetch import ValueFetch
from ottla.dialects.lite.codec import encode_error, read_request
from ottla.dialects.lite.handlers import handle
from ottla.dialects.session import Carrier, Peer
from ottla.errors import KafkaError

PIECES_AT_ONCE: Final = 16
"""More than a request has, unless it is large."""
LARGE_PIECE_BYTES: Final = 512
"""For each so many bytes a piece, which may have many values, counts once more."""


class LiteDialect:
    """Makes sessions that serve `broker`. All receive into one buffer, which each empties at once."""

    def __init__(self, broker: Broker, *, keep_alive: bool, errors_close: bool, max_request_bytes: int) -> None:
        self.broker = broker
        self.keep_alive = keep_alive
        self.errors_close = errors_close
        self.max_request_bytes = max_request_bytes
        self.buffer = memoryview(bytearray(64 * 1024))

    def batch_bytes(self, topic: str, partition: int) -> int:
        """How large a batch of a partition may be. Raises `UnknownTopicOrPartition`."""
        return self.broker.partition(topic, partition).config.max_message_bytes

    def connect(self, carrier: Carrier, peer: Peer) -> LiteSession:
        return LiteSession(self, carrier)


class LiteSession:
    """The `Session` of one lite connection."""

    def __init__(self, dialect: LiteDialect, carrier: Carrier) -> None:
        self._dialect = dialect
        self._carrier = carrier
        self._received = bytearray()
        self._fetch: ValueFetch | None = None
        self._is_busy = self._is_feeding = self._is_over = False  # busy: an answer is due
        self._is_last = not dialect.keep_alive
        self._expect_request()

    def _expect_request(self) -> None:
        self._reading = read_request(self._dialect.max_request_bytes, self._dialect.batch_bytes)
        self._needed = next(self._reading)

    def get_buffer(self) -> memoryview:
        return self._dialect.buffer

    def received(self, received_bytes: int) -> None:
        self._received += self._dialect.buffer[:received_bytes]
        self.resume()

    def resume(self) -> None:
        """Feed the reader what it needs, as long as there is that much, it is our turn, and nothing else is due."""
        turns = self._dialect.broker.turns
        pieces = 0
        self._is_feeding = True
        while not (self._is_busy or self._is_over or self._carrier.is_congested):
            if len(self._received) < self._needed:
                self._carrier.resume_reading()
                break
            pieces += 1 + self._needed // LARGE_PIECE_BYTES
            if pieces > PIECES_AT_ONCE and turns.is_over():
                turns.wait(self.resume)
                self._carrier.pause_reading()  # lest the peer's end be read before what it had sent until then is done
                break
            piece = bytes(self._received[: self._needed])
            del self._received[: self._needed]
            self._feed(piece)
        is_working = self._is_busy and self._fetch is None and bool(self._received)
        if is_working or len(self._received) > max(self._needed, len(self._dialect.buffer)):
            self._carrier.pause_reading()  # where we work, also lest the peer's end be read before the next request
        self._is_feeding = False

    def ended(self) -> bool:
        self._is_last = True
        return self._is_busy

    def finish(self) -> None:
        self._is_last = True
        if self._fetch is not None:
            self._fetch.hurry()
        elif not self._is_busy:
            self._end()

    def lost(self) -> None:
        self._is_over = True
        if self._fetch is not None:
            self._fetch.cancel()

    def _feed(self, piece: bytes) -> None:
        try:
            self._needed = self._reading.send(piece)
        except StopIteration as whole:
            self._is_busy = True
            self._expect_request()
            try:
                fetch = handle(whole.value, self._dialect.broker, self._answer)
                self._fetch = fetch if self._is_busy else None
            except KafkaError as error:
                self._answer(error)
        except KafkaError as error:
            self._is_last = True  # where the next request would begin is not known
            self._answer(error)

    def _answer(self, answer: bytes | KafkaError) -> None:
        self._is_busy = False
        self._fetch = None
        if self._is_over:
            return
        if isinstance(answer, bytes):
            self._carrier.write(answer)
        elif self._dialect.errors_close:
            self._is_last = True
        else:
            self._carrier.write(encode_error(answer))
        if self._is_last:
            self._end()
        elif not self._is_feeding:
            self.resume()

    def _end(self) -> None:
        self._is_over = True
        self._carrier.close()
