"""Share groups in `__consumer_offsets`: keys 10 to 15 (KIP-932)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int8, int32, int64, string, uuid


class ShareGroupMemberMetadataKey(Message, key=10, versions="0"):
    """A member of a share group."""

    group_id: str = string()
    member_id: str = string()


class ShareGroupMemberMetadataValue(Message, key=10, versions="0", flexible="0+"):
    """What a member of a share group said of itself."""

    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)


class ShareGroupMetadataKey(Message, key=11, versions="0"):
    """The id of a share group."""

    group_id: str = string()


class ShareGroupMetadataValue(Message, key=11, versions="0", flexible="0+"):
    """A share group's epoch and a hash of what its assignment depends on."""

    epoch: int = int32()
    metadata_hash: int = int64()


class ShareGroupTargetAssignmentMetadataKey(Message, key=12, versions="0"):
    """The id of a share group whose assignment was computed."""

    group_id: str = string()


class ShareGroupTargetAssignmentMetadataValue(Message, key=12, versions="0", flexible="0+"):
    """The group epoch that the target assignment is for, and when it was computed."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


class ShareGroupTargetAssignmentMemberKey(Message, key=13, versions="0"):
    """A member of a share group in its target assignment."""

    group_id: str = string()
    member_id: str = string()


class TopicPartition(Struct):
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


class ShareGroupTargetAssignmentMemberValue(Message, key=13, versions="0", flexible="0+"):
    """The partitions that a member of a share group shall have."""

    topic_partitions: list[TopicPartition] = array(TopicPartition)


class ShareGroupCurrentMemberAssignmentKey(Message, key=14, versions="0"):
    """A member of a share group in its present assignment."""

    group_id: str = string()
    member_id: str = string()


class TopicPartitions(Struct):
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


class ShareGroupCurrentMemberAssignmentValue(Message, key=14, versions="0", flexible="0+"):
    """A share group member's epochs and partitions."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupStatePartitionMetadataKey(Message, key=15, versions="0"):
    """The id of a share group whose partitions have stored state."""

    group_id: str = string()


class TopicPartitionsInfo(Struct):
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class TopicInfo(Struct):
    topic_id: bytes = uuid()
    topic_name: str = string()


class ShareGroupStatePartitionMetadataValue(Message, key=15, versions="0", flexible="0+"):
    """Partitions whose state is being initialized, is there, or is being deleted."""

    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    deleting_topics: list[TopicInfo] = array(TopicInfo)
