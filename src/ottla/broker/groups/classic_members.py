"""Members of a consumer group that speak JoinGroup, SyncGroup, Heartbeat and LeaveGroup (live migration, KIP-848).

Their generation is their member epoch. Nobody leads and nobody waits: JoinGroup takes the member a step towards its
target as a heartbeat of the new protocol does, SyncGroup hands out what it has, and Heartbeat says to rejoin when there
is a further step to take. Whoever does not follow within its rebalance timeout is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ottla.broker.groups.consumer import PROTOCOL_TYPE, ConsumerGroup
from ottla.broker.groups.consumer_decisions import Draft, advance, check_size, join_member
from ottla.broker.groups.consumer_member import ClassicMember, ConsumerMember, MemberState
from ottla.broker.groups.consumer_protocol import decode_subscription, encode_assignment, owned_partitions
from ottla.broker.groups.consumer_sessions import ConsumerProtocol
from ottla.broker.groups.rebalance import GroupServices
from ottla.broker.groups.requests import (
    AssignmentProtocol,
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
from ottla.errors import (
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from ottla.protocol.primitives import DecodeError


class ClassicMembers:
    """Serves the classic members of the consumer groups of one shard."""

    __slots__ = ("_consumer", "_services", "_shard")

    def __init__(self, shard: GroupShard, services: GroupServices, consumer: ConsumerProtocol) -> None:
        self._shard = shard
        self._services = services
        self._consumer = consumer

    # -- JoinGroup ------------------------------------------------------------------------------------------------

    def join(self, group: ConsumerGroup, request: JoinRequest, reply: JoinReply) -> None:
        """Take somebody in, or a step further; the answer comes when that is durable."""
        try:
            outcome = self._join(group, request)
        except KafkaError as error:
            reply(JoinOutcome(member_id="", error=coordinator_error(error)))
            return
        self._shard.when_durable(
            lambda error: reply(outcome if error is None else JoinOutcome(member_id="", error=error))
        )

    def _join(self, group: ConsumerGroup, request: JoinRequest) -> JoinOutcome:
        around = self._consumer.circumstances(group.group_id)
        check_size(group, request.member_id, around.max_size)
        _check_protocols(group, request)
        instance_id = request.group_instance_id
        if not request.member_id and instance_id is None and request.must_know_member_id:
            return JoinOutcome(member_id=self._new_id(request), error=MemberIdRequired())
        if request.member_id and instance_id is not None:
            group.get_static_member(instance_id, request.member_id)
        draft = Draft(group)
        before = join_member(draft, request.member_id or self._new_id(request), instance_id, is_classic=True)
        try:
            subscription = decode_subscription(request.protocols[0].metadata)
        except DecodeError as error:
            raise InconsistentGroupProtocol(f"the subscription cannot be read: {error}") from None
        said = replace(
            before,
            instance_id=instance_id,
            rack_id=subscription.rack_id or before.rack_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            subscribed_topics=frozenset(subscription.topics),
            subscribed_pattern="",
            server_assignor=None,
            classic=ClassicMember(request.session_timeout_ms, tuple(request.protocols)),
        )
        member = advance(draft, before, said, owned_partitions(subscription, around.topics), around)
        if self._consumer.maybe_downgrade(draft) is None:
            self._consumer.commit(draft)
            self._expect_sync(group.group_id, member)
        return JoinOutcome(
            member_id=member.member_id,
            generation_id=member.member_epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=request.protocols[0].name,
        )

    def _new_id(self, request: JoinRequest) -> str:
        return f"{request.group_instance_id or request.client_id}-{self._services.new_uuid()}"

    def _expect_sync(self, group_id: str, member: ConsumerMember) -> None:
        self._consumer.start_session(group_id, member)
        timers = self._consumer.timers_of(group_id, member.member_id)
        timers.cancel("rejoin")
        timers.cancel("revocation")
        self._consumer.set_deadline(group_id, member.member_id, "sync", member.rebalance_timeout_ms)

    # -- SyncGroup and Heartbeat ----------------------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, request: SyncRequest, reply: SyncReply) -> None:
        """Hand out what the member has."""
        try:
            member, classic = _claimed(group, request.member_id, request.group_instance_id)
            _check_generation(member, request.generation_id)
            protocol = classic.protocols[0]
            if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, protocol.name):
                raise InconsistentGroupProtocol
            if member.member_epoch < group.group_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
                self._expect_rejoin(group, member)
                raise RebalanceInProgress
        except KafkaError as error:
            reply(SyncOutcome(error=error))
            return
        self._consumer.timers_of(group.group_id, member.member_id).cancel("sync")
        self._consumer.start_session(group.group_id, member)
        assignment = encode_assignment(frozenset(member.assigned), protocol.metadata, self._consumer.topics)
        outcome = SyncOutcome(protocol_type=PROTOCOL_TYPE, protocol_name=protocol.name, assignment=assignment)
        self._shard.when_durable(lambda error: reply(outcome if error is None else SyncOutcome(error=error)))

    def heartbeat(
        self, group: ConsumerGroup, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> None:
        """Go on with a member's session. Raises `RebalanceInProgress` where it can take a step by rejoining."""
        member, _ = _claimed(group, member_id, group_instance_id)
        _check_generation(member, generation_id)
        self._consumer.start_session(group.group_id, member)
        if _should_rejoin(group, member):
            self._expect_rejoin(group, member)
            raise RebalanceInProgress

    def _expect_rejoin(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        if "rejoin" not in self._consumer.timers_of(group.group_id, member.member_id).deadlines:
            self._consumer.set_deadline(group.group_id, member.member_id, "rejoin", member.rebalance_timeout_ms)

    # -- LeaveGroup -----------------------------------------------------------------------------------------------

    def leave(
        self,
        group: ConsumerGroup,
        leaving: Sequence[LeavingMember],
        reply: Callable[[list[LeaveOutcome]], None],
    ) -> None:
        """Let members go, of either protocol: administrators remove members this way too."""
        outcomes: list[LeaveOutcome] = []
        gone: list[str] = []
        for one in leaving:
            try:
                gone.append(_leaving_member(group, one).member_id)
                outcomes.append(LeaveOutcome(one.member_id, one.group_instance_id, None))
            except KafkaError as error:
                outcomes.append(LeaveOutcome(one.member_id, one.group_instance_id, error))
        if gone:
            self._consumer.remove(group, dict.fromkeys(gone))
        self._shard.when_durable(
            lambda error: reply(outcomes if error is None else [one._replace(error=error) for one in outcomes])
        )


def _leaving_member(group: ConsumerGroup, leaving: LeavingMember) -> ConsumerMember:
    if leaving.group_instance_id is None:
        return group.get_member(leaving.member_id)
    member = group.find_static_member(leaving.group_instance_id)
    if member is None:
        raise UnknownMemberId
    if leaving.member_id not in ("", member.member_id):
        raise FencedInstanceId
    return member


def _claimed(group: ConsumerGroup, member_id: str, instance_id: str | None) -> tuple[ConsumerMember, ClassicMember]:
    """Return who somebody says to be. Raises `UnknownMemberId` for members of the new protocol, too."""
    member = group.get_claimed_member(member_id, instance_id)
    if member.classic is None:
        raise UnknownMemberId(f"member {member_id} speaks the new protocol")
    return member, member.classic


def _check_generation(member: ConsumerMember, generation_id: int) -> None:
    if generation_id != member.member_epoch:
        raise IllegalGeneration(f"member {member.member_id} is in generation {member.member_epoch}")


def _should_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.member_epoch < group.group_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    missing = group.target_of(member.member_id) - member.assigned.keys()
    is_waiting = any(partition in group.holders for partition in missing)
    return member.state is MemberState.UNRELEASED_PARTITIONS and not is_waiting


def _check_protocols(group: ConsumerGroup, request: JoinRequest) -> None:
    """Raise `InconsistentGroupProtocol` for who has no protocol in common with all other classic members."""
    common = _common_protocols(member.classic.protocols for member in group.members.values() if member.classic)
    names = {protocol.name for protocol in request.protocols}
    if request.protocol_type != PROTOCOL_TYPE or not names or (common is not None and not names & common):
        raise InconsistentGroupProtocol


def _common_protocols(protocols: Iterable[Iterable[AssignmentProtocol]]) -> set[str] | None:
    """Return the names that all have; None where there is nobody."""
    sets = [{protocol.name for protocol in one} for one in protocols]
    return set.intersection(*sets) if sets else None
