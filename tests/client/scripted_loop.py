"""An event loop that waits for nothing, with connections in memory.

`ScriptedLoop` jumps to the next timer whenever nothing else is to be done: a delivery timeout of two minutes takes no
time, and what would wait for ever fails. Its connections lead to peers that get whole frames.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

from ottla.protocol.apis import API
from ottla.protocol.codec import Message, encode
from ottla.protocol.headers import RequestHeader, encode_response_header


class Peer(Protocol):
    """The far end of connections."""

    wires: list[Wire]

    def receive(self, wire: Wire, frame: memoryview) -> None:
        """Take a frame, without its size."""


class Network(Protocol):
    """Which peers there are."""

    def at(self, address: str) -> Peer | None:
        """Return who listens at HOST:PORT, None when nobody does."""


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for nothing: hands the time that a loop would wait to `jump`."""

    jump: Callable[[float | None], None]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout != 0:
            self.jump(timeout)
        return ready


class ScriptedLoop(asyncio.SelectorEventLoop):
    """An event loop that is never idle, and whose connections lead to peers in memory."""

    def __init__(self, network: Network) -> None:
        selector = _JumpingSelector()
        selector.jump = self._jump
        self._now = 1000.0
        self._network = network
        super().__init__(selector)

    def time(self) -> float:
        return self._now

    def _jump(self, seconds: float | None) -> None:
        assert seconds is not None, "everything waits, and nothing will ever happen"
        self._now += seconds

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        peer = self._network.at(f"{host}:{port}")
        if peer is None:
            raise ConnectionRefusedError(111, f"Connect call failed ('{host}', {port})")
        protocol = protocol_factory()
        transport = Wire(self, protocol, peer)
        protocol.connection_made(transport)
        return transport, protocol


class Wire(asyncio.Transport):
    """The client's end of a connection to a peer in memory."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.BufferedProtocol, peer: Peer) -> None:
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._peer = peer
        self._received = bytearray()
        self._is_closed = False
        peer.wires.append(self)

    def write(self, data: Any) -> None:
        self._received += data
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[:4], "big")
            if len(self._received) < end:
                return
            frame = memoryview(bytes(self._received[4:end]))
            del self._received[:end]
            self._loop.call_soon(self._peer.receive, self, frame)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._peer.wires.remove(self)
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def deliver(self, header: RequestHeader, response: Message) -> None:
        if self._is_closed:
            return
        version = API[header.api_key].response_header_version(header.api_version)
        data = memoryview(encode_response_header(header.correlation_id, version) + encode(response, header.api_version))
        data = memoryview(len(data).to_bytes(4, "big") + bytes(data))
        while data:
            buffer = cast(memoryview, self._protocol.get_buffer(-1))
            size_bytes = min(len(buffer), len(data))
            buffer[:size_bytes] = data[:size_bytes]
            self._protocol.buffer_updated(size_bytes)
            data = data[size_bytes:]
