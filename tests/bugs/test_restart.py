"""What a broker still knows after it ended: in order, at once, or in the middle of things."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.produce import ProduceResponse
from tests.process import KILL, SECONDS, TERM, started
from tests.wire import Room, batch, on_broker, open_room, produce_request, room_at

OUT_OF_ORDER_SEQUENCE = 45
SMALL_SEGMENTS = {"log.segment.bytes": str(1 << 20)}


@pytest.mark.parametrize("ends", ["in order", "at once"])
@pytest.mark.parametrize("settings", [{}, SMALL_SEGMENTS], ids=["one segment", "many segments"])
def test_a_retry_after_a_restart_is_known(tmp_path: Path, ends: str, settings: Mapping[str, str]) -> None:
    """AutoMQ/automq#369 "OutOfOrderSequenceException after a broker shut down gracefully", franz-go "kfake: fix
    shutdown race that caused duplicate records after restart", KAFKA-9892 "Producer state snapshot should be forced
    to disk", confluentinc/librdkafka#3584, aio-libs/aiokafka#1017. What a broker leaves that is killed is what its
    files hold at that moment: a copy of them, without the marker."""
    live, left = tmp_path / "live", tmp_path / "left"
    value = bytes(100_000) if settings else b"v"

    async def before(count: int) -> None:
        async with open_room({"log.dirs": str(live), **settings}) as room:
            await room.create("t")
            for sequence in range(count):
                await room.append("t", value, producer=(7, 0, sequence))
            if ends == "at once":
                shutil.copytree(live, left)
        if ends == "in order":
            shutil.copytree(live, left)

    async def after(count: int) -> None:
        async with open_room({"log.dirs": str(left), **settings}) as room:
            again = await room.produce("t", batch(value, producer=(7, 0, count - 1)))
            assert (again.error_code, again.base_offset) == (0, count - 1)
            gap = await room.produce("t", batch(value, producer=(7, 0, count + 1)))
            assert gap.error_code == OUT_OF_ORDER_SEQUENCE
            assert await room.append("t", value, producer=(7, 0, count)) == count
            assert await room.bounds("t") == (0, count + 1)

    for count in (1, 3, 7, 25):
        asyncio.run(before(count))
        asyncio.run(after(count))
        shutil.rmtree(live)
        shutil.rmtree(left)


def test_whenever_it_is_killed_what_was_acknowledged_is_there_once(tmp_path: Path) -> None:
    """AutoMQ/automq#369, KAFKA-9892: fifty moments of one run, each taken over by a new broker."""
    live = tmp_path / "live"
    dice = random.Random(4)
    moments = sorted(dice.sample(range(1, 200), 50))
    settings = {"log.dirs": str(live), "ottla.flush.policy": "fsync", **SMALL_SEGMENTS}

    async def run() -> None:
        async with open_room(settings) as room:
            await room.create("t")
            for sequence in range(200):
                size = dice.choice([10, 1000, 60_000])
                await room.append("t", b"%d %s" % (sequence, bytes(size)), producer=(7, 0, sequence))
                if sequence + 1 in moments:
                    shutil.copytree(live, tmp_path / str(sequence + 1))

    async def check(count: int) -> None:
        async with open_room({"log.dirs": str(tmp_path / str(count)), **SMALL_SEGMENTS}) as room:
            again = await room.produce("t", batch(b"again", producer=(7, 0, count - 1)))
            assert (again.error_code, again.base_offset) == (0, count - 1)
            await room.append("t", b"%d " % count, producer=(7, 0, count))
            values = [value for _, value in await room.read_all("t")]
            assert [int(value.split()[0]) for value in values if value] == list(range(count + 1))

    asyncio.run(run())
    for count in moments:
        asyncio.run(check(count))


@pytest.mark.parametrize("number", [KILL, TERM], ids=["SIGKILL", "SIGTERM"])
def test_a_process_that_ends_within_requests_loses_and_doubles_nothing(tmp_path: Path, number: int) -> None:
    """franz-go "kfake: fix shutdown race that caused duplicate records after restart", AutoMQ/automq#369: requests
    are on their way when the signal comes; whatever was answered is there, and the producer goes on."""
    first_unknown = 0

    async def produce(address: str, end: Callable[[int], None]) -> int:
        """Send twenty requests, end the broker after a few answers; returns the count of answers."""
        answered = 0
        async with room_at(address) as room:
            for sequence in range(first_unknown, first_unknown + 20):
                room.peer.send(produce_request({"t": {0: batch(b"%d" % sequence, producer=(7, 0, sequence))}}), 12)
            try:
                for correlation_id in range(1, 21):
                    answer = await room.peer.receive_answer(ProduceResponse, 12, correlation_id)
                    (row,) = answer.responses[0].partition_responses
                    assert (row.error_code, row.base_offset) == (0, first_unknown + answered)
                    answered += 1
                    if answered == 5:
                        end(number)
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
        return answered

    async def create(address: str) -> None:
        async with room_at(address) as room:
            await room.create("t")

    async def read_and_go_on(address: str) -> int:
        async with room_at(address) as room:
            values = [int(value or b"") for _, value in await room.read_all("t")]
            assert values == list(range(len(values))), "nothing twice, nothing missing"
            if values:
                again = await room.produce("t", batch(b"%d" % values[-1], producer=(7, 0, values[-1])))
                assert (again.error_code, again.base_offset) == (0, values[-1])
            return len(values)

    for round_number in range(2):
        with started(tmp_path) as broker:
            if round_number == 0:
                asyncio.run(create(broker.address))
            answered = asyncio.run(produce(broker.address, broker.process.send_signal))
            code = broker.process.wait(SECONDS)
            assert code == (0 if number == TERM else -KILL)
        with started(tmp_path) as broker:
            stored = asyncio.run(read_and_go_on(broker.address))
            assert stored >= first_unknown + answered
            first_unknown = stored


@on_broker()
async def test_a_producer_id_is_never_given_again(room: Room) -> None:
    """KAFKA-9892 and its kind: ids of before a crash belong to producers that are still there."""
    directory = Path(room.running.directory)
    given = [await producer_id(room) for _ in range(3)]
    copy = directory.with_name(directory.name + "-copy")
    shutil.copytree(directory, copy)
    try:
        async with open_room({"log.dirs": str(copy)}) as other:
            assert await producer_id(other) not in given
    finally:
        shutil.rmtree(copy)


async def producer_id(room: Room) -> int:
    answer = await room.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
    assert answer.error_code == 0
    number: int = answer.producer_id
    return number
