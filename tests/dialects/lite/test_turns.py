"""Many and large requests in the lite dialect, on a loop on which every look at the time takes some."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import uvloop

from ottla.broker.metadata.create_topics import NewTopic
from ottla.broker.visible import read_values
from ottla.testing.cluster import RunningBroker, running_broker
from tests.dialects.lite.test_lite import KEEP_ALIVE, SECONDS, connect
from tests.turns import BusyClock

TOPIC = struct.pack(">H", 1) + b"t"
OFFSETS = struct.pack(">H", 5) + TOPIC + bytes(4)


def produce(*values: bytes) -> bytes:
    counted = b"".join(struct.pack(">I", len(value)) + value for value in values)
    return struct.pack(">H", 1) + TOPIC + struct.pack(">II", 0, len(values)) + counted


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Any:
    def runner(test: Callable[[RunningBroker], Awaitable[None]]) -> None:
        async def main() -> None:
            async with running_broker(KEEP_ALIVE, clock=BusyClock()) as running, asyncio.timeout(3 * SECONDS):
                running.broker.metadata.create_topics([NewTopic("t", 1)])
                await test(running)

        loop: Callable[[Coroutine[Any, Any, None]], None] = uvloop.run if request.param == "uvloop" else asyncio.run
        loop(main())

    return runner


async def turns_for(running: RunningBroker, request: bytes) -> tuple[bytes, int]:
    """Send requests, end the sending, and read all answers; somebody else is answered before they are all there."""
    reader, writer = await connect(running)
    other_reader, other_writer = await connect(running)
    writer.write(request)
    writer.write_eof()
    other_writer.write(OFFSETS)
    answers = asyncio.ensure_future(reader.read())
    other = asyncio.ensure_future(other_reader.readexactly(16))
    turns = 0
    while not answers.done():
        await asyncio.sleep(0)
        running.advance(0)
        turns += 1
    assert other.done()
    writer.close()
    other_writer.close()
    return answers.result(), turns


def test_many_requests_of_one_read_take_many_turns_and_the_peers_end_waits_for_them(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        answers, turns = await turns_for(running, OFFSETS * 200)
        assert answers == bytes(16) * 200 and turns > 200 / 10

    run(test)


def test_many_values_become_one_batch_in_many_turns(run: Any) -> None:
    values = [b"%d" % number for number in range(5000)]

    async def test(running: RunningBroker) -> None:
        answers, turns = await turns_for(running, produce(*values) + OFFSETS)
        assert answers == struct.pack(">IQQQ", 5000, 0, 0, 5000) and turns > 5000 / 256 / 5
        assert read_values(running.broker.partition("t", 0), 0).values == values

    run(test)


def test_values_that_are_too_many_for_a_batch_leave_nothing(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        answers, _ = await turns_for(running, produce(*[b"x" * 10] * 100_000))
        assert answers[:4] == b"\xff" * 4
        assert running.broker.partition("t", 0).offsets().log_end_offset == 0

    run(test)
