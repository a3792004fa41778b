"""Frames, versions and parsing: what a peer may say, and what it costs us when it says something else."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from ottla.protocol.apis import API, ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.headers import RequestHeader, encode_request_header
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.produce import ProduceResponse
from ottla.protocol.schema import Message
from tests.wire import Peer, Room, batch, fetch_request, frame, on_broker, produce_request, read_answer, sized

UNSUPPORTED_VERSION = 35
INVALID_REQUEST = 42
UNKNOWN_TOPIC_OR_PARTITION = 3
MIB = 1 << 20
ANY = 1
GIB = 1 << 30


def asked(key: int, version: int, body: bytes, *, is_flexible: bool = False) -> bytes:
    """A frame with any key and version, correlation id 7, client id `test`."""
    head = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big") + (7).to_bytes(4, "big") + b"\x00\x04test"
    return sized(head + (b"\x00" if is_flexible else b"") + body)


async def is_served(peer: Peer) -> bool:
    """Whether a connection gets a right answer."""
    answer = await peer.ask(MetadataRequest(topics=[]), 12)
    return len(answer.brokers) == 1


@on_broker()
async def test_a_newer_api_versions_is_answered_in_the_layout_of_version_0(room: Room) -> None:
    """KIP-511; redpanda "kafka: fix api_versions_response for flex versions", IBM/sarama#3337, franz-go "kfake: fix
    ApiVersions handling for unknown (high) versions": the connection was closed, or the error could not be read."""
    room.peer.write(asked(ApiKey.API_VERSIONS, 127, b"\x05test\x021\x00", is_flexible=True))
    answer = read_answer(await room.peer.receive(), ApiVersionsResponse, 0, 7)

    assert answer.error_code == UNSUPPORTED_VERSION
    ranges = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    assert ranges[ApiKey.API_VERSIONS] == (0, API[ApiKey.API_VERSIONS].announced[1])
    good = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    assert (await room.ask(good, 3)).error_code == 0
    assert await is_served(room.peer)


@pytest.mark.parametrize("version", [3, 4])
@on_broker()
async def test_the_header_of_an_api_versions_answer_has_no_tags(room: Room, version: int) -> None:
    """KIP-511; redpanda "kafka: fix api_versions_response for flex versions", ydb-platform/ydb#50358: one byte of tags
    after the correlation id shifts all that follows."""
    room.peer.send(ApiVersionsRequest(client_software_name="test", client_software_version="1"), version)
    data = await room.peer.receive()

    assert data[4:6] == b"\x00\x00"
    assert read_answer(data, ApiVersionsResponse, version, 1).error_code == 0


@pytest.mark.parametrize("client_id", [None, "", "ä" * 300])
@on_broker()
async def test_a_client_needs_no_name(room: Room, client_id: str | None) -> None:
    """redpanda-data/redpanda#6570 "Bugfix for flex reqs w/ no clientid failed", KAFKA-3088, KAFKA-13385: a null or
    empty client id hid the tags behind it, and the whole request was misread."""
    for version in range(14):
        answer = await room.peer.ask(MetadataRequest(topics=[]), version, client_id=client_id)
        assert len(answer.brokers) == 1, version
    await room.create("t")
    answer = await room.peer.ask(produce_request({"t": {0: batch(b"v")}}), 12, client_id=client_id)
    assert answer.responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize(
    ("name", "version", "code"),
    [
        ("", "1", INVALID_REQUEST),
        ("-x", "1", INVALID_REQUEST),
        ("a b", "1", INVALID_REQUEST),
        ("a.", "1", INVALID_REQUEST),
        ("a", "", INVALID_REQUEST),
        ("a", "1.0-", INVALID_REQUEST),
        ("apache-kafka.java", "4.4.0", 0),
        ("a", "1", 0),
    ],
)
@on_broker()
async def test_names_of_client_software_are_checked(room: Room, name: str, version: str, code: int) -> None:
    """franz-go "kfake: validate ApiVersions client software name and version": a broker that takes anything hides the
    bugs of clients."""
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    answer = await room.ask(request, 3)

    assert answer.error_code == code
    assert await is_served(room.peer)


LIES = {
    "a tag of 1 GiB in the header": asked(3, 12, b"")[4:-1] + b"\x01\x00\x80\x80\x80\x80\x04",
    "2^31-1 tags in the header": asked(3, 12, b"")[4:] + b"\xff\xff\xff\xff\x07",
    "a tag of 1 GiB in the body": asked(3, 12, b"\x01\x01\x00\x01\x00\x80\x80\x80\x80\x04", is_flexible=True)[4:],
    "an array of 2^31-1": asked(3, 1, b"\x7f\xff\xff\xff")[4:],
    "an array of -2 that cannot be null": asked(3, 0, b"\xff\xff\xff\xfe")[4:],
    "a compact array of 2^31-2": asked(3, 12, b"\xff\xff\xff\xff\x07", is_flexible=True)[4:],
    "a compact array of 2^32-1": asked(3, 12, b"\xff\xff\xff\xff\x0f", is_flexible=True)[4:],
    "a varint that does not end": asked(3, 12, b"\xff" * 20, is_flexible=True)[4:],
    "a string past the end": asked(3, 1, b"\x00\x00\x00\x01\x7f\xff")[4:],
    "a string of -2": asked(3, 1, b"\x00\x00\x00\x01\xff\xfe")[4:],
    "records of 2^31-1": asked(0, 3, bytes.fromhex("ffff 0001 00000000 00000001 0001 74 00000001 00000000 7fffffff"))[
        4:
    ],
    "a client id past the end": b"\x00\x03\x00\x01\x00\x00\x00\x07\x7f\xff",
}


@pytest.mark.parametrize("lie", list(LIES))
@on_broker()
async def test_a_claimed_length_costs_nothing(room: Room, lie: str) -> None:
    """KAFKA-14063 apache/kafka#12399, KAFKA-2878, envoyproxy/envoy#45859, ydb-platform/ydb#50358: memory was allocated
    from a length that nothing stood behind."""
    assert await is_served(room.peer)
    tracemalloc.start()
    try:
        for _ in range(50):
            liar = await room.connect()
            liar.write(sized(LIES[lie]))
            assert await liar.is_ended()
            await liar.close()
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 4 * MIB
    assert await is_served(room.peer)


CLIENT_HELLO = bytes.fromhex("16030102000100")
NOT_FRAMES = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": CLIENT_HELLO + bytes(510),
    "length -1": b"\xff\xff\xff\xff",
    "length 0": bytes(4),
    "length 3": b"\x00\x00\x00\x03abc",
    "length 2^31-1": b"\x7f\xff\xff\xff",
    "one above the limit": (100 * MIB + 1).to_bytes(4, "big"),
}


@pytest.mark.parametrize("name", list(NOT_FRAMES))
@on_broker()
async def test_what_is_no_frame_ends_the_connection_at_once(room: Room, name: str) -> None:
    """KAFKA-5062 apache/kafka#3359 "Kafka brokers can accept malformed requests which allocate gigabytes of memory"."""
    tracemalloc.start()
    try:
        stranger = await room.connect()
        stranger.write(NOT_FRAMES[name])
        async with asyncio.timeout(1):
            assert await stranger.is_ended()
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 2 * MIB
    assert await is_served(room.peer)


@on_broker()
async def test_an_announced_frame_takes_memory_as_it_comes(room: Room) -> None:
    """apache/kafka#3558, CVE-2022-34917: forty frames of 90 MiB that drip in took the memory of whole ones."""
    assert await is_served(room.peer)
    tracemalloc.start()
    try:
        for _ in range(40):
            dripping = await room.connect()
            dripping.write((90 * MIB).to_bytes(4, "big") + bytes(5000))
        for _ in range(40):
            assert await is_served(room.peer)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 40 * 2 * MIB


UNKNOWN = {
    "api key 9999": asked(9999, 0, b""),
    "api key -1": asked(-1, 0, b""),
    "an api that brokers do not serve": asked(4, 0, b""),
    "Metadata 200": asked(3, 200, b""),
    "Produce 2": asked(0, 2, b""),
}


@pytest.mark.parametrize("name", list(UNKNOWN))
@on_broker()
async def test_what_is_not_served_ends_that_connection_only(room: Room, name: str) -> None:
    """KAFKA-3088, redpanda "Introduce malformed_header_exception": a worker died, or an answer was made up."""
    await room.create("t")
    stranger = await room.connect()
    stranger.write(UNKNOWN[name])

    assert await stranger.is_ended()
    await room.append("t", b"v")
    assert await room.read_all("t") == [(0, b"v")]


@on_broker()
async def test_old_versions_that_clients_open_with_are_served(room: Room) -> None:
    """aio-libs/aiokafka#1085, kafka-python-ng#208, ydb-platform/ydb#50358: Metadata 0 and 1 were refused, and clients
    reported that there are no brokers; librdkafka derives codecs from the versions of Produce."""
    for version in (0, 1):
        answer = await room.ask(MetadataRequest(topics=[]), version)
        assert len(answer.brokers) == 1
    for version in (0, 1, 2):
        answer = await room.ask(ApiVersionsRequest(), version)
        ranges = {row.api_key: row.min_version for row in answer.api_keys}
        assert ranges[ApiKey.PRODUCE] == 0


@on_broker()
async def test_every_announced_version_is_served(room: Room) -> None:
    """redpanda-data/redpanda#4473, twmb/franz-go#1312, streamnative/kop#180: an announced version was answered in the
    layout of another. Produce below 3 is announced for librdkafka's sake and, as in Kafka, not served."""
    answer = await room.ask(ApiVersionsRequest(), 0)
    ranges = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    assert ranges[ApiKey.METADATA][1] >= 10, "topic ids need Metadata 10"
    for key, (least, most) in ranges.items():
        api = API[key]
        for version in range(max(least, api.min_version), most + 1):
            peer = await room.connect()
            header = encode_request_header(RequestHeader(key, version, 7, "test"))
            minimal = minimal_request(api.request)
            peer.write(sized(header + encode(minimal, version)))
            if key == ApiKey.PRODUCE:
                continue  # acks=0: silence
            try:
                read_answer(await peer.receive(), api.response, version, 7)
            except asyncio.IncompleteReadError as error:
                raise AssertionError(f"{api.name} {version} was not answered") from error
            await peer.close()


def minimal_request(request: type[Message]) -> Message:
    """A request of defaults, but for those that no client may send."""
    message = request()
    if isinstance(message, ApiVersionsRequest):
        message.client_software_name = message.client_software_version = "a"
    if isinstance(message, DescribeAclsRequest):
        message.resource_type_filter = message.operation = message.permission_type = ANY
    return message


@on_broker()
async def test_every_partition_is_answered_once_and_in_order(room: Room) -> None:
    """redpanda "kafka/s: Remove duplicate responses - offset_fetch": six entries for three partitions."""
    await room.create("t", partitions=3)
    order = [2, 0, 1]
    produced = await room.ask(produce_request({"t": {p: batch(b"v") for p in order}}), 12)
    listed = await room.ask(
        ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name="t", partitions=[ListOffsetsPartition(partition_index=p, timestamp=-1) for p in order]
                )
            ],
        ),
        10,
    )
    fetched = await room.ask(fetch_request({"t": dict.fromkeys(order, 0)}), 12)
    deleted = await room.ask(
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name="t", partitions=[DeleteRecordsPartition(partition_index=p, offset=-1) for p in order]
                )
            ],
            timeout_ms=1000,
        ),
        2,
    )

    assert [row.index for row in produced.responses[0].partition_responses] == order
    assert [row.partition_index for row in listed.topics[0].partitions] == order
    assert [row.partition_index for row in fetched.responses[0].partitions] == order
    assert sorted(row.partition_index for row in deleted.topics[0].partitions) == [0, 1, 2]


@pytest.mark.parametrize("partition", [-1, -2, -(2**31), 1, 2**31 - 1])
@on_broker()
async def test_partitions_that_do_not_exist_are_unknown(room: Room, partition: int) -> None:
    """redpanda "kafka/test: add test for fetching from negative partition_ids", KAFKA-7572: a crash; in Python the last
    partition would answer to -1."""
    await room.create("t")
    fetched = await room.fetch("t", 0, partition=partition)
    produced = await room.produce("t", batch(b"v"), partition=partition)
    listed = await room.list_offset("t", -1, partition=partition)
    deleted, _ = await room.delete_records("t", -1, partition)

    codes = {fetched.error_code, produced.error_code, listed.error_code, deleted}
    assert codes == {UNKNOWN_TOPIC_OR_PARTITION}
    assert await room.bounds("t") == (0, 0)


@on_broker()
async def test_produce_without_acks_is_silent_and_holds_nothing_up(room: Room) -> None:
    """franz-go "kfake: do not wedge a connection's later responses after an acks=0 produce", KAFKA-6261."""
    await room.create("t")
    await room.append("t", b"first")
    peer = room.peer
    slow = peer.send(fetch_request({"t": {0: 1}}, max_wait_ms=5000), 12)
    peer.send(produce_request({"t": {0: batch(b"silent")}}, acks=0), 12)
    after = peer.send(MetadataRequest(topics=[]), 12)
    await (await room.connect()).ask(produce_request({"t": {0: batch(b"wakes the fetch")}}), 12)

    await peer.receive_answer(FetchResponse, 12, slow)
    await peer.receive_answer(MetadataResponse, 12, after)
    assert [value for _, value in await room.read_all("t")] == [b"first", b"wakes the fetch", b"silent"]


@on_broker({"auto.create.topics.enable": "false"})
async def test_an_error_without_acks_is_told_by_hanging_up(room: Room) -> None:
    """KAFKA-6261 and its kind: a producer with acks=0 would never learn that its topic is gone."""
    peer = await room.connect()
    peer.send(produce_request({"missing": {0: batch(b"v")}}, acks=0), 12)

    assert await peer.is_ended()
    assert await is_served(room.peer)


@on_broker()
async def test_answers_to_many_produces_at_once_come_in_order(room: Room) -> None:
    """KAFKA-7639 apache/kafka#5920 "Read one request at a time from socket to avoid OOM": five hundred requests of 1 MB
    were buffered. They are taken one after another, and memory stays within a few of them."""
    await room.create("t", configs={"max.message.bytes": str(2 * MIB), "retention.bytes": str(64 * MIB)})
    request = produce_request({"t": {0: batch(bytes(MIB))}})
    tracemalloc.start()
    try:

        async def write() -> None:
            for number in range(200):
                room.peer.write(frame(request, 12, number))
                await room.peer.writer.drain()

        writing = asyncio.ensure_future(write())
        other = await room.connect()
        for number in range(200):
            answer = await room.peer.receive_answer(ProduceResponse, 12, number)
            assert answer.responses[0].partition_responses[0].base_offset == number
            if number % 20 == 0:
                async with asyncio.timeout(1):
                    assert await is_served(other)
        await writing
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 24 * MIB


@on_broker()
async def test_a_topic_named_by_id_alone_is_found(room: Room) -> None:
    """twmb/franz-go#1312 and its kind: an API by topic id is of no use where Metadata cannot tell ids."""
    topic_id = await room.create("t")
    answer = await room.ask(MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic_id)]), 12)

    (row,) = answer.topics
    assert (row.error_code, row.name, row.topic_id) == (0, "t", topic_id)


def test_no_answer_is_shorter_than_its_schema() -> None:
    """nisshi-io/nisshi#679, #680 "SyncGroupResponse missing member_assignment payload": every default response decodes
    again to the last byte, in every version."""
    for api in API.values():
        for version in range(api.min_version, api.max_version + 1):
            data = encode(api.response(), version)
            assert encode(decode(api.response, version, memoryview(data)), version) == data, (api.name, version)
