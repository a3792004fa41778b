"""A group changes its kind while its members go on (KIP-848): classic to consumer and back.

Decides only; the result is records that remove the one group and make the other.

* *Upgrade*: somebody joins a classic group of consumers by the new protocol. Members keep what they have; at their next
  heartbeat they are told to rejoin, and are then members of the consumer group that speak the classic protocol.
* *Downgrade*: the last member of the new protocol goes. The others form a classic group of that epoch and rebalance.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.groups.classic import ClassicGroup, ClassicState
from ottla.broker.groups.classic import ClassicMember as MemberOfClassicGroup
from ottla.broker.groups.consumer import PROTOCOL_TYPE, ConsumerGroup
from ottla.broker.groups.consumer_member import ClassicMember, ConsumerMember
from ottla.broker.groups.consumer_protocol import decode_assignment, decode_subscription, encode_assignment
from ottla.broker.groups.group_topics import GroupTopics
from ottla.errors import GroupIdNotFound
from ottla.protocol.internal.framing import CoordinatorRecord
from ottla.protocol.primitives import DecodeError

UPGRADING: Final = frozenset({"upgrade", "bidirectional"})
DOWNGRADING: Final = frozenset({"downgrade", "bidirectional"})


def check_upgrade(group: ClassicGroup, policy: str, max_size: int) -> None:
    """Raise `GroupIdNotFound`, as for no group at all, where a classic group cannot become a consumer group."""
    if policy not in UPGRADING:
        raise GroupIdNotFound(
            f"group {group.group_id} is a classic group, and group.consumer.migration.policy keeps it"
        )
    if not group.uses_consumer_protocol:
        raise GroupIdNotFound(f"group {group.group_id} is a classic group of type {group.protocol_type!r}")
    if len(group.members) > max_size:
        raise GroupIdNotFound(f"group {group.group_id} has more members than group.consumer.max.size lets in")


def upgrade_records(group: ClassicGroup, topics: GroupTopics) -> list[CoordinatorRecord]:
    """Return what makes a consumer group of a classic one, in the epoch of its generation.

    Raises `GroupIdNotFound` where a member's subscription or assignment cannot be read.
    """
    upgraded = ConsumerGroup(group.group_id, group_epoch=group.generation_id, assignment_epoch=group.generation_id)
    for member in group.members.values():
        try:
            upgraded.members[member.member_id] = moved = _upgrade_member(group, member, topics)
        except DecodeError as error:
            raise GroupIdNotFound(f"group {group.group_id} cannot become a consumer group: {error}") from None
        upgraded.targets[member.member_id] = frozenset(moved.assigned)
    return [*group.tombstones(), *upgraded.records()]


def _upgrade_member(group: ClassicGroup, member: MemberOfClassicGroup, topics: GroupTopics) -> ConsumerMember:
    subscription = decode_subscription(member.metadata(group.protocol_name) or member.protocols[0].metadata)
    assigned = decode_assignment(member.assignment, topics) if member.assignment else frozenset()
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topics=frozenset(subscription.topics),
        classic=ClassicMember(member.session_timeout_ms, tuple(member.protocols)),
        member_epoch=group.generation_id,
        previous_member_epoch=group.generation_id,
        assigned=dict.fromkeys(assigned, group.generation_id),
    )


def is_downgrade_due(group: ConsumerGroup, policy: str, max_size: int) -> bool:
    """Say whether a consumer group that its members do not need any more may and can become a classic group."""
    return policy in DOWNGRADING and group.has_only_classic_members() and len(group.members) <= max_size


def downgrade_records(group: ConsumerGroup, topics: GroupTopics, now_ms: int) -> list[CoordinatorRecord]:
    """Return what makes a classic group, in the generation of the group's epoch, of a consumer group."""
    downgraded = ClassicGroup(
        group.group_id,
        state=ClassicState.STABLE,
        state_timestamp_ms=now_ms,
        protocol_type=PROTOCOL_TYPE,
        generation_id=group.group_epoch,
    )
    assignments: dict[str, bytes] = {}
    for member in group.members.values():
        assert member.classic is not None, "only groups of classic members are downgraded"
        protocols = member.classic.protocols
        assignments[member.member_id] = encode_assignment(
            group.target_of(member.member_id), protocols[0].metadata, topics
        )
        downgraded.add(
            MemberOfClassicGroup(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.classic.session_timeout_ms,
                protocols,
            ),
            PROTOCOL_TYPE,
        )
    downgraded.protocol_name = downgraded.choose_protocol()
    return [*group.tombstones(), downgraded.record(assignments)]
