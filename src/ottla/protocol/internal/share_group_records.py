"""share_group_records."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int8, int32, int64, string, uuid


class ShareGroupMemberMetadataKey(Message, key=10, versions="0"):
    """ShareGroupMemberMetadataKey."""

    group_id: str = string()
    member_id: str = string()


class ShareGroupMemberMetadataValue(Message, key=10, versions="0", flexible="0+"):
    """ShareGroupMemberMetadataValue."""

    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)


class ShareGroupMetadataKey(Message, key=11, versions="0"):
    """ShareGroupMetadataKey."""

    group_id: str = string()


class ShareGroupMetadataValue(Message, key=11, versions="0", flexible="0+"):
    """ShareGroupMetadataValue."""

    epoch: int = int32()
    metadata_hash: int = int64()


class ShareGroupTargetAssignmentMetadataKey(Message, key=12, versions="0"):
    """ShareGroupTargetAssignmentMetadataKey."""

    group_id: str = string()


class ShareGroupTargetAssignmentMetadataValue(Message, key=12, versions="0", flexible="0+"):
    """ShareGroupTargetAssignmentMetadataValue."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


class ShareGroupTargetAssignmentMemberKey(Message, key=13, versions="0"):
    """ShareGroupTargetAssignmentMemberKey."""

    group_id: str = string()
    member_id: str = string()


class TopicPartition(Struct):
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


class ShareGroupTargetAssignmentMemberValue(Message, key=13, versions="0", flexible="0+"):
    """ShareGroupTargetAssignmentMemberValue."""

    topic_partitions: list[TopicPartition] = array(TopicPartition)


class ShareGroupCurrentMemberAssignmentKey(Message, key=14, versions="0"):
    """ShareGroupCurrentMemberAssignmentKey."""

    group_id: str = string()
    member_id: str = string()


class TopicPartitions(Struct):
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


class ShareGroupCurrentMemberAssignmentValue(Message, key=14, versions="0", flexible="0+"):
    """ShareGroupCurrentMemberAssignmentValue."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupStatePartitionMetadataKey(Message, key=15, versions="0"):
    """ShareGroupStatePartitionMetadataKey."""

    group_id: str = string()


class TopicPartitionsInfo(Struct):
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class TopicInfo(Struct):
    topic_id: bytes = uuid()
    topic_name: str = string()


class ShareGroupStatePartitionMetadataValue(Message, key=15, versions="0", flexible="0+"):
    """ShareGroupStatePartitionMetadataValue."""

    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    deleting_topics: list[TopicInfo] = array(TopicInfo)
