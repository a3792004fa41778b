"""What holds for connections, over real sockets: order, independence, limits, and their end when nothing is said."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.produce import ProduceResponse
from ottla.testing.clock import ManualClock
from tests.wire import Peer, Room, batch, fetch_request, frame, on_broker, produce_request

MIB = 1 << 20
FIRST_ID = 2
"""Correlation id of the first request after that which created the topic."""


async def is_served(peer: Peer) -> bool:
    answer = await peer.ask(MetadataRequest(topics=[]), 12)
    return len(answer.brokers) == 1


@pytest.mark.parametrize("policy", ["os", "fsync"])
def test_produces_of_one_connection_are_in_progress_together_and_answered_in_order(policy: str) -> None:
    """Many in flight, to several partitions, of several sizes, the last one followed by something else."""

    @on_broker({"ottla.flush.policy": policy})
    async def test(room: Room) -> None:
        await room.create("t", partitions=3)
        dice = random.Random(3)
        sent: list[int] = []
        for number in range(300):
            partition = dice.randrange(3)
            sent.append(partition)
            records = batch(bytes(dice.choice([1, 100, 10_000])), b"%d" % number)
            assert room.peer.send(produce_request({"t": {partition: records}}), 12) == number + FIRST_ID
        last = room.peer.send(MetadataRequest(topics=[]), 12)
        ends = dict.fromkeys(range(3), 0)
        for number, partition in enumerate(sent):
            answer = await room.peer.receive_answer(ProduceResponse, 12, number + FIRST_ID)
            (row,) = answer.responses[0].partition_responses
            assert (row.index, row.error_code, row.base_offset) == (partition, 0, ends[partition])
            ends[partition] += 2
        await room.peer.receive_answer(MetadataResponse, 12, last)

    test()


def test_produces_wait_for_the_disk_together() -> None:
    """Under fsync the second request is appended while the first one waits: one flush serves both."""

    @on_broker({"ottla.flush.policy": "fsync"})
    async def test(room: Room) -> None:
        await room.create("t")
        await room.append("t", b"first")
        partition = room.running.broker.partition("t", 0)
        for number in range(50):
            room.peer.send(produce_request({"t": {0: batch(b"%d" % number)}}), 12)
        waiting_at_most = 0
        answered = 0
        while answered < 50:
            answer = await room.peer.receive_answer(ProduceResponse, 12, FIRST_ID + 1 + answered)
            answered += 1
            assert answer.responses[0].partition_responses[0].base_offset == answered
            offsets = partition.offsets()
            assert offsets.high_watermark > answered, "answered before it was durable"
            waiting_at_most = max(waiting_at_most, offsets.log_end_offset - answered)
        assert waiting_at_most > 1

    test()


def test_what_waits_between_produces_holds_up_none_of_them() -> None:
    """A produce that is begun when the one before it is acknowledged is acknowledged itself, with nobody else about."""

    @on_broker({"ottla.flush.policy": "fsync"})
    async def test(room: Room) -> None:
        await room.create("t")
        for number in range(20):
            room.peer.send(produce_request({"t": {0: batch(b"%d" % number)}}), 12)
            room.peer.send(MetadataRequest(topics=[]), 12)
        for number in range(20):
            answer = await room.peer.receive_answer(ProduceResponse, 12, FIRST_ID + 2 * number)
            assert answer.responses[0].partition_responses[0].base_offset == number
            await room.peer.receive_answer(MetadataResponse, 12, FIRST_ID + 2 * number + 1)

    test()


def test_acks_1_does_not_wait_for_the_disk_and_keeps_its_turn() -> None:
    """An answer that is ready may not overtake one that waits."""

    @on_broker({"ottla.flush.policy": "fsync"})
    async def test(room: Room) -> None:
        await room.create("t")
        for number in range(40):
            room.peer.send(produce_request({"t": {0: batch(b"v")}}, acks=1 if number % 2 else -1), 12)
        for number in range(40):
            answer = await room.peer.receive_answer(ProduceResponse, 12, FIRST_ID + number)
            assert answer.responses[0].partition_responses[0].base_offset == number

    test()


@on_broker()
async def test_a_fetch_that_waits_holds_up_its_own_connection_only(room: Room) -> None:
    await room.create("t")
    waiting = room.peer.send(fetch_request({"t": {0: 0}}, max_wait_ms=10_000), 12)
    behind = room.peer.send(MetadataRequest(topics=[]), 12)
    other = await room.connect()
    for _ in range(20):
        assert await is_served(other)
    assert await other.ask(produce_request({"t": {0: batch(b"v")}}), 12)
    await room.peer.receive_answer(FetchResponse, 12, waiting)
    await room.peer.receive_answer(MetadataResponse, 12, behind)


@on_broker()
async def test_a_frame_may_come_in_any_pieces(room: Room) -> None:
    await room.create("t")
    whole = frame(produce_request({"t": {0: batch(bytes(3000))}}), 12, 1) + frame(MetadataRequest(topics=[]), 12, 2)
    for cuts in ([1], [3, 4], [4, 5], list(range(1, 40)), [100, 3000], [len(whole) - 1]):
        peer = await room.connect()
        for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            peer.write(whole[begin:end])
            await peer.writer.drain()
            assert await is_served(room.peer)
        await peer.receive_answer(ProduceResponse, 12, 1)
        await peer.receive_answer(MetadataResponse, 12, 2)


@on_broker()
async def test_garbage_of_one_connection_disturbs_no_other(room: Room) -> None:
    """Random bytes, random frames, cut frames and sudden ends beside two connections that work."""
    await room.create("t")
    dice = random.Random(9)
    good = frame(produce_request({"g": {0: batch(b"v")}}), 12, 1)
    written = 0
    for number in range(300):
        stranger = await room.connect()
        kind = number % 4
        if kind == 0:
            stranger.write(dice.randbytes(dice.randrange(1, 200)))
        elif kind == 1:
            body = dice.randbytes(dice.randrange(8, 100))
            stranger.write(len(body).to_bytes(4, "big") + body)
        elif kind == 2:
            stranger.write(good[: dice.randrange(1, len(good))])
        else:
            broken = bytearray(good)
            broken[dice.randrange(4, len(broken))] ^= 1 << dice.randrange(8)
            stranger.write(bytes(broken))
        if dice.random() < 0.5:
            stranger.writer.transport.abort()
        if number % 10 == 0:
            assert await room.append("t", b"%d" % written) == written
            written += 1

    assert [value for _, value in await room.read_all("t")] == [b"%d" % number for number in range(written)]


@pytest.mark.parametrize(
    "begin",
    [
        lambda peer: None,
        lambda peer: peer.write(b"\x00"),
        lambda peer: peer.write((50 * MIB).to_bytes(4, "big") + bytes(1000)),
    ],
    ids=["said nothing", "one byte", "half a frame"],
)
@on_broker({"connections.max.idle.ms": "5000"}, clock=ManualClock)
async def test_half_open_connections_end_when_their_time_is_over(room: Room, begin: Callable[[Peer], None]) -> None:
    silent = await room.connect()
    begin(silent)
    for _ in range(3):
        assert await is_served(room.peer)
    room.running.advance(4.0)
    assert await is_served(room.peer)
    room.running.advance(2.0)

    assert await silent.is_ended()
    assert await is_served(room.peer), "who spoke 2 s ago stays"


@on_broker({"connections.max.idle.ms": "5000"}, clock=ManualClock)
async def test_a_reader_that_stopped_reading_is_ended_too(room: Room) -> None:
    await room.create("t", partitions=8)
    for number in range(8):
        await room.append("t", bytes(MIB - 1024), partition=number, timestamps=[room.wall_ms()])
    stuck = await room.connect()
    for _ in range(10):
        stuck.send(fetch_request({"t": dict.fromkeys(range(8), 0)}, max_bytes=8 * MIB), 12)
    for _ in range(20):
        assert await is_served(room.peer)
    room.running.advance(4.0)
    assert await is_served(room.peer)
    room.running.advance(2.0)
    for _ in range(5):
        assert await is_served(room.peer)

    assert room.running.server.listeners[0].connection_count == 1


@on_broker({"max.connections": "3"})
async def test_max_connections_holds_newcomers_back(room: Room) -> None:
    second, third = await room.connect(), await room.connect()
    assert await is_served(second)
    assert await is_served(third)
    fourth = await room.connect()
    asked = fourth.send(MetadataRequest(topics=[]), 12)
    for _ in range(10):
        assert await is_served(room.peer)
    assert not fourth.has_received
    await second.close()

    await fourth.receive_answer(MetadataResponse, 12, asked)


@on_broker({"max.connections.per.ip": "2"})
async def test_max_connections_per_ip_refuses_newcomers(room: Room) -> None:
    second = await room.connect()
    assert await is_served(second)
    third = await room.connect()
    assert await third.is_ended()
    await second.close()
    while room.running.server.listeners[0].connection_count > 1:
        await asyncio.sleep(0)

    assert await is_served(await room.connect())


@on_broker({"max.connection.creation.rate": "2", "quota.window.num": "2"}, clock=ManualClock)
async def test_connections_come_no_faster_than_their_rate(room: Room) -> None:
    assert await is_served(room.peer)
    newcomers = [await room.connect() for _ in range(6)]
    asked = [newcomer.send(MetadataRequest(topics=[]), 12) for newcomer in newcomers]
    for _ in range(20):
        assert await is_served(room.peer)
    let_in = [sum(newcomer.has_received for newcomer in newcomers)]
    for _ in range(6):
        room.running.advance(1.0)
        for _ in range(20):
            assert await is_served(room.peer)
        let_in.append(sum(newcomer.has_received for newcomer in newcomers))

    assert let_in[0] < 6
    assert all(later - earlier <= 2 for earlier, later in pairwise(let_in))
    assert let_in[-1] == 6
    for newcomer, correlation_id in zip(newcomers, asked, strict=True):
        await newcomer.receive_answer(MetadataResponse, 12, correlation_id)


def test_a_connection_that_ends_gives_back_what_it_held(tmp_path: Path) -> None:
    """Sessions, waiting fetches and half-received frames of a thousand connections leave nothing in the listener."""

    @on_broker({"log.dirs": str(tmp_path)})
    async def test(room: Room) -> None:
        await room.create("t")
        for number in range(200):
            peer = await room.connect()
            peer.send(fetch_request({"t": {0: 0}}, max_wait_ms=60_000), 12)
            if number % 2:
                peer.write(bytes(3))
            await peer.writer.drain()
            peer.writer.transport.abort()
        while room.running.server.listeners[0].connection_count > 1:
            await asyncio.sleep(0)
        assert await is_served(room.peer)
        await room.append("t", b"v")

    test()
