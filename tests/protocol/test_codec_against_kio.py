"""Another implementation reads what we write and writes what we read: kio, whose messages are made for each version."""

from __future__ import annotations

from importlib import import_module
from io import BytesIO

import pytest
from kio.serial import entity_reader, entity_writer

from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.schema import Message

TOPIC_ID = bytes(range(16))

MESSAGES: list[tuple[Message, range]] = [
    (ApiVersionsRequest(client_software_name="ottla", client_software_version="1.0"), range(3, 5)),
    (FindCoordinatorRequest(key_type=1, coordinator_keys=["a", "ü"]), range(4, 7)),
    (
        ProduceRequest(
            transactional_id="t",
            acks=-1,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(name="topic", partition_data=[PartitionProduceData(index=3, records=b"records")]),
            ],
        ),
        range(3, 13),
    ),
    (
        FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic="topic", partitions=[PartitionData(partition_index=1, high_watermark=9, records=b"records")]
                )
            ]
        ),
        range(4, 13),
    ),
    (
        ListOffsetsRequest(
            replica_id=-1,
            isolation_level=1,
            topics=[ListOffsetsTopic(name="topic", partitions=[ListOffsetsPartition(timestamp=-2)])],
        ),
        range(2, 10),
    ),
    (
        MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="localhost", port=9092, rack="r")],
            cluster_id="c",
            controller_id=1,
            topics=[
                MetadataResponseTopic(
                    name="topic",
                    topic_id=TOPIC_ID,
                    partitions=[MetadataResponsePartition(leader_id=1, replica_nodes=[1], isr_nodes=[1])],
                )
            ],
        ),
        range(10, 13),
    ),
    (
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\x00\x01")],
        ),
        range(1, 10),
    ),
]


def through_kio(message: Message, version: int, data: bytes) -> bytes:
    """Return the bytes after kio has read them and written them again."""
    module = type(message).__module__.rpartition(".")[2]
    kind = "request" if type(message).__name__.endswith("Request") else "response"
    kios = getattr(import_module(f"kio.schema.{module}.v{version}.{kind}"), type(message).__name__)
    read, size_bytes = entity_reader(kios)(data, 0)
    assert size_bytes == len(data)
    written = BytesIO()
    entity_writer(kios)(written, read)
    return written.getvalue()


@pytest.mark.parametrize(("message", "versions"), MESSAGES, ids=lambda part: type(part).__name__)
def test_kio_reads_what_we_write_and_we_read_what_kio_writes(message: Message, versions: range) -> None:
    for version in versions:
        data = encode(message, version)
        written = through_kio(message, version, data)
        assert written == data, version
        assert encode(decode(type(message), version, written), version) == data, version
