"""What becomes of a consumer group when a member says something or goes. Decides only: the result is records.

A decision works on a draft, which replays each record that it is given as the shard will, so that later steps of the
same decision see earlier ones. The steps of a heartbeat, in order:

1. find the member, and check that it may speak for who it says to be;
2. take over what it says of itself;
3. raise the group's epoch when that, or the topics themselves, changed what anybody shall have;
4. compute a new target when the group's epoch is ahead of the target's, at most once per assignment interval;
5. take the member a step further towards its target (`reconciliation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TypeVar

from ottla.broker.groups.assignors import ASSIGNORS, AssignableMember, TopicIdPartition
from ottla.broker.groups.consumer import NEVER, UNKNOWN_VERSION, ConsumerGroup
from ottla.broker.groups.consumer_member import JOIN_EPOCH, STATIC_LEAVE_EPOCH, ConsumerMember
from ottla.broker.groups.consumer_requests import Heartbeat
from ottla.broker.groups.group_topics import GroupTopics
from ottla.broker.groups.reconciliation import Surroundings, Target, reconcile
from ottla.broker.groups.shard import tombstone
from ottla.broker.groups.topic_patterns import MatchedTopics, check_pattern, match_topics, pattern_key
from ottla.errors import FencedMemberEpoch, GroupMaxSizeReached, UnreleasedInstanceId
from ottla.model import TopicId
from ottla.protocol.internal.framing import CoordinatorRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What decisions depend on besides the group: topics, settings, the time."""

    topics: GroupTopics
    assignors: Sequence[str]
    """Names of the assignors that are allowed; the first is used where no member wants a certain one."""
    assignment_interval_ms: int
    max_size: int
    now_ms: int


class Draft:
    """A group as it will be once `records` are committed. The group that it was made of stays as it is."""

    __slots__ = ("_is_copy", "group", "records")

    def __init__(self, group: ConsumerGroup, records: Iterable[CoordinatorRecord] = ()) -> None:
        """`group` may be a new one, or one that `records` make."""
        self.group = group
        self.records: list[CoordinatorRecord] = list(records)
        self._is_copy = False

    def apply(self, *records: CoordinatorRecord) -> None:
        if not self._is_copy:
            self.group = self.group.copy()
            self._is_copy = True
        for record in records:
            self.records.append(record)
            self.group.replay(record)


# -- a member speaks --------------------------------------------------------------------------------------------------


def decide_heartbeat(draft: Draft, beat: Heartbeat, around: Circumstances) -> tuple[ConsumerMember, ConsumerMember]:
    """Have a member join or go on; returns it as it was and as it is then. Raises what it must know."""
    check_size(draft.group, beat.member_id, around.max_size)
    before = _find_member(draft, beat)
    said = replace(
        before,
        instance_id=_newer(beat.instance_id, before.instance_id),
        rack_id=_newer(beat.rack_id, before.rack_id),
        client_id=beat.client_id,
        client_host=beat.client_host,
        rebalance_timeout_ms=_newer(beat.rebalance_timeout_ms, before.rebalance_timeout_ms),
        subscribed_topics=before.subscribed_topics
        if beat.subscribed_topics is None
        else frozenset(beat.subscribed_topics),
        subscribed_pattern=_newer(beat.subscribed_pattern, before.subscribed_pattern),
        server_assignor=_newer(beat.server_assignor, before.server_assignor),
        classic=None,
    )
    return before, advance(draft, before, said, beat.owned, around)


def check_size(group: ConsumerGroup, member_id: str, max_size: int) -> None:
    """Raise `GroupMaxSizeReached` for somebody new in a group that is full."""
    if len(group.members) >= max_size and member_id not in group.members:
        raise GroupMaxSizeReached(f"group {group.group_id} has {max_size} members already")


def advance(
    draft: Draft,
    before: ConsumerMember,
    said: ConsumerMember,
    owned: AbstractSet[TopicIdPartition] | None,
    around: Circumstances,
) -> ConsumerMember:
    """Take over what a member says of itself, and take it a step further; returns it as it is then."""
    has_new_names = said.subscribed_topics != before.subscribed_topics
    has_new_pattern = said.subscribed_pattern != before.subscribed_pattern
    if has_new_pattern:
        _check_new_pattern(draft.group, said.subscribed_pattern)
    default = around.assignors[0]
    assignor = draft.group.choose_assignor(default)
    if said != before or said.member_id not in draft.group.members:
        draft.apply(said.subscription_record(draft.group.group_id))
    if has_new_pattern:
        _drop_unused_patterns(draft)
    is_pattern_known = not said.subscribed_pattern or said.subscribed_pattern in draft.group.patterns
    has_new_topics = has_new_names or (has_new_pattern and is_pattern_known)
    has_new_assignor = draft.group.choose_assignor(default) != assignor
    maybe_raise_epoch(draft, around.topics, is_due=has_new_topics or has_new_assignor)
    _maybe_assign(draft, around)
    return _reconcile(draft, said, owned, around, is_changed=has_new_names or has_new_pattern)


def _newer(said: T | None, known: T) -> T:
    return known if said is None else said


# -- 1. who speaks ----------------------------------------------------------------------------------------------------


def _find_member(draft: Draft, beat: Heartbeat) -> ConsumerMember:
    if beat.member_epoch == JOIN_EPOCH:
        return join_member(draft, beat.member_id, beat.instance_id)
    member = draft.group.get_claimed_member(beat.member_id, beat.instance_id)
    _check_epoch(member, beat)
    return member


def join_member(draft: Draft, member_id: str, instance_id: str | None, *, is_classic: bool = False) -> ConsumerMember:
    """Return who joins: a new member, one that starts anew, or one that takes the place of its static predecessor.

    A place is taken over only once its member has left for now, or where one of the two speaks the classic protocol,
    which knows no such leaving. Raises `UnreleasedInstanceId`.
    """
    group = draft.group
    holder = None if instance_id is None else group.find_static_member(instance_id)
    if holder is None:
        return group.members.get(member_id) or ConsumerMember(member_id=member_id)
    if not (holder.has_left_for_now or is_classic or holder.classic is not None):
        raise UnreleasedInstanceId(f"member {holder.member_id} is {instance_id} still")
    member = replace(holder, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH)
    draft.apply(
        *group.member_tombstones(holder.member_id),
        member.subscription_record(group.group_id),
        group.target_record(member_id, group.target_of(holder.member_id)),
        member.assignment_record(group.group_id),
    )
    return member


def _check_epoch(member: ConsumerMember, beat: Heartbeat) -> None:
    """Raise `FencedMemberEpoch` for a member that is not where this broker knows it to be.

    One epoch behind is fine where the last answer may have got lost: then it owns nothing that it does not have.
    """
    if beat.member_epoch == member.member_epoch:
        return
    is_one_behind = beat.member_epoch == member.previous_member_epoch and beat.member_epoch < member.member_epoch
    if not is_one_behind or beat.owned is None or not beat.owned <= member.assigned.keys():
        raise FencedMemberEpoch(
            f"member {member.member_id} is in epoch {member.member_epoch}, not {beat.member_epoch}; it must join again"
        )


# -- 2. what it wants -------------------------------------------------------------------------------------------------


def _check_new_pattern(group: ConsumerGroup, pattern: str) -> None:
    if pattern and not group.pattern_subscribers(pattern):
        check_pattern(pattern)


def _drop_unused_patterns(draft: Draft) -> None:
    unused = draft.group.patterns.keys() - draft.group.subscribed_patterns()
    for pattern in sorted(unused):
        draft.apply(tombstone(pattern_key(draft.group.group_id, pattern)))


def decide_patterns(draft: Draft, topics: GroupTopics, matched_version: int, now_ms: int) -> None:
    """Match the patterns of all members anew; the group's epoch rises where that finds other topics than before."""
    is_due = False
    names = list(topics.names())
    for pattern in sorted(draft.group.subscribed_patterns()):
        known = draft.group.patterns.get(pattern)
        found = MatchedTopics(match_topics(pattern, names), matched_version, now_ms)
        is_due = is_due or found.topics != (frozenset() if known is None else known.topics)
        draft.apply(found.record(draft.group.group_id, pattern))
    draft.group.hashed_version = UNKNOWN_VERSION  # a pattern that was dropped before may have changed what is wanted
    maybe_raise_epoch(draft, topics, is_due=is_due)


# -- 3. the group's epoch ---------------------------------------------------------------------------------------------


def maybe_raise_epoch(draft: Draft, topics: GroupTopics, *, is_due: bool) -> None:
    """Raise the epoch where that is due, or where the topics have changed since they were last looked at."""
    group = draft.group
    if not is_due and group.hashed_version == topics.version:
        return
    metadata_hash = topics.hash(group.subscribed_topics())
    if is_due or metadata_hash != group.metadata_hash:
        draft.apply(group.epoch_record(group.group_epoch + 1, metadata_hash))
    draft.group.hashed_version = topics.version


# -- 4. the target ----------------------------------------------------------------------------------------------------


def _maybe_assign(draft: Draft, around: Circumstances) -> None:
    group = draft.group
    is_soon = around.now_ms < group.assignment_timestamp_ms + around.assignment_interval_ms
    if group.group_epoch == group.assignment_epoch or is_soon:
        return
    topics = around.topics.find(group.subscribed_topics())
    assignor = ASSIGNORS[group.choose_assignor(around.assignors[0])]
    targets = assignor(
        {member_id: _assignable(group, member_id, around.topics) for member_id in sorted(group.members)},
        {topic.topic_id: len(topic.partitions) for topic in topics},
    )
    changed = [
        group.target_record(member_id, target)
        for member_id, target in targets.items()
        if target != group.targets.get(member_id)
    ]
    draft.apply(*changed, group.assignment_epoch_record(group.group_epoch, around.now_ms))


def _assignable(group: ConsumerGroup, member_id: str, topics: GroupTopics) -> AssignableMember:
    member = group.members[member_id]
    wanted = _wanted(group, member, topics)
    return AssignableMember(member.instance_id, wanted, group.target_of(member_id))


def _wanted(group: ConsumerGroup, member: ConsumerMember, topics: GroupTopics) -> frozenset[TopicId]:
    return frozenset(topic.topic_id for topic in topics.find(group.topics_of(member)))


# -- 5. the member's next step ----------------------------------------------------------------------------------------


def _reconcile(
    draft: Draft,
    said: ConsumerMember,
    owned: AbstractSet[TopicIdPartition] | None,
    around: Circumstances,
    *,
    is_changed: bool,
) -> ConsumerMember:
    group = draft.group
    if said.is_reconciled_to(group.assignment_epoch) and not is_changed:
        return said
    following = reconcile(
        said,
        Target(group.assignment_epoch, group.target_of(said.member_id)),
        Surroundings(
            owned=owned,
            is_held=group.holders.__contains__,
            wanted=_wanted(group, said, around.topics),
            has_changed_its_mind=is_changed,
        ),
    )
    if following != said:
        draft.records.append(following.assignment_record(group.group_id))
    return following


# -- members go -------------------------------------------------------------------------------------------------------


def remove_members(draft: Draft, member_ids: Iterable[str]) -> None:
    """Take members out; what becomes of the group then is for the caller to decide."""
    for member_id in member_ids:
        draft.apply(*draft.group.member_tombstones(member_id))
    _drop_unused_patterns(draft)


def decide_after_removal(draft: Draft, topics: GroupTopics) -> None:
    """Members have gone, and their partitions are free. A group that nobody is left in is as if it were assigned."""
    maybe_raise_epoch(draft, topics, is_due=True)
    group = draft.group
    if group.is_empty:
        draft.apply(group.assignment_epoch_record(group.group_epoch, NEVER))


def decide_static_leave(draft: Draft, member: ConsumerMember) -> None:
    """Keep a static member's place and partitions until it is back, or its session is over."""
    left = replace(
        member,
        member_epoch=STATIC_LEAVE_EPOCH,
        assigned=dict.fromkeys(member.assigned, JOIN_EPOCH),
        pending_revocation={},
    )
    draft.apply(left.assignment_record(draft.group.group_id))
