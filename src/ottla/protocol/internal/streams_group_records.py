"""Streams groups in `__consumer_offsets`: keys 17 to 23 (KIP-1071)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int8, int16, int32, int64, string, struct, uint16


class StreamsGroupMetadataKey(Message, key=17, versions="0"):
    """The id of a streams group."""

    group_id: str = string()


class LastAssignmentConfig(Struct):
    key: str = string()
    value: str = string()


class StreamsGroupMetadataValue(Message, key=17, versions="0", flexible="0+"):
    """A streams group's epoch and what its assignment depends on."""

    epoch: int = int32()
    metadata_hash: int = int64()
    validated_topology_epoch: int = int32(default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = array(LastAssignmentConfig, nullable="0+", tag=1)
    stored_description_topology_epoch: int = int32(default=-1, tag=2)
    failed_description_topology_epoch: int = int32(default=-1, tag=3)


class StreamsGroupMemberMetadataKey(Message, key=19, versions="0"):
    """A member of a streams group."""

    group_id: str = string()
    member_id: str = string()


class Endpoint(Struct):
    host: str = string()
    port: int = uint16()


class KeyValue(Struct):
    key: str = string()
    value: str = string()


class StreamsGroupMemberMetadataValue(Message, key=19, versions="0", flexible="0+"):
    """What a member of a streams group said of itself."""

    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout_ms: int = int32(default=-1)
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = struct(Endpoint, nullable="0+", default=None)
    client_tags: list[KeyValue] = array(KeyValue)


class StreamsGroupTargetAssignmentMetadataKey(Message, key=20, versions="0"):
    """The id of a streams group whose assignment was computed."""

    group_id: str = string()


class StreamsGroupTargetAssignmentMetadataValue(Message, key=20, versions="0", flexible="0+"):
    """The group epoch that the target assignment is for, and when it was computed."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


class StreamsGroupTargetAssignmentMemberKey(Message, key=21, versions="0"):
    """A member of a streams group in its target assignment."""

    group_id: str = string()
    member_id: str = string()


class StreamsGroupTargetAssignmentMemberValueTaskIds(Struct):
    subtopology_id: str = string()
    partitions: list[int] = array(int32)


class StreamsGroupTargetAssignmentMemberValue(Message, key=21, versions="0", flexible="0+"):
    """The tasks that a member shall have in the end."""

    active_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = array(
        StreamsGroupTargetAssignmentMemberValueTaskIds
    )
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = array(
        StreamsGroupTargetAssignmentMemberValueTaskIds
    )
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = array(
        StreamsGroupTargetAssignmentMemberValueTaskIds
    )


class StreamsGroupCurrentMemberAssignmentKey(Message, key=22, versions="0"):
    """A member of a streams group in its present assignment."""

    group_id: str = string()
    member_id: str = string()


class StreamsGroupCurrentMemberAssignmentValueTaskIds(Struct):
    subtopology_id: str = string()
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(int32, nullable="0+", tag=0)


class StreamsGroupCurrentMemberAssignmentValue(Message, key=22, versions="0", flexible="0+"):
    """A member's epochs, and the tasks that it has or must give up first."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds
    )
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds
    )
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds
    )
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds
    )
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds
    )
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds
    )


class StreamsGroupTopologyKey(Message, key=23, versions="0"):
    """The id of a streams group whose topology is known."""

    group_id: str = string()


class TopicConfig(Struct):
    key: str = string()
    value: str = string()


class TopicInfo(Struct):
    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[TopicConfig] = array(TopicConfig)


class CopartitionGroup(Struct):
    source_topics: list[int] = array(int16)
    source_topic_regex: list[int] = array(int16)
    repartition_source_topics: list[int] = array(int16)


class Subtopology(Struct):
    subtopology_id: str = string()
    source_topics: list[str] = array(string)
    source_topic_regex: list[str] = array(string)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_sink_topics: list[str] = array(string)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


class StreamsGroupTopologyValue(Message, key=23, versions="0", flexible="0+"):
    """A streams group's topology: what each subtopology reads, keeps and repartitions."""

    epoch: int = int32()
    subtopologies: list[Subtopology] = array(Subtopology)
