"""Flat codecs of `ottla.protocol.messages.produce`.

Made by `ottla.protocol.flatten` from the declarations; change those and run it, not this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from mypy_extensions import i64

from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.protocol.plans import Codec, lacking, misplaced, read_unknown_tags, write_tags, write_unknown_tags
from ottla.protocol.primitives import Reader, Writer
from ottla.protocol.schema import ZERO_UUID, Records, UnknownTag

Tags: TypeAlias = Sequence[UnknownTag]

_new: Final[Any] = object.__new__


def new_partition_produce_data(
    *,
    index: int = 0,
    records: Records | None = None,
) -> PartitionProduceData:
    value: PartitionProduceData = _new(PartitionProduceData)
    value.index = index
    value.records = records
    value.unknown_tags = ()
    return value


def new_topic_produce_data(
    *,
    name: str = "",
    topic_id: bytes = ZERO_UUID,
    partition_data: list[PartitionProduceData] | None = None,
) -> TopicProduceData:
    value: TopicProduceData = _new(TopicProduceData)
    value.name = name
    value.topic_id = topic_id
    value.partition_data = [] if partition_data is None else partition_data
    value.unknown_tags = ()
    return value


def new_produce_request(
    *,
    transactional_id: str | None = None,
    acks: int = 0,
    timeout_ms: int = 0,
    topic_data: list[TopicProduceData] | None = None,
) -> ProduceRequest:
    value: ProduceRequest = _new(ProduceRequest)
    value.transactional_id = transactional_id
    value.acks = acks
    value.timeout_ms = timeout_ms
    value.topic_data = [] if topic_data is None else topic_data
    value.unknown_tags = ()
    return value


def new_batch_index_and_error_message(
    *,
    batch_index: int = 0,
    batch_index_error_message: str | None = None,
) -> BatchIndexAndErrorMessage:
    value: BatchIndexAndErrorMessage = _new(BatchIndexAndErrorMessage)
    value.batch_index = batch_index
    value.batch_index_error_message = batch_index_error_message
    value.unknown_tags = ()
    return value


def new_leader_id_and_epoch(
    *,
    leader_id: int = -1,
    leader_epoch: int = -1,
) -> LeaderIdAndEpoch:
    value: LeaderIdAndEpoch = _new(LeaderIdAndEpoch)
    value.leader_id = leader_id
    value.leader_epoch = leader_epoch
    value.unknown_tags = ()
    return value


def new_partition_produce_response(
    *,
    index: int = 0,
    error_code: int = 0,
    base_offset: int = 0,
    log_append_time_ms: int = -1,
    log_start_offset: int = -1,
    record_errors: list[BatchIndexAndErrorMessage] | None = None,
    error_message: str | None = None,
    current_leader: LeaderIdAndEpoch | None = None,
) -> PartitionProduceResponse:
    value: PartitionProduceResponse = _new(PartitionProduceResponse)
    value.index = index
    value.error_code = error_code
    value.base_offset = base_offset
    value.log_append_time_ms = log_append_time_ms
    value.log_start_offset = log_start_offset
    value.record_errors = [] if record_errors is None else record_errors
    value.error_message = error_message
    value.current_leader = new_leader_id_and_epoch() if current_leader is None else current_leader
    value.unknown_tags = ()
    return value


def new_topic_produce_response(
    *,
    name: str = "",
    topic_id: bytes = ZERO_UUID,
    partition_responses: list[PartitionProduceResponse] | None = None,
) -> TopicProduceResponse:
    value: TopicProduceResponse = _new(TopicProduceResponse)
    value.name = name
    value.topic_id = topic_id
    value.partition_responses = [] if partition_responses is None else partition_responses
    value.unknown_tags = ()
    return value


def new_node_endpoint(
    *,
    node_id: int = 0,
    host: str = "",
    port: int = 0,
    rack: str | None = None,
) -> NodeEndpoint:
    value: NodeEndpoint = _new(NodeEndpoint)
    value.node_id = node_id
    value.host = host
    value.port = port
    value.rack = rack
    value.unknown_tags = ()
    return value


def new_produce_response(
    *,
    responses: list[TopicProduceResponse] | None = None,
    throttle_time_ms: int = 0,
    node_endpoints: list[NodeEndpoint] | None = None,
) -> ProduceResponse:
    value: ProduceResponse = _new(ProduceResponse)
    value.responses = [] if responses is None else responses
    value.throttle_time_ms = throttle_time_ms
    value.node_endpoints = [] if node_endpoints is None else node_endpoints
    value.unknown_tags = ()
    return value


class ProduceRequestCodec(Codec):
    """ProduceRequest in one version."""

    def __init__(self, version: int) -> None:
        self.version: i64 = version
        self.compact = version >= 9
        self.holds_records = True

    def read(self, reader: Reader) -> object:
        return self.read_produce_request(reader)

    def write(self, writer: Writer, value: Any) -> None:
        self.write_produce_request(writer, value)

    def read_produce_request(self, reader: Reader) -> ProduceRequest:
        value: ProduceRequest = _new(ProduceRequest)
        value.transactional_id = reader.nullable_string(self.compact)
        value.acks = reader.int16()
        value.timeout_ms = reader.int32()
        value.topic_data = [self.read_topic_produce_data(reader) for _ in range(reader.count(self.compact))]
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_produce_request(self, writer: Writer, value: ProduceRequest) -> None:
        writer.nullable_string(value.transactional_id, self.compact)
        writer.int16(value.acks)
        writer.int32(value.timeout_ms)
        writer.count(value.topic_data, self.compact)
        for topic_produce_data in value.topic_data:
            self.write_topic_produce_data(writer, topic_produce_data)
        write_unknown_tags(writer, value.unknown_tags, flexible=self.compact)

    def read_topic_produce_data(self, reader: Reader) -> TopicProduceData:
        value: TopicProduceData = _new(TopicProduceData)
        if self.version <= 12:
            value.name = reader.string(self.compact)
        else:
            value.name = ""
        if self.version >= 13:
            value.topic_id = reader.uuid()
        else:
            value.topic_id = ZERO_UUID
        value.partition_data = [self.read_partition_produce_data(reader) for _ in range(reader.count(self.compact))]
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_topic_produce_data(self, writer: Writer, value: TopicProduceData) -> None:
        if self.version <= 12:
            writer.string(value.name, self.compact)
        if self.version >= 13:
            writer.uuid(value.topic_id)
        writer.count(value.partition_data, self.compact)
        for partition_produce_data in value.partition_data:
            self.write_partition_produce_data(writer, partition_produce_data)
        write_unknown_tags(writer, value.unknown_tags, flexible=self.compact)

    def read_partition_produce_data(self, reader: Reader) -> PartitionProduceData:
        value: PartitionProduceData = _new(PartitionProduceData)
        value.index = reader.int32()
        value.records = reader.nullable_records(self.compact)
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_partition_produce_data(self, writer: Writer, value: PartitionProduceData) -> None:
        writer.int32(value.index)
        writer.nullable_records(value.records, self.compact)
        write_unknown_tags(writer, value.unknown_tags, flexible=self.compact)


class ProduceResponseCodec(Codec):
    """ProduceResponse in one version."""

    def __init__(self, version: int) -> None:
        self.version: i64 = version
        self.compact = version >= 9
        self.holds_records = False

    def read(self, reader: Reader) -> object:
        return self.read_produce_response(reader)

    def write(self, writer: Writer, value: Any) -> None:
        self.write_produce_response(writer, value)

    def read_produce_response(self, reader: Reader) -> ProduceResponse:
        value: ProduceResponse = _new(ProduceResponse)
        value.responses = [self.read_topic_produce_response(reader) for _ in range(reader.count(self.compact))]
        value.throttle_time_ms = reader.int32()
        value.node_endpoints = []
        value.unknown_tags = self.read_produce_response_tags(reader, value) if self.compact else ()
        return value

    def read_produce_response_tags(self, reader: Reader, value: ProduceResponse) -> Tags:
        unknown: list[UnknownTag] = []
        for _ in range(reader.tag_count()):
            tag = reader.varint_int32()
            size_bytes = reader.varint_int32()
            if tag == 0 and self.version >= 10:
                value.node_endpoints = [self.read_node_endpoint(reader) for _ in range(reader.count(self.compact))]
            elif tag == 0:
                raise misplaced(0, int(self.version))
            else:
                unknown.append(UnknownTag(int(tag), reader.take(size_bytes)))
        return unknown or ()

    def write_produce_response(self, writer: Writer, value: ProduceResponse) -> None:
        writer.count(value.responses, self.compact)
        for topic_produce_response in value.responses:
            self.write_topic_produce_response(writer, topic_produce_response)
        writer.int32(value.throttle_time_ms)
        tagged: list[tuple[int, bytes]] = []
        if value.node_endpoints:
            if not (self.version >= 10):
                raise lacking("node_endpoints", int(self.version))
            nested = Writer()
            nested.count(value.node_endpoints, self.compact)
            for node_endpoint in value.node_endpoints:
                self.write_node_endpoint(nested, node_endpoint)
            tagged.append((0, nested.merged.getvalue()))
        write_tags(writer, tagged, value.unknown_tags, flexible=self.compact)

    def read_topic_produce_response(self, reader: Reader) -> TopicProduceResponse:
        value: TopicProduceResponse = _new(TopicProduceResponse)
        if self.version <= 12:
            value.name = reader.string(self.compact)
        else:
            value.name = ""
        if self.version >= 13:
            value.topic_id = reader.uuid()
        else:
            value.topic_id = ZERO_UUID
        value.partition_responses = [
            self.read_partition_produce_response(reader) for _ in range(reader.count(self.compact))
        ]
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_topic_produce_response(self, writer: Writer, value: TopicProduceResponse) -> None:
        if self.version <= 12:
            writer.string(value.name, self.compact)
        if self.version >= 13:
            writer.uuid(value.topic_id)
        writer.count(value.partition_responses, self.compact)
        for partition_produce_response in value.partition_responses:
            self.write_partition_produce_response(writer, partition_produce_response)
        write_unknown_tags(writer, value.unknown_tags, flexible=self.compact)

    def read_partition_produce_response(self, reader: Reader) -> PartitionProduceResponse:
        value: PartitionProduceResponse = _new(PartitionProduceResponse)
        value.index = reader.int32()
        value.error_code = reader.int16()
        value.base_offset = reader.int64()
        value.log_append_time_ms = reader.int64()
        if self.version >= 5:
            value.log_start_offset = reader.int64()
        else:
            value.log_start_offset = -1
        if self.version >= 8:
            value.record_errors = [
                self.read_batch_index_and_error_message(reader) for _ in range(reader.count(self.compact))
            ]
            value.error_message = reader.nullable_string(self.compact)
        else:
            value.record_errors = []
            value.error_message = None
        value.current_leader = new_leader_id_and_epoch()
        value.unknown_tags = self.read_partition_produce_response_tags(reader, value) if self.compact else ()
        return value

    def read_partition_produce_response_tags(self, reader: Reader, value: PartitionProduceResponse) -> Tags:
        unknown: list[UnknownTag] = []
        for _ in range(reader.tag_count()):
            tag = reader.varint_int32()
            size_bytes = reader.varint_int32()
            if tag == 0 and self.version >= 10:
                value.current_leader = self.read_leader_id_and_epoch(reader)
            elif tag == 0:
                raise misplaced(0, int(self.version))
            else:
                unknown.append(UnknownTag(int(tag), reader.take(size_bytes)))
        return unknown or ()

    def write_partition_produce_response(self, writer: Writer, value: PartitionProduceResponse) -> None:
        writer.int32(value.index)
        writer.int16(value.error_code)
        writer.int64(value.base_offset)
        writer.int64(value.log_append_time_ms)
        if self.version >= 5:
            writer.int64(value.log_start_offset)
        if self.version >= 8:
            writer.count(value.record_errors, self.compact)
            for batch_index_and_error_message in value.record_errors:
                self.write_batch_index_and_error_message(writer, batch_index_and_error_message)
            writer.nullable_string(value.error_message, self.compact)
        tagged: list[tuple[int, bytes]] = []
        if self.is_leader_id_and_epoch_set(value.current_leader):
            if not (self.version >= 10):
                raise lacking("current_leader", int(self.version))
            nested = Writer()
            self.write_leader_id_and_epoch(nested, value.current_leader)
            tagged.append((0, nested.merged.getvalue()))
        write_tags(writer, tagged, value.unknown_tags, flexible=self.compact)

    def read_batch_index_and_error_message(self, reader: Reader) -> BatchIndexAndErrorMessage:
        value: BatchIndexAndErrorMessage = _new(BatchIndexAndErrorMessage)
        value.batch_index = reader.int32()
        value.batch_index_error_message = reader.nullable_string(self.compact)
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_batch_index_and_error_message(self, writer: Writer, value: BatchIndexAndErrorMessage) -> None:
        writer.int32(value.batch_index)
        writer.nullable_string(value.batch_index_error_message, self.compact)
        write_unknown_tags(writer, value.unknown_tags, flexible=self.compact)

    def read_leader_id_and_epoch(self, reader: Reader) -> LeaderIdAndEpoch:
        value: LeaderIdAndEpoch = _new(LeaderIdAndEpoch)
        value.leader_id = reader.int32()
        value.leader_epoch = reader.int32()
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_leader_id_and_epoch(self, writer: Writer, value: LeaderIdAndEpoch) -> None:
        writer.int32(value.leader_id)
        writer.int32(value.leader_epoch)
        write_unknown_tags(writer, value.unknown_tags, flexible=self.compact)

    def read_node_endpoint(self, reader: Reader) -> NodeEndpoint:
        value: NodeEndpoint = _new(NodeEndpoint)
        value.node_id = reader.int32()
        value.host = reader.string(self.compact)
        value.port = reader.int32()
        value.rack = reader.nullable_string(self.compact)
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_node_endpoint(self, writer: Writer, value: NodeEndpoint) -> None:
        writer.int32(value.node_id)
        writer.string(value.host, self.compact)
        writer.int32(value.port)
        writer.nullable_string(value.rack, self.compact)
        write_unknown_tags(writer, value.unknown_tags, flexible=self.compact)

    def is_leader_id_and_epoch_set(self, value: LeaderIdAndEpoch) -> bool:
        return bool(value.leader_id != -1 or value.leader_epoch != -1 or value.unknown_tags)
