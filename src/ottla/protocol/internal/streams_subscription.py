"""What members of Kafka Streams tell each other in the user data of a classic group's subscription."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int8, int32, int64, octets, string, uuid


class TaskId(Struct):
    topic_group_id: int = int32()
    partition: int = int32()


class PartitionToOffsetSum(Struct):
    partition: int = int32()
    offset_sum: int = int64()


class TaskOffsetSum(Struct):
    topic_group_id: int = int32()
    partition: int = int32("10+")
    offset_sum: int = int64("10+")
    named_topology: str | None = string("10+", nullable="10+")
    partition_to_offset_sum: list[PartitionToOffsetSum] = array(PartitionToOffsetSum, "7-9")


class ClientTag(Struct):
    key: bytes = octets()
    value: bytes = octets()


class SubscriptionInfoData(Message, versions="1-11"):
    """Tasks and their offsets, as Streams' own assignor needs them. It stands in the user data of subscriptions."""

    version: int = int32()
    latest_supported_version: int = int32("3+", default=-1)
    process_id: bytes = uuid()
    prev_tasks: list[TaskId] = array(TaskId, "1-6")
    standby_tasks: list[TaskId] = array(TaskId, "1-6")
    user_end_point: bytes = octets("2+")
    task_offset_sums: list[TaskOffsetSum] = array(TaskOffsetSum, "7+")
    unique_field: int = int8("8+")
    error_code: int = int32("9+")
    client_tags: list[ClientTag] = array(ClientTag, "11+")
