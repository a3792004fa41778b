"""Reconciliation (KIP-848): the next step of a member from the partitions that it has to those that it shall have.

Decides only. A member first gives up what is not its any more and says so by what it reports to own; only then does it
go on to the epoch of the target, and gets what nobody else has. So no partition ever has two owners:

    STABLE ──a new target──▶ UNREVOKED_PARTITIONS ──it owns them no more──▶ STABLE, in the target's epoch
       │                                                                   ▲
       └──nothing to give up──▶ UNRELEASED_PARTITIONS ──others gave up─────┘
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from ottla.broker.groups.assignors import Assignment, TopicIdPartition
from ottla.broker.groups.consumer_member import ConsumerMember, Epochs, MemberState
from ottla.errors import FencedMemberEpoch
from ottla.model import TopicId


class Target(NamedTuple):
    """What a member shall have, and since which epoch of the group."""

    epoch: int
    partitions: Assignment


class Surroundings(NamedTuple):
    """What else decides about the next step."""

    owned: AbstractSet[TopicIdPartition] | None
    """What the member reports to own; None when it did not say."""
    is_held: Callable[[TopicIdPartition], bool]
    """Whether any member has a partition, this one included."""
    wanted: AbstractSet[TopicId]
    """The topics that the member wants now. Its target may be from before it changed its mind."""
    has_changed_its_mind: bool = False
    """True where the member has just said that it wants other topics."""


def reconcile(member: ConsumerMember, target: Target, around: Surroundings) -> ConsumerMember:
    """Return the member after its next step, or as it is when none can be taken. Raises `FencedMemberEpoch`."""
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch != target.epoch:
                return _step(member, target, around)
            return _give_up_unwanted(member, around) if around.has_changed_its_mind else member
        case MemberState.UNREVOKED_PARTITIONS:
            if around.has_changed_its_mind:
                member = _give_up_unwanted(member, around)
            if _owns_any(member.pending_revocation, around):
                return member
            return _step(member, target, around)  # the target may have moved on meanwhile
        case MemberState.UNRELEASED_PARTITIONS:
            return _step(member, target, around)
        case MemberState.UNKNOWN:
            return _leave_unknown_state(member, target, around)


def _step(member: ConsumerMember, target: Target, around: Surroundings) -> ConsumerMember:
    wanted = frozenset(partition for partition in target.partitions if partition.topic_id in around.wanted)
    kept = {partition: since for partition, since in member.assigned.items() if partition in wanted}
    surplus = {partition: since for partition, since in member.assigned.items() if partition not in wanted}
    if surplus and _owns_any(surplus, around):
        return _at(member, member.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, surplus)
    released = {*surplus, *member.pending_revocation}
    missing = wanted - kept.keys()
    free = {partition for partition in missing if partition in released or not around.is_held(partition)}
    state = MemberState.STABLE if len(free) == len(missing) else MemberState.UNRELEASED_PARTITIONS
    return _at(member, target.epoch, state, {**kept, **dict.fromkeys(free, target.epoch)}, {})


def _at(
    member: ConsumerMember, epoch: int, state: MemberState, assigned: Epochs, pending_revocation: Epochs
) -> ConsumerMember:
    following = replace(
        member, member_epoch=epoch, state=state, assigned=assigned, pending_revocation=pending_revocation
    )
    return member if following == member else replace(following, previous_member_epoch=member.member_epoch)


def _owns_any(partitions: Epochs, around: Surroundings) -> bool:
    """Say whether the member still owns one of these; one that did not say what it owns may."""
    return around.owned is None or not around.owned.isdisjoint(partitions.keys())


def _give_up_unwanted(member: ConsumerMember, around: Surroundings) -> ConsumerMember:
    """Take away partitions of topics that the member has just ceased to want, before there is a new target."""
    kept = {partition: since for partition, since in member.assigned.items() if partition.topic_id in around.wanted}
    if len(kept) == len(member.assigned):
        return member
    unwanted = {partition: since for partition, since in member.assigned.items() if partition not in kept}
    if not _owns_any(unwanted, around):
        return replace(member, assigned=kept)
    return _at(
        member,
        member.member_epoch,
        MemberState.UNREVOKED_PARTITIONS,
        kept,
        {**member.pending_revocation, **unwanted},
    )


def _leave_unknown_state(member: ConsumerMember, target: Target, around: Surroundings) -> ConsumerMember:
    """Go on from a state of a newer Kafka where nothing can be owned twice; else the member has to start anew."""
    owns_more = around.owned is not None and not around.owned <= member.assigned.keys()
    if member.pending_revocation or owns_more:
        raise FencedMemberEpoch("the member is in a state that this broker does not know; it must join again")
    return _step(member, target, around)
