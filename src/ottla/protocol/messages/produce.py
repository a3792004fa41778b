"""Produce: append record batches to partitions (API key 0)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Records, Struct, array, int16, int32, int64, record_set, string, struct, uuid


class PartitionProduceData(Struct):
    index: int = int32()
    records: Records | None = record_set(nullable="0+")


class TopicProduceData(Struct):
    name: str = string("3-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


class ProduceRequest(Message, key=0, versions="3-13", flexible="9+"):
    """Record batches for partitions, as the producer packed them.

    `acks` is 0 (no answer), 1 (the leader has it) or -1 (it is as durable as the topic asks). Versions up to 2, with
    older record formats, are gone; they are announced all the same, since librdkafka looks for them. Version 9 is
    flexible; 12 marks clients that add partitions to transactions by producing (KIP-890); 13 names topics by id
    (KIP-516).
    """

    transactional_id: str | None = string(nullable="0+", default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = int32()
    batch_index_error_message: str | None = string(nullable="0+", default=None)


class LeaderIdAndEpoch(Struct):
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


class PartitionProduceResponse(Struct):
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(default=-1)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, "8+", ignorable=True)
    error_message: str | None = string("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "10+", tag=0)


class TopicProduceResponse(Struct):
    name: str = string("3-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


class NodeEndpoint(Struct):
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


class ProduceResponse(Message, key=0, versions="3-13", flexible="9+"):
    """Where each partition's records were put, or why not.

    Version 5 adds the log's start; 8 errors of single records and a text (KIP-467); 10 the present leader where the
    asked broker is none, with its address (KIP-951); 13 names topics by id.
    """

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32()
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0)
