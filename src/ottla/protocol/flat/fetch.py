"""Flat codecs of `ottla.protocol.messages.fetch`.

Made by `ottla.protocol.flatten` from the declarations; change those and run it, not this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from mypy_extensions import i64

from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
    SnapshotId,
)
from ottla.protocol.plans import Codec, lacking, misplaced, read_unknown_tags, write_tags, write_unknown_tags
from ottla.protocol.primitives import Reader, Writer
from ottla.protocol.schema import ZERO_UUID, Records, UnknownTag

Tags: TypeAlias = Sequence[UnknownTag]

_new: Final[Any] = object.__new__


def new_replica_state(
    *,
    replica_id: int = -1,
    replica_epoch: int = -1,
) -> ReplicaState:
    value: ReplicaState = _new(ReplicaState)
    value.replica_id = replica_id
    value.replica_epoch = replica_epoch
    value.unknown_tags = ()
    return value


def new_fetch_partition(
    *,
    partition: int = 0,
    current_leader_epoch: int = -1,
    fetch_offset: int = 0,
    last_fetched_epoch: int = -1,
    log_start_offset: int = -1,
    partition_max_bytes: int = 0,
    replica_directory_id: bytes = ZERO_UUID,
    high_watermark: int = 9223372036854775807,
) -> FetchPartition:
    value: FetchPartition = _new(FetchPartition)
    value.partition = partition
    value.current_leader_epoch = current_leader_epoch
    value.fetch_offset = fetch_offset
    value.last_fetched_epoch = last_fetched_epoch
    value.log_start_offset = log_start_offset
    value.partition_max_bytes = partition_max_bytes
    value.replica_directory_id = replica_directory_id
    value.high_watermark = high_watermark
    value.unknown_tags = ()
    return value


def new_fetch_topic(
    *,
    topic: str = "",
    topic_id: bytes = ZERO_UUID,
    partitions: list[FetchPartition] | None = None,
) -> FetchTopic:
    value: FetchTopic = _new(FetchTopic)
    value.topic = topic
    value.topic_id = topic_id
    value.partitions = [] if partitions is None else partitions
    value.unknown_tags = ()
    return value


def new_forgotten_topic(
    *,
    topic: str = "",
    topic_id: bytes = ZERO_UUID,
    partitions: list[int] | None = None,
) -> ForgottenTopic:
    value: ForgottenTopic = _new(ForgottenTopic)
    value.topic = topic
    value.topic_id = topic_id
    value.partitions = [] if partitions is None else partitions
    value.unknown_tags = ()
    return value


def new_fetch_request(
    *,
    cluster_id: str | None = None,
    replica_id: int = -1,
    replica_state: ReplicaState | None = None,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    max_bytes: int = 2147483647,
    isolation_level: int = 0,
    session_id: int = 0,
    session_epoch: int = -1,
    topics: list[FetchTopic] | None = None,
    forgotten_topics_data: list[ForgottenTopic] | None = None,
    rack_id: str = "",
) -> FetchRequest:
    value: FetchRequest = _new(FetchRequest)
    value.cluster_id = cluster_id
    value.replica_id = replica_id
    value.replica_state = new_replica_state() if replica_state is None else replica_state
    value.max_wait_ms = max_wait_ms
    value.min_bytes = min_bytes
    value.max_bytes = max_bytes
    value.isolation_level = isolation_level
    value.session_id = session_id
    value.session_epoch = session_epoch
    value.topics = [] if topics is None else topics
    value.forgotten_topics_data = [] if forgotten_topics_data is None else forgotten_topics_data
    value.rack_id = rack_id
    value.unknown_tags = ()
    return value


def new_epoch_end_offset(
    *,
    epoch: int = -1,
    end_offset: int = -1,
) -> EpochEndOffset:
    value: EpochEndOffset = _new(EpochEndOffset)
    value.epoch = epoch
    value.end_offset = end_offset
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


def new_snapshot_id(
    *,
    end_offset: int = -1,
    epoch: int = -1,
) -> SnapshotId:
    value: SnapshotId = _new(SnapshotId)
    value.end_offset = end_offset
    value.epoch = epoch
    value.unknown_tags = ()
    return value


def new_aborted_transaction(
    *,
    producer_id: int = 0,
    first_offset: int = 0,
) -> AbortedTransaction:
    value: AbortedTransaction = _new(AbortedTransaction)
    value.producer_id = producer_id
    value.first_offset = first_offset
    value.unknown_tags = ()
    return value


def new_partition_data(
    *,
    partition_index: int = 0,
    error_code: int = 0,
    high_watermark: int = 0,
    last_stable_offset: int = -1,
    log_start_offset: int = -1,
    diverging_epoch: EpochEndOffset | None = None,
    current_leader: LeaderIdAndEpoch | None = None,
    snapshot_id: SnapshotId | None = None,
    preferred_read_replica: int = -1,
    records: Records | None = None,
) -> PartitionData:
    value: PartitionData = _new(PartitionData)
    value.partition_index = partition_index
    value.error_code = error_code
    value.high_watermark = high_watermark
    value.last_stable_offset = last_stable_offset
    value.log_start_offset = log_start_offset
    value.diverging_epoch = new_epoch_end_offset() if diverging_epoch is None else diverging_epoch
    value.current_leader = new_leader_id_and_epoch() if current_leader is None else current_leader
    value.snapshot_id = new_snapshot_id() if snapshot_id is None else snapshot_id
    value.aborted_transactions = []
    value.preferred_read_replica = preferred_read_replica
    value.records = records
    value.unknown_tags = ()
    return value


def new_fetchable_topic_response(
    *,
    topic: str = "",
    topic_id: bytes = ZERO_UUID,
    partitions: list[PartitionData] | None = None,
) -> FetchableTopicResponse:
    value: FetchableTopicResponse = _new(FetchableTopicResponse)
    value.topic = topic
    value.topic_id = topic_id
    value.partitions = [] if partitions is None else partitions
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


def new_fetch_response(
    *,
    throttle_time_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    responses: list[FetchableTopicResponse] | None = None,
    node_endpoints: list[NodeEndpoint] | None = None,
) -> FetchResponse:
    value: FetchResponse = _new(FetchResponse)
    value.throttle_time_ms = throttle_time_ms
    value.error_code = error_code
    value.session_id = session_id
    value.responses = [] if responses is None else responses
    value.node_endpoints = [] if node_endpoints is None else node_endpoints
    value.unknown_tags = ()
    return value


class FetchRequestCodec(Codec):
    """FetchRequest in one version."""

    def __init__(self, version: int) -> None:
        self.version: i64 = version
        self.compact = version >= 12
        self.holds_records = False

    def read(self, reader: Reader) -> object:
        return self.read_fetch_request(reader)

    def write(self, writer: Writer, value: Any) -> None:
        self.write_fetch_request(writer, value)

    def read_fetch_request(self, reader: Reader) -> FetchRequest:
        value: FetchRequest = _new(FetchRequest)
        if self.version <= 14:
            value.replica_id = reader.int32()
        else:
            value.replica_id = -1
        value.max_wait_ms = reader.int32()
        value.min_bytes = reader.int32()
        value.max_bytes = reader.int32()
        value.isolation_level = reader.int8()
        if self.version >= 7:
            value.session_id = reader.int32()
            value.session_epoch = reader.int32()
        else:
            value.session_id = 0
            value.session_epoch = -1
        value.topics = [self.read_fetch_topic(reader) for _ in range(reader.count(self.compact))]
        if self.version >= 7:
            value.forgotten_topics_data = [self.read_forgotten_topic(reader) for _ in range(reader.count(self.compact))]
        else:
            value.forgotten_topics_data = []
        if self.version >= 11:
            value.rack_id = reader.string(self.compact)
        else:
            value.rack_id = ""
        value.cluster_id = None
        value.replica_state = new_replica_state()
        value.unknown_tags = self.read_fetch_request_tags(reader, value) if self.compact else ()
        return value

    def read_fetch_request_tags(self, reader: Reader, value: FetchRequest) -> Tags:
        unknown: list[UnknownTag] = []
        for _ in range(reader.tag_count()):
            tag = reader.varint_int32()
            size_bytes = reader.varint_int32()
            if tag == 0:
                value.cluster_id = reader.nullable_string(self.compact)
            elif tag == 1 and self.version >= 15:
                value.replica_state = self.read_replica_state(reader)
            elif tag == 1:
                raise misplaced(1, int(self.version))
            else:
                unknown.append(UnknownTag(int(tag), reader.take(size_bytes)))
        return unknown or ()

    def write_fetch_request(self, writer: Writer, value: FetchRequest) -> None:
        if self.version <= 14:
            writer.int32(value.replica_id)
        elif value.replica_id != -1:
            raise lacking("replica_id", int(self.version))
        writer.int32(value.max_wait_ms)
        writer.int32(value.min_bytes)
        writer.int32(value.max_bytes)
        writer.int8(value.isolation_level)
        if self.version >= 7:
            writer.int32(value.session_id)
            writer.int32(value.session_epoch)
        writer.count(value.topics, self.compact)
        for fetch_topic in value.topics:
            self.write_fetch_topic(writer, fetch_topic)
        if self.version >= 7:
            writer.count(value.forgotten_topics_data, self.compact)
            for forgotten_topic in value.forgotten_topics_data:
                self.write_forgotten_topic(writer, forgotten_topic)
        elif value.forgotten_topics_data:
            raise lacking("forgotten_topics_data", int(self.version))
        if self.version >= 11:
            writer.string(value.rack_id, self.compact)
        tagged: list[tuple[int, bytes]] = []
        if value.cluster_id is not None:
            nested = Writer()
            nested.nullable_string(value.cluster_id, self.compact)
            tagged.append((0, nested.merged.getvalue()))
        if self.is_replica_state_set(value.replica_state):
            if not (self.version >= 15):
                raise lacking("replica_state", int(self.version))
            nested = Writer()
            self.write_replica_state(nested, value.replica_state)
            tagged.append((1, nested.merged.getvalue()))
        write_tags(writer, tagged, value.unknown_tags, flexible=self.compact)

    def read_replica_state(self, reader: Reader) -> ReplicaState:
        value: ReplicaState = _new(ReplicaState)
        value.replica_id = reader.int32()
        value.replica_epoch = reader.int64()
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_replica_state(self, writer: Writer, value: ReplicaState) -> None:
        writer.int32(value.replica_id)
        writer.int64(value.replica_epoch)
        write_unknown_tags(writer, value.unknown_tags, flexible=self.compact)

    def read_fetch_topic(self, reader: Reader) -> FetchTopic:
        value: FetchTopic = _new(FetchTopic)
        if self.version <= 12:
            value.topic = reader.string(self.compact)
        else:
            value.topic = ""
        if self.version >= 13:
            value.topic_id = reader.uuid()
        else:
            value.topic_id = ZERO_UUID
        value.partitions = [self.read_fetch_partition(reader) for _ in range(reader.count(self.compact))]
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_fetch_topic(self, writer: Writer, value: FetchTopic) -> None:
        if self.version <= 12:
            writer.string(value.topic, self.compact)
        if self.version >= 13:
            writer.uuid(value.topic_id)
        writer.count(value.partitions, self.compact)
        for fetch_partition in value.partitions:
            self.write_fetch_partition(writer, fetch_partition)
        write_unknown_tags(writer, value.unknown_tags, flexible=self.compact)

    def read_fetch_partition(self, reader: Reader) -> FetchPartition:
        value: FetchPartition = _new(FetchPartition)
        value.partition = reader.int32()
        if self.version >= 9:
            value.current_leader_epoch = reader.int32()
        else:
            value.current_leader_epoch = -1
        value.fetch_offset = reader.int64()
        if self.version >= 12:
            value.last_fetched_epoch = reader.int32()
        else:
            value.last_fetched_epoch = -1
        if self.version >= 5:
            value.log_start_offset = reader.int64()
        else:
            value.log_start_offset = -1
        value.partition_max_bytes = reader.int32()
        value.replica_directory_id = ZERO_UUID
        value.high_watermark = 9223372036854775807
        value.unknown_tags = self.read_fetch_partition_tags(reader, value) if self.compact else ()
        return value

    def read_fetch_partition_tags(self, reader: Reader, value: FetchPartition) -> Tags:
        unknown: list[UnknownTag] = []
        for _ in range(reader.tag_count()):
            tag = reader.varint_int32()
            size_bytes = reader.varint_int32()
            if tag == 0 and self.version >= 17:
                value.replica_directory_id = reader.uuid()
            elif tag == 0:
                raise misplaced(0, int(self.version))
            elif tag == 1 and self.version >= 18:
                value.high_watermark = reader.int64()
            elif tag == 1:
                raise misplaced(1, int(self.version))
            else:
                unknown.append(UnknownTag(int(tag), reader.take(size_bytes)))
        return unknown or ()

    def write_fetch_partition(self, writer: Writer, value: FetchPartition) -> None:
        writer.int32(value.partition)
        if self.version >= 9:
            writer.int32(value.current_leader_epoch)
        writer.int64(value.fetch_offset)
        if self.version >= 12:
            writer.int32(value.last_fetched_epoch)
        elif value.last_fetched_epoch != -1:
            raise lacking("last_fetched_epoch", int(self.version))
        if self.version >= 5:
            writer.int64(value.log_start_offset)
        writer.int32(value.partition_max_bytes)
        tagged: list[tuple[int, bytes]] = []
        if value.replica_directory_id != ZERO_UUID:
            nested = Writer()
            nested.uuid(value.replica_directory_id)
            tagged.append((0, nested.merged.getvalue()))
        if value.high_watermark != 9223372036854775807:
            nested = Writer()
            nested.int64(value.high_watermark)
            tagged.append((1, nested.merged.getvalue()))
        write_tags(writer, tagged, value.unknown_tags, flexible=self.compact)

    def read_forgotten_topic(self, reader: Reader) -> ForgottenTopic:
        value: ForgottenTopic = _new(ForgottenTopic)
        if self.version <= 12:
            value.topic = reader.string(self.compact)
        else:
            value.topic = ""
        if self.version >= 13:
            value.topic_id = reader.uuid()
        else:
            value.topic_id = ZERO_UUID
        value.partitions = [reader.int32() for _ in range(reader.count(self.compact))]
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_forgotten_topic(self, writer: Writer, value: ForgottenTopic) -> None:
        if self.version <= 12:
            writer.string(value.topic, self.compact)
        if self.version >= 13:
            writer.uuid(value.topic_id)
        writer.count(value.partitions, self.compact)
        for item in value.partitions:
            writer.int32(item)
        write_unknown_tags(writer, value.unknown_tags, flexible=self.compact)

    def is_replica_state_set(self, value: ReplicaState) -> bool:
        return bool(value.replica_id != -1 or value.replica_epoch != -1 or value.unknown_tags)


class FetchResponseCodec(Codec):
    """FetchResponse in one version."""

    def __init__(self, version: int) -> None:
        self.version: i64 = version
        self.compact = version >= 12
        self.holds_records = True

    def read(self, reader: Reader) -> object:
        return self.read_fetch_response(reader)

    def write(self, writer: Writer, value: Any) -> None:
        self.write_fetch_response(writer, value)

    def read_fetch_response(self, reader: Reader) -> FetchResponse:
        value: FetchResponse = _new(FetchResponse)
        value.throttle_time_ms = reader.int32()
        if self.version >= 7:
            value.error_code = reader.int16()
            value.session_id = reader.int32()
        else:
            value.error_code = 0
            value.session_id = 0
        value.responses = [self.read_fetchable_topic_response(reader) for _ in range(reader.count(self.compact))]
        value.node_endpoints = []
        value.unknown_tags = self.read_fetch_response_tags(reader, value) if self.compact else ()
        return value

    def read_fetch_response_tags(self, reader: Reader, value: FetchResponse) -> Tags:
        unknown: list[UnknownTag] = []
        for _ in range(reader.tag_count()):
            tag = reader.varint_int32()
            size_bytes = reader.varint_int32()
            if tag == 0 and self.version >= 16:
                value.node_endpoints = [self.read_node_endpoint(reader) for _ in range(reader.count(self.compact))]
            elif tag == 0:
                raise misplaced(0, int(self.version))
            else:
                unknown.append(UnknownTag(int(tag), reader.take(size_bytes)))
        return unknown or ()

    def write_fetch_response(self, writer: Writer, value: FetchResponse) -> None:
        writer.int32(value.throttle_time_ms)
        if self.version >= 7:
            writer.int16(value.error_code)
            writer.int32(value.session_id)
        elif value.session_id:
            raise lacking("session_id", int(self.version))
        writer.count(value.responses, self.compact)
        for fetchable_topic_response in value.responses:
            self.write_fetchable_topic_response(writer, fetchable_topic_response)
        tagged: list[tuple[int, bytes]] = []
        if value.node_endpoints:
            if not (self.version >= 16):
                raise lacking("node_endpoints", int(self.version))
            nested = Writer()
            nested.count(value.node_endpoints, self.compact)
            for node_endpoint in value.node_endpoints:
                self.write_node_endpoint(nested, node_endpoint)
            tagged.append((0, nested.merged.getvalue()))
        write_tags(writer, tagged, value.unknown_tags, flexible=self.compact)

    def read_fetchable_topic_response(self, reader: Reader) -> FetchableTopicResponse:
        value: FetchableTopicResponse = _new(FetchableTopicResponse)
        if self.version <= 12:
            value.topic = reader.string(self.compact)
        else:
            value.topic = ""
        if self.version >= 13:
            value.topic_id = reader.uuid()
        else:
            value.topic_id = ZERO_UUID
        value.partitions = [self.read_partition_data(reader) for _ in range(reader.count(self.compact))]
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_fetchable_topic_response(self, writer: Writer, value: FetchableTopicResponse) -> None:
        if self.version <= 12:
            writer.string(value.topic, self.compact)
        if self.version >= 13:
            writer.uuid(value.topic_id)
        writer.count(value.partitions, self.compact)
        for partition_data in value.partitions:
            self.write_partition_data(writer, partition_data)
        write_unknown_tags(writer, value.unknown_tags, flexible=self.compact)

    def read_partition_data(self, reader: Reader) -> PartitionData:
        value: PartitionData = _new(PartitionData)
        value.partition_index = reader.int32()
        value.error_code = reader.int16()
        value.high_watermark = reader.int64()
        value.last_stable_offset = reader.int64()
        if self.version >= 5:
            value.log_start_offset = reader.int64()
        else:
            value.log_start_offset = -1
        value.aborted_transactions = None
        count = reader.nullable_count(self.compact)
        if count >= 0:
            value.aborted_transactions = [self.read_aborted_transaction(reader) for _ in range(count)]
        if self.version >= 11:
            value.preferred_read_replica = reader.int32()
        else:
            value.preferred_read_replica = -1
        value.records = reader.nullable_records(self.compact)
        value.diverging_epoch = new_epoch_end_offset()
        value.current_leader = new_leader_id_and_epoch()
        value.snapshot_id = new_snapshot_id()
        value.unknown_tags = self.read_partition_data_tags(reader, value) if self.compact else ()
        return value

    def read_partition_data_tags(self, reader: Reader, value: PartitionData) -> Tags:
        unknown: list[UnknownTag] = []
        for _ in range(reader.tag_count()):
            tag = reader.varint_int32()
            size_bytes = reader.varint_int32()
            if tag == 0:
                value.diverging_epoch = self.read_epoch_end_offset(reader)
            elif tag == 1:
                value.current_leader = self.read_leader_id_and_epoch(reader)
            elif tag == 2:
                value.snapshot_id = self.read_snapshot_id(reader)
            else:
                unknown.append(UnknownTag(int(tag), reader.take(size_bytes)))
        return unknown or ()

    def write_partition_data(self, writer: Writer, value: PartitionData) -> None:
        writer.int32(value.partition_index)
        writer.int16(value.error_code)
        writer.int64(value.high_watermark)
        writer.int64(value.last_stable_offset)
        if self.version >= 5:
            writer.int64(value.log_start_offset)
        writer.nullable_count(value.aborted_transactions, self.compact)
        for aborted_transaction in value.aborted_transactions or ():
            self.write_aborted_transaction(writer, aborted_transaction)
        if self.version >= 11:
            writer.int32(value.preferred_read_replica)
        elif value.preferred_read_replica != -1:
            raise lacking("preferred_read_replica", int(self.version))
        writer.nullable_records(value.records, self.compact)
        tagged: list[tuple[int, bytes]] = []
        if self.is_epoch_end_offset_set(value.diverging_epoch):
            if not (self.version >= 12):
                raise lacking("diverging_epoch", int(self.version))
            nested = Writer()
            self.write_epoch_end_offset(nested, value.diverging_epoch)
            tagged.append((0, nested.merged.getvalue()))
        if self.is_leader_id_and_epoch_set(value.current_leader):
            if not (self.version >= 12):
                raise lacking("current_leader", int(self.version))
            nested = Writer()
            self.write_leader_id_and_epoch(nested, value.current_leader)
            tagged.append((1, nested.merged.getvalue()))
        if self.is_snapshot_id_set(value.snapshot_id):
            if not (self.version >= 12):
                raise lacking("snapshot_id", int(self.version))
            nested = Writer()
            self.write_snapshot_id(nested, value.snapshot_id)
            tagged.append((2, nested.merged.getvalue()))
        write_tags(writer, tagged, value.unknown_tags, flexible=self.compact)

    def read_epoch_end_offset(self, reader: Reader) -> EpochEndOffset:
        value: EpochEndOffset = _new(EpochEndOffset)
        value.epoch = reader.int32()
        value.end_offset = reader.int64()
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_epoch_end_offset(self, writer: Writer, value: EpochEndOffset) -> None:
        writer.int32(value.epoch)
        writer.int64(value.end_offset)
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

    def read_snapshot_id(self, reader: Reader) -> SnapshotId:
        value: SnapshotId = _new(SnapshotId)
        value.end_offset = reader.int64()
        value.epoch = reader.int32()
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_snapshot_id(self, writer: Writer, value: SnapshotId) -> None:
        writer.int64(value.end_offset)
        writer.int32(value.epoch)
        write_unknown_tags(writer, value.unknown_tags, flexible=self.compact)

    def read_aborted_transaction(self, reader: Reader) -> AbortedTransaction:
        value: AbortedTransaction = _new(AbortedTransaction)
        value.producer_id = reader.int64()
        value.first_offset = reader.int64()
        value.unknown_tags = read_unknown_tags(reader) if self.compact else ()
        return value

    def write_aborted_transaction(self, writer: Writer, value: AbortedTransaction) -> None:
        writer.int64(value.producer_id)
        writer.int64(value.first_offset)
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

    def is_epoch_end_offset_set(self, value: EpochEndOffset) -> bool:
        return bool(value.epoch != -1 or value.end_offset != -1 or value.unknown_tags)

    def is_leader_id_and_epoch_set(self, value: LeaderIdAndEpoch) -> bool:
        return bool(value.leader_id != -1 or value.leader_epoch != -1 or value.unknown_tags)

    def is_snapshot_id_set(self, value: SnapshotId) -> bool:
        return bool(value.end_offset != -1 or value.epoch != -1 or value.unknown_tags)
