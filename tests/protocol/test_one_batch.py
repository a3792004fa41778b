"""The short way for usual Produce requests reads and answers what the general codec reads and answers."""

from __future__ import annotations

import pytest
from librt.strings import BytesWriter

from ottla.protocol.apis import API, ApiKey
from ottla.protocol.codec import DecodeError, decode
from ottla.protocol.connection import FrameReader, ReceiveBuffers
from ottla.protocol.headers import RequestHeader, decode_request_header, encode_request_frame, encode_response_frame
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.protocol.one_batch import FLEXIBLE_FROM, MAX_VERSION, MIN_VERSION, TOPIC_ID_FROM, OneBatch, read_one_batch
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from tests.protocol.kafka_data import golden_cases
from tests.protocol.receiving import received

VERSIONS = range(MIN_VERSION, MAX_VERSION + 1)


def batch(*, value: bytes = b"v", codec: Codec = Codec.NONE, is_transactional: bool = False) -> bytes:
    builder = BatchBuilder(
        codec=codec, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=is_transactional
    )
    builder.append(1_750_000_000_000, b"k", value)
    return bytes(builder.build())


def usual(*, records: bytes | None = None, topic: str = "orders", partition: int = 3, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch() if records is None else records)
    return ProduceRequest(acks=acks, timeout_ms=5, topic_data=[TopicProduceData(name=topic, partition_data=[data])])


def topic_id_of(name: str) -> bytes:
    return name.encode()[:16].ljust(16, b"-")


def frame_of(request: ProduceRequest, version: int, client_id: str = "client") -> bytes:
    """The frame without its size; topics go by name or by id, as the version has it."""
    if version >= TOPIC_ID_FROM:
        topics = [
            TopicProduceData(topic_id=topic_id_of(topic.name), partition_data=topic.partition_data)
            for topic in request.topic_data
        ]
        request = ProduceRequest(
            transactional_id=request.transactional_id,
            acks=request.acks,
            timeout_ms=request.timeout_ms,
            topic_data=topics,
        )
    parts = encode_request_frame(RequestHeader(ApiKey.PRODUCE, version, 77, client_id), request)
    return b"".join(bytes(part) for part in parts if isinstance(part, bytes | memoryview))[4:]


def reader_of(*frames: bytes) -> FrameReader:
    """A reader that has received these frames, and part of the next one."""
    reader = FrameReader(ReceiveBuffers())
    data = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames) + bytes(3)
    for _ in received(reader, data):
        if not reader.front():
            assert reader.next_frame() is None, "a large frame grows"
    return reader


def read(frame: bytes) -> OneBatch | None:
    return read_one_batch(reader_of(frame))


def records_of(asked: OneBatch, *frames: bytes) -> bytes:
    return bytes(reader_of(*frames).view(asked.records_at, asked.records_end))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [1, 100, 300, 20_000, 3_000_000])
def test_a_usual_request_is_read_as_the_codec_reads_it(version: int, size: int) -> None:
    records = batch(value=b"x" * size)
    frame = frame_of(usual(records=records, topic="naïve-тема"), version)

    asked = read(frame)

    assert asked is not None
    assert asked.frame_bytes == 4 + len(frame)
    assert (asked.api_version, asked.acks, asked.partition) == (version, -1, 3)
    is_by_id = version >= TOPIC_ID_FROM
    assert asked.topic == (None if is_by_id else "naïve-тема")
    assert asked.topic_id == (topic_id_of("naïve-тема") if is_by_id else None)
    assert records_of(asked, frame) == records


@pytest.mark.parametrize("version", VERSIONS)
def test_the_answer_is_the_codecs_byte_for_byte(version: int) -> None:
    asked = read(frame_of(usual(), version))
    row = PartitionProduceResponse(
        index=3, base_offset=1 << 40, log_append_time_ms=1_750_000_000_000, log_start_offset=9
    )
    topic = TopicProduceResponse(name="orders", partition_responses=[row])
    if version >= TOPIC_ID_FROM:
        topic = TopicProduceResponse(topic_id=topic_id_of("orders"), partition_responses=[row])
    parts = encode_response_frame(ApiKey.PRODUCE, version, 77, ProduceResponse(responses=[topic]))

    assert asked is not None
    out = BytesWriter()
    asked.write_answer(out, 1 << 40, 1_750_000_000_000, 9)
    assert out.getvalue() == b"".join(bytes(part) for part in parts if isinstance(part, bytes))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "request_",
    [
        usual(acks=0),
        usual(acks=2),
        usual(records=batch(codec=Codec.GZIP)),
        usual(records=batch(is_transactional=True)),
        usual(records=b"short"),
        usual(records=b""),
        ProduceRequest(transactional_id="x", acks=-1, topic_data=usual().topic_data),
        ProduceRequest(acks=-1, topic_data=[*usual().topic_data, *usual(topic="other").topic_data]),
        ProduceRequest(
            acks=-1, topic_data=[TopicProduceData(name="t", partition_data=usual().topic_data[0].partition_data * 2)]
        ),
        ProduceRequest(acks=-1),
    ],
    ids=repr,
)
def test_what_is_not_usual_goes_the_general_way(version: int, request_: ProduceRequest) -> None:
    assert read(frame_of(request_, version)) is None


@pytest.mark.parametrize("version", range(MIN_VERSION, TOPIC_ID_FROM))
@pytest.mark.parametrize("topic", ["", "t" * 600])
def test_names_that_no_topic_has_go_the_general_way(version: int, topic: str) -> None:
    assert read(frame_of(usual(topic=topic), version)) is None


@pytest.mark.parametrize("version", [MIN_VERSION, FLEXIBLE_FROM, MAX_VERSION])
def test_a_frame_that_ends_anywhere_or_goes_on_is_not_usual(version: int) -> None:
    frame = frame_of(usual(), version)

    assert all(read(frame[:end]) is None for end in range(8, len(frame)))
    assert read(frame + b"\0") is None


@pytest.mark.parametrize("version", VERSIONS)
def test_whatever_byte_is_changed_both_ways_read_the_same(version: int) -> None:
    """No damage makes the short way see another request than the codec, or fail."""
    frame = frame_of(usual(), version)
    for at in range(len(frame) - len(batch()) + 23):
        for value in (0, 1, 2, 0x7F, 0x80, 0xFF):
            damaged = frame[:at] + bytes([value]) + frame[at + 1 :]
            asked = read(damaged)
            if asked is None or (asked.topic is None and asked.topic_id is None):
                continue
            header, body_at = decode_request_header(memoryview(damaged))
            request = decode(ProduceRequest, header.api_version, memoryview(damaged), body_at)
            data = request.topic_data[0].partition_data[0]
            assert (header.api_version, request.acks) == (asked.api_version, asked.acks)
            topic = request.topic_data[0]
            assert (topic.name, data.index) == (asked.topic or "", asked.partition)
            assert asked.topic_id is None or asked.topic_id == topic.topic_id
            assert data.records == records_of(asked, damaged)


def test_kafkas_own_requests_are_read_alike_or_left() -> None:
    for case in golden_cases("requests.jsonl.gz")["ProduceRequest"]:
        header = RequestHeader(ApiKey.PRODUCE, case["v"], 1, "c")
        parts = encode_request_frame(header, ProduceRequest())
        prefix = b"".join(bytes(part) for part in parts if isinstance(part, bytes))[4:]
        _, body_at = decode_request_header(memoryview(prefix))
        asked = read(prefix[:body_at] + bytes.fromhex(case["hex"]))
        assert asked is None or len(case["json"]["topicData"]) == 1, case["case"]


def test_other_apis_are_not_looked_at() -> None:
    for api in API.values():
        frame = bytearray(frame_of(usual(), 7))
        frame[:2] = int(api.key).to_bytes(2, "big")
        try:
            asked = read(bytes(frame))
        except DecodeError:  # it must not even try
            pytest.fail(api.name)
        assert (asked is not None) == (api.key == ApiKey.PRODUCE)


def plain(
    *, producer_id: int = -1, acks: int = 1, topic: str = "orders", partition: int = 3, version: int = 9
) -> OneBatch:
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=min(producer_id, 0), base_sequence=producer_id)
    builder.append(1_750_000_000_000, b"k", b"v")
    request = usual(records=bytes(builder.build()), acks=acks, topic=topic, partition=partition)
    asked = read(frame_of(request, version))
    assert asked is not None
    return asked


def test_requests_are_alike_for_one_partition_under_one_promise() -> None:
    assert plain().is_like(plain())
    assert plain(producer_id=0).is_like(plain()), "which batches go together is the log's to know"
    assert not plain(acks=-1).is_like(plain())
    assert not plain(topic="order").is_like(plain())
    assert not plain(partition=4).is_like(plain())
    assert not plain(version=10).is_like(plain()), "they are answered in one form"


def test_a_request_is_read_behind_others_without_taking_them() -> None:
    frames = [frame_of(usual(records=batch(value=b"%d" % number), topic="orders"), 9) for number in range(3)]
    reader = reader_of(*frames)
    behind_bytes = 0
    for number in range(3):
        asked = read_one_batch(reader, behind_bytes)
        assert asked is not None
        assert bytes(reader.view(asked.records_at, asked.records_end)) == batch(value=b"%d" % number)
        behind_bytes += asked.frame_bytes
    assert read_one_batch(reader, behind_bytes) is None, "it is not all there"
    reader.skip(4 + len(frames[0]))
    assert bytes(reader.next_frame() or b"") == frames[1]
