"""A member of a consumer group (KIP-848): what it said of itself, and how far it has got with its assignment.

A value; every change makes another one. Also what a member is as records: `ConsumerGroupMemberMetadata` has the first
half, `ConsumerGroupCurrentMemberAssignment` the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from ottla.broker.groups.assignors import Assignment, TopicIdPartition
from ottla.broker.groups.requests import AssignmentProtocol
from ottla.model import TopicId
from ottla.protocol.internal.framing import CoordinatorRecord
from ottla.protocol.internal.group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    TopicPartitions,
)

JOIN_EPOCH: Final = 0
"""Sent by who wants to join; the epoch of a member before it has an assignment."""
LEAVE_EPOCH: Final = -1
"""Sent by who leaves for good."""
STATIC_LEAVE_EPOCH: Final = -2
"""Sent by a static member that will come back, and its epoch until then."""

VALUE_VERSION: Final = 0


class MemberState(IntEnum):
    """Where a member is on its way to its target, as stored."""

    STABLE = 0
    """It has what it was to have when its epoch began."""
    UNREVOKED_PARTITIONS = 1
    """It was told to give partitions up and has not said yet that it did."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others have still."""
    UNKNOWN = 127
    """Written by a newer Kafka."""

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """What is kept of a member that speaks JoinGroup and SyncGroup (live migration, KIP-848)."""

    session_timeout_ms: int
    protocols: tuple[AssignmentProtocol, ...]


Epochs = Mapping[TopicIdPartition, int]
"""Partitions, each with the member epoch that it was given in (KIP-1251)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """One member. `assigned` it may read, `pending_revocation` it must give up first; nobody else may have either."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topics: frozenset[str] = frozenset()
    subscribed_pattern: str = ""
    server_assignor: str | None = None
    classic: ClassicMember | None = None
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Epochs = field(default_factory=dict)
    pending_revocation: Epochs = field(default_factory=dict)

    @property
    def has_left_for_now(self) -> bool:
        """True for a static member that said it will come back."""
        return self.member_epoch == STATIC_LEAVE_EPOCH

    @property
    def partitions(self) -> list[TopicIdPartition]:
        """All that nobody else may have because of this member."""
        return [*self.assigned, *self.pending_revocation]

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def may_commit(self, partition: TopicIdPartition, epoch: int) -> bool:
        """Say whether a commit that was sent in an earlier epoch is for a partition that it has had ever since."""
        given_epoch = self.assigned.get(partition)
        return given_epoch is not None and given_epoch <= epoch <= self.member_epoch

    # -- records --------------------------------------------------------------------------------------------------

    def subscription_record(self, group_id: str) -> CoordinatorRecord:
        """Return the record of what the member said of itself."""
        classic = self.classic
        value = ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.subscribed_topics),
            subscribed_topic_regex=self.subscribed_pattern,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=None
            if classic is None
            else ClassicMemberMetadata(
                session_timeout_ms=classic.session_timeout_ms,
                supported_protocols=[ClassicProtocol(name=name, metadata=data) for name, data in classic.protocols],
            ),
        )
        key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=self.member_id)
        return CoordinatorRecord(key, value, VALUE_VERSION)

    def assignment_record(self, group_id: str) -> CoordinatorRecord:
        """Return the record of the member's epochs and partitions."""
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=self.state,
            assigned_partitions=_topic_partitions(self.assigned),
            partitions_pending_revocation=_topic_partitions(self.pending_revocation),
        )
        key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=self.member_id)
        return CoordinatorRecord(key, value, VALUE_VERSION)

    def with_subscription(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        """Return the member as a record says that it is."""
        classic = value.classic_member_metadata
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            subscribed_topics=frozenset(value.subscribed_topic_names),
            subscribed_pattern=value.subscribed_topic_regex or "",
            server_assignor=value.server_assignor,
            classic=None
            if classic is None
            else ClassicMember(
                classic.session_timeout_ms,
                tuple(AssignmentProtocol(one.name, one.metadata) for one in classic.supported_protocols),
            ),
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        """Return the member with the epochs and partitions of a record."""
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=_epochs(value.assigned_partitions, value.member_epoch),
            pending_revocation=_epochs(value.partitions_pending_revocation, value.member_epoch),
        )


def by_topic(partitions: Iterable[TopicIdPartition]) -> dict[TopicId, list[int]]:
    """Return the numbers of partitions by topic, both in order."""
    topics: dict[TopicId, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        topics.setdefault(topic_id, []).append(partition)
    return topics


def of_topics(topics: Iterable[tuple[bytes, Iterable[int]]]) -> Assignment:
    """Return partitions that are given by topic."""
    return frozenset(TopicIdPartition(TopicId(topic_id), number) for topic_id, numbers in topics for number in numbers)


def _topic_partitions(epochs: Epochs) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=numbers,
            assignment_epochs=[epochs[TopicIdPartition(topic_id, number)] for number in numbers],
        )
        for topic_id, numbers in by_topic(epochs).items()
    ]


def _epochs(topics: Sequence[TopicPartitions], member_epoch: int) -> dict[TopicIdPartition, int]:
    """Return partitions with their epochs; before Kafka 4.3 none were stored, and the member's own stands for them."""
    epochs: dict[TopicIdPartition, int] = {}
    for topic in topics:
        given = topic.assignment_epochs or [member_epoch] * len(topic.partitions)
        for number, epoch in zip(topic.partitions, given, strict=False):
            epochs[TopicIdPartition(TopicId(topic.topic_id), number)] = epoch
    return epochs
