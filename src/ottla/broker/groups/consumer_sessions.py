"""`ConsumerProtocol`: serves the consumer groups of one shard. Heartbeats, members that leave, and time.

Has `consumer_decisions` decide, commits the records, keeps the timers, and answers once what it says is durable:

* a *session* ends a member that is silent; every heartbeat moves it;
* a *revocation* ends a member that does not give up partitions within its rebalance timeout;
* patterns are matched against all topics apart from heartbeats, at most every ten seconds for a group.

Members of classic groups become members here when somebody joins by the new protocol (`migration`), and back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final
from uuid import UUID

from ottla.broker.groups.classic import ClassicGroup
from ottla.broker.groups.consumer import GROUP_KEYS, NEVER, ConsumerGroup
from ottla.broker.groups.consumer_decisions import (
    Circumstances,
    Draft,
    decide_after_removal,
    decide_heartbeat,
    decide_patterns,
    decide_static_leave,
    remove_members,
)
from ottla.broker.groups.consumer_member import JOIN_EPOCH, LEAVE_EPOCH, ConsumerMember, MemberState
from ottla.broker.groups.consumer_requests import Heartbeat, HeartbeatOutcome, HeartbeatReply
from ottla.broker.groups.deadlines import Deadline
from ottla.broker.groups.group_settings import GroupSettings
from ottla.broker.groups.group_topics import GroupTopics
from ottla.broker.groups.migration import check_upgrade, downgrade_records, is_downgrade_due, upgrade_records
from ottla.broker.groups.rebalance import ClassicProtocol, GroupServices
from ottla.broker.groups.shard import GroupShard, coordinator_error
from ottla.errors import GroupIdNotFound, KafkaError, RebalanceInProgress
from ottla.model import format_uuid
from ottla.protocol.internal.framing import CoordinatorRecord
from ottla.protocol.internal.group_records import ConsumerGroupMemberMetadataKey, ConsumerGroupMetadataKey

_log = logging.getLogger(__name__)

PATTERNS_REST_MS: Final = 10_000
"""Patterns of a group are not matched more often than this."""


@dataclass(slots=True)
class MemberTimers:
    """What ends a member unless it speaks in time."""

    deadlines: dict[str, Deadline] = field(default_factory=dict)

    def cancel(self, name: str) -> None:
        deadline = self.deadlines.pop(name, None)
        if deadline is not None:
            deadline.cancel()

    def cancel_all(self) -> None:
        for name in list(self.deadlines):
            self.cancel(name)


class ConsumerProtocol:
    """Serves the consumer groups of one shard."""

    __slots__ = ("_classic", "_matched_versions", "_matching", "_services", "_shard", "_timers", "settings", "topics")

    def __init__(
        self,
        shard: GroupShard,
        services: GroupServices,
        settings: GroupSettings,
        topics: GroupTopics,
        classic: ClassicProtocol,
    ) -> None:
        """`classic` takes over groups whose last member of the new protocol has gone."""
        self._shard = shard
        self._services = services
        self._classic = classic
        self.settings = settings
        self.topics = topics
        self._timers: dict[tuple[str, str], MemberTimers] = {}
        self._matching: set[str] = set()
        self._matched_versions: dict[str, int] = {}
        for key in GROUP_KEYS:
            shard.on_replay(key, self._replay)
        shard.on_loaded(self._start_sessions)

    # -- groups ---------------------------------------------------------------------------------------------------

    def find(self, group_id: str) -> ConsumerGroup | None:
        group = self._shard.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def get(self, group_id: str) -> ConsumerGroup:
        """Raises `GroupIdNotFound`, also where the group is one of another kind; Kafka's tools show its words."""
        group = self._shard.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a consumer group.")
        return group

    def circumstances(self, group_id: str) -> Circumstances:
        return Circumstances(
            self.topics,
            self.settings.assignors,
            self.settings.integer(group_id, "consumer.assignment.interval.ms"),
            self.settings.max_size,
            self._services.clock.wall_ms(),
        )

    def commit(self, draft: Draft) -> None:
        """Make what was decided so. Raises `KafkaStorageError`, and then nothing has changed."""
        group_id = draft.group.group_id
        replaced = self._shard.groups.get(group_id)
        if isinstance(replaced, ClassicGroup) and draft.records:
            for member in list(replaced.members.values()):
                member.dismiss(RebalanceInProgress(), tell_id=True)
        self._shard.commit(draft.records)
        group = self.find(group_id)
        if group is not None:
            group.hashed_version = draft.group.hashed_version

    # -- heartbeats -----------------------------------------------------------------------------------------------

    def heartbeat(self, beat: Heartbeat, reply: HeartbeatReply) -> None:
        """A member joins, goes on or leaves (checked by `check_heartbeat`); the answer comes when that is durable."""
        try:
            outcome = self._leave(beat) if beat.is_leaving else self._join_or_go_on(beat)
        except KafkaError as error:
            reply(coordinator_error(error) or error)
            return
        self._shard.when_durable(lambda error: reply(outcome if error is None else error))

    def _join_or_go_on(self, beat: Heartbeat) -> HeartbeatOutcome:
        if not beat.member_id:
            beat = replace(beat, member_id=format_uuid(UUID(self._services.new_uuid()).bytes))
        draft = self._draft_for(beat)
        before, member = decide_heartbeat(draft, beat, self.circumstances(beat.group_id))
        self.commit(draft)
        self.start_session(beat.group_id, member)
        self.watch_revocation(beat.group_id, before, member)
        self._maybe_match_patterns(self.get(beat.group_id))
        has_changed = before.assigned.keys() != member.assigned.keys()
        is_told = beat.member_epoch == JOIN_EPOCH or beat.is_complete or has_changed
        return HeartbeatOutcome(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self.settings.integer(beat.group_id, "consumer.heartbeat.interval.ms"),
            assigned=member.assigned.keys() if is_told else None,
        )

    def _draft_for(self, beat: Heartbeat) -> Draft:
        """Return the group to speak to: as it is, new, or made of a classic one. Nothing is written yet."""
        found = self._shard.groups.get(beat.group_id)
        if isinstance(found, ConsumerGroup):
            return Draft(found)
        if found is None and beat.member_epoch == JOIN_EPOCH:
            return Draft(ConsumerGroup(beat.group_id))
        if isinstance(found, ClassicGroup) and beat.member_epoch == JOIN_EPOCH:
            if found.is_empty:
                return Draft(ConsumerGroup(beat.group_id), found.tombstones())
            check_upgrade(found, self.settings.migration_policy, self.settings.max_size)
            records = upgrade_records(found, self.topics)
            return Draft(_made_of(beat.group_id, records), records)
        raise GroupIdNotFound(f"there is no consumer group {beat.group_id}")

    # -- leaving --------------------------------------------------------------------------------------------------

    def _leave(self, beat: Heartbeat) -> HeartbeatOutcome:
        group = self.get(beat.group_id)
        member = group.get_claimed_member(beat.member_id, beat.instance_id)
        if beat.member_epoch == LEAVE_EPOCH:
            self.remove(group, [member.member_id])
        else:
            draft = Draft(group)
            decide_static_leave(draft, member)
            self.commit(draft)
            self.timers_of(beat.group_id, member.member_id).cancel("revocation")
        return HeartbeatOutcome(member_id=beat.member_id, member_epoch=beat.member_epoch)

    def remove(self, group: ConsumerGroup, member_ids: Iterable[str]) -> None:
        """Take members out. A group that only classic members are left in becomes a classic group and rebalances."""
        draft = Draft(group)
        remove_members(draft, member_ids)
        classic = self.maybe_downgrade(draft)
        if classic is None:
            decide_after_removal(draft, self.topics)
            self.commit(draft)
        elif classic.can_rebalance():
            self._classic.prepare_rebalance(classic, "the last member of the new protocol has gone")

    def maybe_downgrade(self, draft: Draft) -> ClassicGroup | None:
        """Commit a draft as a classic group of the same epoch where all its members speak that protocol."""
        group = draft.group
        if not is_downgrade_due(group, self.settings.migration_policy, self.settings.max_classic_size):
            return None
        now_ms = self._services.clock.wall_ms()
        self._shard.commit([*draft.records, *downgrade_records(group, self.topics, now_ms)])
        classic = self._classic.find_or_create(group.group_id)
        self._classic.start_sessions(classic)
        return classic

    # -- time -----------------------------------------------------------------------------------------------------

    def timers_of(self, group_id: str, member_id: str) -> MemberTimers:
        return self._timers.setdefault((group_id, member_id), MemberTimers())

    def start_session(self, group_id: str, member: ConsumerMember) -> None:
        """The member was heard of."""
        milliseconds = (
            self.settings.integer(group_id, "consumer.session.timeout.ms")
            if member.classic is None
            else member.classic.session_timeout_ms
        )
        self.set_deadline(group_id, member.member_id, "session", milliseconds)

    def watch_revocation(self, group_id: str, before: ConsumerMember, member: ConsumerMember) -> None:
        """Give a member its rebalance timeout to give partitions up, from when it was told to."""
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            self.timers_of(group_id, member.member_id).cancel("revocation")
        elif member != before and member.classic is None:
            self.set_deadline(group_id, member.member_id, "revocation", member.rebalance_timeout_ms)

    def set_deadline(self, group_id: str, member_id: str, name: str, milliseconds: int) -> None:
        """Remove the member so long from now, unless this is set anew or cancelled before."""
        deadlines = self.timers_of(group_id, member_id).deadlines
        deadline = deadlines.get(name)
        if deadline is None:
            expire = partial(self._expire, group_id, member_id, name)
            deadline = deadlines[name] = self._services.deadline(expire)
        deadline.set(milliseconds)

    def _expire(self, group_id: str, member_id: str, name: str) -> None:
        group = self.find(group_id)
        if group is None or member_id not in group.members:
            return
        _log.info("a member is gone", extra={"group": group_id, "member": member_id, "over": name})
        try:
            self.remove(group, [member_id])
        except KafkaError as error:
            _log.warning("a member cannot be removed", extra={"group": group_id, "member": member_id, "error": error})

    def _start_sessions(self) -> None:
        """Give every member that was loaded a new session."""
        for group in self._shard.groups.values():
            if isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    self.start_session(group.group_id, member)
                    if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
                        milliseconds = member.rebalance_timeout_ms
                        self.set_deadline(group.group_id, member.member_id, "revocation", milliseconds)

    # -- patterns -------------------------------------------------------------------------------------------------

    def _maybe_match_patterns(self, group: ConsumerGroup) -> None:
        """Have patterns matched soon where one was not yet, topics are new, or it was long ago."""
        patterns = group.subscribed_patterns()
        if not patterns or group.group_id in self._matching:
            return
        known = [group.patterns[pattern] for pattern in patterns if pattern in group.patterns]
        last_ms = max((matched.timestamp_ms for matched in known), default=NEVER)
        elapsed_ms = self._services.clock.wall_ms() - last_ms
        has_new_topics = self._matched_versions.get(group.group_id, -1) < self.topics.new_topics_version
        is_old = elapsed_ms >= self._services.integer("group.consumer.regex.refresh.interval.ms")
        if elapsed_ms > PATTERNS_REST_MS and (len(known) < len(patterns) or has_new_topics or is_old):
            self._matching.add(group.group_id)
            now = self._services.clock.monotonic()
            self._services.timers.call_at(now, partial(self._match_patterns, group.group_id))

    def _match_patterns(self, group_id: str) -> None:
        self._matching.discard(group_id)
        group = self.find(group_id)
        if group is None:
            return
        self._matched_versions[group_id] = self.topics.new_topics_version
        draft = Draft(group)
        try:
            decide_patterns(draft, self.topics, self.topics.version, self._services.clock.wall_ms())
            self.commit(draft)
        except KafkaError as error:
            _log.warning("what patterns match cannot be stored", extra={"group": group_id, "error": error})

    # -- replay ---------------------------------------------------------------------------------------------------

    def _replay(self, record: CoordinatorRecord) -> None:
        group_id: str = record.key.group_id  # type: ignore[attr-defined]  # every key of GROUP_KEYS has it
        group = self.find(group_id)
        if group is None:
            if record.value is None:
                return
            group = self._shard.groups[group_id] = ConsumerGroup(group_id)
        group.replay(record)
        if record.value is None and isinstance(record.key, ConsumerGroupMemberMetadataKey):
            self._forget_member(group_id, record.key.member_id)
        elif record.value is None and isinstance(record.key, ConsumerGroupMetadataKey):
            del self._shard.groups[group_id]
            self._matched_versions.pop(group_id, None)

    def _forget_member(self, group_id: str, member_id: str) -> None:
        timers = self._timers.pop((group_id, member_id), None)
        if timers is not None:
            timers.cancel_all()


def _made_of(group_id: str, records: Iterable[CoordinatorRecord]) -> ConsumerGroup:
    group = ConsumerGroup(group_id)
    for record in records:
        group.replay(record)
    return group
