"""The subscriptions and assignments that consumers of classic groups exchange, as a broker reads and writes them.

Brokers look into them only where such consumers are in one group with members of the new protocol.
"""

from __future__ import annotations

from ottla.broker.groups.assignors import Assignment
from ottla.broker.groups.consumer_member import by_topic, of_topics
from ottla.broker.groups.group_topics import GroupTopics
from ottla.errors import UnsupportedVersion
from ottla.protocol.internal.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from ottla.protocol.internal.framing import INT16_BYTES, decode_versioned, encode_versioned
from ottla.protocol.primitives import DecodeError


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Raises `DecodeError` for what is no subscription of a consumer."""
    try:
        return decode_versioned(ConsumerProtocolSubscription, data)
    except UnsupportedVersion as error:
        raise DecodeError(str(error)) from None


def owned_partitions(subscription: ConsumerProtocolSubscription, topics: GroupTopics) -> Assignment:
    """Return what a subscription says that its sender owns, as far as the topics are there."""
    return of_topics(
        (topic.topic_id, owned.partitions)
        for owned in subscription.owned_partitions
        if (topic := topics.by_name(owned.topic)) is not None
    )


def decode_assignment(data: bytes, topics: GroupTopics) -> Assignment:
    """Return the partitions of an assignment whose topics are there. Raises `DecodeError`."""
    try:
        assignment = decode_versioned(ConsumerProtocolAssignment, data)
    except UnsupportedVersion as error:
        raise DecodeError(str(error)) from None
    return of_topics(
        (topic.topic_id, assigned.partitions)
        for assigned in assignment.assigned_partitions
        if (topic := topics.by_name(assigned.topic)) is not None
    )


def encode_assignment(partitions: Assignment, subscription: bytes, topics: GroupTopics) -> bytes:
    """Return an assignment in the version in which its receiver subscribed."""
    named = {topics.name_of(topic_id): numbers for topic_id, numbers in by_topic(partitions).items()}
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=numbers)
            for name, numbers in named.items()
            if name is not None
        ]
    )
    version = int.from_bytes(subscription[:INT16_BYTES], "big", signed=True)
    return encode_versioned(assignment, min(version, ConsumerProtocolAssignment.SCHEMA.versions.highest))
