"""ListOffsets: find the offset for a time, or an end of a log (API key 2)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int8, int16, int32, int64, string


class ListOffsetsPartition(Struct):
    partition_index: int = int32()
    current_leader_epoch: int = int32("4+", default=-1, ignorable=True)
    timestamp: int = int64()


class ListOffsetsTopic(Struct):
    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


class ListOffsetsRequest(Message, key=2, versions="1-11", flexible="6+"):
    """Timestamps to look up per partition; negative ones are special (earliest, latest, greatest timestamp ...).

    Version 2 adds the isolation level; 4 the leader epoch (KIP-320); 7 the greatest timestamp (KIP-734); 8 the local
    log's start; 9 the last tiered offset; 10 a timeout for slow remote look-ups; 11 the earliest offset yet to be
    tiered.
    """

    replica_id: int = int32()
    isolation_level: int = int8("2+")
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32("10+", ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    timestamp: int = int64(default=-1)
    offset: int = int64(default=-1)
    leader_epoch: int = int32("4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


class ListOffsetsResponse(Message, key=2, versions="1-11", flexible="6+"):
    """One offset with its timestamp per partition. Version 2 adds the throttle time; 4 the leader epoch
    of the offset.
    """

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
