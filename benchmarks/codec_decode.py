"""What one message costs to decode and to encode: the hot ones, flat and schema-driven, and the header.

    python -m benchmarks.codec_decode

Prints one line each, in microseconds of CPU time, beside kio's Rust code where kio has the message. Each figure is the
best of several runs, so that what else the machine does counts little. It says which build it measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kio.schema.produce.v9.request import ProduceRequest as KioProduceRequest
from kio.serial import entity_reader

from benchmarks.timing import best_seconds
from ottla._build import build_kind
from ottla.protocol.codec import decode, encode, encode_parts
from ottla.protocol.headers import RequestHeader, decode_request_header, encode_request_header, encode_response_frame
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.protocol.plans import StructCodec
from ottla.protocol.primitives import Reader

RECORDS: Final = bytes(170)
LARGE_RECORDS: Final = bytes(1 << 16)


def line(name: str, work: Callable[[], Any]) -> None:
    print(f"{name:<56} {best_seconds(work) * 1e6:>8.2f} µs")


def produce_request(records: bytes) -> ProduceRequest:
    row = PartitionProduceData(index=0, records=records)
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name="topic", partition_data=[row])])


def produce_response() -> ProduceResponse:
    row = PartitionProduceResponse(index=0, base_offset=1_000_000, log_start_offset=0)
    return ProduceResponse(responses=[TopicProduceResponse(name="topic", partition_responses=[row])])


def fetch_request() -> FetchRequest:
    return FetchRequest(topics=[FetchTopic(topic="topic", partitions=[FetchPartition(fetch_offset=1_000_000)])])


def fetch_response() -> FetchResponse:
    row = PartitionData(high_watermark=1_000_000, records=RECORDS)
    return FetchResponse(responses=[FetchableTopicResponse(topic="topic", partitions=[row])])


def metadata_response(partitions: int) -> MetadataResponse:
    rows = [
        MetadataResponsePartition(partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1])
        for index in range(partitions)
    ]
    broker = MetadataResponseBroker(node_id=1, host="localhost", port=9092)
    return MetadataResponse(brokers=[broker], topics=[MetadataResponseTopic(name="topic", partitions=rows)])


def main() -> None:
    print(f"one topic, one partition, {build_kind()} build")
    produce = memoryview(bytearray(encode(produce_request(RECORDS), 9)))
    large = memoryview(bytearray(encode(produce_request(LARGE_RECORDS), 9)))
    schema_driven = StructCodec(ProduceRequest, 9, flexible=True)
    kio_read = entity_reader(KioProduceRequest)
    line("decode Produce request v9", lambda: decode(ProduceRequest, 9, produce))
    line("  64 KB of records", lambda: decode(ProduceRequest, 9, large))
    line("  schema-driven", lambda: schema_driven.read(Reader(produce, 0)))
    line("  kio (Rust)", lambda: kio_read(bytes(produce), 0))
    answer = produce_response()
    line("make Produce response", produce_response)
    line("encode Produce response v9", lambda: encode_parts(answer, 9))
    line("  with header and size", lambda: encode_response_frame(0, 9, 7, answer))

    fetch = memoryview(bytearray(encode(fetch_request(), 12)))
    fetched = fetch_response()
    received = memoryview(bytearray(encode(fetched, 12)))
    line("decode Fetch request v12", lambda: decode(FetchRequest, 12, fetch))
    line("make Fetch response", fetch_response)
    line("encode Fetch response v12", lambda: encode_parts(fetched, 12))
    line("decode Fetch response v12", lambda: decode(FetchResponse, 12, received))

    metadata = metadata_response(100)
    line("encode Metadata response v12, 100 partitions", lambda: encode_parts(metadata, 12))

    header = memoryview(encode_request_header(RequestHeader(0, 9, 7, "client-1")))
    line("decode request header", lambda: decode_request_header(header))


if __name__ == "__main__":
    main()
