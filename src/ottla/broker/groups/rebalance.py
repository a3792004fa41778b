"""The rebalance protocol of classic groups, event by event: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and time.

Decides who is in the next generation and when it begins. `classic` has the states and what lasts; the shard appends.
Answers that tell of a generation wait until it is durable. Runs on the broker's loop.

A rebalance, in short: the first change takes the group to PreparingRebalance. It ends when all known members have
rejoined or the rebalance timeout is over; who has not come is dropped, unless its instance is static, which its session
alone decides about. A new group waits a little for more (`group.initial.rebalance.delay.ms`). Every member is then
told the generation and must ask for its assignment within the rebalance timeout; the leader's question brings it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ottla.broker.groups.classic import (
    HEARTBEAT_REFUSALS,
    SYNC_REFUSALS,
    ClassicEvent,
    ClassicGroup,
    ClassicMember,
    ClassicState,
)
from ottla.broker.groups.deadlines import Deadline
from ottla.broker.groups.requests import (
    JoinOutcome,
    JoinReply,
    JoinRequest,
    LeaveOutcome,
    LeavingMember,
    SyncOutcome,
    SyncReply,
    SyncRequest,
)
from ottla.broker.groups.shard import GroupShard, coordinator_error
from ottla.clock import Clock, Timers
from ottla.config.current_config import CurrentConfig
from ottla.errors import (
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from ottla.protocol.internal.framing import CoordinatorRecord
from ottla.protocol.internal.group_records import GroupMetadataKey, GroupMetadataValue

_log = logging.getLogger(__name__)

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""How long somebody stays who does not know its id yet: it sends no heartbeats, and may have given up (KAFKA-7610)."""


@dataclass(frozen=True, slots=True)
class GroupServices:
    """What state machines of groups need from outside."""

    timers: Timers
    clock: Clock
    settings: CurrentConfig
    new_uuid: Callable[[], str]
    """Gives a new random UUID in the form with hyphens."""

    def deadline(self, expire: Callable[[], None]) -> Deadline:
        return Deadline(self.timers, self.clock, expire)

    def integer(self, setting: str) -> int:
        """The value of a broker's setting as of now."""
        return self.settings.values.integer(setting)


class ClassicProtocol:
    """Serves the classic groups of one shard."""

    __slots__ = ("_services", "_shard")

    def __init__(self, shard: GroupShard, services: GroupServices) -> None:
        self._shard = shard
        self._services = services
        shard.on_replay(GroupMetadataKey, self._replay)
        shard.on_loaded(self._start_sessions)

    # -- groups ---------------------------------------------------------------------------------------------------

    def find_or_create(self, group_id: str) -> ClassicGroup:
        """Return the classic group of this name, made now where there is no group. Nothing is written."""
        group = self._shard.groups.get(group_id)
        if group is None:
            group = self._shard.groups[group_id] = self._new_group(group_id)
        assert isinstance(group, ClassicGroup)
        return group

    def _new_group(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id, state_timestamp_ms=self._now_ms())

    def _replay(self, record: CoordinatorRecord) -> None:
        key, value = record.key, record.value
        assert isinstance(key, GroupMetadataKey)
        if value is not None:
            assert isinstance(value, GroupMetadataValue)
            found = self._shard.groups.get(key.group)
            if not isinstance(found, ClassicGroup):  # as in Kafka, also where the log has lost the end of another kind
                found = self._shard.groups[key.group] = self._new_group(key.group)
            found.replay(value)
            return
        group = self._shard.groups.get(key.group)
        if isinstance(group, ClassicGroup):
            del self._shard.groups[key.group]
            group.close()

    def _start_sessions(self) -> None:
        """Give every stored member a new session. A group above the size that is allowed now must rebalance."""
        for group in list(self._shard.groups.values()):
            if isinstance(group, ClassicGroup):
                self.start_sessions(group)

    def start_sessions(self, group: ClassicGroup) -> None:
        """Take up a group whose members came from the log, or from a group of another kind."""
        for member in group.members.values():
            self._start_session(group, member, member.session_timeout_ms)
        if len(group.members) > self._services.integer("group.max.size"):
            self.prepare_rebalance(group, "the group is larger than group.max.size")

    # -- JoinGroup ------------------------------------------------------------------------------------------------

    def join(self, request: JoinRequest, reply: JoinReply) -> None:
        """Take somebody into the next generation; the answer comes when that begins."""
        try:
            group = self._group_to_join(request)
            if not request.member_id:
                self._join_new_member(group, request, reply)
            else:
                self._join_known_member(group, request, reply)
        except GroupMaxSizeReached as error:
            reply(JoinOutcome(member_id="", error=error))
        except KafkaError as error:
            reply(JoinOutcome(member_id=request.member_id, error=coordinator_error(error)))
        else:
            self._maybe_complete_join(group)

    def _group_to_join(self, request: JoinRequest) -> ClassicGroup:
        """Return the group, which is written where it is new. Raises what keeps somebody out of it."""
        found = self._shard.groups.get(request.group_id)
        if found is None and request.member_id:
            raise UnknownMemberId
        group = self._new_group(request.group_id) if found is None else found
        assert isinstance(group, ClassicGroup)
        if not self._has_room(group, request.member_id):
            group.remove(request.member_id)
            raise GroupMaxSizeReached
        if found is None:
            self._shard.commit([group.record({})])  # also where its first member is refused, as Kafka has it
        if not group.supports(request.protocol_type, request.protocols):
            raise InconsistentGroupProtocol
        return self.find_or_create(request.group_id)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Say whether somebody may join; in a rebalance those that rejoin first keep their place."""
        max_size = self._services.integer("group.max.size")
        member = group.members.get(member_id)
        match group.state:
            case ClassicState.EMPTY | ClassicState.DEAD:
                return True
            case ClassicState.PREPARING_REBALANCE:
                return (member is not None and member.is_awaiting_join) or group.awaiting_join_count < max_size
            case ClassicState.COMPLETING_REBALANCE | ClassicState.STABLE:
                return member is not None or len(group.members) < max_size

    def _join_new_member(self, group: ClassicGroup, request: JoinRequest, reply: JoinReply) -> None:
        instance_id = request.group_instance_id
        member_id = f"{instance_id or request.client_id}-{self._services.new_uuid()}"
        if instance_id is not None and instance_id in group.static_members:
            self._replace_static_member(group, member_id, request, reply)
        elif instance_id is None and request.must_know_member_id:
            group.pending_joins[member_id] = pending = self._services.deadline(
                partial(self._expire_pending_join, group, member_id)
            )
            pending.set(request.session_timeout_ms)
            reply(JoinOutcome(member_id=member_id, error=MemberIdRequired()))
        else:
            self._add_member(group, member_id, request, reply)

    def _join_known_member(self, group: ClassicGroup, request: JoinRequest, reply: JoinReply) -> None:
        if request.member_id in group.pending_joins:
            if request.group_instance_id is not None:
                raise UnknownMemberId("static members are not given an id first")
            group.pending_joins.pop(request.member_id).cancel()
            self._add_member(group, request.member_id, request, reply)
            return
        group.check_member(request.member_id, request.group_instance_id)
        member = group.members[request.member_id]
        is_unchanged = list(member.protocols) == list(request.protocols)
        is_leader = group.is_leader(member.member_id)
        if group.is_empty:
            raise UnknownMemberId
        if group.state is ClassicState.COMPLETING_REBALANCE and is_unchanged:
            reply(self._generation(group, member, is_leader=is_leader))  # the first answer got lost
        elif group.state is ClassicState.STABLE and is_unchanged and not is_leader:
            reply(self._generation(group, member, is_leader=False))
        else:
            self._update_member(member, request, reply)
            self._maybe_prepare_rebalance(group, f"member {member.member_id} rejoined")

    def _add_member(self, group: ClassicGroup, member_id: str, request: JoinRequest, reply: JoinReply) -> None:
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            request.client_id,
            request.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
            is_new=True,
            join_reply=reply,
        )
        if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
            group.has_new_member = True
        group.add(member, request.protocol_type)
        self._start_session(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._maybe_prepare_rebalance(group, f"member {member_id} joined")

    def _update_member(self, member: ClassicMember, request: JoinRequest, reply: JoinReply) -> None:
        """Take over what a member says of itself now. An earlier JoinGroup of its that still waits is given up."""
        member.answer_join(JoinOutcome(member_id=member.member_id, error=RebalanceInProgress()))
        member.protocols = request.protocols
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        member.join_reply = reply

    def _replace_static_member(
        self, group: ClassicGroup, member_id: str, request: JoinRequest, reply: JoinReply
    ) -> None:
        """A static member came back, by another id. Who does not have to notice does not (KIP-345)."""
        assert request.group_instance_id is not None
        old_leader = group.leader
        member = group.replace_static_member(request.group_instance_id, member_id)
        self._update_member(member, request, reply)
        self._start_session(group, member, member.session_timeout_ms)
        if group.state is not ClassicState.STABLE:
            # An id that the leader was told and that is gone would stay without an assignment.
            if group.state is ClassicState.COMPLETING_REBALANCE:
                self.prepare_rebalance(group, f"static member {request.group_instance_id} came back")
            return
        if group.choose_protocol() != group.protocol_name:
            self._maybe_prepare_rebalance(group, f"static member {request.group_instance_id} speaks other protocols")
            return
        self._shard.commit([group.record(group.assignments())])
        is_told_all = request.can_skip_assignment and group.is_leader(member_id)
        outcome = self._generation(group, member, is_leader=is_told_all, skip_assignment=is_told_all)
        if not request.can_skip_assignment:
            # Who does not know about skipping would assign anew if it were told that it leads.
            outcome = replace(outcome, leader=old_leader or "")

        def answer(error: KafkaError | None) -> None:
            member.answer_join(outcome if error is None else JoinOutcome(member_id="", error=error))

        self._shard.when_durable(answer)

    def _generation(
        self, group: ClassicGroup, member: ClassicMember, *, is_leader: bool, skip_assignment: bool = False
    ) -> JoinOutcome:
        """What a member is told of the present generation."""
        return JoinOutcome(
            member_id=member.member_id,
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=group.leader or "",
            skip_assignment=skip_assignment,
            members=group.members_for_leader() if is_leader else (),
        )

    # -- rebalance ------------------------------------------------------------------------------------------------

    def _maybe_prepare_rebalance(self, group: ClassicGroup, reason: str) -> None:
        """Begin a rebalance where none is going on, else see whether it is over."""
        if group.can_rebalance():
            self.prepare_rebalance(group, reason)
        else:
            self._maybe_complete_join(group)

    def prepare_rebalance(self, group: ClassicGroup, reason: str) -> None:
        """Have all members rejoin."""
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self._refuse_syncs(group, RebalanceInProgress())
        if group.sync_deadline is not None:
            group.sync_deadline.cancel()
        is_first = group.is_empty
        group.step(ClassicEvent.REBALANCE, self._now_ms())
        _log.info("a group rebalances", extra={"group": group.group_id, "reason": reason})
        if is_first:
            delay_ms = self._services.integer("group.initial.rebalance.delay.ms")
            group.remaining_delay_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            group.has_new_member = False
            self._end_joining_in(group, delay_ms)
        elif group.has_everybody_joined():
            self._complete_join(group)
        else:
            self._end_joining_in(group, group.rebalance_timeout_ms)

    def _end_joining_in(self, group: ClassicGroup, milliseconds: int) -> None:
        if group.join_deadline is None:
            group.join_deadline = self._services.deadline(partial(self._end_joining, group))
        group.join_deadline.cancel()
        group.join_deadline.set(milliseconds)

    def _end_joining(self, group: ClassicGroup) -> None:
        """Time is over. A new group waits on while new members still come, as long as the slowest lets it."""
        if group.has_new_member and group.remaining_delay_ms:
            group.has_new_member = False
            delay_ms = self._services.integer("group.initial.rebalance.delay.ms")
            next_delay_ms = min(delay_ms, group.remaining_delay_ms)
            group.remaining_delay_ms = max(group.remaining_delay_ms - delay_ms, 0)
            self._end_joining_in(group, next_delay_ms)
        else:
            self._complete_join(group)

    def _maybe_complete_join(self, group: ClassicGroup) -> None:
        """End the joining when everybody is there; a new group's first one waits for its time instead."""
        if (
            group.state is ClassicState.PREPARING_REBALANCE
            and group.previous_state is not ClassicState.EMPTY
            and group.has_everybody_joined()
        ):
            self._complete_join(group)

    def _complete_join(self, group: ClassicGroup) -> None:
        """Begin the next generation with those that are there."""
        if group.join_deadline is not None:
            group.join_deadline.cancel()
        for member in list(group.members.values()):
            if not member.is_awaiting_join and member.group_instance_id is None:
                group.remove(member.member_id)
                member.dismiss(UnknownMemberId())
        if not group.elect_leader() and group.members:
            self._end_joining_in(group, group.rebalance_timeout_ms)  # only silent static members: sessions decide
            return
        group.has_new_member = False
        group.begin_generation(self._now_ms())
        if group.is_empty:
            self._store_empty(group)
            return
        for member in list(group.members.values()):
            group.pending_syncs.add(member.member_id)
            member.is_new = False
            self._start_session(group, member, member.session_timeout_ms)
            member.answer_join(self._generation(group, member, is_leader=group.is_leader(member.member_id)))
        if group.sync_deadline is None:
            group.sync_deadline = self._services.deadline(partial(self._expire_syncs, group))
        group.sync_deadline.cancel()
        group.sync_deadline.set(group.rebalance_timeout_ms)

    def _store_empty(self, group: ClassicGroup) -> None:
        try:
            self._shard.commit([group.record({})])
        except KafkaError as error:
            _log.warning("an empty group is not stored", extra={"group": group.group_id, "error": error})

    # -- SyncGroup ------------------------------------------------------------------------------------------------

    def sync(self, request: SyncRequest, reply: SyncReply) -> None:
        """Hand a member its assignment: now, or when the leader has brought it."""
        try:
            group = self._check_sync(request)
        except KafkaError as error:
            reply(SyncOutcome(error=error))
            return
        member = group.members[request.member_id]
        member.answer_sync(SyncOutcome(error=RebalanceInProgress()))
        member.sync_reply = reply
        group.pending_syncs.discard(request.member_id)
        if not group.pending_syncs and group.sync_deadline is not None:
            group.sync_deadline.cancel()
        if group.state is ClassicState.STABLE:
            self._answer_syncs(group, [member])
        elif group.is_leader(request.member_id):
            self._assign(group, {member_id: request.assignments.get(member_id, b"") for member_id in group.members})

    def _check_sync(self, request: SyncRequest) -> ClassicGroup:
        group = self._shard.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            raise UnknownMemberId
        group.check_member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        if request.protocol_type not in (None, group.protocol_type):
            raise InconsistentGroupProtocol
        if request.protocol_name not in (None, group.protocol_name):
            raise InconsistentGroupProtocol
        refusal = SYNC_REFUSALS.get(group.state)
        if refusal is not None:
            raise refusal
        return group

    def _assign(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        now_ms = self._now_ms()
        try:
            self._shard.commit([group.record(assignments)])
        except KafkaError as error:
            self._refuse_syncs(group, coordinator_error(error) or error)
            self._maybe_prepare_rebalance(group, "the assignment cannot be stored")
            return
        group.state_timestamp_ms = now_ms
        self._answer_syncs(group, list(group.members.values()))

    def _answer_syncs(self, group: ClassicGroup, members: Sequence[ClassicMember]) -> None:
        """Answer those that wait for an assignment once it is durable."""
        waiting = [(member, reply) for member in members if (reply := member.sync_reply) is not None]
        outcomes = [
            SyncOutcome(
                protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
            )
            for member, _ in waiting
        ]
        for member, _ in waiting:
            member.sync_reply = None
            self._start_session(group, member, member.session_timeout_ms)

        def answer(error: KafkaError | None) -> None:
            for (_, reply), outcome in zip(waiting, outcomes, strict=True):
                reply(outcome if error is None else SyncOutcome(error=error))

        self._shard.when_durable(answer)

    def _refuse_syncs(self, group: ClassicGroup, error: KafkaError) -> None:
        """The generation will have no assignment: tell those that wait for it."""
        for member in group.members.values():
            member.assignment = b""
            if member.sync_reply is not None:
                self._start_session(group, member, member.session_timeout_ms)
                member.answer_sync(SyncOutcome(error=error))

    def _expire_syncs(self, group: ClassicGroup) -> None:
        """Members that never asked for their assignment are gone."""
        if not group.is_in(ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE) or not group.pending_syncs:
            return
        for member_id in list(group.pending_syncs):
            member = group.remove(member_id)
            if member is not None:
                member.dismiss(UnknownMemberId())
        self.prepare_rebalance(group, "members did not ask for their assignment")

    # -- Heartbeat ------------------------------------------------------------------------------------------------

    def heartbeat(self, group_id: str, member_id: str, group_instance_id: str | None, generation_id: int) -> None:
        """Go on with a member's session. Raises what the member must know, `RebalanceInProgress` above all."""
        group = self._shard.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise UnknownMemberId
        group.check_member(member_id, group_instance_id)
        group.check_generation(generation_id)
        group.extend_session(member_id)
        refusal = HEARTBEAT_REFUSALS.get(group.state)
        if refusal is not None:
            raise refusal

    # -- LeaveGroup -----------------------------------------------------------------------------------------------

    def leave(
        self, group_id: str, leaving: Sequence[LeavingMember], reply: Callable[[list[LeaveOutcome]], None]
    ) -> None:
        """Let members go, and the others rebalance."""
        group = self._shard.groups.get(group_id)
        outcomes = []
        for one in leaving:
            try:
                if not isinstance(group, ClassicGroup):
                    raise UnknownMemberId
                self._leave(group, one)
                outcomes.append(LeaveOutcome(one.member_id, one.group_instance_id, None))
            except KafkaError as error:
                outcomes.append(LeaveOutcome(one.member_id, one.group_instance_id, error))
        if isinstance(group, ClassicGroup) and any(outcome.error is None for outcome in outcomes):
            self._after_removal(group, "members left")
        self._shard.when_durable(
            lambda error: reply(outcomes if error is None else [one._replace(error=error) for one in outcomes])
        )

    def _leave(self, group: ClassicGroup, leaving: LeavingMember) -> None:
        member_id = leaving.member_id
        if not member_id:
            if leaving.group_instance_id is None or leaving.group_instance_id not in group.static_members:
                raise UnknownMemberId
            member_id = group.static_members[leaving.group_instance_id]
        elif member_id not in group.pending_joins:
            group.check_member(member_id, leaving.group_instance_id)
        member = group.remove(member_id)
        if member is not None:
            member.dismiss(UnknownMemberId())

    def _after_removal(self, group: ClassicGroup, reason: str) -> None:
        if group.is_in(ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            self._maybe_prepare_rebalance(group, reason)
        elif group.state is ClassicState.PREPARING_REBALANCE:
            self._maybe_complete_join(group)

    # -- time -----------------------------------------------------------------------------------------------------

    def _start_session(self, group: ClassicGroup, member: ClassicMember, milliseconds: int) -> None:
        if member.session is None:
            member.session = self._services.deadline(partial(self._expire_session, group, member))
        member.session.set(milliseconds)

    def _expire_session(self, group: ClassicGroup, member: ClassicMember) -> None:
        """A member was not heard of for too long. One that waits for us gets its session anew with the answer."""
        if member.is_excused or group.members.get(member.member_id) is not member:
            return
        _log.info("a member is gone", extra={"group": group.group_id, "member": member.member_id})
        group.remove(member.member_id)
        member.dismiss(UnknownMemberId())
        self._after_removal(group, f"the session of member {member.member_id} is over")

    def _expire_pending_join(self, group: ClassicGroup, member_id: str) -> None:
        """Somebody got an id and did not come back with it."""
        group.remove(member_id)
        if group.state is ClassicState.PREPARING_REBALANCE:
            self._maybe_complete_join(group)

    def _now_ms(self) -> int:
        return self._services.clock.wall_ms()
