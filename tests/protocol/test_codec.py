"""Messages from bytes and to bytes, held to what Kafka's own classes read and wrote."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Sequence
from typing import Any, cast

import pytest

from ottla.errors import UnsupportedVersion
from ottla.protocol.codec import (
    DecodeError,
    EncodeError,
    TooManyElements,
    decode,
    decode_in_steps,
    decode_with_end,
    encode,
    encode_parts,
    encode_parts_in_steps,
)
from ottla.protocol.internal.metadata_records import PartitionRecord
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.protocol.plans import ELEMENTS_A_STEP, StructCodec
from ottla.protocol.primitives import UNLIMITED, WIDE_WINDOW_BYTES, Reader
from ottla.protocol.schema import Message, UnknownTag
from tests.protocol.kafka_data import Json, Shown, golden_cases, lines, message_types
from tests.turns import finish

GOLDEN = {
    f"{kind}-{name}": cases
    for kind in ("requests", "responses", "internal")
    for name, cases in golden_cases(f"{kind}.jsonl.gz").items()
}


def in_order(found: Sequence[Json]) -> list[Json]:
    """Sort by path, the message itself last; what stands at one path keeps its order."""
    return sorted(found, key=lambda entry: (not entry["path"], [str(step) for step in entry["path"]]))


def check_shown(message: Any, case: Json, where: str) -> None:
    shown = Shown(message, case["v"])
    assert shown.json == case["json"], where
    assert in_order(shown.records) == in_order(case.get("records", [])), where
    assert in_order(shown.unknown_tags) == in_order(case.get("unknownTags", [])), where


@pytest.mark.parametrize("cases", GOLDEN.values(), ids=GOLDEN)
def test_kafkas_bytes_decode_to_kafkas_values_and_encode_to_the_same_bytes(cases: list[Json]) -> None:
    cls = message_types()[cases[0]["msg"]]
    for case in cases:
        where = f"{case['msg']} v{case['v']} {case['case']}"
        data = bytes.fromhex(case["hex"])

        message, end = decode_with_end(cls, case["v"], data)

        assert end == len(data), where
        check_shown(message, case, where)
        assert encode(message, case["v"]) == data, where
        assert message == decode(cls, case["v"], memoryview(bytearray(b"ahead" + data)), len(b"ahead")), where
        in_steps, _ = finish(decode_in_steps(cls, case["v"], memoryview(bytearray(data)), 0, UNLIMITED))
        assert message == in_steps, where
        parts, _ = finish(encode_parts_in_steps(message, case["v"]))
        assert b"".join(cast("list[bytes]", parts)) == data, where


MALFORMED = {
    mutation: list(cases)
    for mutation, cases in itertools.groupby(
        sorted(lines("malformed.jsonl.gz"), key=lambda case: case["mutation"]), key=lambda case: case["mutation"]
    )
}


@pytest.mark.parametrize("cases", MALFORMED.values(), ids=MALFORMED)
def test_damaged_requests_are_taken_or_refused_as_kafka_does(cases: list[Json]) -> None:
    for case in cases:
        where = f"{case['msg']} v{case['v']} {case['mutation']} at {case['at']}"
        cls = message_types()[case["msg"]]
        data = bytes.fromhex(case["hex"])
        if case["verdict"] != "ok":
            with pytest.raises(DecodeError):
                decode(cls, case["v"], data)
                pytest.fail(f"{where} was taken")
            with pytest.raises(DecodeError):
                finish(decode_in_steps(cls, case["v"], data, 0, UNLIMITED))
                pytest.fail(f"{where} was taken in steps")
            continue

        message, end = decode_with_end(cls, case["v"], data)

        assert len(data) - end == case["left"], where
        check_shown(message, case, where)
        assert is_canonical(message, case["v"], data[:end]) == case["canonical"] or is_last_tag(message), where


def is_canonical(message: Any, version: int, data: bytes) -> bool:
    try:
        return encode(message, version) == data
    except EncodeError:
        return False


def is_last_tag(message: Any) -> bool:
    """Kafka counts a field of tag 2^31 - 1 but forgets to write it; ours is written."""
    return "tag=2147483647" in repr(message)


def test_records_are_views_of_the_buffer() -> None:
    request = ProduceRequest(topic_data=[TopicProduceData(partition_data=[PartitionProduceData(records=b"abc")])])
    buffer = bytearray(encode(request, 9))

    records = decode(ProduceRequest, 9, memoryview(buffer)).topic_data[0].partition_data[0].records

    assert isinstance(records, memoryview)
    buffer[buffer.index(b"abc")] = ord("x")
    assert bytes(records) == b"xbc"


class FileBytes:
    """Bytes that are not in memory."""

    size_bytes = 5


def test_records_go_out_as_they_came_between_merged_parts() -> None:
    span = FileBytes()
    in_memory = memoryview(b"xy")

    def topic(records: Any) -> FetchableTopicResponse:
        return FetchableTopicResponse(partitions=[PartitionData(records=records)])

    response = FetchResponse(responses=[topic(b"abc"), topic([in_memory, span])])

    parts = encode_parts(response, 12)

    assert [part for part in parts if not isinstance(part, bytes)] == [in_memory, span]
    assert [part for part in parts if part is in_memory or part is span] == [in_memory, span]
    assert isinstance(parts[0], bytes) and parts[0].endswith(b"\x04")
    assert parts[1] == b"abc"
    assert isinstance(parts[2], bytes) and parts[2].endswith(b"\x08")


def test_set_field_that_the_version_lacks_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="key_type"):
        encode(FindCoordinatorRequest(key="g", key_type=1), 0)


def test_set_field_that_may_be_dropped_is_dropped() -> None:
    request = ApiVersionsRequest(client_software_name="ottla", client_software_version="1")
    assert encode(request, 0) == b""


def test_version_out_of_range_is_refused() -> None:
    for version in (-1, 2, 14):
        with pytest.raises(UnsupportedVersion):
            encode(ProduceRequest(), version)
        with pytest.raises(UnsupportedVersion):
            decode(ProduceRequest, version, b"")


def test_null_where_it_cannot_be_is_refused() -> None:
    with pytest.raises(EncodeError):
        encode(MetadataRequest(topics=None), 0)


@pytest.mark.parametrize("acks", [-(2**15) - 1, 2**15])
def test_number_out_of_its_type_is_refused(acks: int) -> None:
    with pytest.raises((ValueError, OverflowError)):
        encode(ProduceRequest(acks=acks), 3)


def test_unknown_tags_need_a_flexible_version() -> None:
    request = ProduceRequest(unknown_tags=[UnknownTag(1000, b"x")])
    with pytest.raises(UnsupportedVersion):
        encode(request, 8)
    assert decode(ProduceRequest, 9, encode(request, 9)).unknown_tags == [(1000, b"x")]


def of_request(version: int, tag: int) -> bytes:
    return encode(FetchRequest(unknown_tags=[UnknownTag(tag, b"\0")]), version)


def of_partition(version: int, tag: int) -> bytes:
    partition = FetchPartition(unknown_tags=[UnknownTag(tag, bytes(16))])
    return encode(FetchRequest(topics=[FetchTopic(partitions=[partition])]), version)


@pytest.mark.parametrize(
    ("cls", "version", "data"),
    [
        (FetchRequest, 14, of_request(14, tag=1)),
        (FetchRequest, 16, of_partition(16, tag=0)),
        (FetchRequest, 17, of_partition(17, tag=1)),
        (FetchResponse, 15, encode(FetchResponse(unknown_tags=[UnknownTag(0, b"\1")]), 15)),
        (ProduceResponse, 9, encode(ProduceResponse(unknown_tags=[UnknownTag(0, b"\1")]), 9)),
        (PartitionRecord, 1, encode(PartitionRecord(unknown_tags=[UnknownTag(2, b"\1")]), 1)),
    ],
)
def test_a_tag_that_only_another_version_has_is_refused(cls: type[Message], version: int, data: bytes) -> None:
    """Kafka's generated readers do so ("Tag 1 is not valid for version 14"); other tags are carried along."""
    with pytest.raises(DecodeError, match="has no tag"):
        decode(cls, version, data)
    with pytest.raises(DecodeError, match="has no tag"):
        StructCodec(cls, version, flexible=True).read(Reader(data, 0))


@pytest.mark.parametrize("version", [8, 9, 13])
@pytest.mark.parametrize("claim", [b"\x7f\xff\xff\xff", b"\x00\x0f\x42\x40", b"\xff\xff\xff\xff\x07", b"\xc1\x84\x3d"])
def test_no_claimed_length_allocates(version: int, claim: bytes) -> None:
    """Whatever four or five bytes claim, wherever they stand, nothing is made for it."""
    request = ProduceRequest(
        transactional_id="t", topic_data=[TopicProduceData(partition_data=[PartitionProduceData(records=b"r" * 50)])]
    )
    data = encode(request, version)
    tracemalloc.start()
    try:
        for position in range(len(data)):
            damaged = data[:position] + claim + data[position + len(claim) :]
            try:
                decode(ProduceRequest, version, damaged)
            except DecodeError:
                continue
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def fetch_of(topics: int, partitions: int) -> FetchRequest:
    rows = [FetchPartition(partition=number) for number in range(partitions)]
    return FetchRequest(topics=[FetchTopic(topic=f"t{number}", partitions=rows) for number in range(topics)])


@pytest.mark.parametrize(("topics", "partitions"), [(1, 1000), (1000, 1), (30, 30)])
def test_many_elements_are_read_and_written_in_many_steps(topics: int, partitions: int) -> None:
    request = fetch_of(topics, partitions)
    data = encode(request, 12)

    read, read_yields = finish(decode_in_steps(FetchRequest, 12, memoryview(bytearray(data)), 0, UNLIMITED))
    parts, written_yields = finish(encode_parts_in_steps(request, 12))

    assert read == request and b"".join(cast("list[bytes]", parts)) == data
    assert min(read_yields, written_yields) >= topics * partitions // ELEMENTS_A_STEP


@pytest.mark.parametrize(("topics", "partitions"), [(1, 999), (500, 1), (20, 49)])
def test_elements_of_all_arrays_are_counted_together(topics: int, partitions: int) -> None:
    """What they cost has to do with how many there are, not with how they are spread."""
    data = encode(fetch_of(topics, partitions), 12)
    count = topics * (1 + partitions)

    assert decode(FetchRequest, 12, data, 0, count) == decode(FetchRequest, 12, data)
    finish(decode_in_steps(FetchRequest, 12, data, 0, count))
    with pytest.raises(TooManyElements):
        decode(FetchRequest, 12, data, 0, count - 1)
    with pytest.raises(TooManyElements):
        finish(decode_in_steps(FetchRequest, 12, data, 0, count - 1))


@pytest.mark.parametrize("name_bytes", [500, 32767])
def test_a_large_message_is_not_copied_at_once_where_it_is_read_in_steps(name_bytes: int) -> None:
    """Names of the greatest length fit into what is copied ahead."""
    topics = [MetadataRequestTopic(name="n" * name_bytes) for _ in range(2_000_000 // (name_bytes + 100))]
    request = MetadataRequest(topics=topics)
    data = memoryview(bytearray(encode(request, 9)))
    steps = decode_in_steps(MetadataRequest, 9, data, 0, UNLIMITED)
    tracemalloc.start()
    next(steps)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    read, _ = finish(steps)
    assert read == request and peak_bytes < min(len(data), 3 * WIDE_WINDOW_BYTES)
