"""Connections over real sockets: those that wait, those that are refused, and those that are silent for too long."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import stat
from collections.abc import Coroutine
from contextlib import ExitStack, suppress
from typing import Any

import pytest
import uvloop

from ottla.broker.metadata.alter_configs import ConfigAlteration
from ottla.protocol.apis import ApiKey
from ottla.protocol.headers import RequestHeader, encode_request_header
from ottla.testing.clock import ManualClock
from ottla.testing.cluster import RunningBroker, running_broker

BROKER, SET = 4, 0
HEADER = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 0, 7, "test"))
REQUEST = len(HEADER).to_bytes(4, "big") + HEADER
SECONDS = 10.0
BUFFERS = (socket.SO_SNDBUF, socket.SO_RCVBUF)


class Client:
    """One connection that asks for ApiVersions."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, running: RunningBroker) -> Client:
        host, port = running.address.rsplit(":", 1)
        client = cls(*await asyncio.open_connection(host, int(port)))
        client.writer.write(REQUEST)
        return client

    async def is_answered(self) -> bool:
        """True for an answer, false for a connection that was ended (and is closed here, too)."""
        try:
            is_answered = bool(await asyncio.wait_for(self.reader.read(65536), SECONDS))
        except ConnectionError:
            is_answered = False
        if not is_answered:
            self.close()
        return is_answered

    def close(self) -> None:
        self.writer.close()


def change(running: RunningBroker, key: str, value: str) -> None:
    (error,) = running.broker.alter_configs([ConfigAlteration(BROKER, "", [(key, SET, value)])]).answer
    assert error is None


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Any:
    def runner(main: Coroutine[Any, Any, None]) -> None:
        if request.param == "uvloop":
            uvloop.run(main)
        else:
            asyncio.run(main)

    return runner


def test_a_connection_that_waits_is_answered_once_there_is_room(run: Any) -> None:
    async def main() -> None:
        async with running_broker({"max.connections": "1"}) as running:
            first = await Client.connect(running)
            assert await first.is_answered()
            second = await Client.connect(running)
            waiting = asyncio.ensure_future(second.is_answered())
            while running.server.listeners[0].connection_count < 2:
                await asyncio.sleep(0)
            assert not waiting.done()
            first.close()
            assert await waiting
            second.close()

    run(main())


def test_without_a_host_every_address_is_served_at_one_port(run: Any) -> None:
    async def main() -> None:
        async with running_broker({"listeners": "PLAINTEXT://:0"}) as running:
            port = running.server.listeners[0].port
            hosts = ["127.0.0.1", "::1"] if socket.has_dualstack_ipv6() else ["127.0.0.1"]
            for host in hosts:
                client = Client(*await asyncio.open_connection(host, port))
                client.writer.write(REQUEST)
                assert await client.is_answered()
                client.close()

    run(main())


@pytest.mark.parametrize("listeners", ["PLAINTEXT://127.0.0.1:0", "PLAINTEXT://:0"])
def test_buffers_are_those_that_were_set(run: Any, listeners: str) -> None:
    async def main() -> None:
        default = await buffers_of_a_connection({"listeners": listeners})
        small = {"socket.send.buffer.bytes": "20000", "socket.receive.buffer.bytes": "10000"}
        sent, received = await buffers_of_a_connection({"listeners": listeners, **small})
        assert (sent, received) in {(20000, 10000), (40000, 20000)}  # Linux counts its own needs in, as much again
        left = {"socket.send.buffer.bytes": "-1", "socket.receive.buffer.bytes": "-1"}
        assert await buffers_of_a_connection({"listeners": listeners, **left}) == default

    run(main())


async def buffers_of_a_connection(settings: dict[str, str]) -> tuple[int, int]:
    """Return the bytes of the send and the receive buffer of a connection that the broker has accepted."""
    async with running_broker(settings) as running:
        listener = running.server.listeners[0]
        client = Client(*await asyncio.open_connection("127.0.0.1", listener.port))
        client.writer.write(REQUEST)
        assert await client.is_answered()
        sizes = buffers_of_the_other_end(client.writer.get_extra_info("sockname")[1])
        client.close()
        return sizes


def buffers_of_the_other_end(peer_port: int) -> tuple[int, int]:
    """Return the sizes of the buffers of this process' socket that is connected to a port."""
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):  # what lists them is gone, and what only listens has no peer
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.fromfd(int(name), socket.AF_INET, socket.SOCK_STREAM) as copy:
                if copy.getpeername()[1:2] == (peer_port,):
                    sent, received = (copy.getsockopt(socket.SOL_SOCKET, which) for which in BUFFERS)
                    return sent, received
    raise AssertionError("nobody is connected to that port")


def test_no_more_wait_to_be_accepted_than_was_set(run: Any) -> None:
    async def main() -> None:
        assert await count_who_can_wait({}, 20, patience_seconds=20) == 20
        assert await count_who_can_wait({"socket.listen.backlog.size": "2"}, 20, patience_seconds=0.2) < 20

    run(main())


async def count_who_can_wait(settings: dict[str, str], who: int, patience_seconds: float) -> int:
    """Return how many of those who connect are connected, at the latest after a while, and the broker does nothing."""
    async with running_broker(settings) as running:
        address = ("127.0.0.1", running.server.listeners[0].port)
        with ExitStack() as stack:
            clients = [stack.enter_context(socket.socket()) for _ in range(who)]
            for client in clients:
                client.setblocking(False)
                client.connect_ex(address)
            waiting = set(clients)
            while waiting and (connected := select.select([], waiting, [], patience_seconds)[1]):
                waiting.difference_update(connected)
            return who - len(waiting)


def test_limits_that_change_hold_for_the_next_connection(run: Any) -> None:
    async def main() -> None:
        async with running_broker() as running:
            first = await Client.connect(running)
            assert await first.is_answered()
            change(running, "max.connections.per.ip", "1")
            assert not await (await Client.connect(running)).is_answered()
            change(running, "max.connections.per.ip.overrides", "127.0.0.1:2,localhost:2")
            third = await Client.connect(running)
            assert await third.is_answered()
            first.close()
            third.close()

    run(main())


def test_those_that_wait_do_not_hold_up_the_end(run: Any) -> None:
    async def main() -> None:
        async with running_broker({"max.connections": "0"}) as running:
            client = await Client.connect(running)
            while running.server.listeners[0].connection_count < 1:
                await asyncio.sleep(0)
        assert not await client.is_answered()

    run(main())


def test_a_connection_that_is_silent_for_too_long_is_ended(run: Any) -> None:
    async def main() -> None:
        async with running_broker({"connections.max.idle.ms": "5000"}, clock=ManualClock()) as running:
            silent = await Client.connect(running)
            assert await silent.is_answered()
            running.advance(4.0)
            busy = await Client.connect(running)
            assert await busy.is_answered()
            running.advance(2.0)
            assert not await silent.is_answered()
            assert running.server.listeners[0].connection_count == 1
            busy.close()

    run(main())
