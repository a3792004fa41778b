"""What consumers of a classic group tell each other through JoinGroup and SyncGroup.

Brokers look into subscriptions only to see which topics a group needs. The version stands in front.
"""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int32, octets, string


class ConsumerProtocolSubscriptionTopicPartition(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


class ConsumerProtocolSubscription(Message, versions="0-3"):
    """The topics that one member wants.

    Version 1 adds the partitions that it owns (KIP-429); 2 the generation they are from; 3 its rack (KIP-881).
    """

    topics: list[str] = array(string)
    user_data: bytes | None = octets(nullable="0+", default=None)
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = array(
        ConsumerProtocolSubscriptionTopicPartition, "1+", ignorable=True
    )
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)


class ConsumerProtocolAssignmentTopicPartition(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


class ConsumerProtocolAssignment(Message, versions="0-3"):
    """The partitions that one member gets. All versions have the same layout."""

    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = array(
        ConsumerProtocolAssignmentTopicPartition
    )
    user_data: bytes | None = octets(nullable="0+", default=None)
