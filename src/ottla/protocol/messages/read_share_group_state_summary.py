"""ReadShareGroupStateSummary: only the start of a share partition's state (KIP-932; API key 87)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int16, int32, int64, string, uuid


class PartitionData(Struct):
    partition: int = int32()
    leader_epoch: int = int32()


class ReadStateSummaryData(Struct):
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class ReadShareGroupStateSummaryRequest(Message, key=87, versions="0-1", flexible="0+"):
    """Partitions and the leader epoch of who asks, sent between brokers."""

    group_id: str = string()
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)


class PartitionResult(Struct):
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)


class ReadStateSummaryResult(Struct):
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class ReadShareGroupStateSummaryResponse(Message, key=87, versions="0-1", flexible="0+"):
    """Epochs and start offset. Version 1 adds how many deliveries are complete (KIP-1226)."""

    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)
