"""A conversation with the real Jafka, byte for byte, and what it does with everything that is no conversation."""

from __future__ import annotations

import asyncio
import gzip
import struct
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest
import uvloop

from ottla.broker.fetch_sessions import FetchEntry
from ottla.broker.fetching import FetchPlan
from ottla.broker.metadata.create_topics import NewTopic
from ottla.broker.partition import PartitionRead
from ottla.broker.purgatory import Waiting
from ottla.broker.visible import STRETCH_BYTES, take_bytes
from ottla.errors import UnsupportedForMessageFormat
from ottla.model import ZERO_TOPIC_ID, IsolationLevel
from ottla.records.builder import BatchBuilder
from ottla.records.reading import decode
from ottla.testing.clock import ManualClock
from ottla.testing.cluster import RunningBroker, running_broker
from tests.turns import BusyClock

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,JAFKA://127.0.0.1:0,JAFKA_HTTP://127.0.0.1:0",
    "num.partitions": "2",
    "ottla.jafka.flush.messages": "1",
    "ottla.jafka.password": "plain:jafka",
    "listener.name.jafka.socket.request.max.bytes": "100000",
}
SECONDS = 10.0
SILENCE_SECONDS = 0.05

HELLO = "0000000b01003610a68668656c6c6f"
WORLD = "0000000c0100718498e8776f726c6421"
PRODUCE_HELLO = f"0000001c 0000 0001 74 00000000 0000000f {HELLO}"
PRODUCE_WORLD = f"0000001d 0000 0001 74 00000000 00000010 {WORLD}"
CLOSED = None

Test = Callable[[RunningBroker], Awaitable[None]]


def plain(text: str) -> str:
    return text.replace(" ", "")


def message(payload: bytes, *, magic: int = 1, attributes: int = 0, crc: int | None = None) -> bytes:
    return (
        struct.pack(">ibBI", 6 + len(payload), magic, attributes, zlib.crc32(payload) if crc is None else crc) + payload
    )


def text16(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def frame(kind: int, body: bytes) -> bytes:
    return struct.pack(">ih", 2 + len(body), kind) + body


def produce(topic: str, partition: int, messages: bytes) -> bytes:
    return frame(0, text16(topic) + struct.pack(">ii", partition, len(messages)) + messages)


def fetch(topic: str, partition: int, offset: int, max_bytes: int = 1024) -> bytes:
    return frame(1, text16(topic) + struct.pack(">iqi", partition, offset, max_bytes))


def offsets(topic: str, partition: int, time_ms: int, count: int = 10) -> bytes:
    return frame(4, text16(topic) + struct.pack(">iqi", partition, time_ms, count))


class Client:
    """One connection to the Jafka listener."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, running: RunningBroker, listener: int = 1) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", running.server.listeners[listener].port))

    async def ask(self, request: bytes | str) -> str | None:
        """Return the answer in hex, None when the connection was closed instead."""
        self.writer.write(bytes.fromhex(request) if isinstance(request, str) else request)
        try:
            size = await asyncio.wait_for(self.reader.readexactly(4), SECONDS)
            answer = size + await asyncio.wait_for(self.reader.readexactly(int.from_bytes(size, "big")), SECONDS)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.close()
            return CLOSED
        return answer.hex()

    async def tell(self, request: bytes | str) -> None:
        """Send what has no answer: that it was done shows in the answer to what is asked behind it."""
        self.writer.write(bytes.fromhex(request) if isinstance(request, str) else request)
        assert await self.ask(offsets("nobody", 0, -1)) == "00000006000000000000"

    def close(self) -> None:
        self.writer.close()


async def ask(running: RunningBroker, request: bytes | str) -> str | None:
    client = await Client.connect(running)
    answer = await client.ask(request)
    client.close()
    return answer


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Any:
    def runner(test: Test, settings: Mapping[str, str] = SETTINGS, clock: ManualClock | None = None) -> None:
        async def main() -> None:
            async with running_broker(settings, clock=clock) as running:
                await test(running)

        loop: Callable[[Coroutine[Any, Any, None]], None] = uvloop.run if request.param == "uvloop" else asyncio.run
        loop(main())

    return runner


DIALOGUE: list[tuple[str, str | None]] = [
    ("00000015 0001 0001 74 00000000 0000000000000000 00000400", f"00000021 0000 {HELLO} {WORLD}"),
    ("00000015 0001 0001 74 00000000 000000000000000f 00000400", f"00000012 0000 {WORLD}"),
    ("00000015 0001 0001 74 00000000 000000000000001f 00000400", "00000002 0000"),
    ("00000015 0001 0001 74 00000000 0000000000000020 00000400", "00000002 0001"),
    ("00000015 0001 0001 74 00000000 ffffffffffffffff 00000400", "00000002 0001"),
    ("00000015 0001 0001 74 00000000 0000000000000000 00000014", f"00000016 0000 {HELLO} 0000000c01"),
    ("00000015 0001 0001 74 00000000 0000000000000000 00000000", "00000002 0000"),
    ("00000015 0001 0001 74 00000000 0000000000000000 ffffffff", "00000002 0004"),  # Jafka sends a broken frame
    ("00000015 0001 0001 74 00000002 0000000000000000 00000400", "00000002 0003"),
    ("00000015 0001 0001 74 ffffffff 0000000000000000 00000400", "00000002 0003"),
    ("00000015 0001 0001 78 00000000 0000000000000063 00000400", "00000002 0000"),
    ("00000017 0001 0003 612f62 00000000 0000000000000000 00000400", "00000002 ffff"),
    ("00000014 0001 0000 00000000 0000000000000000 00000400", "00000002 ffff"),
    ("00000014 0001 ffff 00000000 0000000000000000 00000400", CLOSED),
    (
        "00000053 0002 0004"
        " 0001 74 00000000 0000000000000000 00000400"
        " 0001 74 00000009 0000000000000000 00000400"
        " 0004 6e6f7065 00000000 0000000000000000 00000400"
        " 0001 74 00000000 00000000000003e7 00000400",
        f"00000039 0000 00000021 0000 {HELLO} {WORLD} 00000002 0003 00000002 0000 00000002 0001",
    ),
    ("00000004 0002 0000", "00000002 0000"),
    ("00000015 0004 0001 74 00000000 ffffffffffffffff 0000000a", "00000016 0000 00000002 000000000000001f" + "0" * 16),
    ("00000015 0004 0001 74 00000000 fffffffffffffffe 0000000a", "0000000e 0000 00000001 0000000000000000"),
    ("00000015 0004 0001 74 00000000 ffffffffffffffff 00000000", "00000006 0000 00000000"),
    ("00000015 0004 0001 78 00000000 ffffffffffffffff 0000000a", "00000006 0000 00000000"),
    ("00000015 0004 0001 74 00000009 ffffffffffffffff 0000000a", CLOSED),
    ("0000000a 0005 0001 63 00000005 00", "0000000a 0000 00000001 00000005"),
    ("0000000a 0005 0001 74 00000001 00", "0000000a 0000 00000001 00000002"),
    ("0000000a 0005 0001 74 00000004 00", "0000000a 0000 00000001 00000004"),
    ("0000000a 0005 0001 63 ffffffff 00", CLOSED),
    ("00000009 0006 00026d70 000178", "0000000a 0000 00000001 ffffffff"),
    ("0000000d 0006 00026d70 00056a61666b61", "0000000a 0000 00000001 00000002"),
    ("0000000d 0006 00026d70 00056a61666b61", "0000000a 0000 00000001 00000000"),
]
MULTIPRODUCE = (
    "0000003d 0003 0002 00026d70 00000000 0000000b 000000070100e8b7be4361"
    " 00026d70 00000001 00000016 00000007010071beeff962 00000007010006b9df6f63"
)


def test_the_dialogue_with_the_real_server(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        client = await Client.connect(running)
        for request in (PRODUCE_HELLO, PRODUCE_WORLD, MULTIPRODUCE):
            await client.tell(request)
        assert await client.ask(fetch("mp", 1, 0)) == plain(
            "00000018 0000 00000007010071beeff962 00000007010006b9df6f63"
        )
        for request, answer in DIALOGUE:
            assert await ask(running, request) == (None if answer is None else plain(answer)), request
        client.close()

    run(test)


def test_what_is_no_request_is_met_with_a_close_and_disturbs_nobody(run: Any) -> None:
    bad_crc = message(b"x", crc=1)
    inner = message(b"in")
    requests: list[bytes | str] = [
        "00000000",
        "ffffffff",
        (100001).to_bytes(4, "big"),
        "7fffffff 0001",
        "00000002 0007",
        "00000002 0063",
        "00000002 ffff",
        "00000001 00",
        "00000006 0001 0001 74 00",
        produce("t", 2, bytes.fromhex(HELLO)),
        produce("t", -2, bytes.fromhex(HELLO)),
        produce("../evil", 0, bytes.fromhex(HELLO)),
        produce("", 0, bytes.fromhex(HELLO)),
        produce("t", 0, bad_crc),
        produce("t", 0, bytes.fromhex(HELLO) + bad_crc),
        produce("t", 0, message(b"x", magic=0)),
        produce("t", 0, message(b"x", attributes=2)),
        produce("t", 0, message(b"x", attributes=3)),
        produce("t", 0, message(b"no gzip", attributes=1)),
        produce("t", 0, message(gzip.compress(message(b"x", crc=1)), attributes=1)),
        produce("t", 0, message(gzip.compress(inner[:-1]), attributes=1)),
        produce("t", 0, bytes.fromhex(HELLO)[:-1]),
        produce("t", 0, bytes.fromhex("ffffffff")),
        produce("t", 0, bytes.fromhex("00000005 0100000000")),
        frame(0, text16("t") + struct.pack(">ii", 0, -1)),
        frame(0, text16("t") + struct.pack(">ii", 0, 5000)),
        frame(3, struct.pack(">h", 2) + produce("t", 0, b"")[6:]),
        offsets("a/b", 0, -1),
        frame(5, text16("..") + struct.pack(">ib", 1, 0)),
        frame(5, text16("t") + struct.pack(">ib", 2**31 - 1, 0)),
        frame(5, text16("large") + struct.pack(">ib", 2**31 - 1, 0)),
        produce("__consumer_offsets", 0, bytes.fromhex(HELLO)),
        frame(5, text16("__consumer_offsets") + struct.pack(">ib", 1, 0)),
        frame(6, text16("__consumer_offsets") + text16("jafka")),
    ]

    async def test(running: RunningBroker) -> None:
        other = await Client.connect(running)
        await other.tell(PRODUCE_HELLO)
        for request in requests:
            assert await ask(running, request) is CLOSED, request
            assert await other.ask(fetch("t", 0, 0)) == plain(f"00000011 0000 {HELLO}"), request
        other.close()
        assert not (Path(running.directory).parent / "evil-0").exists()

    run(test)


def test_requests_byte_by_byte_and_many_at_once(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        client = await Client.connect(running)
        for byte in bytes.fromhex(PRODUCE_HELLO):
            client.writer.write(bytes([byte]))
            await asyncio.sleep(0)
        client.writer.write(fetch("t", 0, 0) * 100)
        expected = bytes.fromhex(plain(f"00000011 0000 {HELLO}")) * 100
        assert await asyncio.wait_for(client.reader.readexactly(len(expected)), SECONDS) == expected
        client.close()

    run(test)


def test_sets_are_kept_as_they_were_sent(run: Any) -> None:
    packed = message(
        gzip.compress(message(b"in1") + message(gzip.compress(message(b"in2")), attributes=1)), attributes=1
    )
    odd = message(b"odd", attributes=0x80)

    async def test(running: RunningBroker) -> None:
        client = await Client.connect(running)
        await client.tell(produce("t", 0, packed + odd + bytes.fromhex(HELLO)[:9]))  # the last entry is cut
        answer = await client.ask(fetch("t", 0, 0))
        assert answer == (struct.pack(">ih", 2 + len(packed + odd), 0) + packed + odd).hex()
        client.close()
        assert kafka_values(running, "t", 0) == [b"in1", b"in2", b"odd"]
        directory = Path(running.directory) / "t-0"
        assert (directory / f"{0:020d}.jafka").read_bytes() == packed + odd
        assert sorted(path.suffix for path in directory.iterdir()) == [".jafka", ".metadata", ".positions"]

    run(test)


def test_an_empty_set_makes_the_topic(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        client = await Client.connect(running)
        await client.tell(produce("t", -1, b""))
        assert await client.ask(fetch("t", 1, 0)) == "000000020000"
        client.close()

    run(test)


def test_minus_one_is_any_partition(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        client = await Client.connect(running)
        for _ in range(40):
            await client.tell(produce("t", -1, message(b"x")))
        counts = [len(kafka_values(running, "t", partition)) for partition in range(2)]
        assert sum(counts) == 40
        assert all(counts)
        client.close()

    run(test)


# ---- topics in Jafka's format, for others


def test_what_others_produce_to_a_jafka_topic_is_there_at_once_as_plain_messages(run: Any) -> None:
    settings = {**SETTINGS, "ottla.jafka.flush.messages": "500"}

    async def test(running: RunningBroker) -> None:
        client = await Client.connect(running)
        await client.tell(produce("t", 0, message(b"one", attributes=0x80)))
        kafka_append(running, "t", b"two", key=None)
        expected = message(b"one", attributes=0x80) + message(b"two")
        answer: str | None = ""
        while answer is not None and len(answer) < 2 * (6 + len(expected)):
            answer = await client.ask(fetch("t", 0, 0))
        assert answer == (struct.pack(">ih", 2 + len(expected), 0) + expected).hex()
        with pytest.raises(UnsupportedForMessageFormat):
            kafka_append(running, "t", b"three", key=b"k")
        client.close()

    run(test, settings)


def test_the_lite_dialect_reads_and_writes_a_jafka_topic(run: Any) -> None:
    settings = {**SETTINGS, "listeners": SETTINGS["listeners"] + ",LITE://127.0.0.1:0"}

    async def lite(running: RunningBroker, request: str) -> str:
        asker = await Client.connect(running, 3)
        asker.writer.write(bytes.fromhex(request))
        answer = await asyncio.wait_for(asker.reader.read(), SECONDS)
        asker.close()
        return answer.hex()

    async def test(running: RunningBroker) -> None:
        client = await Client.connect(running)
        await client.tell(PRODUCE_HELLO)
        await client.tell(produce("t", 0, message(gzip.compress(message(b"in1") + message(b"in2")), attributes=1)))
        assert await lite(running, "0002 0001 74 00000000 0000000000000001") == (
            "00000002" + "00000003" + b"in1".hex() + "00000003" + b"in2".hex()
        )
        assert await lite(running, "0005 0001 74 00000000") == f"{0:016x}{3:016x}"
        assert await lite(running, "0001 0001 74 00000000 00000001 00000001 78") == f"{1:08x}{3:016x}"
        assert kafka_values(running, "t", 0) == [b"hello", b"in1", b"in2", b"x"]
        client.close()

    run(test, settings)


def test_a_fetch_that_waits_is_woken_by_a_jafka_client(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        client = await Client.connect(running)
        await client.tell(produce("t", 0, b""))
        entry = FetchEntry("t", ZERO_TOPIC_ID, 0, 0, 1000)
        woken: asyncio.Future[list[PartitionRead]] = asyncio.get_running_loop().create_future()
        found = running.broker.fetch(FetchPlan([entry], 60_000, 1, 1000), woken.set_result)
        assert isinstance(found, Waiting)
        await client.tell(PRODUCE_HELLO)
        (read,) = await asyncio.wait_for(woken, SECONDS)
        assert [record.value for record in decode(take_bytes(read), 0, 1 << 40).records] == [b"hello"]
        client.close()

    run(test)


# ---- topics in Kafka's format


def kafka_values(running: RunningBroker, topic: str, number: int) -> list[bytes]:
    """Return the values in a partition as Kafka's clients see them."""
    partition = running.broker.partition(topic, number)
    start = partition.offsets().log_start_offset
    read = partition.read(start, 1 << 20, IsolationLevel.READ_UNCOMMITTED, at_least_one_batch=True)
    return [record.value or b"" for record in decode(take_bytes(read), start, 1 << 40).records]


def kafka_append(running: RunningBroker, topic: str, *values: bytes | None, key: bytes | None = b"key") -> None:
    builder = BatchBuilder()
    for value in values:
        builder.append(running.broker.clock.wall_ms(), key, value)
    running.broker.append(running.broker.partition(topic, 0), memoryview(bytearray(builder.build())))


def test_what_kafkas_clients_produce_is_converted_in_its_order(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        running.broker.metadata.create_topics([NewTopic("k", 1)])
        client = await Client.connect(running)
        kafka_append(running, "k", b"one", None)
        await client.tell(produce("k", 0, message(b"two", attributes=0x80)))
        kafka_append(running, "k", b"three")
        expected = message(b"one") + message(b"") + message(b"two", attributes=0x80) + message(b"three")
        assert await client.ask(fetch("k", 0, 0)) == (struct.pack(">ih", 2 + len(expected), 0) + expected).hex()
        assert kafka_values(running, "k", 0) == [b"one", b"", b"two", b"three"]
        client.close()

    run(test)


def test_questions_convert_a_stretch_at_a_time_and_wait_for_their_turn(run: Any) -> None:
    """Twenty questions at once, the peer's end right behind them; time's callbacks are turns."""
    value = b"x" * 10_000

    async def test(running: RunningBroker) -> None:
        running.broker.metadata.create_topics([NewTopic("k", 1)])
        for _ in range(20):
            kafka_append(running, "k", *[value] * 10)
        client = await Client.connect(running)
        client.writer.write(offsets("k", 0, -1, 1) * 20)
        client.writer.write_eof()
        answers = asyncio.ensure_future(client.reader.read())
        turns = 0
        async with asyncio.timeout(SECONDS):
            while not answers.done():
                await asyncio.sleep(0)
                running.advance(0)
                turns += 1
        places = [struct.unpack(">ihiq", answer[:18])[3] for answer in batched(answers.result(), 18)]
        assert 0 < places[0] < 2 * STRETCH_BYTES < places[-1] == 200 * len(message(value))
        assert len(places) == 20 and places == sorted(places) and turns > 2
        client.close()

    run(test, clock=BusyClock())


def batched(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def test_offsets_stay_what_they_are_when_kafkas_log_is_trimmed(run: Any) -> None:
    async def test(running: RunningBroker) -> None:
        running.broker.metadata.create_topics([NewTopic("k", 1)])
        client = await Client.connect(running)
        kafka_append(running, "k", b"one")
        kafka_append(running, "k", b"two")
        assert await client.ask(offsets("k", 0, -1)) == plain("00000016 0000 00000002 000000000000001a" + "0" * 16)
        running.broker.delete_records("k", 0, 1)
        kafka_append(running, "k", b"three")
        expected = message(b"two") + message(b"three")
        assert await client.ask(fetch("k", 0, 13)) == (struct.pack(">ih", 2 + len(expected), 0) + expected).hex()
        client.close()

    run(test)


def test_offsets_stay_what_they_are_over_a_restart(tmp_path: Path) -> None:
    settings = {**SETTINGS, "log.dirs": str(tmp_path / "data"), "ottla.flush.policy": "fsync"}
    packed = message(gzip.compress(message(b"in1") + message(b"in2")), attributes=1)

    async def before() -> None:
        async with running_broker(settings) as running:
            client = await Client.connect(running)
            await client.tell(produce("t", 0, packed))
            client.close()

    async def after() -> None:
        async with running_broker(settings) as running:
            client = await Client.connect(running)
            await client.tell(produce("t", 0, message(b"more")))
            answer: str | None = ""
            while answer is not None and len(answer) < 2 * (6 + len(packed) + 14):
                answer = await client.ask(fetch("t", 0, 0))
            assert answer == (struct.pack(">ih", 2 + len(packed) + 14, 0) + packed + message(b"more")).hex()
            client.close()

    asyncio.run(before())
    asyncio.run(after())


def test_offsets_stay_what_they_are_when_kafkas_log_is_compacted_and_retained(tmp_path: Path) -> None:
    """Compaction takes records away that Jafka's clients have seen; what they see, and where, is left alone."""
    settings = {**SETTINGS, "log.dirs": str(tmp_path / "data"), "log.cleaner.backoff.ms": "1000"}
    configs = {"cleanup.policy": "compact,delete", "internal.segment.bytes": "200", "min.cleanable.dirty.ratio": "0.01"}
    values = [b"%02d" % number for number in range(30)]
    expected = b"".join(message(value) for value in values)

    async def until(is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not is_so():
                await asyncio.sleep(0.01)

    async def seen(running: RunningBroker) -> bytes:
        client = await Client.connect(running)
        answer = await client.ask(fetch("k", 0, 0, 100_000))
        assert await client.ask(offsets("k", 0, -1)) == f"{22:08x}{0:04x}{2:08x}{12 * len(values):016x}{0:016x}"
        client.close()
        return bytes.fromhex(answer or "")[6:]

    async def compact(clock: ManualClock) -> None:
        async with running_broker(settings, clock=clock) as running:
            running.broker.metadata.create_topics([NewTopic("k", 1, configs=list(configs.items()))])
            for value in values:
                kafka_append(running, "k", value)
            assert await seen(running) == expected
            running.advance(2)
            await until(lambda: len(kafka_values(running, "k", 0)) < 10)
            assert await seen(running) == expected
        async with running_broker(settings, clock=clock) as running:
            assert await seen(running) == expected
            running.advance(8 * 86_400)  # older than retention.ms

            def is_gone() -> bool:
                running.advance(300)  # retention waits for compaction
                return running.broker.partition("k", 0).offsets().log_start_offset == len(values)

            await until(is_gone)
            client = await Client.connect(running)
            kafka_append(running, "k", b"new")
            assert await client.ask(produce("k", 0, message(b"no key"))) is CLOSED  # which compaction needs
            client = await Client.connect(running)
            assert await client.ask(fetch("k", 0, 12 * len(values))) == f"{15:08x}{0:04x}" + message(b"new").hex()
            client.close()

    asyncio.run(compact(ManualClock(wall_ms=1 << 41)))


# ---- flushes


def test_what_is_not_flushed_is_not_there_until_its_time_comes(run: Any) -> None:
    settings = {**SETTINGS, "ottla.jafka.flush.messages": "3", "ottla.jafka.flush.ms": "1000"}

    async def test(running: RunningBroker) -> None:
        client = await Client.connect(running)
        await client.tell(PRODUCE_HELLO)
        assert await client.ask(fetch("t", 0, 0)) == "000000020000"
        assert await client.ask(fetch("t", 0, 15)) == "000000020001"
        running.advance(1.1)
        assert await client.ask(fetch("t", 0, 0)) == plain(f"00000011 0000 {HELLO}")
        for _ in range(3):
            await client.tell(PRODUCE_WORLD)
        assert await client.ask(fetch("t", 0, 15, 16)) == plain(f"00000012 0000 {WORLD}")
        client.close()

    run(test, settings, ManualClock())


def test_single_topics_have_times_of_their_own(run: Any) -> None:
    settings = {
        **SETTINGS,
        "ottla.jafka.flush.messages": "3",
        "ottla.jafka.flush.ms": "1000",
        "ottla.jafka.flush.intervals": "t:5000",
        "ottla.jafka.retention.hours": "t:2",
    }

    async def test(running: RunningBroker) -> None:
        client = await Client.connect(running)
        await client.tell(PRODUCE_HELLO + produce("other", 0, bytes.fromhex(HELLO)).hex())
        running.advance(1.1)
        assert await client.ask(fetch("other", 0, 0)) == plain(f"00000011 0000 {HELLO}")
        assert await client.ask(fetch("t", 0, 0)) == "000000020000"
        running.advance(4)
        assert await client.ask(fetch("t", 0, 0)) == plain(f"00000011 0000 {HELLO}")
        configs = [running.broker.partition(topic, 0).config for topic in ("t", "other")]
        assert [config.retention_ms for config in configs] == [2 * 3_600_000, 168 * 3_600_000]
        client.close()

    run(test, settings, ManualClock())


# ---- HTTP


async def http(running: RunningBroker, request: bytes) -> bytes:
    client = await Client.connect(running, 2)
    client.writer.write(request)
    answer = await asyncio.wait_for(client.reader.read(), SECONDS)
    client.close()
    return answer


def test_a_post_is_one_message(run: Any) -> None:
    head = b"POST /any HTTP/1.1\r\nkey: PRODUCE\r\ntopic: t\r\npartition: 1\r\n"

    async def test(running: RunningBroker) -> None:
        answer = await http(
            running,
            head + b"Content-Length: 3\r\n\r\none" + head + b"Connection: close\r\ncontent-length: 3\r\n\r\ntwo",
        )
        assert answer.count(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=UTF-8\r\n") == 2
        assert answer.endswith(b"\r\n\r\nOK")
        assert kafka_values(running, "t", 1) == [b"one", b"two"]
        ignored = head.replace(b"PRODUCE", b"FETCH") + b"Connection: close\r\n\r\n"
        assert (await http(running, ignored)).endswith(b"OK")

    run(test)


def test_other_methods_and_everything_else_over_http(run: Any, caplog: pytest.LogCaptureFixture) -> None:
    good = b"POST / HTTP/1.1\r\nkey: PRODUCE\r\ntopic: t\r\npartition: 0\r\n"
    refused = [
        good.replace(b"partition: 0\r\n", b"") + b"\r\n",
        good.replace(b"partition: 0", b"partition: 1025") + b"\r\n",
        good.replace(b"PRODUCE", b"NOTHING") + b"\r\n",
        good.replace(b"topic: t", b"topic: ../t") + b"\r\n",
        good.replace(b"partition: 0", b"partition: " + b"0" * 5000) + b"\r\n",
        good.replace(b"topic: t", b"topic: __consumer_offsets") + b"\r\n",
        good + b"Content-Length: 999999999999\r\n\r\n",
        good + b"Content-Length: " + b"0" * 5000 + b"\r\n\r\n",
        good + b"Content-Length: -1\r\n\r\n",
        good + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"no http at all\r\n\r\n",
        b"x" * 20000,
    ]

    async def test(running: RunningBroker) -> None:
        answer = await http(running, b"GET / HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 405 ")
        assert answer.endswith(b"POST METHOD REQUIRED")
        for request in refused:
            try:
                assert await http(running, request) == b"", request[:80]
            except ConnectionResetError:
                continue

    run(test)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
