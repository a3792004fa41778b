"""Jafka's endpoint for those who have HTTP only: a POST appends its body as one message.

`key: PRODUCE` (or `request_key`), `topic` and `partition` (0 to 1024) are headers, the path means nothing. The answer
is 200 and `OK`, also for the names of other requests, with which nothing is done. Everything that is not understood
ends the connection, a method other than POST with 405. Bodies need a Content-Length.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.turns import Steps
from ottla.dialects.jafka.codec import Malformed, Produce, RequestType
from ottla.dialects.jafka.conversation import RECEIVE_BYTES, Conversation
from ottla.dialects.jafka.handlers import JafkaHandlers
from ottla.dialects.session import Carrier, Peer
from ottla.records.jafka import build_set

MAX_HEAD_BYTES: Final = 16 * 1024
MAX_PARTITION: Final = 1024
MAX_DIGITS: Final = 12
HEAD_END: Final = b"\r\n\r\n"
NOT_POST: Final = b"POST METHOD REQUIRED"


class JafkaHttpDialect:
    """Makes sessions that share the handlers and a buffer."""

    __slots__ = ("buffer", "handlers", "max_body_bytes")

    def __init__(self, handlers: JafkaHandlers, max_body_bytes: int) -> None:
        self.handlers = handlers
        self.max_body_bytes = max_body_bytes
        self.buffer = memoryview(bytearray(RECEIVE_BYTES))

    def connect(self, carrier: Carrier, peer: Peer) -> JafkaHttpSession:
        return JafkaHttpSession(self, carrier, peer)


class JafkaHttpSession(Conversation):
    """The `Session` of one HTTP connection."""

    __slots__ = ("_dialect",)

    def __init__(self, dialect: JafkaHttpDialect, carrier: Carrier, peer: Peer) -> None:
        super().__init__(dialect.handlers, dialect.buffer, carrier, peer)
        self._dialect = dialect

    def take_next(self) -> Steps[None] | None:
        head_end = self.pile.find(HEAD_END, 0, MAX_HEAD_BYTES)
        if head_end < 0:
            if len(self.pile) >= MAX_HEAD_BYTES:
                raise Malformed("a head without an end")
            return None
        method, is_old, headers = _parse_head(bytes(self.pile[:head_end]))
        if method != "POST":
            self._say("405 Method Not Allowed", NOT_POST, stays=False)
            self.end()
            return None
        body_at = head_end + len(HEAD_END)
        body_end = body_at + _length(headers, self._dialect.max_body_bytes)
        if len(self.pile) < body_end:
            return None
        body = bytes(self.pile[body_at:body_end])
        del self.pile[:body_end]
        return self._answer(headers, body, is_old=is_old)

    def _answer(self, headers: dict[str, str], body: bytes, *, is_old: bool) -> Steps[None]:
        yield from self._do(headers, body)
        wish = headers.get("connection", "close" if is_old else "keep-alive").lower()
        self._say("200 OK", b"OK", stays=wish != "close")
        if wish == "close":
            self.end()

    def _do(self, headers: dict[str, str], body: bytes) -> Steps[None]:
        key = headers.get("key", headers.get("request_key", ""))
        if key not in RequestType.__members__:
            raise Malformed(f"{key!r} is no request")
        topic, partition = headers.get("topic", ""), headers.get("partition", "")
        if not partition.isdecimal() or len(partition) > MAX_DIGITS or int(partition) > MAX_PARTITION:
            raise Malformed(f"{partition!r} is no partition")
        if key == RequestType.PRODUCE.name:
            yield from self._dialect.handlers.produce(Produce(topic, int(partition), build_set([body])))

    def _say(self, status: str, body: bytes, *, stays: bool) -> None:
        connection = "keep-alive" if stays else "close"
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Length: {len(body)}\r\n"
            f"Connection: {connection}\r\n\r\n"
        )
        self.say(head.encode("ascii") + body)


def _parse_head(head: bytes) -> tuple[str, bool, dict[str, str]]:
    """Return method, whether the client speaks HTTP/1.0, and headers by lower-case name. Raises `Malformed`."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Malformed(f"{first[:80]!r} is no HTTP request")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise Malformed(f"{line[:80]!r} is no header")
        headers[name.strip().lower()] = value.strip()
    return words[0], words[2] == "HTTP/1.0", headers


def _length(headers: dict[str, str], max_bytes: int) -> int:
    text = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not text.isdecimal() or len(text) > MAX_DIGITS or int(text) > max_bytes:
        raise Malformed("a body of no or too great a length")
    return int(text)
