"""The challenge "Build your own Kafka": its files, its requests and what it looks at in the answers, stage by stage.

Dialogues in hex are those of a real Kafka 4.0 with the same files. Where Kafka's answer has something of its own (a
session id, bits of what clients may do, the list of its APIs) the rest is compared.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.processes import find_free_port
from ottla.config.properties import decode_properties
from ottla.records.builder import BatchBuilder
from ottla.testing.cluster import broker_in_thread
from tests.codecrafters.files import LOG_NAME, TopicFiles, lay_down, message_batch, metadata_log, topic_id

PROGRAM = Path(__file__).parents[2] / "tools" / "codecrafters" / "your_program.sh"
SECONDS = 10.0
API_VERSIONS_BODY = b"\x0akafka-cli\x040.1\x00"
FETCH_FRONT = bytes.fromhex("000001f4 00000001 7fffffff 00 00000000 00000000")

MANGO = TopicFiles("mango", bytes.fromhex("71a59a5189684f8b937e2d59b2dc350e"), [[]])


class Client:
    """One connection, as the tester uses it."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self._correlation_id = 7

    def send(self, frame: bytes) -> None:
        self._socket.sendall(len(frame).to_bytes(4, "big") + frame)

    def receive(self) -> bytes:
        """Return one frame, its length before it."""
        size = self._exactly(4)
        return size + self._exactly(int.from_bytes(size, "big"))

    def ask(self, api_key: int, version: int, body: bytes) -> bytes:
        """Send a request with a header of version 2 and return what follows the correlation id."""
        self.send(request(api_key, version, 7, body))
        answer = self.receive()
        assert answer[4:8] == b"\x00\x00\x00\x07"
        return answer[8:]

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            assert piece, "the connection was closed"
            data += piece
        return data


class Program:
    """The running broker and its data directory."""

    def __init__(self, port: int, directory: Path) -> None:
        self._port = port
        self._directory = directory
        self._clients: list[Client] = []

    def connect(self) -> Client:
        client = Client(self._port)
        self._clients.append(client)
        return client

    def log(self, topic: str, partition: int) -> bytes:
        return (self._directory / f"{topic}-{partition}" / LOG_NAME).read_bytes()

    def close(self) -> None:
        for client in self._clients:
            client.close()


@contextmanager
def started(root: Path, topics: Sequence[TopicFiles] | None) -> Iterator[Program]:
    """Lay the files down and start; only the address is not the challenge's."""
    settings = decode_properties(lay_down(root, topics, listen="127.0.0.1:0").read_bytes())
    with broker_in_thread({**settings, "ottla.flush.policy": "fsync"}) as running:
        program = Program(running.server.listeners[0].port, root / "kraft-combined-logs")
        try:
            yield program
        finally:
            program.close()


def request(api_key: int, version: int, correlation_id: int, body: bytes) -> bytes:
    return struct.pack(">hhih", api_key, version, correlation_id, 12) + b"kafka-tester\x00" + body


def compact(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


def describe_topics(names: Sequence[str], limit: int) -> bytes:
    listed = b"".join(compact(name) + b"\x00" for name in names)
    return bytes([len(names) + 1]) + listed + struct.pack(">i", limit) + b"\xff\x00"


def fetch(topic: bytes | None) -> bytes:
    if topic is None:
        return FETCH_FRONT + b"\x01\x01\x01\x00"
    partition = struct.pack(">iiqiqi", 0, -1, 0, -1, -1, 2**31 - 1)
    return FETCH_FRONT + b"\x02" + topic + b"\x02" + partition + b"\x00\x00\x01\x01\x00"


def produce(topics: Sequence[tuple[str, Sequence[tuple[int, bytes]]]]) -> bytes:
    body = b"\x00" + struct.pack(">hi", -1, 30000) + bytes([len(topics) + 1])
    for name, partitions in topics:
        body += compact(name) + bytes([len(partitions) + 1])
        for index, batch in partitions:
            size = len(batch) + 1
            body += struct.pack(">i", index) + bytes([size & 0x7F | 0x80, size >> 7]) + batch + b"\x00"
        body += b"\x00"
    return body + b"\x00"


def batch_of(*texts: str) -> bytes:
    """Return a batch as the challenge produces it: one of several records, with the producer id 0."""
    builder = BatchBuilder(leader_epoch=0, producer_id=0, producer_epoch=0, base_sequence=0)
    for text in texts:
        builder.append(1726045973899, None, text.encode())
    return builder.build()


def plain(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


def announced(body: bytes) -> dict[int, tuple[int, int]]:
    """Return the versions in an ApiVersions answer of version 4, whose header has no tags."""
    assert body[:2] == b"\x00\x00"
    count = body[2] - 1
    rows = [struct.unpack_from(">hhh", body, 3 + 7 * index) for index in range(count)]
    return {key: (low, high) for key, low, high in rows}


# ---- the files


def test_the_metadata_log_is_the_challenges_own() -> None:
    pear = TopicFiles("pear", plain("71a59a51 8968 4f8b 937e 6d1d292864ea"), [[]])

    assert metadata_log([pear]) == plain(
        "00000000000000010000004f0000000102b069457c00000000000000000191e05af81800000191e05af818ffffffffffffffffffff"
        "ffffffff000000013a000000012e010c00116d657461646174612e76657273696f6e0014000000"
        "000000000000020000009b0000000102948a6f6200000000000100000191e05b2d1500000191e05b2d15ffffffffffffffffffff"
        "ffffffff000000023e0000000132010200057065617271a59a5189684f8b937e6d1d292864ea000090010000020182010103010000"
        "000071a59a5189684f8b937e6d1d292864ea02000000010200000001010100000001000000000000000002100000000000400080"
        "000000000000010000"
    )


# ---- the base stages, and several connections: no metadata log at all


def test_without_a_metadata_log_versions_are_told(tmp_path: Path) -> None:
    with started(tmp_path, None) as program:
        client = program.connect()
        for _ in range(4):
            served = announced(client.ask(18, 4, API_VERSIONS_BODY))
            assert served[18][0] == 0 and served[18][1] >= 4
            assert served[75] == (0, 0)
            assert 0 <= served[1][0] <= 16 <= served[1][1]
            assert 0 <= served[0][0] <= 11 <= served[0][1]
        client.send(plain("001206a2605a05cd000c6b61666b612d746573746572000a6b61666b612d636c6904302e3100"))
        answer = client.receive()
        assert answer[4:10] == plain("605a05cd0023")
        assert plain("00120000") in answer  # the versions that are served, in the layout of version 0


def test_answers_come_to_whoever_asked_in_any_order_of_reading(tmp_path: Path) -> None:
    with started(tmp_path, None) as program:
        clients = [program.connect() for _ in range(3)]
        for number, client in enumerate(clients):
            client.send(request(18, 4, number, API_VERSIONS_BODY))
        for number, client in reversed(list(enumerate(clients))):
            assert client.receive()[4:8] == struct.pack(">i", number)


# ---- listing partitions


def test_topics_are_described(tmp_path: Path) -> None:
    topics = [MANGO, TopicFiles("pear", topic_id(7), [[], []]), TopicFiles("banana", topic_id(8), [[]])]
    with started(tmp_path, topics) as program:
        client = program.connect()
        client.send(
            plain("004b00007d7b4a94000c6b61666b612d746573746572000211554e4b4e4f574e5f544f5049435f39320000000001ff00")
        )
        assert client.receive() == plain(
            "000000367d7b4a94000000000002000311554e4b4e4f574e5f544f5049435f3932000000000000000000000000000000000001"
            "00000df800ff00"
        )
        client.send(plain("004b00007076db55000c6b61666b612d7465737465720002066d616e676f0000000001ff00"))
        assert client.receive() == plain(
            "000000477076db550000000000020000066d616e676f71a59a5189684f8b937e2d59b2dc350e00020000000000000000000100"
            "000000020000000102000000010101010000000df800ff00"
        )
        two_partitions = client.ask(75, 0, describe_topics(["pear"], 2))
        assert two_partitions.index(plain("0000 00000000 00000001")) < two_partitions.index(
            plain("0000 00000001 00000001")
        )
        two_topics = client.ask(75, 0, describe_topics(["pear", "banana"], 3))
        assert two_topics.index(compact("banana") + topic_id(8)) < two_topics.index(compact("pear") + topic_id(7))
        assert two_topics[-2:] == b"\xff\x00"


# ---- consuming


def test_fetches_are_answered_with_the_bytes_on_the_disk(tmp_path: Path) -> None:
    messages = ["Hello Kafka!", "Hello World!", "Hello CodeCrafters!"]
    full = TopicFiles("grape", topic_id(1), [messages])
    with started(tmp_path, [MANGO, full]) as program:
        client = program.connect()
        front = plain("00 00000000 0000")  # tags, throttle, error; then four bytes of a session id

        none = client.ask(1, 16, fetch(None))
        assert (none[:7], none[11:]) == (front, plain("01 00"))

        unknown = client.ask(1, 16, fetch(plain("71a59a5189684f8b937e000000000479")))
        assert unknown[:7] == front
        assert unknown[11:] == plain(
            "0271a59a5189684f8b937e00000000047902000000000064ffffffffffffffffffffffffffffffffffffffffffffffff01"
            "ffffffff01000000"
        )
        empty = client.ask(1, 16, fetch(MANGO.topic_id))
        assert empty[11:] == b"\x02" + MANGO.topic_id + plain("02 00000000 0000") + bytes(24) + plain(
            "00 ffffffff 01 00 00 00"
        )
        on_disk = b"".join(message_batch(*pair) for pair in enumerate(messages))
        assert program.log("grape", 0) == on_disk
        size = len(on_disk) + 1
        assert client.ask(1, 16, fetch(full.topic_id))[11:] == (
            b"\x02"
            + full.topic_id
            + plain("02 00000000 0000")
            + struct.pack(">qqq", 3, 3, 0)
            + plain("00 ffffffff")
            + bytes([size & 0x7F | 0x80, size >> 7])
            + on_disk
            + bytes(3)
        )


# ---- producing


def test_what_cannot_be_produced_is_refused_as_kafka_does(tmp_path: Path) -> None:
    orange = TopicFiles("orange", topic_id(2), [[]])
    with started(tmp_path, [orange]) as program:
        client = program.connect()
        client.send(
            plain(
                "0000000b47b36978000c6b61666b612d7465737465720000ffff0000753002076f72616e676502000002d04a0000000000000000"
                "0000003d000000000272bc4ab000000000000000000191e05b6d8b00000191e05b6d8b000000000000000000000000000000000001"
                "16000000010a6d616e676f00000000"
            )
        )
        assert client.receive() == plain(
            "0000003547b369780002076f72616e676502000002d00003ffffffffffffffffffffffffffffffffffffffffffffffff01000000"
            "0000000000"
        )
        refused = client.ask(0, 11, produce([("UNKNOWN_TOPIC_9", [(0, batch_of("x"))])]))
        assert refused == b"\x00\x02" + compact("UNKNOWN_TOPIC_9") + plain("02 00000000 0003") + b"\xff" * 24 + plain(
            "01 00 00 00 00000000 00"
        )


def test_a_produced_record_is_on_the_disk_when_the_answer_comes(tmp_path: Path) -> None:
    apple = TopicFiles("apple", topic_id(3), [[]])
    with started(tmp_path, [apple]) as program:
        client = program.connect()
        client.send(
            plain(
                "0000000b517f2d86000c6b61666b612d7465737465720000ffff0000753002066170706c6502000000004a0000000000000000"
                "0000003d0000000002a437a6ee00000000000000000191e05b6d8b00000191e05b6d8b000000000000000000000000000000000001"
                "16000000010a6170706c6500000000"
            )
        )
        assert client.receive() == plain(
            "00000034517f2d860002066170706c65020000000000000000000000000000ffffffffffffffff0000000000000000010000000000"
            "000000"
        )
        assert program.log("apple", 0)[17:21] == plain("a437a6ee")


def test_many_records_partitions_and_topics_are_produced_in_one_request(tmp_path: Path) -> None:
    topics = [TopicFiles("kiwi", topic_id(4), [[], [], []]), TopicFiles("plum", topic_id(5), [[]])]
    sent = [
        ("plum", [(0, batch_of("a", "b", "c"))]),
        ("kiwi", [(index, batch_of(str(index), "more")) for index in (2, 0, 1)]),
    ]
    with started(tmp_path, topics) as program:
        answer = program.connect().ask(0, 11, produce(sent))
        for name, partitions in sent:
            assert compact(name) in answer
            for index, batch in partitions:
                assert struct.pack(">ihqqq", index, 0, 0, -1, 0) in answer
                stored = program.log(name, index)
                assert stored[8:12] + stored[16:] == batch[8:12] + batch[16:], (name, index)


def test_a_second_start_finds_everything_again(tmp_path: Path) -> None:
    apple = TopicFiles("apple", topic_id(3), [["first"]])
    settings = decode_properties(lay_down(tmp_path, [apple], listen="127.0.0.1:0").read_bytes())
    for number in range(1, 4):
        with broker_in_thread(settings) as running:
            client = Client(running.server.listeners[0].port)
            answer = client.ask(0, 11, produce([("apple", [(0, batch_of_nobody("more"))])]))
            assert struct.pack(">ihqqq", 0, 0, number, -1, 0) in answer
            client.close()


def batch_of_nobody(text: str) -> bytes:
    builder = BatchBuilder()
    builder.append(1726045973899, None, text.encode())
    return builder.build()


@pytest.mark.parametrize("keeps_clean_shutdown", [True, False])
def test_partitions_whose_metadata_log_is_gone_are_not_forgotten(tmp_path: Path, keeps_clean_shutdown: bool) -> None:
    settings = decode_properties(lay_down(tmp_path, [MANGO], listen="127.0.0.1:0").read_bytes())
    directory = tmp_path / "kraft-combined-logs"
    (directory / "__cluster_metadata-0" / LOG_NAME).unlink()
    (directory / "__cluster_metadata-0").rmdir()
    if not keeps_clean_shutdown:
        (directory / ".kafka_cleanshutdown").unlink()
    with pytest.raises(RuntimeError) as refused, broker_in_thread(settings):
        pass
    assert "metadata log" in str(refused.value.__cause__)


def test_the_program_starts_stops_and_starts_again_at_the_same_address(tmp_path: Path) -> None:
    """It is started with the path of `server.properties` and nothing else, in whatever directory."""
    port = find_free_port()
    properties = lay_down(tmp_path, [MANGO], listen=f"127.0.0.1:{port}")
    for _ in range(2):
        program = subprocess.Popen(
            [PROGRAM, properties],
            cwd=tmp_path,
            env={**os.environ, "PYTHON": sys.executable},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with program:
            assert program.stdout is not None
            assert program.stdout.readline() == f"ottla ready on 127.0.0.1:{port}\n".encode()
            client = Client(port)
            assert MANGO.topic_id in client.ask(75, 0, describe_topics(["mango"], 1))
            os.killpg(program.pid, signal.SIGTERM)
            assert program.wait(SECONDS) == 0
            client.close()
