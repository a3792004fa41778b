"""One Kafka connection without a socket: order of answers, what waits for what, and what ends the connection."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ottla.broker.metadata.create_topics import NewTopic
from ottla.broker.metadata.delete_topics import TopicReference
from ottla.broker.turns import Turns
from ottla.dialects.kafka.answers import RequestContext
from ottla.dialects.kafka.handlers.produce import RUN_REQUESTS
from ottla.dialects.kafka.router import Router
from ottla.dialects.kafka.session import AT_ONCE_ELEMENTS, HELD_BYTES, MOST_ELEMENTS, KafkaSession
from ottla.dialects.session import Part, Peer
from ottla.errors import CorruptMessage, InvalidFetchSessionEpoch, OutOfOrderSequenceNumber, UnknownTopicId
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.connection import Answer, ClientConnection, FrameReader, ReceiveBuffers
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.builder import BatchBuilder
from ottla.storage.log import SPAN_FROM_BYTES
from tests.dialects.handlers.harness import Bench
from tests.storage.harness import ManualOffload
from tests.turns import BusyClock

TOPIC = "t"


class RecordingCarrier:
    """Keeps what a session says; `is_congested` is for the test to set."""

    def __init__(self) -> None:
        self.said = bytearray()
        self.is_congested = False
        self.is_reading = True
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.said += data

    def write_parts(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, bytes | memoryview):
                self.said += part
            else:
                self.said += part.read()
                part.release()

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True


class Conversation:
    """A client's machine and a session, mouth to ear."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.carrier = RecordingCarrier()
        context = RequestContext(bench.broker, Peer("PLAINTEXT", "localhost", 50_000))
        self.session = KafkaSession(Router(), context, self.carrier, FrameReader(ReceiveBuffers()))
        self.client = ClientConnection("test")

    def frame(self, key: ApiKey, version: int, request: Message, *, has_answer: bool = True) -> bytes:
        return b"".join(self.client.send(key, version, request, has_answer=has_answer)[1])

    def send(self, data: bytes) -> None:
        while data:
            buffer = self.session.get_buffer()
            size_bytes = min(len(buffer), len(data))
            buffer[:size_bytes] = data[:size_bytes]
            data = data[size_bytes:]
            self.session.received(size_bytes)

    def answers(self) -> list[Answer]:
        said, self.carrier.said = bytes(self.carrier.said), bytearray()
        return self.client.receive(said)


@pytest.fixture
def talk(tmp_path: Path) -> Conversation:
    bench = Bench(tmp_path)
    bench.controller.create_topics([NewTopic(TOPIC, 1, 1)])
    return Conversation(bench)


def batch(value: bytes) -> bytes:
    builder = BatchBuilder()
    builder.append(1_750_000_000_000, None, value)
    return bytes(builder.build())


def produce(value: bytes = b"v", *, acks: int = -1, topic: str = TOPIC) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch(value))
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])


def fetch(offset: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic=TOPIC, partitions=[partition])])


def base_offsets(answers: list[Answer]) -> list[int]:
    offsets = []
    for answer in answers:
        assert isinstance(answer.message, ProduceResponse)
        offsets.append(answer.message.responses[0].partition_responses[0].base_offset)
    return offsets


def test_requests_of_one_read_are_answered_in_order(talk: Conversation) -> None:
    talk.send(b"".join(talk.frame(ApiKey.PRODUCE, 9, produce(acks=1)) for _ in range(3)))

    assert base_offsets(talk.answers()) == [0, 1, 2]


def test_what_was_produced_comes_back_byte_for_byte(talk: Conversation) -> None:
    talk.send(talk.frame(ApiKey.PRODUCE, 9, produce(b"hello", acks=1)) + talk.frame(ApiKey.FETCH, 12, fetch()))

    _, answer = talk.answers()
    assert isinstance(answer.message, FetchResponse)
    records = answer.message.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert bytes(records[12:16]) == struct.pack(">i", 0), "the leader epoch was stamped"
    assert bytes(records[16:]) == batch(b"hello")[16:]


def test_a_fetch_that_waits_holds_back_what_came_after_it(talk: Conversation) -> None:
    talk.send(talk.frame(ApiKey.FETCH, 12, fetch()) + talk.frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()))
    assert talk.answers() == []

    other = Conversation(talk.bench)
    other.send(other.frame(ApiKey.PRODUCE, 9, produce(acks=1)))

    first, second = talk.answers()
    assert isinstance(first.message, FetchResponse)
    assert isinstance(second.message, ApiVersionsResponse)


def test_a_fetch_that_its_session_went_on_without_is_told_so(talk: Conversation, tmp_path: Path) -> None:
    """Else what it is told counts as known to the one who came later."""
    bench = talk.bench
    opening = fetch()
    opening.session_epoch = 0
    talk.send(talk.frame(ApiKey.FETCH, 12, opening))
    bench.advance(1)
    (opened,) = talk.answers()
    assert isinstance(opened.message, FetchResponse)
    session_id = opened.message.session_id

    def following(epoch: int) -> FetchRequest:
        return FetchRequest(max_wait_ms=500, min_bytes=1, session_id=session_id, session_epoch=epoch)

    talk.send(talk.frame(ApiKey.FETCH, 12, following(1)))
    other, writer = Conversation(bench), Conversation(bench)
    other.send(other.frame(ApiKey.FETCH, 12, following(2)))
    writer.send(writer.frame(ApiKey.PRODUCE, 9, produce(bytes(SPAN_FROM_BYTES), acks=1)))

    (answer,), (later,) = talk.answers(), other.answers()
    assert isinstance(answer.message, FetchResponse)
    assert (answer.message.error_code, answer.message.responses) == (InvalidFetchSessionEpoch.code, [])
    assert answer.message.session_id == session_id
    assert isinstance(later.message, FetchResponse)
    assert later.message.responses[0].partitions[0].high_watermark == 1
    bench.controller.delete_topics([TopicReference(name=TOPIC)])
    assert not [path for path in open_files() if str(tmp_path) in path and f"/{TOPIC}-0" in path], "all is given back"


def open_files() -> Iterator[str]:
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            yield os.readlink(f"/proc/self/fd/{name}")


def test_no_more_than_a_little_is_received_while_a_request_waits(talk: Conversation) -> None:
    talk.send(talk.frame(ApiKey.FETCH, 12, fetch()))
    talk.send(bytes(HELD_BYTES))
    assert talk.carrier.is_reading

    talk.send(bytes(1))

    assert not talk.carrier.is_reading


def test_nothing_is_begun_while_the_peer_does_not_read_its_answers(talk: Conversation) -> None:
    talk.carrier.is_congested = True
    talk.send(talk.frame(ApiKey.PRODUCE, 9, produce(acks=1)))
    assert talk.bench.broker.partition(TOPIC, 0).offsets().log_end_offset == 0

    talk.carrier.is_congested = False
    talk.session.resume()

    assert base_offsets(talk.answers()) == [0]


def test_acks_0_is_not_answered(talk: Conversation) -> None:
    talk.send(talk.frame(ApiKey.PRODUCE, 9, produce(acks=0), has_answer=False))
    talk.send(talk.frame(ApiKey.PRODUCE, 9, produce(acks=1)))

    assert base_offsets(talk.answers()) == [1]


def test_an_error_with_acks_0_ends_the_connection(talk: Conversation) -> None:
    talk.send(talk.frame(ApiKey.PRODUCE, 9, produce(acks=0, topic="nowhere"), has_answer=False))

    assert talk.carrier.is_closed
    assert talk.answers() == []


def test_what_was_answered_before_the_end_is_still_said(talk: Conversation) -> None:
    talk.send(talk.frame(ApiKey.PRODUCE, 9, produce(acks=1)) + b"\xff\xff\xff\xff")

    assert talk.carrier.is_closed
    assert base_offsets(talk.answers()) == [0]


@pytest.mark.parametrize(
    "frame",
    [
        "ffffffff",
        "00000000",
        "00000007" + "00" * 7,
        "0000000a" + "03e7" + "0000" + "00000000" + "ffff",  # there is no API 999
        "0000000a" + "0000" + "0002" + "00000000" + "ffff",  # Produce v2 is announced and not served
        "0000000a" + "0003" + "0001" + "00000000" + "ffff",  # Metadata v1 without a body
    ],
)
def test_what_is_no_request_ends_the_connection(talk: Conversation, frame: str) -> None:
    talk.send(bytes.fromhex(frame))

    assert talk.carrier.is_closed
    assert talk.answers() == []


@pytest.mark.parametrize("version", [6, 99, 32767, -1])
def test_api_versions_is_answered_in_every_version(talk: Conversation, version: int) -> None:
    tags = b"\x00" if version > 0 else b""
    body = struct.pack(">hhih", 18, version, 0, -1) + tags
    talk.send(struct.pack(">i", len(body)) + body)

    assert talk.carrier.said[8:] == bytes.fromhex("002300000001001200000005")
    assert not talk.carrier.is_closed


def test_a_waiting_fetch_is_answered_at_once_when_the_server_stops(talk: Conversation) -> None:
    talk.send(talk.frame(ApiKey.FETCH, 12, fetch()))

    talk.session.finish()

    (answer,) = talk.answers()
    assert isinstance(answer.message, FetchResponse)
    assert talk.carrier.is_closed


def test_a_lost_connection_leaves_nobody_waiting(talk: Conversation) -> None:
    talk.send(talk.frame(ApiKey.FETCH, 12, fetch()))

    talk.session.lost()
    other = Conversation(talk.bench)
    other.send(other.frame(ApiKey.PRODUCE, 9, produce(acks=1)))

    assert talk.carrier.said == b""
    assert base_offsets(other.answers()) == [0]


def test_an_idle_session_is_closed_at_once_when_the_server_stops(talk: Conversation) -> None:
    talk.session.finish()

    assert talk.carrier.is_closed


def test_a_request_for_an_unserved_version_gets_no_answer(talk: Conversation) -> None:
    frame = bytearray(talk.frame(ApiKey.LIST_OFFSETS, 1, ListOffsetsRequest(replica_id=-1)))
    frame[6:8] = struct.pack(">h", 12)
    talk.send(bytes(frame))

    assert talk.carrier.is_closed


def random_frames(talk: Conversation, dice: Random, count: int) -> list[bytes]:
    """Requests of all kinds that a producer's connection may have in one read, most of them usual."""
    frames = []
    sequence = 0
    for _ in range(count):
        kind = dice.choice(["plain"] * 8 + ["idempotent", "damaged", "offset", "unknown", "silent", "versions", "list"])
        builder = BatchBuilder()
        if kind == "idempotent":
            builder = BatchBuilder(producer_id=9, producer_epoch=0, base_sequence=sequence)
            sequence += 1
        for _ in range(dice.choice([1, 2, 30])):
            builder.append(1_750_000_000_000 + dice.randrange(1000), None, b"v" * dice.choice([1, 50, 700]))
        records = bytearray(builder.build())
        if kind == "damaged":
            records[-1] ^= 1
        elif kind == "offset":
            records[7] = 5
        data = PartitionProduceData(index=dice.choice([0, 0, 0, 0, 1, 7]), records=bytes(records))
        topic = TopicProduceData(name="nowhere" if kind == "unknown" else TOPIC, partition_data=[data])
        request: Message = ProduceRequest(acks=dice.choice([1, 1, 1, 1, -1]), timeout_ms=1000, topic_data=[topic])
        key, version = ApiKey.PRODUCE, 9
        if kind == "silent":
            request = ProduceRequest(acks=0, timeout_ms=1000, topic_data=[topic])
            data.index = 0
        elif kind == "versions":
            key, version, request = ApiKey.API_VERSIONS, 0, ApiVersionsRequest()
        elif kind == "list":
            partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
            listed = ListOffsetsTopic(name=TOPIC, partitions=[partition])
            key, version, request = ApiKey.LIST_OFFSETS, 5, ListOffsetsRequest(topics=[listed])
        frames.append(talk.frame(key, version, request, has_answer=kind != "silent"))
    return frames


OF_TOPICS: tuple[dict[str, str], ...] = (
    {},
    {"internal.segment.bytes": "25000"},
    {"internal.segment.bytes": "25000", "message.timestamp.type": "LogAppendTime"},
    {"message.timestamp.type": "LogAppendTime"},
    {"internal.segment.bytes": "25000", "compression.type": "gzip"},
)


@pytest.mark.parametrize("configs", OF_TOPICS, ids=["plain", "rolling", "rolling append time", "append time", "packed"])
@pytest.mark.parametrize("seed", range(12))
def test_requests_of_one_read_have_the_same_effects_as_one_by_one(
    tmp_path: Path, seed: int, configs: dict[str, str]
) -> None:
    """Batches that come together go to the disk together, which nobody can tell."""
    dice = Random(seed)
    said, kept = [], []
    settings = {"log.segment.bytes": "1048576", "log.index.interval.bytes": "200", "auto.create.topics.enable": "false"}
    frames = random_frames(Conversation(Bench(tmp_path / "frames")), dice, 40)
    for name, pieces in (("together", [b"".join(frames)]), ("one by one", frames)):
        bench = Bench(tmp_path / name, None, **settings)
        bench.controller.create_topics([NewTopic(TOPIC, 2, 1, configs=tuple(configs.items()))])
        talk = Conversation(bench)
        for piece in pieces:
            talk.send(piece)
        said.append(bytes(talk.carrier.said))
        logs = sorted((tmp_path / name).glob(f"{TOPIC}-*/*.log"))
        kept.append([log.read_bytes() for log in logs])
        assert not talk.carrier.is_closed
    assert said[0] == said[1]
    assert kept[0] == kept[1]
    assert len(kept[0]) >= 2
    assert all(kept[0])


def test_pipelined_batches_of_one_partition_are_one_write(talk: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[int] = []
    writev = os.writev

    def note(descriptor: int, parts: Sequence[memoryview]) -> int:
        writes.append(len(parts))
        return writev(descriptor, parts)

    monkeypatch.setattr(os, "writev", note)
    talk.send(talk.frame(ApiKey.PRODUCE, 9, produce(acks=1)))

    talk.send(b"".join(talk.frame(ApiKey.PRODUCE, 9, produce(acks=1)) for _ in range(RUN_REQUESTS + 3)))

    assert writes == [RUN_REQUESTS, 3]
    assert base_offsets(talk.answers()) == list(range(RUN_REQUESTS + 4))


@pytest.mark.parametrize("version", [9, 13])
def test_a_batch_that_is_refused_among_others_costs_nobody_else(talk: Conversation, version: int) -> None:
    """Those before it and behind it are appended in their order, whatever way they go."""
    topic = talk.bench.broker.find_topic(TOPIC)
    assert topic is not None
    known: dict[str, Any] = {"topic_id": topic.topic_id} if version == 13 else {"name": TOPIC}
    frames = []
    for number in range(6):
        records = bytearray(batch(b"%d" % number))
        if number in (0, 3):
            records[-1] ^= 1
        data = PartitionProduceData(index=0, records=bytes(records))
        request = ProduceRequest(acks=1, timeout_ms=5, topic_data=[TopicProduceData(partition_data=[data], **known)])
        frames.append(talk.frame(ApiKey.PRODUCE, version, request))
    talk.send(b"".join(frames))

    rows = []
    for answer in talk.answers():
        assert isinstance(answer.message, ProduceResponse)
        row = answer.message.responses[0].partition_responses[0]
        rows.append((row.error_code, row.base_offset))
    assert rows == [(CorruptMessage.code, -1), (0, 0), (0, 1), (CorruptMessage.code, -1), (0, 2), (0, 3)]


class Acting(RecordingCarrier):
    """A carrier that does something as soon as the session says anything."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act = act

    def write_parts(self, parts: Sequence[Part]) -> None:
        super().write_parts(parts)
        self._act()

    def write(self, data: bytes) -> None:
        super().write(data)
        self._act()


@pytest.mark.parametrize("version", [9, 13])
def test_a_topic_that_goes_while_a_run_is_appended_takes_no_more_of_it(talk: Conversation, version: int) -> None:
    """The first append wakes a fetch, behind which its client may have asked to delete the topic and make another."""
    bench = talk.bench
    topic = bench.broker.find_topic(TOPIC)
    assert topic is not None

    def act() -> None:
        bench.controller.delete_topics([TopicReference(name=TOPIC)])
        bench.controller.create_topics([NewTopic(TOPIC, 1, 1, configs=(("message.timestamp.type", "LogAppendTime"),))])

    other = Conversation(bench)
    carrier = Acting(act)
    context = RequestContext(bench.broker, Peer("PLAINTEXT", "localhost", 50_000))
    other.session = KafkaSession(Router(), context, carrier, FrameReader(ReceiveBuffers()))
    other.send(other.frame(ApiKey.FETCH, 12, fetch()))
    known: dict[str, Any] = {"topic_id": topic.topic_id} if version == 13 else {"name": TOPIC}
    frames = []
    for number in range(3):
        data = PartitionProduceData(index=0, records=batch(b"%d" % number))
        request = ProduceRequest(acks=1, timeout_ms=5, topic_data=[TopicProduceData(partition_data=[data], **known)])
        frames.append(talk.frame(ApiKey.PRODUCE, version, request))
    talk.send(b"".join(frames))

    assert carrier.said, "the fetch was woken"
    rows = [answer.message.responses[0].partition_responses[0] for answer in talk.answers()]  # type: ignore[attr-defined]
    if version == 13:
        assert [row.error_code for row in rows] == [0, UnknownTopicId.code, UnknownTopicId.code]
        assert bench.broker.partition(TOPIC, 0).offsets().log_end_offset == 0
    else:
        assert [(row.error_code, row.base_offset) for row in rows] == [(0, 0), (0, 0), (0, 1)]
        assert [row.log_append_time_ms >= 0 for row in rows] == [False, True, True], "by the new topic's rules"


def test_a_size_that_no_frame_has_ends_the_connection_after_what_came_before_it(talk: Conversation) -> None:
    frames = [talk.frame(ApiKey.PRODUCE, 9, produce(acks=1)) for _ in range(3)]
    talk.send(b"".join(frames) + struct.pack(">i", -5) + b"what follows")

    assert base_offsets(talk.answers()) == [0, 1, 2]
    assert talk.carrier.is_closed


def test_what_came_before_a_request_that_ends_the_connection_is_answered(tmp_path: Path) -> None:
    """With acks=0 an error is told by ending the connection, which is no answer to the request before."""
    disk = ManualOffload()
    bench = Bench(tmp_path, disk)
    bench.controller.create_topics([NewTopic(TOPIC, 1, 1)])
    talk = Conversation(bench)
    refused = produce(acks=0, topic="nowhere")
    talk.send(
        talk.frame(ApiKey.PRODUCE, 9, produce())
        + talk.frame(ApiKey.PRODUCE, 9, refused, has_answer=False)
        + talk.frame(ApiKey.PRODUCE, 9, produce())
    )
    was_closed = [talk.carrier.is_closed]
    talk.send(b"\0\0")

    disk.run_all()

    assert base_offsets(talk.answers()) == [0]
    assert [*was_closed, talk.carrier.is_closed] == [False, True]
    assert bench.broker.partition(TOPIC, 0).offsets().log_end_offset == 1


def test_what_was_read_before_a_request_that_ends_the_connection_is_not_held(tmp_path: Path) -> None:
    """The disk may take its time, and files that were read from stay open until they were sent from."""
    disk = ManualOffload()
    bench = Bench(tmp_path, disk)
    bench.controller.create_topics([NewTopic(TOPIC, 1, 1)])
    writer, talk = Conversation(bench), Conversation(bench)
    writer.send(writer.frame(ApiKey.PRODUCE, 9, produce(bytes(SPAN_FROM_BYTES))))
    disk.run_all()

    talk.send(talk.frame(ApiKey.FETCH, 12, fetch()) + talk.frame(ApiKey.PRODUCE, 9, produce()) + struct.pack(">i", -5))

    (answer,) = talk.answers()
    assert isinstance(answer.message, FetchResponse)
    assert not talk.carrier.is_closed
    disk.run_all()
    assert base_offsets(talk.answers()) == [1]
    assert talk.carrier.is_closed


def test_an_idempotent_gap_is_told_as_such_where_batches_get_their_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.controller.create_topics([NewTopic(TOPIC, 1, 1, configs=(("message.timestamp.type", "LogAppendTime"),))])
    talk = Conversation(bench)
    for sequence in (0, 1, 5):
        builder = BatchBuilder(producer_id=7, producer_epoch=0, base_sequence=sequence)
        builder.append(1_750_000_000_000, None, b"v")
        data = PartitionProduceData(index=0, records=bytes(builder.build()))
        request = ProduceRequest(acks=1, timeout_ms=5, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])])
        talk.send(talk.frame(ApiKey.PRODUCE, 9, request))

    codes = []
    for answer in talk.answers():
        assert isinstance(answer.message, ProduceResponse)
        codes.append(answer.message.responses[0].partition_responses[0].error_code)
    assert codes == [0, 0, OutOfOrderSequenceNumber.code]


MANY = AT_ONCE_ELEMENTS + 1


class Busy:
    """Two connections on a loop on which every look at the time takes some, and its turns."""

    def __init__(self, directory: Path, disk: ManualOffload | None = None, *, partitions: int = 1) -> None:
        self.bench = Bench(directory, disk)
        self.bench.controller.create_topics([NewTopic(TOPIC, partitions, 1)])
        self.clock = BusyClock()
        self.bench.broker.turns = Turns(self.bench.timers, self.clock)
        self.one = Conversation(self.bench)
        self.other = Conversation(self.bench)

    def turn(self) -> None:
        self.bench.timers.run_due(self.clock.monotonic())

    def until_answered(self, count: int) -> tuple[list[Answer], int]:
        """Take turns until the one has so many answers; the other one asks in each and is answered at once."""
        answers = self.one.answers()
        turns = 0
        while len(answers) < count:
            self.other.send(self.other.frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()))
            assert len(self.other.answers()) == 1
            self.turn()
            answers += self.one.answers()
            turns += 1
            assert turns < 10_000
        return answers, turns


Begin = Callable[..., Busy]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Makes such loops; their logs are closed at the end."""
    made: list[Busy] = []

    def make(disk: ManualOffload | None = None, *, partitions: int = 1) -> Busy:
        made.append(Busy(tmp_path, disk, partitions=partitions))
        return made[-1]

    yield make
    for busy in made:
        busy.bench.broker.turns.close()
        busy.bench.controller.delete_topics([TopicReference(TOPIC)])


def metadata_of(names: int) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=f"n{number}") for number in range(names)]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def produce_to(partitions: int, *, acks: int = -1, records: bytes | None = None) -> ProduceRequest:
    rows = [PartitionProduceData(index=number, records=records or batch(b"v")) for number in range(partitions)]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=TOPIC, partition_data=rows)])


@pytest.mark.parametrize("key", [ApiKey.API_VERSIONS, ApiKey.PRODUCE])
def test_very_many_requests_of_one_read_are_answered_in_many_turns(begin: Begin, key: ApiKey) -> None:
    busy = begin()
    request = ApiVersionsRequest() if key == ApiKey.API_VERSIONS else produce(acks=1)
    version = 0 if key == ApiKey.API_VERSIONS else 9
    count = 3000 if key == ApiKey.PRODUCE else 500
    busy.one.send(b"".join(busy.one.frame(key, version, request) for _ in range(count)))

    answers, turns = busy.until_answered(count)

    assert len(answers) == count and turns >= 4
    if key == ApiKey.PRODUCE:
        assert base_offsets(answers) == list(range(count))


def test_what_waits_for_its_turn_is_received_no_further_than_it_may_be_held(begin: Begin) -> None:
    busy = begin()
    frame = busy.one.frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    busy.one.send(frame * (HELD_BYTES // len(frame)) + frame * 100)
    assert not busy.one.carrier.is_reading

    while not busy.one.carrier.is_reading:
        busy.turn()


def test_a_request_of_very_many_elements_is_answered_in_many_turns(begin: Begin) -> None:
    busy = begin()
    frames = [busy.one.frame(ApiKey.METADATA, 9, metadata_of(count)) for count in (5000, 1)]
    busy.one.send(b"".join(frames))

    (long, short), turns = busy.until_answered(2)

    assert turns > 10
    assert isinstance(long.message, MetadataResponse) and isinstance(short.message, MetadataResponse)
    assert [row.name for row in long.message.topics] == [f"n{number}" for number in range(5000)]
    assert [row.name for row in short.message.topics] == ["n0"]


@pytest.mark.parametrize("acks", [1, -1])
def test_a_produce_for_many_partitions_is_appended_in_many_turns_and_in_order(begin: Begin, acks: int) -> None:
    disk = ManualOffload()
    busy = begin(disk, partitions=MANY)
    frames = [busy.one.frame(ApiKey.PRODUCE, 9, produce_to(MANY, acks=acks)) for _ in range(2)]
    frames.append(busy.one.frame(ApiKey.PRODUCE, 9, produce(acks=acks)))
    busy.one.send(b"".join(frames))

    answers: list[Answer] = []
    turns = 0
    while len(answers) < 3:
        busy.turn()
        disk.run_all()
        answers += busy.one.answers()
        turns += 1

    assert turns > 2 * MANY / 5
    for number, answer in enumerate(answers[:2]):
        assert isinstance(answer.message, ProduceResponse)
        rows = answer.message.responses[0].partition_responses
        assert [(row.index, row.base_offset, row.error_code) for row in rows] == [(n, number, 0) for n in range(MANY)]
    assert base_offsets(answers[2:]) == [2]


def test_what_refuses_the_whole_of_a_large_produce_is_what_is_found_first(begin: Begin) -> None:
    busy = begin(partitions=1)
    request = produce_to(MANY)
    for magic in (7, 8):
        unknown = bytearray(batch(b"v"))
        unknown[16] = magic
        data = PartitionProduceData(index=0, records=bytes(unknown))
        request.topic_data.append(TopicProduceData(name=f"u{magic}", partition_data=[data]))
    busy.one.send(busy.one.frame(ApiKey.PRODUCE, 9, request))

    (answer,), _ = busy.until_answered(1)

    assert isinstance(answer.message, ProduceResponse)
    rows = [row for topic in answer.message.responses for row in topic.partition_responses]
    assert {(row.error_code, row.error_message) for row in rows} == {(2, "no record batch has magic 7")}


def test_a_produce_without_an_answer_that_fails_ends_the_connection(begin: Begin) -> None:
    busy = begin(partitions=2)
    busy.one.send(busy.one.frame(ApiKey.PRODUCE, 9, produce_to(MANY, acks=0), has_answer=False))
    for _ in range(1000):
        busy.turn()
    assert busy.one.carrier.is_closed and busy.bench.broker.partition(TOPIC, 1).offsets().log_end_offset == 1


def test_more_elements_than_one_request_may_have_end_the_connection_after_earlier_answers(begin: Begin) -> None:
    busy = begin()
    many = MOST_ELEMENTS // 2 + 1
    frame = struct.pack(">hhih", ApiKey.LIST_OFFSETS, 1, 9, -1) + struct.pack(">i", -1)
    body = struct.pack(">ih", 1, 0) + struct.pack(">i", 2 * many) + bytes(12 * 2 * many)
    busy.one.send(busy.one.frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()))
    busy.one.send(struct.pack(">i", len(frame) + len(body)) + frame + body)
    for _ in range(10):
        busy.turn()
    assert len(busy.one.answers()) == 1 and busy.one.carrier.is_closed


def test_a_server_that_stops_finishes_a_long_request(begin: Begin) -> None:
    busy = begin()
    busy.one.send(busy.one.frame(ApiKey.METADATA, 9, metadata_of(5000)))
    busy.one.session.finish()
    assert not busy.one.carrier.is_closed

    answers, _ = busy.until_answered(1)

    assert len(answers) == 1 and busy.one.carrier.is_closed


def test_what_a_lost_connection_had_asked_for_is_done_to_its_end(begin: Begin) -> None:
    busy = begin(partitions=2)
    busy.one.send(busy.one.frame(ApiKey.PRODUCE, 9, produce_to(MANY)))
    busy.one.session.lost()
    assert busy.bench.broker.partition(TOPIC, 1).offsets().log_end_offset == 0
    for _ in range(1000):
        busy.turn()
    assert busy.bench.broker.partition(TOPIC, 1).offsets().log_end_offset == 1
    assert busy.one.carrier.said == b"" and len(busy.bench.timers) == 0


def test_a_long_request_that_fails_once_its_connection_is_lost_harms_nobody(begin: Begin) -> None:
    busy = begin(partitions=2)
    busy.one.send(busy.one.frame(ApiKey.PRODUCE, 9, produce_to(MANY, acks=0), has_answer=False))
    busy.one.session.lost()
    for _ in range(1000):
        busy.turn()
    assert busy.bench.broker.partition(TOPIC, 1).offsets().log_end_offset == 1
    assert busy.one.carrier.said == b"" and len(busy.bench.timers) == 0


def fetch_from(partitions: int, *, max_wait_ms: int, topic: str = TOPIC) -> FetchRequest:
    rows = [FetchPartition(partition=number, partition_max_bytes=1 << 20) for number in range(partitions)]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=rows)],
    )


@pytest.mark.parametrize("ends_by", ["append", "time", "stop"])
def test_a_fetch_of_many_partitions_is_read_in_many_turns_before_and_after_its_wait(begin: Begin, ends_by: str) -> None:
    busy = begin(partitions=MANY)
    busy.one.send(busy.one.frame(ApiKey.FETCH, 12, fetch_from(MANY, max_wait_ms=500)))
    for _ in range(100):
        busy.turn()
    assert busy.one.answers() == [] and len(busy.bench.timers) == 1, "it waits"

    if ends_by == "append":
        busy.other.send(busy.other.frame(ApiKey.PRODUCE, 9, produce(acks=1)))
        assert len(busy.other.answers()) == 1
    elif ends_by == "time":
        busy.bench.timers.run_due(busy.clock.monotonic() + 1)
    else:
        busy.one.session.finish()
    (answer,), turns = busy.until_answered(1)

    assert turns > 2 and isinstance(answer.message, FetchResponse)
    rows = answer.message.responses[0].partitions
    assert [row.partition_index for row in rows] == list(range(MANY))
    assert [bool(row.records) for row in rows] == [ends_by == "append"] + [False] * (MANY - 1)
    assert busy.one.carrier.is_closed == (ends_by == "stop")


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux which files are open")
def test_what_was_read_for_a_lost_connection_is_given_back(begin: Begin, tmp_path: Path) -> None:
    """A file that is leased stays open, even if its topic is deleted."""
    busy = begin(partitions=MANY)
    busy.other.send(busy.other.frame(ApiKey.PRODUCE, 9, produce(bytes(500_000), acks=1)))
    busy.one.send(busy.one.frame(ApiKey.FETCH, 12, fetch_from(MANY, max_wait_ms=0)))
    busy.one.session.lost()
    for _ in range(100):
        busy.turn()
    busy.bench.controller.delete_topics([TopicReference(TOPIC)])

    opened = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert not [path for path in opened if str(tmp_path) in path and f"/{TOPIC}-" in path]
