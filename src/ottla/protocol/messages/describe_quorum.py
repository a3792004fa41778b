"""DescribeQuorum: who votes in the metadata quorum, and how far they are (KIP-595; API key 55)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int16, int32, int64, string, uint16, uuid


class DescribeQuorumRequestPartitionData(Struct):
    partition_index: int = int32()


class DescribeQuorumRequestTopicData(Struct):
    topic_name: str = string()
    partitions: list[DescribeQuorumRequestPartitionData] = array(DescribeQuorumRequestPartitionData)


class DescribeQuorumRequest(Message, key=55, versions="0-2", flexible="0+"):
    """Partitions of the metadata log."""

    topics: list[DescribeQuorumRequestTopicData] = array(DescribeQuorumRequestTopicData)


class ReplicaState(Struct):
    replica_id: int = int32()
    replica_directory_id: bytes = uuid("2+")
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = int64("1+", default=-1, ignorable=True)


class DescribeQuorumResponsePartitionData(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


class DescribeQuorumResponseTopicData(Struct):
    topic_name: str = string()
    partitions: list[DescribeQuorumResponsePartitionData] = array(DescribeQuorumResponsePartitionData)


class Listener(Struct):
    name: str = string()
    host: str = string()
    port: int = uint16()


class Node(Struct):
    node_id: int = int32()
    listeners: list[Listener] = array(Listener)


class DescribeQuorumResponse(Message, key=55, versions="0-2", flexible="0+"):
    """Leader, voters and observers with their log ends. Version 1 adds when they last fetched (KIP-836); 2 directories
    and addresses (KIP-853).
    """

    error_code: int = int16()
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    topics: list[DescribeQuorumResponseTopicData] = array(DescribeQuorumResponseTopicData)
    nodes: list[Node] = array(Node, "2+")
