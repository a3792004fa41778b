"""A consumer group as administrators see it: epochs, members, what they have and what they shall have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.broker.groups.assignors import TopicIdPartition
from ottla.broker.groups.consumer import ConsumerGroup
from ottla.broker.groups.consumer_member import ConsumerMember, by_topic
from ottla.broker.groups.group_settings import GroupSettings
from ottla.broker.groups.group_topics import GroupTopics
from ottla.model import TopicId


class AssignedTopic(NamedTuple):
    """Partitions of one topic."""

    topic_id: TopicId
    name: str
    partitions: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    """A member. `assigned` includes what it was told to give up and may still read."""

    member: ConsumerMember
    assigned: Sequence[AssignedTopic]
    target: Sequence[AssignedTopic]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConsumerGroup:
    """A group as of now; members in the order of their ids."""

    group: ConsumerGroup
    assignor_name: str
    members: Sequence[DescribedMember]


def describe_consumer_group(
    group: ConsumerGroup, topics: GroupTopics, settings: GroupSettings
) -> DescribedConsumerGroup:
    """Return a group with names instead of ids; topics that are gone are left out."""
    return DescribedConsumerGroup(
        group=group,
        assignor_name=group.choose_assignor(settings.assignors[0]),
        members=[
            DescribedMember(
                member=member,
                assigned=_assigned_topics(member.partitions, topics),
                target=_assigned_topics(group.target_of(member_id), topics),
            )
            for member_id, member in sorted(group.members.items())
        ],
    )


def _assigned_topics(partitions: Iterable[TopicIdPartition], topics: GroupTopics) -> list[AssignedTopic]:
    return [
        AssignedTopic(topic_id, name, numbers)
        for topic_id, numbers in by_topic(partitions).items()
        if (name := topics.name_of(topic_id)) is not None
    ]
