"""A classic group: its members, its state, and which state follows which.

    Empty ──members join──▶ PreparingRebalance ──all are there──▶ CompletingRebalance ──leader assigned──▶ Stable
      ▲                       │        ▲  ▲                               │                                  │
      └──────nobody is left───┘        │  └───────a member joins or goes──┘                                  │
                                       └──────────────────────────────────a member joins or goes─────────────┘

What lasts (generation, members, assignments) changes by replay of the group's one record; a group that is between two
generations is as before in the log, and after a restart. Who waits for an answer and which session ends when is not
kept. The rebalance protocol, event by event, is `rebalance`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ottla.broker.groups.assignors import TopicIdPartition
from ottla.broker.groups.deadlines import Deadline
from ottla.broker.groups.group import GroupType, MemberClaim
from ottla.broker.groups.requests import (
    AssignmentProtocol,
    JoiningMember,
    JoinOutcome,
    JoinReply,
    SyncOutcome,
    SyncReply,
)
from ottla.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    KafkaError,
    NonEmptyGroup,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)
from ottla.protocol.internal.consumer_protocol import ConsumerProtocolSubscription
from ottla.protocol.internal.framing import CoordinatorRecord, decode_versioned
from ottla.protocol.internal.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from ottla.protocol.primitives import DecodeError

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
VALUE_VERSION: Final = 3
NO_TIMESTAMP_MS: Final = -1


class ClassicState(StrEnum):
    """The states, spelled as Kafka tells them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicEvent(StrEnum):
    """What moves a group from one state to another."""

    REBALANCE = "a member joins, changes or goes"
    JOINED = "all members have joined"
    DESERTED = "nobody is left"
    ASSIGNED = "the leader has assigned"
    DELETED = "the group is deleted"


_EMPTY, _PREPARING, _COMPLETING, _STABLE, _DEAD = ClassicState

TRANSITIONS: Final[dict[tuple[ClassicState, ClassicEvent], ClassicState]] = {
    (_EMPTY, ClassicEvent.REBALANCE): _PREPARING,
    (_STABLE, ClassicEvent.REBALANCE): _PREPARING,
    (_COMPLETING, ClassicEvent.REBALANCE): _PREPARING,
    (_PREPARING, ClassicEvent.JOINED): _COMPLETING,
    (_PREPARING, ClassicEvent.DESERTED): _EMPTY,
    (_COMPLETING, ClassicEvent.ASSIGNED): _STABLE,
    (_EMPTY, ClassicEvent.DELETED): _DEAD,
}
"""All steps there are. Any other is a bug."""

SYNC_REFUSALS: Final[dict[ClassicState, type[KafkaError]]] = {
    _EMPTY: UnknownMemberId,
    _PREPARING: RebalanceInProgress,
}
"""States in which SyncGroup is not answered with an assignment, now or later."""

HEARTBEAT_REFUSALS: Final[dict[ClassicState, type[KafkaError]]] = {
    _EMPTY: UnknownMemberId,
    _PREPARING: RebalanceInProgress,
}
"""What members hear at a heartbeat. In CompletingRebalance nothing: consumers may be early."""


def format_transitions() -> str:
    """Return the table of states as text, one step a line."""
    width = max(len(state) for state in ClassicState)
    event_width = max(len(event) for event in ClassicEvent)
    return "\n".join(
        f"{state:{width}}  {event:{event_width}}  {following}" for (state, event), following in TRANSITIONS.items()
    )


@dataclass(slots=True, eq=False)
class ClassicMember:
    """A member with what it said of itself, its assignment, and what it waits for."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Sequence[AssignmentProtocol]
    assignment: bytes = b""
    is_new: bool = False
    """True until its first JoinGroup was answered: it does not know its id and cannot send heartbeats."""
    join_reply: JoinReply | None = None
    sync_reply: SyncReply | None = None
    session: Deadline | None = None

    @property
    def is_awaiting_join(self) -> bool:
        return self.join_reply is not None

    @property
    def is_excused(self) -> bool:
        """True while it waits for us, so that its silence says nothing."""
        return not self.is_new and (self.join_reply is not None or self.sync_reply is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it told about a protocol; nothing where it does not speak it."""
        return next((protocol.metadata for protocol in self.protocols if protocol.name == protocol_name), b"")

    def vote(self, candidates: frozenset[str]) -> str:
        """The protocol that it likes best among those that all members speak."""
        return next(protocol.name for protocol in self.protocols if protocol.name in candidates)

    def answer_join(self, outcome: JoinOutcome) -> None:
        """Answer a waiting JoinGroup; nothing where none waits."""
        reply, self.join_reply = self.join_reply, None
        if reply is not None:
            reply(outcome)

    def answer_sync(self, outcome: SyncOutcome) -> None:
        """Answer a waiting SyncGroup; nothing where none waits."""
        reply, self.sync_reply = self.sync_reply, None
        if reply is not None:
            reply(outcome)

    def dismiss(self, join_error: KafkaError, sync_error: KafkaError | None = None, *, tell_id: bool = False) -> None:
        """It is not in the group any more: answer what waits, and end its session."""
        self.answer_join(JoinOutcome(member_id=self.member_id if tell_id else "", error=join_error))
        self.answer_sync(SyncOutcome(error=sync_error or join_error))
        if self.session is not None:
            self.session.cancel()


@dataclass(slots=True, eq=False)
class ClassicGroup:
    """A group of the JoinGroup and SyncGroup protocol; also the offsets of somebody who is in no group."""

    group_id: str
    state: ClassicState = ClassicState.EMPTY
    previous_state: ClassicState = ClassicState.EMPTY
    state_timestamp_ms: int = NO_TIMESTAMP_MS
    protocol_type: str = ""
    generation_id: int = 0
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Member ids by group instance id."""
    pending_joins: dict[str, Deadline] = field(default_factory=dict)
    """Ids that were given out and not come back yet, with the time that they have (KIP-394)."""
    pending_syncs: set[str] = field(default_factory=set)
    """Members of the present generation that did not ask for their assignment yet."""
    subscribed_topics: frozenset[str] | None = None
    """The topics that members want; None where that cannot be known."""
    has_new_member: bool = False
    """Somebody joined while the first rebalance waited for more."""
    remaining_delay_ms: int = 0
    """How much longer the first rebalance may wait for more."""
    join_deadline: Deadline | None = None
    sync_deadline: Deadline | None = None

    # -- what every group is --------------------------------------------------------------------------------------

    @property
    def group_type(self) -> GroupType:
        return GroupType.CLASSIC

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def is_simple(self) -> bool:
        """True for a group that only ever committed offsets."""
        return self.is_empty and not self.protocol_type and not self.pending_joins

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def check_offset_commit(self, claim: MemberClaim, *, is_transactional: bool) -> None:
        """Raise what a commit is refused with; an empty group takes offsets from anybody."""
        if claim.epoch < 0 and self.is_empty:
            return
        if claim.epoch >= 0 or claim.member_id or claim.group_instance_id is not None:
            self.check_member(claim.member_id, claim.group_instance_id)
            self.check_generation(claim.epoch)
        elif not is_transactional and not self.is_empty:
            raise UnknownMemberId(f"group {self.group_id} has members; only they commit offsets")
        if not is_transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            raise RebalanceInProgress

    def check_committed_partitions(self, claim: MemberClaim, partitions: Iterable[TopicIdPartition]) -> None:
        """Who may commit may do so for any partition: the broker does not know assignments."""

    def check_offset_fetch(self, claim: MemberClaim) -> None:
        """Anybody may ask."""

    def check_offset_delete(self) -> None:
        if not self.is_empty and not self.uses_consumer_protocol:
            raise NonEmptyGroup(f"group {self.group_id} has members, and what they read is not known")

    def check_delete(self) -> None:
        if self.state is ClassicState.DEAD:
            raise GroupIdNotFound
        if not self.is_empty:
            raise NonEmptyGroup(f"group {self.group_id} has members")

    def retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        """When the group became empty; the time of the commit where that is not known or nobody could be in it."""
        if not self.protocol_type:
            return commit_timestamp_ms
        if self.is_empty:
            return commit_timestamp_ms if self.state_timestamp_ms == NO_TIMESTAMP_MS else self.state_timestamp_ms
        is_known = self.uses_consumer_protocol and self.subscribed_topics is not None
        return commit_timestamp_ms if is_known and self.state is ClassicState.STABLE else None

    def touch(self, member_id: str) -> None:
        if self.state in (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE):
            self.extend_session(member_id)

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None, -1)]

    def close(self) -> None:
        for deadline in (self.join_deadline, self.sync_deadline, *self.pending_joins.values()):
            if deadline is not None:
                deadline.cancel()
        for member in list(self.members.values()):
            member.dismiss(NotCoordinator(), tell_id=True)

    # -- checks ---------------------------------------------------------------------------------------------------

    def check_member(self, member_id: str, group_instance_id: str | None) -> None:
        """Raise `UnknownMemberId`, or `FencedInstanceId` for a static member that another took the place of."""
        if group_instance_id is not None:
            known = self.static_members.get(group_instance_id)
            if known is None:
                raise UnknownMemberId
            if known != member_id:
                raise FencedInstanceId
        if member_id not in self.members:
            raise UnknownMemberId

    def check_generation(self, generation_id: int) -> None:
        if generation_id != self.generation_id:
            raise IllegalGeneration

    def supports(self, protocol_type: str, protocols: Sequence[AssignmentProtocol]) -> bool:
        """True when somebody with these protocols could be a member."""
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type and protocols)
        if protocol_type != self.protocol_type:
            return False
        if not self.members:  # all have left a rebalance that still waits for an id that was given out
            return bool(protocols)
        common = self.common_protocols()
        return any(protocol.name in common for protocol in protocols)

    # -- state ----------------------------------------------------------------------------------------------------

    def step(self, event: ClassicEvent, now_ms: int) -> None:
        """Take a step of the table."""
        following = TRANSITIONS[self.state, event]
        self.previous_state, self.state = self.state, following
        self.state_timestamp_ms = now_ms

    def can_rebalance(self) -> bool:
        return (self.state, ClassicEvent.REBALANCE) in TRANSITIONS

    def is_in(self, *states: ClassicState) -> bool:
        return self.state in states

    # -- members --------------------------------------------------------------------------------------------------

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Take a member in; the first one decides what kind of group it is, and leads it."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self._enter(member)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Take a member, or an id that was only given out, out of the group. Another may become the leader."""
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        deadline = self.pending_joins.pop(member_id, None)
        if deadline is not None:
            deadline.cancel()
        self.pending_syncs.discard(member_id)
        return member

    def replace_static_member(self, instance_id: str, new_member_id: str) -> ClassicMember:
        """A process took the place of another one of the same instance: who asks by the old id is fenced."""
        old = self.members.pop(self.static_members[instance_id])
        old.dismiss(FencedInstanceId(), tell_id=True)
        member = ClassicMember(
            new_member_id,
            instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocols,
            old.assignment,
        )
        if self.leader == old.member_id:
            self.leader = new_member_id
        if old.member_id in self.pending_syncs:
            self.pending_syncs.remove(old.member_id)
        self._enter(member)
        return member

    def _enter(self, member: ClassicMember) -> None:
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id

    def is_leader(self, member_id: str) -> bool:
        return self.leader == member_id

    def extend_session(self, member_id: str) -> None:
        """The member was heard of."""
        member = self.members.get(member_id)
        if member is not None and member.session is not None:
            member.session.set(member.session_timeout_ms)

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long members may take to rejoin: as long as the slowest of them wants."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def awaiting_join_count(self) -> int:
        return sum(member.is_awaiting_join for member in self.members.values())

    def has_everybody_joined(self) -> bool:
        return not self.pending_joins and all(member.is_awaiting_join for member in self.members.values())

    def elect_leader(self) -> bool:
        """Have a leader who has rejoined; false when nobody has."""
        if self.leader is None:
            return False
        leader = self.members.get(self.leader)  # a stored one may name somebody who is not in it
        if leader is None or not leader.is_awaiting_join:
            rejoined = next((member for member in self.members.values() if member.is_awaiting_join), None)
            if rejoined is None:
                return False
            self.leader = rejoined.member_id
        return True

    def members_for_leader(self) -> list[JoiningMember]:
        """What the leader is told, to assign from."""
        return [
            JoiningMember(member.member_id, member.group_instance_id, member.metadata(self.protocol_name))
            for member in self.members.values()
        ]

    # -- generations ----------------------------------------------------------------------------------------------

    def common_protocols(self) -> frozenset[str]:
        """The protocols that all members speak."""
        counts = Counter(name for member in self.members.values() for name in {p.name for p in member.protocols})
        return frozenset(name for name, count in counts.items() if count == len(self.members))

    def choose_protocol(self) -> str:
        """Return the protocol that most members like best; among equals the one that was voted for first."""
        candidates = self.common_protocols()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def begin_generation(self, now_ms: int) -> None:
        """All who come have come: number the generation, choose its protocol."""
        self.generation_id += 1
        self.protocol_name = self.choose_protocol() if self.members else None
        self.subscribed_topics = self._find_subscribed_topics()
        self.pending_syncs.clear()
        self.step(ClassicEvent.JOINED if self.members else ClassicEvent.DESERTED, now_ms)

    def _find_subscribed_topics(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        return subscribed_topics(member.metadata(self.protocol_name) for member in self.members.values())

    # -- the log --------------------------------------------------------------------------------------------------

    def record(self, assignments: dict[str, bytes]) -> CoordinatorRecord:
        """Return the record of this generation with these assignments by member id."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.generation_id,
            protocol=self.protocol_name,
            leader=self.leader,
            current_state_timestamp=self.state_timestamp_ms,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol_name),
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ],
        )
        return CoordinatorRecord(GroupMetadataKey(group=self.group_id), value, VALUE_VERSION)

    def assignments(self) -> dict[str, bytes]:
        return {member.member_id: member.assignment for member in self.members.values()}

    def replay(self, value: GroupMetadataValue) -> None:
        """Be the generation that a record tells of. Members that are here already keep what they wait for."""
        self.protocol_type = value.protocol_type
        self.generation_id = value.generation
        self.protocol_name = value.protocol
        self.leader = value.leader
        self.state_timestamp_ms = value.current_state_timestamp
        known = self.members
        self.members, self.static_members = {}, {}
        for stored in value.members:
            member = known.pop(stored.member_id, None) or _stored_member(stored, value.protocol)
            member.assignment = stored.assignment
            self._enter(member)
        for member in known.values():
            member.dismiss(UnknownMemberId())
        self.previous_state = self.state
        self.state = ClassicState.STABLE if self.members else ClassicState.EMPTY
        self.subscribed_topics = self._find_subscribed_topics()


def _stored_member(stored: MemberMetadata, protocol_name: str | None) -> ClassicMember:
    """Return a member from the log. Only the protocol that was chosen is stored; the first rebalance tells the rest."""
    rebalance_timeout_ms = stored.rebalance_timeout if stored.rebalance_timeout >= 0 else stored.session_timeout
    return ClassicMember(
        stored.member_id,
        stored.group_instance_id,
        stored.client_id,
        stored.client_host,
        rebalance_timeout_ms,
        stored.session_timeout,
        [AssignmentProtocol(protocol_name or "", stored.subscription)],
    )


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics in the subscriptions of consumers; None when one of them cannot be read."""
    topics: set[str] = set()
    for subscription in subscriptions:
        try:
            topics.update(decode_versioned(ConsumerProtocolSubscription, subscription).topics)
        except (DecodeError, KafkaError):
            return None
    return frozenset(topics)
