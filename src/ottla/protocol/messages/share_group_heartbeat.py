"""ShareGroupHeartbeat: all that a member of a share group says (KIP-932; API key 76)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int16, int32, string, struct, uuid


class ShareGroupHeartbeatRequest(Message, key=76, versions="1", flexible="1+"):
    """A member joins (epoch 0), reports, changes or leaves (epoch -1). Version 0 was a preview."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    rack_id: str | None = string(nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = array(string, nullable="0+", default=None)


class TopicPartitions(Struct):
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupHeartbeatResponse(Message, key=76, versions="1", flexible="1+"):
    """The member's epoch and, when it changed, its assignment."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct(Assignment, nullable="0+", default=None)
