"""What a dialect gives the listener, and what it gets.

A `Dialect` makes a `Session` for each connection. The session says where received bytes go, and is told when they came;
what it wants to say it writes to its `Carrier`. Neither knows sockets: that is the stream's alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ottla.engine import FileSpan

Part = bytes | memoryview | FileSpan
"""A piece of output. Spans are released by the carrier, sent or not; other memory must stay as it is once written."""


class Peer(NamedTuple):
    """Who is at the other end, and through which listener it came."""

    listener_name: str
    host: str
    port: int


class Carrier(Protocol):
    """What carries a session's bytes to its peer."""

    @property
    def is_congested(self) -> bool:
        """True while earlier output has not left: whoever can wait should, until `Session.resume` is called."""

    def write(self, data: bytes) -> None:
        """Send bytes after all that was written before."""

    def write_parts(self, parts: Sequence[Part]) -> None:
        """Send parts in order after all that was written before."""

    def pause_reading(self) -> None:
        """Receive nothing until `resume_reading`."""

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        """End the connection once all output has left."""

    def abort(self) -> None:
        """End the connection now."""


class Session(Protocol):
    """One connection's side of a conversation."""

    def get_buffer(self) -> memoryview:
        """Where the next bytes go; never empty."""

    def received(self, received_bytes: int) -> None:
        """So many bytes were written to what `get_buffer` returned."""

    def ended(self) -> bool:
        """The peer ended its sending. True to go on, until `close`, for an answer that is due; else all ends."""

    def resume(self) -> None:
        """The carrier is not congested any more."""

    def finish(self) -> None:
        """The server is about to stop: answer what was asked, take nothing new, then close."""

    def lost(self) -> None:
        """The connection is gone: nothing can be sent any more."""


class Dialect(Protocol):
    """A wire protocol that is served."""

    def connect(self, carrier: Carrier, peer: Peer) -> Session:
        """A connection was accepted."""
