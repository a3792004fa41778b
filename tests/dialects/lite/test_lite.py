"""Conversations in the lite dialect, byte for byte, over real sockets."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import pytest
import uvloop

from ottla.broker.metadata.create_topics import NewTopic
from ottla.client.lite import LiteClient
from ottla.errors import KafkaError, NetworkException, UnknownTopicOrPartition
from ottla.records.builder import BatchBuilder
from ottla.testing.clock import ManualClock
from ottla.testing.cluster import RunningBroker, broker_in_thread, running_broker

LISTENERS = {"listeners": "PLAINTEXT://127.0.0.1:0,LITE://127.0.0.1:0"}
KEEP_ALIVE = {**LISTENERS, "ottla.lite.keep.alive": "true"}
CLOSE = {**LISTENERS, "listener.name.lite.ottla.lite.errors": "close"}
SECONDS = 10.0

EVENTS = "0006 6576656e7473"
FETCH_1 = f"0002 {EVENTS} 00000000 0000000000000001"
FETCHED_1 = "00000002 00000000 00000006 776f726c6421"
PRODUCE = f"0001 {EVENTS} 00000000 00000002 00000005 68656c6c6f 00000000"
UNKNOWN = "ffffffff"

Test = Callable[[RunningBroker], Awaitable[None]]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Any:
    """Run a test with a broker that has `hello`, an empty value and `world!` in events-0."""

    def runner(test: Test, settings: Mapping[str, str] = LISTENERS, clock: ManualClock | None = None) -> None:
        async def main() -> None:
            async with running_broker(settings, clock=clock) as running:
                running.broker.metadata.create_topics([NewTopic("events", 1)])
                append(running, b"hello", b"", b"world!")
                await test(running)

        loop: Callable[[Coroutine[Any, Any, None]], None] = uvloop.run if request.param == "uvloop" else asyncio.run
        loop(main())

    return runner


def append(running: RunningBroker, *values: bytes) -> None:
    builder = BatchBuilder()
    for value in values:
        builder.append(1000, None, value)
    running.broker.append(running.broker.partition("events", 0), memoryview(bytearray(builder.build())))


async def connect(running: RunningBroker) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", running.server.listeners[1].port)


async def ask(running: RunningBroker, text: str, *, ends: bool = False) -> str:
    """Send hex text and return all that comes until the connection is closed."""
    reader, writer = await connect(running)
    writer.write(bytes.fromhex(text))
    if ends:
        writer.write_eof()
    try:
        answer = await asyncio.wait_for(reader.read(), SECONDS)
    except ConnectionResetError:
        answer = b""
    writer.close()
    return answer.hex()


def plain(text: str) -> str:
    return text.replace(" ", "")


def error_code(answer: str) -> int:
    data = bytes.fromhex(answer)
    count, size, code = struct.unpack_from(">IIH", data)
    assert count == 0xFFFFFFFF
    assert size == len(data) - 8
    return int(code)


ANSWERS = [
    (FETCH_1, FETCHED_1),
    (f"0002 {EVENTS} 00000000 0000000000000004", "00000000"),
    (f"0002 {EVENTS} 00000000 0000000000000003", "00000000"),
    (f"0002 {EVENTS} 00000000 ffffffffffffffff", "00000000"),
    (f"0002 {EVENTS} 00000000 0000000000000002", "00000001 00000006 776f726c6421"),
    (f"0003 {EVENTS} 00000009", "00000001"),
    ("0003 0001 6e 00000003", "00000003"),
    (f"0005 {EVENTS} 00000000", "0000000000000000 0000000000000003"),
    (f"0004 {EVENTS} 00000000 0000000000000002 0000ffff 00000001 00001000", "00000001 00000006 776f726c6421"),
    (f"0004 {EVENTS} 00000000 0000000000000003 00000000 00000001 00001000", "00000000"),
    (f"0004 {EVENTS} 00000000 0000000000000000 00000000 00000000 00000004", "00000001 00000005 68656c6c6f"),
    (FETCH_1 + FETCH_1, FETCHED_1),  # what follows the first request is not looked at
    (PRODUCE, "00000002 0000000000000003"),
    (PRODUCE, "00000002 0000000000000005"),
]


def test_one_answer_and_then_the_end(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        for text, answer in ANSWERS:
            assert await ask(running, text) == plain(answer), text

    run(test)


INTERNAL = "0012" + b"__consumer_offsets".hex()
MISTAKES = [
    ("0002 0005 6f74686572 00000000 0000000000000001", 3),
    (f"0002 {EVENTS} 00000007 0000000000000001", 3),
    ("0002 0000 00000000 0000000000000000", 3),
    ("0001 0005 6f74686572 00000000 00000001 00000000", 3),
    ("0005 0005 6f74686572 00000000", 3),
    ("0009", 35),
    ("0000", 35),
    ("0002 0002 c328", 42),
    (f"0001 {EVENTS} 00000000 00000000", 42),
    ("0003 0001 2f 00000001", 42),
    ("0003 0001 78 00000000", 42),
    (f"0003 {INTERNAL} 00000001", 42),
    (f"0001 {INTERNAL} 00000000 00000001 00000001 78", 3),
    ("0003 0001 78 ffffffff", 0xFFFF),
    (f"0001 {EVENTS} 00000000 00000001 ffffffff", 10),
    (f"0001 {EVENTS} 00000000 00000001 00200000" + "78" * 0x200000, 10),
    (f"0001 {EVENTS} 00000000 00030000" + "00000000" * 0x30000, 10),
]


def test_a_mistake_is_met_with_an_error_and_the_end(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        for text, code in MISTAKES:
            assert error_code(await ask(running, text)) == code, text[:80]

    run(test)


def test_nobody_writes_to_the_brokers_own_topics(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        running.broker.metadata.create_internal_topic("__consumer_offsets")
        assert error_code(await ask(running, f"0001 {INTERNAL} 00000000 00000001 00000001 78")) == 42

    run(test)


def test_a_mistake_is_met_with_silence_where_that_is_wanted(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        for text, _ in MISTAKES:
            assert await ask(running, text) == "", text[:80]
        assert await ask(running, FETCH_1) == plain(FETCHED_1)

    run(test, CLOSE)


def test_half_a_request_and_then_the_end_is_met_with_silence(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        for text in ("", "00", "0002", "0002 0006 6576", FETCH_1[:-2], PRODUCE[:-8]):
            assert await ask(running, text, ends=True) == "", text

    run(test)


def test_who_ends_his_sending_still_gets_the_answer(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        assert await ask(running, PRODUCE, ends=True) == "000000020000000000000003"

    run(test, {**LISTENERS, "ottla.flush.policy": "fsync"})


def test_requests_byte_by_byte_while_others_are_served(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        reader, writer = await connect(running)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        *slowly, last = bytes.fromhex(PRODUCE)
        for byte in slowly:
            writer.write(bytes([byte]))
            assert await ask(running, FETCH_1) == plain(FETCHED_1)
        writer.write(bytes([last]))
        assert (await asyncio.wait_for(reader.read(), SECONDS)).hex() == "000000020000000000000003"
        writer.close()

    run(test)


def test_with_keep_alive_requests_are_answered_in_order(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        unknown = "0005 0001 78 00000000"
        reader, writer = await connect(running)
        writer.write(bytes.fromhex(FETCH_1 + PRODUCE + unknown + f"0005 {EVENTS} 00000000"))
        expected = plain(FETCHED_1) + "000000020000000000000003"
        assert (await asyncio.wait_for(reader.readexactly(len(expected) // 2), SECONDS)).hex() == expected
        (size,) = struct.unpack(">4xI", await reader.readexactly(8))
        assert (await reader.readexactly(size))[:2] == b"\x00\x03"
        assert (await reader.readexactly(16)).hex() == "00000000000000000000000000000005"
        writer.write(bytes.fromhex("0009" + FETCH_1))  # where the next one begins is not known any more
        assert error_code((await reader.read()).hex()) == 35
        writer.close()

    run(test, KEEP_ALIVE)


def test_many_requests_at_once_are_all_answered(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        reader, writer = await connect(running)
        writer.write(bytes.fromhex(f"0005 {EVENTS} 00000000") * 5000)
        answers = await asyncio.wait_for(reader.readexactly(5000 * 16), SECONDS)
        assert answers == bytes.fromhex("00000000000000000000000000000003") * 5000
        writer.close()

    run(test, KEEP_ALIVE)


# ---- waiting

WAIT_FOR_TWO = f"0004 {EVENTS} 00000000 0000000000000003 00001388 00000002 00001000"


async def until_waiting(running: RunningBroker) -> None:
    while not len(running.broker._purgatory):
        await asyncio.sleep(0)


def test_a_fetch_waits_for_as_many_records_as_it_wants(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        asked = asyncio.ensure_future(ask(running, WAIT_FOR_TWO))
        await until_waiting(running)
        append(running, b"one")
        await until_waiting(running)
        append(running, b"two")
        assert await asked == plain("00000002 00000003 6f6e65 00000003 74776f")

    run(test, clock=ManualClock())


def test_a_fetch_whose_time_is_over_gets_what_there_is(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        for values, answer in (([], "00000000"), ([b"one"], "00000001 00000003 6f6e65")):
            asked = asyncio.ensure_future(ask(running, WAIT_FOR_TWO))
            await until_waiting(running)
            for value in values:
                append(running, value)
            running.advance(4.9)
            await until_waiting(running)
            running.advance(0.2)
            assert await asked == plain(answer)

    run(test, clock=ManualClock())


def test_a_waiting_fetch_is_answered_when_the_server_stops(run: Any) -> None:
    asked: list[asyncio.Future[str]] = []

    async def test(running: RunningBroker) -> None:
        asked.append(asyncio.ensure_future(ask(running, WAIT_FOR_TWO)))
        await until_waiting(running)
        await running.server.listeners[1].drain(SECONDS)
        assert await asked[0] == "00000000"

    run(test)


def test_who_hangs_up_waits_no_more(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        _, writer = await connect(running)
        writer.write(bytes.fromhex(WAIT_FOR_TWO))
        await until_waiting(running)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        while len(running.broker._purgatory):
            await asyncio.sleep(0)

    run(test)


# ---- the client


@pytest.mark.parametrize("settings", [LISTENERS, KEEP_ALIVE])
def test_the_client_speaks_all_of_it(settings: Mapping[str, str]) -> None:
    with broker_in_thread(settings) as running:
        client = LiteClient("127.0.0.1", running.server.listeners[1].port)
        assert client.create_topic("events", 2) == 2
        assert client.produce("events", 1, [b"hello", b""]) == 0
        assert client.produce("events", 1, [b"world!"]) == 2
        assert client.fetch("events", 1, 1) == [b"", b"world!"]
        assert client.fetch("events", 1, 7) == []
        assert client.fetch_wait("events", 1, 3, max_wait_ms=1) == []
        assert client.fetch_wait("events", 1, 0, max_wait_ms=1, max_bytes=1) == [b"hello"]
        assert client.offsets("events", 1) == (0, 3)
        with pytest.raises(UnknownTopicOrPartition):
            client.fetch("nowhere", 0, 0)
        with pytest.raises(KafkaError, match="at least one record"):
            client.produce("events", 1, [])


def test_the_client_says_when_there_is_no_answer() -> None:
    with broker_in_thread(CLOSE) as running, pytest.raises(NetworkException, match="before the answer was whole"):
        LiteClient("127.0.0.1", running.server.listeners[1].port).fetch("nowhere", 0, 0)
