"""Committed offsets, classic groups and consumer groups in `__consumer_offsets`: keys 0 to 8 and 16.

A record with a null value is a tombstone for its key.
"""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int8, int32, int64, octets, string, struct, uuid


class LegacyOffsetCommitKey(Message, key=0, versions="0"):
    """A committed offset's key from the oldest releases; only read."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


class LegacyOffsetCommitValue(Message, key=0, versions="0"):
    """A committed offset from the oldest releases; only read."""

    offset: int = int64()
    metadata: str = string()
    commit_timestamp: int = int64()


class OffsetCommitKey(Message, key=1, versions="0"):
    """The group and partition that a committed offset belongs to."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Message, key=1, versions="0-4", flexible="4+"):
    """A committed offset. Version 1 alone has an expiry of its own; 3 adds the leader epoch; 4 the topic's id."""

    offset: int = int64()
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: bytes = uuid("4+", ignorable=True, tag=0)


class GroupMetadataKey(Message, key=2, versions="0"):
    """The id of a classic group."""

    group: str = string()


class MemberMetadata(Struct):
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = octets()
    assignment: bytes = octets()


class GroupMetadataValue(Message, key=2, versions="0-4", flexible="4+"):
    """A classic group's generation with all its members.

    Version 1 adds rebalance timeouts; 2 the time of the last change; 3 static members; 4 is flexible.
    """

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata)


class ConsumerGroupMetadataKey(Message, key=3, versions="0"):
    """The id of a consumer group (KIP-848)."""

    group_id: str = string()


class ConsumerGroupMetadataValue(Message, key=3, versions="0", flexible="0+"):
    """A consumer group's epoch and a hash of what its assignment depends on."""

    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


class ConsumerGroupPartitionMetadataKey(Message, key=4, versions="0"):
    """The id of a consumer group; no longer written."""

    group_id: str = string()


class PartitionMetadata(Struct):
    partition: int = int32()
    racks: list[str] = array(string)


class TopicMetadata(Struct):
    topic_id: bytes = uuid()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata)


class ConsumerGroupPartitionMetadataValue(Message, key=4, versions="0", flexible="0+"):
    """What a consumer group knew of its topics; now only removed by tombstones."""

    topics: list[TopicMetadata] = array(TopicMetadata)


class ConsumerGroupMemberMetadataKey(Message, key=5, versions="0"):
    """A member of a consumer group."""

    group_id: str = string()
    member_id: str = string()


class ClassicProtocol(Struct):
    name: str = string()
    metadata: bytes = octets()


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = int32()
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)


class ConsumerGroupMemberMetadataValue(Message, key=5, versions="0", flexible="0+"):
    """What a member said of itself; the tagged part is there for classic members only."""

    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = struct(ClassicMemberMetadata, nullable="0+", tag=0)


class ConsumerGroupTargetAssignmentMetadataKey(Message, key=6, versions="0"):
    """The id of a consumer group whose assignment was computed."""

    group_id: str = string()


class ConsumerGroupTargetAssignmentMetadataValue(Message, key=6, versions="0", flexible="0+"):
    """The group epoch that the target assignment is for, and when it was computed."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


class ConsumerGroupTargetAssignmentMemberKey(Message, key=7, versions="0"):
    """A member of a consumer group in its target assignment."""

    group_id: str = string()
    member_id: str = string()


class TopicPartition(Struct):
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


class ConsumerGroupTargetAssignmentMemberValue(Message, key=7, versions="0", flexible="0+"):
    """The partitions that a member shall have in the end."""

    topic_partitions: list[TopicPartition] = array(TopicPartition)


class ConsumerGroupCurrentMemberAssignmentKey(Message, key=8, versions="0"):
    """A member of a consumer group in its present assignment."""

    group_id: str = string()
    member_id: str = string()


class TopicPartitions(Struct):
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(int32, nullable="0+", tag=0)


class ConsumerGroupCurrentMemberAssignmentValue(Message, key=8, versions="0", flexible="0+"):
    """A member's epochs, and the partitions that it has or must give up first."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)
    partitions_pending_revocation: list[TopicPartitions] = array(TopicPartitions)


class ConsumerGroupRegularExpressionKey(Message, key=16, versions="0"):
    """A pattern that members of a consumer group subscribed to."""

    group_id: str = string()
    regular_expression: str = string()


class ConsumerGroupRegularExpressionValue(Message, key=16, versions="0", flexible="0+"):
    """The topics that a pattern matched, as of a version of the metadata."""

    topics: list[str] = array(string)
    version: int = int64()
    timestamp: int = int64()
