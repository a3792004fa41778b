"""DeleteShareGroupState: drop a share partition's stored state (KIP-932; API key 86)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int16, int32, string, uuid


class PartitionData(Struct):
    partition: int = int32()


class DeleteStateData(Struct):
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class DeleteShareGroupStateRequest(Message, key=86, versions="0", flexible="0+"):
    """Partitions to drop, sent between brokers."""

    group_id: str = string()
    topics: list[DeleteStateData] = array(DeleteStateData)


class PartitionResult(Struct):
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class DeleteStateResult(Struct):
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class DeleteShareGroupStateResponse(Message, key=86, versions="0", flexible="0+"):
    """What became of each partition."""

    results: list[DeleteStateResult] = array(DeleteStateResult)
