"""ElectLeaders: have leaders elected anew (API key 43)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int8, int16, int32, string


class TopicPartitions(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


class ElectLeadersRequest(Message, key=43, versions="0-2", flexible="2+"):
    """Partitions, null for all. Version 1 can ask for an unclean election (KIP-460)."""

    election_type: int = int8("1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+")
    timeout_ms: int = int32(default=60000)


class PartitionResult(Struct):
    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class ReplicaElectionResult(Struct):
    topic: str = string()
    partition_result: list[PartitionResult] = array(PartitionResult)


class ElectLeadersResponse(Message, key=43, versions="0-2", flexible="2+"):
    """What became of each partition. Version 1 adds an error for the whole answer."""

    throttle_time_ms: int = int32()
    error_code: int = int16("1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
