"""Large requests of Jafka's clients, on a loop on which every look at the time takes some: others get their turn."""

from __future__ import annotations

import asyncio
import gzip
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.metadata.create_topics import NewTopic
from ottla.broker.visible import read_values
from ottla.records.jafka import PIECE_BYTES
from ottla.testing.cluster import RunningBroker, running_broker
from tests.dialects.jafka.test_dialogue import (
    SECONDS,
    SETTINGS,
    Client,
    fetch,
    frame,
    message,
    offsets,
    produce,
    text16,
)
from tests.turns import BusyClock

ROOM = {"listener.name.jafka.socket.request.max.bytes": "100000000", "ottla.jafka.file.size": "1000000000"}


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Callable[[RunningBroker], Awaitable[None]]], None]:
    def runner(test: Callable[[RunningBroker], Awaitable[None]]) -> None:
        async def main() -> None:
            settings = SETTINGS | ROOM | {"log.dirs": str(tmp_path)}
            async with running_broker(settings, clock=BusyClock()) as running, asyncio.timeout(6 * SECONDS):
                await test(running)

        asyncio.run(main())

    return runner


async def turns_for(running: RunningBroker, request: bytes, size_bytes: int) -> tuple[bytes, int]:
    """Send a request and read its answer; returns with it in how many turns. Somebody else is answered before it is."""
    client, other = await Client.connect(running), await Client.connect(running)
    client.writer.write(request)
    answer = asyncio.ensure_future(client.reader.readexactly(size_bytes))
    question = asyncio.ensure_future(other.ask(offsets("nobody", 0, -1)))
    turns = 0
    while not answer.done():
        await asyncio.sleep(0)
        running.advance(0)
        turns += 1
    assert question.done() and question.result() == "00000006000000000000"
    client.close()
    other.close()
    return answer.result(), turns


async def in_turns(running: RunningBroker, asked: Awaitable[Any]) -> Any:
    answer = asyncio.ensure_future(asked)
    while not answer.done():
        await asyncio.sleep(0)
        running.advance(0)
    return answer.result()


async def end_of(running: RunningBroker, topic: str) -> int:
    client = await Client.connect(running)
    answer = await in_turns(running, client.ask(offsets(topic, 0, -1, 1)))
    client.close()
    return int(answer[-16:], 16)


def all_values(running: RunningBroker, topic: str) -> list[bytes]:
    """Return what Kafka's clients see in partition 0, however much that is."""
    values: list[bytes] = []
    partition = running.broker.partition(topic, 0)
    while len(values) < partition.offsets().high_watermark:
        values += read_values(partition, len(values)).values
    return values


def test_a_multiproduce_of_many_parts_is_done_part_by_part(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        parts = b"".join(
            text16("t") + struct.pack(">ii", 0, len(one)) + one for one in (message(b"%d" % n) for n in range(300))
        )
        request = frame(3, struct.pack(">h", 300) + parts) + offsets("t", 0, -1, 1)
        answer, turns = await turns_for(running, request, 18)
        assert turns > 300 / 10
        assert int.from_bytes(answer[-8:]) == sum(len(message(b"%d" % n)) for n in range(300))
        assert all_values(running, "t") == [b"%d" % n for n in range(300)]

    run(test)


def test_a_multifetch_of_many_parts_is_done_part_by_part(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        client = await Client.connect(running)
        await in_turns(running, client.tell(produce("t", 0, message(b"v"))))
        client.close()
        parts = b"".join(fetch("t", 0, 0)[6:] for _ in range(300))
        one = struct.pack(">ih", 2 + len(message(b"v")), 0) + message(b"v")
        answer, turns = await turns_for(running, frame(2, struct.pack(">h", 300) + parts), 6 + 300 * len(one))
        assert turns > 300 / 10 and answer[6:] == one * 300

    run(test)


def test_many_requests_of_one_read_take_many_turns(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        creates = b"".join(frame(5, text16(f"t{number}") + struct.pack(">ib", 1, 0)) for number in range(40))
        answer, turns = await turns_for(running, creates, 40 * 14)
        assert turns > 40 / 4 and answer == struct.pack(">ihii", 10, 0, 1, 1) * 40

    run(test)


@pytest.mark.parametrize("is_kafka_topic", [False, True])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_large_set_is_checked_and_appended_in_steps(run: Any, is_kafka_topic: bool, is_packed: bool) -> None:
    values = [bytes([65 + number % 26]) * 1000 for number in range(2 * PIECE_BYTES // 1000)]
    inner = [b"".join(message(value) for value in values[at : at + 500]) for at in range(0, len(values), 500)]
    data = b"".join(message(gzip.compress(one), attributes=1) if is_packed else one for one in inner)

    async def test(running: RunningBroker) -> None:
        if is_kafka_topic:
            running.broker.metadata.create_topics([NewTopic("t", 1)])
        _, turns = await turns_for(running, produce("t", 0, data + b"cut") + offsets("x", 0, -1, 1), 10)
        assert turns > len(values) / 256 / 5
        assert all_values(running, "t") == values
        if not is_kafka_topic:
            assert await end_of(running, "t") == len(data)

    run(test)


@pytest.mark.parametrize("is_kafka_topic", [False, True])
def test_of_a_large_set_that_is_damaged_at_its_end_nothing_is_appended(run: Any, is_kafka_topic: bool) -> None:
    data = message(bytes(1000)) * (2 * PIECE_BYTES // 1000) + message(b"x", crc=1)

    async def test(running: RunningBroker) -> None:
        if is_kafka_topic:
            running.broker.metadata.create_topics([NewTopic("t", 1)])
        client = await Client.connect(running)
        assert await in_turns(running, client.ask(produce("t", 0, data))) is None
        assert (running.broker.find_topic("t") is not None) == is_kafka_topic
        assert not is_kafka_topic or all_values(running, "t") == []
        client.close()

    run(test)


def test_what_was_begun_is_done_although_the_peer_is_gone(run: Any) -> None:
    data = message(bytes(1000)) * (2 * PIECE_BYTES // 1000)

    async def test(running: RunningBroker) -> None:
        running.broker.metadata.create_topics([NewTopic("t", 1)])
        client = await Client.connect(running)
        client.writer.write(produce("t", 0, data))
        await client.writer.drain()
        client.writer.write_eof()
        client.close()
        while len(all_values(running, "t")) < 2 * PIECE_BYTES // 1000:
            await asyncio.sleep(0)
            running.advance(0)

    run(test)
