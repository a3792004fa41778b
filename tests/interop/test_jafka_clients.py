"""Clients of Kafka 0.7's time on a Jafka listener: prozess (Node), and Jafka's own (Java).

And Jafka's own server: it goes on with the directories that we leave, and we with those that it leaves.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from kafka import KafkaConsumer

from benchmarks.processes import find_free_port
from tests.interop.brokers import ROOT, BrokerProcess, OttlaBroker, is_open
from tests.interop.clients.client import run

PROZESS: Final = Path(os.environ.get("PROZESS", ROOT / ".cache/interop/prozess"))
JAFKA: Final = Path(os.environ.get("JAFKA", ROOT / ".cache/interop/jafka"))
SECONDS: Final = 30.0
CLIENTS: Final = ROOT / "tests/interop/clients"


@pytest.fixture
def jafka(tmp_path: Path) -> Iterator[OttlaBroker]:
    """A broker whose only listener speaks Jafka."""
    broker = OttlaBroker(
        tmp_path / "broker",
        "listeners=JAFKA://127.0.0.1:0",
        "ottla.jafka.flush.messages=1",
        "ottla.jafka.password=plain:secret",
    )
    broker.start()
    yield broker
    broker.stop()


def test_prozess_produces_and_consumes(jafka: OttlaBroker) -> None:
    host, port = jafka.address.split(":")

    printed = run(
        ["node", str(CLIENTS / "prozess/client.cjs"), host, port, "t"],
        environment={"NODE_PATH": str(PROZESS / "node_modules")},
    )

    assert json.loads(printed) == {
        "payloads": ["one", "two", "three"],
        "next": "41",
        "latest": "41",
        "lost": "OffsetOutOfRange",
    }


def test_jafkas_own_client_does_everything(jafka: OttlaBroker) -> None:
    host, port = jafka.address.split(":")

    printed = run(["java", "-cp", f"{JAFKA}/classes:{JAFKA}/lib/*", "JafkaClient", host, port, "t", "secret"])

    assert printed.splitlines() == [
        "created 2",
        "fetched [one, two, packed1, packed2]",
        "fetched [other]",
        "multifetched [[one, two, packed1, packed2], [other]]",
        "earliest [0]",
        "latest of 1 [15, 0]",
        "latest 15",
        "error beyond the end OffsetOutOfRangeCode",
        "refused -1",
        "deleted 2",
        "deleted again 0",
    ]


class JafkaServer(BrokerProcess):
    """Jafka's own server."""

    def __init__(self, folder: Path, port: int) -> None:
        super().__init__(folder)
        self._port = port
        self._properties = folder / "server.properties"
        self._properties.write_text(
            f"brokerid=1\nport={port}\nlog.dir={self.data}\nlog.file.size=200\nlog.flush.interval=1\nnum.partitions=2\n"
        )

    def command(self) -> list[str]:
        return ["java", "-cp", f"{JAFKA}/lib/*", "io.jafka.Jafka", str(self._properties)]

    def is_ready(self, printed: str) -> bool:
        return is_open("127.0.0.1", self._port)


def message(payload: bytes, attributes: int = 0) -> bytes:
    return struct.pack(">ibBI", 6 + len(payload), 1, attributes, zlib.crc32(payload)) + payload


def packed(*payloads: bytes) -> bytes:
    return message(gzip.compress(b"".join(map(message, payloads))), attributes=1)


def ask(port: int, kind: int, body: bytes) -> bytes:
    """Send a request about partition 0 of the topic `t`, and return the answer without its size and error."""
    request = struct.pack(">h1si", 1, b"t", 0) + body
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answers:
        connection.sendall(struct.pack(">ih", 2 + len(request), kind) + request)
        if kind == 0:
            connection.shutdown(socket.SHUT_WR)
            return answers.read()
        (size,) = struct.unpack(">i", answers.read(4))
        return answers.read(size)[2:]


def produce(port: int, messages: bytes, end: int) -> None:
    """Append to the topic, and wait until it ends where it should."""
    ask(port, 0, struct.pack(">i", len(messages)) + messages)
    deadline = time.monotonic() + SECONDS
    while struct.unpack_from(">iq", ask(port, 4, struct.pack(">qi", -1, 1)).ljust(12, b"\0"))[1] != end:
        assert time.monotonic() < deadline, f"the topic never ended at {end}"
        time.sleep(0.02)


def stored(port: int, end: int) -> bytes:
    """Return all messages of the topic. A fetch brings those of one file."""
    found = b""
    while len(found) < end and (more := ask(port, 1, struct.pack(">qi", len(found), 1 << 20))):
        found += more
    return found


def records(address: str, count: int) -> list[tuple[int, bytes]]:
    """Return what a client of Kafka sees in the topic."""
    consumer = KafkaConsumer("t", bootstrap_servers=address, auto_offset_reset="earliest", consumer_timeout_ms=10_000)
    found = [(record.offset, record.value) for _, record in zip(range(count), consumer, strict=False)]
    consumer.close()
    return found


def test_jafkas_server_and_ours_go_on_with_each_others_directories(tmp_path: Path) -> None:
    port = find_free_port()
    theirs = JafkaServer(tmp_path, port)
    ours = OttlaBroker(
        tmp_path, f"listeners=PLAINTEXT://127.0.0.1:0,JAFKA://127.0.0.1:{port}", "ottla.jafka.file.size=200"
    )
    sent = b""
    values: list[bytes] = []
    for number, broker in enumerate((theirs, ours, theirs, ours)):
        broker.start()
        assert stored(port, len(sent)) == sent
        if broker is ours:
            assert records(ours.address, len(values)) == list(enumerate(values))
        first, *rest = [b"%d%s" % (number, letter * 40) for letter in (b"a", b"b", b"c")]
        more = message(first) + packed(*rest)
        sent, values = sent + more, [*values, first, *rest]
        produce(port, more, len(sent))
        if broker is ours:
            assert records(ours.address, len(values)) == list(enumerate(values))
        broker.stop()
    assert len(list((ours.data / "t-0").glob("*.jafka"))) > 2
