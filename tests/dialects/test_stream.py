"""A stream over a real socket: spans of files arrive whole, slow readers cost little, leases always end."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest

from ottla.clock import SystemClock
from ottla.dialects.stream import CHUNK_BYTES, SENDFILE_FROM_BYTES, Stream
from ottla.engine import Sync

LARGE = 1024 * 1024


class Span:
    """A leased run of a file."""

    def __init__(self, descriptor: int, position: int, size_bytes: int, *, is_resident: bool = True) -> None:
        self.file_descriptor = descriptor
        self.position = position
        self.size_bytes = size_bytes
        self.is_resident = is_resident
        self.releases = 0

    def read(self) -> bytes:
        return os.pread(self.file_descriptor, self.size_bytes, self.position)

    def release(self) -> None:
        self.releases += 1


class Silent:
    """A session that only notes what it is told."""

    def __init__(self) -> None:
        self.resumed = 0
        self.is_lost = False

    def get_buffer(self) -> memoryview:
        return memoryview(bytearray(1024))

    def received(self, received_bytes: int) -> None:
        pass

    def ended(self) -> bool:
        return False

    def resume(self) -> None:
        self.resumed += 1

    def finish(self) -> None:
        pass

    def lost(self) -> None:
        self.is_lost = True


class LoopOffload:
    """Runs blocking work when the test says so."""

    def __init__(self) -> None:
        self.work: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []

    def submit(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        self.work.append((work, done))

    def sync(self, syncs: Sequence[Sync]) -> None:
        for file, done in syncs:
            self.submit(file.sync, done)

    def call_soon(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def run(self) -> None:
        for work, done in self.work:
            work()
            done(None)


class Pair:
    """A stream and the socket at its other end."""

    def __init__(self) -> None:
        self.session = Silent()
        self.offload = LoopOffload()
        self.gone = asyncio.Event()
        self.peer, self._ours = socket.socketpair()
        for end in self.peer, self._ours:
            end.setblocking(False)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
        self.stream = Stream(self._connect, lambda stream: self.gone.set(), self.offload, SystemClock())
        self.transport: asyncio.BaseTransport | None = None

    def _connect(self, stream: Stream, transport: asyncio.Transport) -> None:
        stream.begin(self.session)

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self.transport, _ = await loop.connect_accepted_socket(lambda: self.stream, self._ours)

    async def read(self, size_bytes: int) -> bytes:
        received = bytearray()
        while len(received) < size_bytes:
            received += await asyncio.get_running_loop().sock_recv(self.peer, 256 * 1024)
        return bytes(received)


@pytest.fixture
def data(tmp_path: Path) -> Iterator[tuple[int, bytes]]:
    content = bytes(range(256)) * (LARGE // 256)
    path = tmp_path / "segment"
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    yield descriptor, content
    os.close(descriptor)


def run(test: Callable[[Pair], Awaitable[None]]) -> None:
    async def main() -> None:
        pair = Pair()
        await pair.open()
        try:
            await asyncio.wait_for(test(pair), 20)
        finally:
            pair.stream.abort()
            await pair.gone.wait()
            pair.peer.close()

    asyncio.run(main())


def test_parts_arrive_in_order_whatever_way_they_go(data: tuple[int, bytes]) -> None:
    descriptor, content = data

    async def test(pair: Pair) -> None:
        small, large = Span(descriptor, 100, 50), Span(descriptor, 7, LARGE - 7)
        pair.stream.write_parts([b"head", memoryview(b"view"), small, large, b"tail"])
        pair.stream.write(b"after")

        expected = b"headview" + content[100:150] + content[7:] + b"tailafter"
        assert await pair.read(len(expected)) == expected
        assert (small.releases, large.releases) == (1, 1)
        assert not pair.stream.is_congested

    run(test)


def test_a_slow_reader_costs_no_more_than_a_chunk(data: tuple[int, bytes]) -> None:
    descriptor, _ = data

    async def test(pair: Pair) -> None:
        spans = [Span(descriptor, 0, LARGE) for _ in range(4)]
        pair.stream.write_parts(spans)

        assert pair.stream.is_congested
        assert isinstance(pair.transport, asyncio.Transport)
        assert pair.transport.get_write_buffer_size() <= CHUNK_BYTES
        await pair.read(4 * LARGE)
        await asyncio.sleep(0)
        assert [span.releases for span in spans] == [1, 1, 1, 1]

    run(test)


def test_the_session_is_told_when_its_peer_has_caught_up(data: tuple[int, bytes]) -> None:
    descriptor, _ = data

    async def test(pair: Pair) -> None:
        pair.stream.write_parts([Span(descriptor, 0, LARGE)])
        assert pair.session.resumed == 0

        await pair.read(LARGE)
        while pair.stream.is_congested:
            await asyncio.sleep(0)

        assert pair.session.resumed == 1

    run(test)


def test_what_is_not_in_memory_is_read_on_a_thread_first(data: tuple[int, bytes]) -> None:
    descriptor, content = data

    async def test(pair: Pair) -> None:
        cold = Span(descriptor, 0, 2 * SENDFILE_FROM_BYTES, is_resident=False)
        pair.stream.write_parts([b"head", cold, b"tail"])
        assert await pair.read(4) == b"head"
        assert pair.stream.is_congested
        assert cold.releases == 0

        pair.offload.run()

        assert await pair.read(cold.size_bytes + 4) == content[: cold.size_bytes] + b"tail"
        assert cold.releases == 1

    run(test)


def test_a_lost_connection_gives_all_spans_back(data: tuple[int, bytes]) -> None:
    descriptor, _ = data

    async def test(pair: Pair) -> None:
        spans = [Span(descriptor, 0, LARGE), Span(descriptor, 0, LARGE), Span(descriptor, 0, 10)]
        pair.stream.write_parts(spans)
        pair.peer.close()
        await pair.gone.wait()
        late = Span(descriptor, 0, LARGE)
        pair.stream.write_parts([late])

        assert [span.releases for span in [*spans, late]] == [1, 1, 1, 1]
        assert pair.session.is_lost

    run(test)


def test_a_span_is_given_back_although_the_connection_went_while_a_thread_read_it(data: tuple[int, bytes]) -> None:
    descriptor, _ = data

    async def test(pair: Pair) -> None:
        cold = Span(descriptor, 0, LARGE, is_resident=False)
        pair.stream.write_parts([cold])
        pair.peer.close()
        await pair.gone.wait()
        assert cold.releases == 0, "the thread still reads from it"

        pair.offload.run()

        assert cold.releases == 1

    run(test)


def test_a_file_that_is_too_short_ends_the_connection(data: tuple[int, bytes]) -> None:
    descriptor, _ = data

    async def test(pair: Pair) -> None:
        short = Span(descriptor, LARGE, SENDFILE_FROM_BYTES)
        pair.stream.write_parts([short])
        await pair.gone.wait()

        assert short.releases == 1

    run(test)


def test_closing_waits_for_what_was_written(data: tuple[int, bytes]) -> None:
    descriptor, content = data

    async def test(pair: Pair) -> None:
        pair.stream.write_parts([Span(descriptor, 0, LARGE), b"end"])
        pair.stream.close()

        assert await pair.read(LARGE + 3) == content + b"end"
        assert await asyncio.get_running_loop().sock_recv(pair.peer, 1) == b""

    run(test)


@pytest.mark.parametrize("is_resident", [True, False])
def test_what_is_said_after_the_end_takes_nothing_from_what_was_said_before(
    data: tuple[int, bytes], is_resident: bool
) -> None:
    descriptor, content = data

    async def test(pair: Pair) -> None:
        early, late = Span(descriptor, 0, LARGE, is_resident=is_resident), Span(descriptor, 0, LARGE)
        pair.stream.write_parts([early, b"end"])
        pair.stream.close()
        pair.stream.write_parts([late])
        assert (early.releases, late.releases) == (0, 1)
        pair.offload.run()

        assert await pair.read(LARGE + 3) == content + b"end"
        assert await asyncio.get_running_loop().sock_recv(pair.peer, 1) == b""
        assert early.releases == 1

    run(test)
