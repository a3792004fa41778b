"""What holds on every dialect: a request may come in any pieces, half of one harms nobody, and a claim takes no memory.

Each dialect is asked the same way, by bytes, while a neighbour on the same listener is served.
"""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import pytest

from ottla.testing.cluster import RunningBroker, running_broker

MIB = 1024 * 1024
LIMIT_BYTES = 90 * MIB
SECONDS = 10.0
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,LITE://127.0.0.1:0,JAFKA://127.0.0.1:0,JAFKA_HTTP://127.0.0.1:0,"
    "SILENT://127.0.0.1:0,STAYING://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LITE:LITE,JAFKA:JAFKA,JAFKA_HTTP:JAFKA_HTTP,"
    "SILENT:LITE,STAYING:LITE",
    "listener.name.silent.ottla.lite.errors": "close",
    "listener.name.staying.ottla.lite.keep.alive": "true",
    "socket.request.max.bytes": str(LIMIT_BYTES),
    "auto.create.topics.enable": "false",
    "ottla.jafka.flush.messages": "1",
}
POST = b"POST / HTTP/1.1\r\nkey: PRODUCE\r\ntopic: t\r\npartition: 0\r\n"


@dataclass(frozen=True)
class Spoken:
    """A dialect: its listener, a request with the answer's beginning, and what is not to be believed."""

    listener: int
    request: bytes
    answer: bytes
    claim: bytes
    """The beginning of a request that would be as large as is allowed."""
    beyond: bytes
    """One that would be larger."""
    beyond_answer: bytes
    unknown: bytes
    """A request of a type that there is not."""
    unknown_answer: bytes


def h(text: str) -> bytes:
    return bytes.fromhex(text)


LITE = Spoken(
    1,
    h("0005 0001 74 00000000"),
    h("0000000000000000"),
    h(f"0001 0001 74 00000000 00000002 {LIMIT_BYTES - 8:08x}"),
    h("0001 0001 74 00000000 00000001 ffffffff"),
    h("ffffffff"),
    h("0009"),
    h("ffffffff"),
)

DIALECTS = {
    "kafka": Spoken(
        0,
        h("0000000e 0012 0000 00000007 0004 74657374"),  # ApiVersions
        h("00000007 0000"),
        h(f"{LIMIT_BYTES:08x} 0003 0001 00000001"),
        h(f"{LIMIT_BYTES + 1:08x}"),
        b"",
        h("0000000e 7fff 0000 00000007 0004 74657374"),
        b"",
    ),
    "lite": LITE,
    "lite in silence": replace(LITE, listener=4, beyond_answer=b"", unknown_answer=b""),
    "lite that stays": replace(LITE, listener=5),
    "jafka": Spoken(
        2,
        h("00000015 0004 0001 74 00000000 ffffffffffffffff 0000000a"),
        h("0000"),
        h(f"{LIMIT_BYTES:08x} 0000 0001 74 00000000 {LIMIT_BYTES - 13:08x}"),
        h(f"{LIMIT_BYTES + 1:08x}"),
        b"",
        h("00000002 0007"),
        b"",
    ),
    "jafka over http": Spoken(
        3,
        POST + b"Content-Length: 3\r\n\r\none",
        b"HTTP/1.1 200 OK\r\n",
        POST + b"Content-Length: %d\r\n\r\n" % LIMIT_BYTES,
        POST + b"Content-Length: %d\r\n\r\n" % (LIMIT_BYTES + 1),
        b"",
        POST.replace(b"PRODUCE", b"NOTHING") + b"Content-Length: 0\r\n\r\n",
        b"",
    ),
}
"""Of Kafka's and Jafka's answers the size is left out, see `Peer.answer`."""


class Peer:
    """One connection."""

    def __init__(self, spoken: Spoken, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.spoken = spoken
        self.reader = reader
        self.writer = writer

    async def answer(self) -> bytes:
        """Return as much of an answer as is looked at; what there is of it where the connection ends before."""
        wanted = len(self.spoken.answer) + 4 * (self.spoken.listener in (0, 2))
        async with asyncio.timeout(SECONDS):
            try:
                data = await self.reader.readexactly(wanted)
            except asyncio.IncompleteReadError as ended:
                data = ended.partial
            except ConnectionResetError:
                return b""
        return data[4:] if self.spoken.listener in (0, 2) else data

    async def close(self) -> None:
        self.writer.close()

    async def abort(self) -> None:
        self.writer.transport.abort()
        self.writer.close()


async def connect(running: RunningBroker, spoken: Spoken) -> Peer:
    port = running.server.listeners[spoken.listener].port
    return Peer(spoken, *await asyncio.open_connection("127.0.0.1", port))


async def is_served(running: RunningBroker, spoken: Spoken) -> bool:
    peer = await connect(running, spoken)
    peer.writer.write(spoken.request)
    answer = await peer.answer()
    await peer.close()
    return answer == spoken.answer


def on_every_dialect(test: Callable[[RunningBroker, Spoken], Awaitable[None]]) -> Callable[[str], None]:
    """Run a test on each dialect, the topic `t` being there."""

    @pytest.mark.parametrize("name", list(DIALECTS))
    def run(name: str) -> None:
        async def main() -> None:
            async with running_broker(SETTINGS) as running:
                maker = await connect(running, DIALECTS["jafka"])
                maker.writer.write(h("0000000a 0005 0001 74 00000001 00"))
                assert await maker.answer() == h("0000")
                await maker.close()
                await test(running, DIALECTS[name])

        asyncio.run(main())

    run.__doc__ = test.__doc__
    return run


@on_every_dialect
async def test_a_request_may_come_byte_by_byte(running: RunningBroker, spoken: Spoken) -> None:
    slow = await connect(running, spoken)
    for number, byte in enumerate(spoken.request):
        slow.writer.write(bytes([byte]))
        await slow.writer.drain()
        if number % 8 == 0:
            assert await is_served(running, spoken)
    assert await slow.answer() == spoken.answer
    await slow.close()


@on_every_dialect
async def test_half_a_request_waits_or_ends_and_harms_nobody(running: RunningBroker, spoken: Spoken) -> None:
    silent = [await connect(running, spoken) for _ in range(20)]
    for number, peer in enumerate(silent):
        peer.writer.write(spoken.request[: 1 + number % (len(spoken.request) - 1)])
    assert await is_served(running, spoken)
    for peer in silent[::2]:
        peer.writer.write_eof()
        assert await peer.answer() == b""
        await peer.close()
    for peer in silent[1::2]:
        await peer.abort()
    assert await is_served(running, spoken)


@on_every_dialect
async def test_types_that_there_are_not_are_told_or_end_the_connection(running: RunningBroker, spoken: Spoken) -> None:
    other = await connect(running, spoken)
    other.writer.write(spoken.request[:3])
    peer = await connect(running, spoken)
    peer.writer.write(spoken.unknown)
    assert (await peer.reader.read(4))[:4] == spoken.unknown_answer
    other.writer.write(spoken.request[3:])
    assert await other.answer() == spoken.answer
    await other.close()
    await peer.close()


@on_every_dialect
async def test_a_request_beyond_the_limit_ends_at_its_claim(running: RunningBroker, spoken: Spoken) -> None:
    peer = await connect(running, spoken)
    peer.writer.write(spoken.beyond)
    async with asyncio.timeout(SECONDS):
        assert (await peer.reader.read(4))[:4] == spoken.beyond_answer
        await peer.reader.read()
    assert await is_served(running, spoken)
    await peer.close()


@on_every_dialect
async def test_a_claim_takes_memory_as_its_bytes_come(running: RunningBroker, spoken: Spoken) -> None:
    assert await is_served(running, spoken)
    tracemalloc.start()
    try:
        claiming = [await connect(running, spoken) for _ in range(40)]
        for peer in claiming:
            peer.writer.write(spoken.claim + bytes(5000))
        for _ in range(40):
            assert await is_served(running, spoken)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for peer in claiming:
        await peer.abort()
    assert peak_bytes < 40 * 2 * MIB < LIMIT_BYTES
