"""A consumer group (KIP-848): its members, its epochs, and the assignment that it is on its way to.

    Empty ──somebody joins──▶ Assigning ──a target is there──▶ Reconciling ──all have reached it──▶ Stable
                                  ▲                                │                                 │
                                  └────────the group changes───────┴─────────────────────────────────┘

State only, and all of it changes by replay: three epochs drive everything. The *group epoch* rises when members, what
they want, or topics change. The *assignment epoch* is the group epoch that the target is for. A *member epoch* is the
assignment epoch that a member has reached. What the next step is, `consumer_decisions` says; who is silent for too
long, `consumer_sessions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from ottla.broker.groups.assignors import NO_PARTITIONS, Assignment, TopicIdPartition
from ottla.broker.groups.consumer_member import ConsumerMember, by_topic, of_topics
from ottla.broker.groups.group import GroupType, MemberClaim
from ottla.broker.groups.topic_patterns import MatchedTopics, pattern_key
from ottla.errors import (
    FencedInstanceId,
    IllegalGeneration,
    KafkaError,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)
from ottla.protocol.internal.framing import CoordinatorRecord
from ottla.protocol.internal.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
)
from ottla.protocol.schema import Message

PROTOCOL_TYPE: Final = "consumer"
FIRST_EPOCH: Final = 1
"""Of a group that was never written: a member of an epoch that is not 0 is one that has joined."""
NEVER: Final = 0
UNKNOWN_VERSION: Final = -1
VALUE_VERSION: Final = 0

GROUP_KEYS: Final[tuple[type[Message], ...]] = (
    ConsumerGroupMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
)
"""Keys of the records that a consumer group consists of."""


class ConsumerState(StrEnum):
    """The states, spelled as Kafka tells them."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@dataclass(slots=True, eq=False)
class ConsumerGroup:
    """One group of the new protocol. Members of the classic protocol may be in it (live migration)."""

    group_id: str
    group_epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = NEVER
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Member ids by group instance id."""
    targets: dict[str, Assignment] = field(default_factory=dict)
    """What members shall have in the end, by member id."""
    holders: dict[TopicIdPartition, str] = field(default_factory=dict)
    """Who has a partition, or has not given it up yet."""
    patterns: dict[str, MatchedTopics] = field(default_factory=dict)
    """What the patterns of members matched."""
    hashed_version: int = UNKNOWN_VERSION
    """The version of the metadata that `metadata_hash` was last compared with. Not stored."""

    # -- what every group is --------------------------------------------------------------------------------------

    @property
    def group_type(self) -> GroupType:
        return GroupType.CONSUMER

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    @property
    def state(self) -> ConsumerState:
        if not self.members:
            return ConsumerState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerState.STABLE
        return ConsumerState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return not self.members

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in self.topics_of(member) for member in self.members.values())

    def check_offset_commit(self, claim: MemberClaim, *, is_transactional: bool) -> None:
        """Raise what a commit is refused with as a whole; an empty group takes offsets from anybody."""
        is_nobody = claim.epoch < 0 and not claim.member_id and claim.group_instance_id is None
        if (claim.epoch < 0 and self.is_empty) or (is_transactional and is_nobody):
            return
        member = self.get_member(claim.member_id)
        if member.classic is None and not is_transactional and not claim.knows_member_epochs:
            raise UnsupportedVersion("a member of a consumer group commits with its member epoch")
        if claim.epoch > member.member_epoch:
            raise _stale(member, claim.epoch)

    def check_committed_partitions(self, claim: MemberClaim, partitions: Iterable[TopicIdPartition]) -> None:
        """Raise what a commit of an earlier epoch is refused with, unless the partitions were its all the time."""
        member = self.members.get(claim.member_id)
        if member is None or claim.epoch >= member.member_epoch:
            return
        if not all(member.may_commit(partition, claim.epoch) for partition in partitions):
            raise _stale(member, claim.epoch)

    def check_offset_fetch(self, claim: MemberClaim) -> None:
        """Raise what keeps a member from reading offsets; who does not say to be one may."""
        if claim.epoch < 0 and not claim.member_id:
            return
        member = self.get_member(claim.member_id)
        if claim.epoch != member.member_epoch:
            raise _stale(member, claim.epoch)

    def check_offset_delete(self) -> None:
        """What members read is known, so that each topic is decided on its own."""

    def check_delete(self) -> None:
        if self.members:
            raise NonEmptyGroup(f"group {self.group_id} has members")

    def retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    def touch(self, member_id: str) -> None:
        """Heartbeats alone keep a member of this protocol alive."""

    def close(self) -> None:
        """Its timers are those of `consumer_sessions`."""

    # -- members --------------------------------------------------------------------------------------------------

    def get_member(self, member_id: str) -> ConsumerMember:
        """Raises `UnknownMemberId`."""
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"there is no member {member_id} in group {self.group_id}")
        return member

    def find_static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def get_static_member(self, instance_id: str, member_id: str) -> ConsumerMember:
        """Raises `UnknownMemberId`, or `FencedInstanceId` where another member has the instance's place."""
        member = self.find_static_member(instance_id)
        if member is None:
            raise UnknownMemberId(f"there is no instance {instance_id} in group {self.group_id}")
        if member.member_id != member_id:
            raise FencedInstanceId(f"member {member.member_id} has taken the place of {member_id} as {instance_id}")
        return member

    def get_claimed_member(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """Return who somebody says to be, by its instance where it has one."""
        return self.get_member(member_id) if instance_id is None else self.get_static_member(instance_id, member_id)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The names of the topics that a member wants, as far as its pattern is known to match any."""
        matched = self.patterns.get(member.subscribed_pattern)
        return member.subscribed_topics if matched is None else member.subscribed_topics | matched.topics

    def subscribed_topics(self) -> frozenset[str]:
        """The names of all topics that somebody wants."""
        return frozenset().union(*map(self.topics_of, self.members.values()))

    def pattern_subscribers(self, pattern: str) -> int:
        return sum(member.subscribed_pattern == pattern for member in self.members.values())

    def subscribed_patterns(self) -> set[str]:
        return {member.subscribed_pattern for member in self.members.values() if member.subscribed_pattern}

    def choose_assignor(self, default: str) -> str:
        """The assignor that most of those members want that want one; among equals the first that was wanted."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            if member.server_assignor is not None:
                votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
        return max(votes, key=votes.__getitem__, default=default)

    def has_only_classic_members(self) -> bool:
        return bool(self.members) and all(member.classic is not None for member in self.members.values())

    # -- records --------------------------------------------------------------------------------------------------

    def epoch_record(self, epoch: int, metadata_hash: int) -> CoordinatorRecord:
        value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
        return CoordinatorRecord(ConsumerGroupMetadataKey(group_id=self.group_id), value, VALUE_VERSION)

    def assignment_epoch_record(self, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
        value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
        return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=self.group_id), value, VALUE_VERSION)

    def target_record(self, member_id: str, target: Assignment) -> CoordinatorRecord:
        value = ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=numbers) for topic_id, numbers in by_topic(target).items()
            ]
        )
        return CoordinatorRecord(self._target_key(member_id), value, VALUE_VERSION)

    def _target_key(self, member_id: str) -> ConsumerGroupTargetAssignmentMemberKey:
        return ConsumerGroupTargetAssignmentMemberKey(group_id=self.group_id, member_id=member_id)

    def member_tombstones(self, member_id: str) -> list[CoordinatorRecord]:
        """Return the records that remove a member."""
        return _tombstones(
            ConsumerGroupCurrentMemberAssignmentKey(group_id=self.group_id, member_id=member_id),
            self._target_key(member_id),
            ConsumerGroupMemberMetadataKey(group_id=self.group_id, member_id=member_id),
        )

    def tombstones(self) -> list[CoordinatorRecord]:
        return [
            *(record for member_id in self.members for record in self.member_tombstones(member_id)),
            *_tombstones(
                *(pattern_key(self.group_id, pattern) for pattern in self.patterns),
                ConsumerGroupTargetAssignmentMetadataKey(group_id=self.group_id),
                ConsumerGroupPartitionMetadataKey(group_id=self.group_id),  # left by Kafka up to 4.1
                ConsumerGroupMetadataKey(group_id=self.group_id),
            ),
        ]

    def records(self) -> Iterable[CoordinatorRecord]:
        """Return the records that make the whole group."""
        for member in self.members.values():
            yield member.subscription_record(self.group_id)
        yield self.epoch_record(self.group_epoch, self.metadata_hash)
        for member_id, target in self.targets.items():
            yield self.target_record(member_id, target)
        yield self.assignment_epoch_record(self.assignment_epoch, self.assignment_timestamp_ms)
        for member in self.members.values():
            yield member.assignment_record(self.group_id)

    # -- replay ---------------------------------------------------------------------------------------------------

    def copy(self) -> ConsumerGroup:
        """Return a group to try decisions on."""
        return replace(
            self,
            members=dict(self.members),
            static_members=dict(self.static_members),
            targets=dict(self.targets),
            holders=dict(self.holders),
            patterns=dict(self.patterns),
        )

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply one record, in any order: a compacted log keeps each key's newest, wherever that stands."""
        match record.key:
            case ConsumerGroupMetadataKey():
                self._replay_epoch(record.value)
            case ConsumerGroupTargetAssignmentMetadataKey():
                self._replay_assignment_epoch(record.value)
            case ConsumerGroupMemberMetadataKey(member_id=member_id):
                self._replay_subscription(member_id, record.value)
            case ConsumerGroupTargetAssignmentMemberKey(member_id=member_id):
                self._replay_target(member_id, record.value)
            case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id):
                self._replay_assignment(member_id, record.value)
            case ConsumerGroupRegularExpressionKey(regular_expression=pattern):
                self._replay_pattern(pattern, record.value)

    def _replay_epoch(self, value: Message | None) -> None:
        if isinstance(value, ConsumerGroupMetadataValue):
            self.group_epoch = value.epoch
            self.metadata_hash = value.metadata_hash

    def _replay_assignment_epoch(self, value: Message | None) -> None:
        if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
            self.assignment_epoch = value.assignment_epoch
            self.assignment_timestamp_ms = value.assignment_timestamp

    def _replay_subscription(self, member_id: str, value: Message | None) -> None:
        old = self.members.get(member_id)
        if old is not None and old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]
        if value is None:
            self._release(member_id)
            self.members.pop(member_id, None)
            return
        assert isinstance(value, ConsumerGroupMemberMetadataValue)
        member = (old or ConsumerMember(member_id=member_id)).with_subscription(value)
        self.members[member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id

    def _replay_target(self, member_id: str, value: Message | None) -> None:
        if value is None:
            self.targets.pop(member_id, None)
            return
        assert isinstance(value, ConsumerGroupTargetAssignmentMemberValue)
        self.targets[member_id] = of_topics((topic.topic_id, topic.partitions) for topic in value.topic_partitions)

    def _replay_assignment(self, member_id: str, value: Message | None) -> None:
        self._release(member_id)
        old = self.members.get(member_id)
        if value is None:
            if old is not None:
                bare = ConsumerMember(member_id=member_id)
                self.members[member_id] = replace(
                    old,
                    member_epoch=bare.member_epoch,
                    previous_member_epoch=bare.previous_member_epoch,
                    state=bare.state,
                    assigned=bare.assigned,
                    pending_revocation=bare.pending_revocation,
                )
            return
        assert isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
        member = (old or ConsumerMember(member_id=member_id)).with_assignment(value)
        self.members[member_id] = member
        for partition in member.partitions:
            self.holders[partition] = member_id

    def _release(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is not None:
            for partition in member.partitions:
                if self.holders.get(partition) == member_id:
                    del self.holders[partition]

    def _replay_pattern(self, pattern: str, value: Message | None) -> None:
        if value is None:
            self.patterns.pop(pattern, None)
            return
        assert isinstance(value, ConsumerGroupRegularExpressionValue)
        self.patterns[pattern] = MatchedTopics(frozenset(value.topics), value.version, value.timestamp)

    def target_of(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NO_PARTITIONS)


def _stale(member: ConsumerMember, epoch: int) -> KafkaError:
    """Return what a member is told that says to be in another epoch than it is: what its protocol knows."""
    kind = StaleMemberEpoch if member.classic is None else IllegalGeneration
    return kind(f"member {member.member_id} is in epoch {member.member_epoch}, not {epoch}")


def _tombstones(*keys: Message) -> list[CoordinatorRecord]:
    return [CoordinatorRecord(key, None, -1) for key in keys]
