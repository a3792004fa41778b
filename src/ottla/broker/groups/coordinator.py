"""`GroupCoordinator`: the door to all groups. Finds a group's shard and has the right state machine decide.

A group lives in the partition of `__consumer_offsets` that Kafka's hash of its id gives. The shards are loaded when the
broker starts, or made with the topic, which is created when somebody first looks for a coordinator. Where there is no
shard for a group, `NotCoordinator` sends clients to look for it, which makes it. A partition that cannot be loaded has
no shard until the next start, as in Kafka: its groups are answered `NotCoordinator`, and nothing is written to it.

How a kind of group plugs in: `group.Group` is what it shows to everybody; its protocol class registers with each shard
what its records do (`_Kinds`); requests of classic members go to the protocol of the kind that their group has.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ottla.broker.groups.classic import ClassicGroup
from ottla.broker.groups.classic_members import ClassicMembers
from ottla.broker.groups.consumer import ConsumerGroup
from ottla.broker.groups.consumer_description import DescribedConsumerGroup, describe_consumer_group
from ottla.broker.groups.consumer_requests import Heartbeat, HeartbeatReply, check_heartbeat
from ottla.broker.groups.consumer_sessions import ConsumerProtocol
from ottla.broker.groups.deadlines import Deadline
from ottla.broker.groups.foreign import ForeignGroup
from ottla.broker.groups.group import Group, GroupType, MemberClaim
from ottla.broker.groups.group_settings import GroupSettings
from ottla.broker.groups.group_topics import GroupTopics
from ottla.broker.groups.offset_commits import OffsetCommits
from ottla.broker.groups.offsets import NO_EXPIRY, CommittedOffset, OffsetToCommit
from ottla.broker.groups.rebalance import ClassicProtocol, GroupServices
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
from ottla.broker.metadata.image import MetadataView
from ottla.broker.read_only import refuse_change
from ottla.engine import Shard, StateStore
from ottla.errors import (
    GroupIdNotFound,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    KafkaError,
    KafkaStorageError,
    NotCoordinator,
    UnsupportedVersion,
)
from ottla.model import OFFSETS_TOPIC, TopicPartition
from ottla.protocol.internal.framing import CoordinatorRecord
from ottla.records.hashing import coordinator_partition

_log = logging.getLogger(__name__)

MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class _Kinds:
    """A shard with the protocols of all kinds of groups in it."""

    shard: GroupShard
    classic: ClassicProtocol
    consumer: ConsumerProtocol
    offset_commits: OffsetCommits
    classic_members: ClassicMembers
    """Members of consumer groups that speak the classic protocol."""


class GroupCoordinator:
    """Serves all groups of this broker. Runs on its loop; nothing waits, answers that must wait are called back."""

    def __init__(
        self,
        *,
        store: StateStore,
        services: GroupServices,
        metadata: MetadataView,
        lead: Callable[[Shard], int],
        is_read_only: bool = False,
    ) -> None:
        """`lead` returns the leader epoch of a shard's partition, recorded before the first append to it.

        With `is_read_only` there are groups as ever, but offsets are neither committed, deleted nor expired.
        """
        self._is_read_only = is_read_only
        self._store = store
        self._services = services
        self._settings = GroupSettings(metadata, services.settings)
        self._topics = GroupTopics(metadata)
        self._lead = lead
        self._kinds: list[_Kinds | None] = []
        """By partition; None for one that could not be loaded."""
        self._expiry: Deadline = services.deadline(self._expire_offsets)

    # -- shards ---------------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """True when there are shards."""
        return bool(self._kinds)

    def open(self, partitions: int) -> None:
        """Load the shards: the topic is there, with so many partitions. More that it gets later are not used.

        One that cannot be loaded is left out, with a line in the log; all others serve.
        """
        if self._kinds:
            return
        with _collector_paused():
            self._kinds = [self._load_shard(number) for number in range(partitions)]
        if not self._is_read_only:
            self._expiry.set(self._services.integer("offsets.retention.check.interval.ms"))

    def close(self) -> None:
        """Send away who waits: the broker stops, or the topic is gone."""
        kinds = list(self._loaded())
        self._kinds = []
        self._expiry.cancel()
        for kind in kinds:
            kind.shard.close()

    def _load_shard(self, number: int) -> _Kinds | None:
        kinds = self._make_shard(number)
        try:
            kinds.shard.load()
        except KafkaStorageError as error:
            _log.error("%s. Its groups have no coordinator until a start finds it whole; all others are served", error)
            return None
        return kinds

    def _make_shard(self, number: int) -> _Kinds:
        shard = GroupShard(Shard(OFFSETS_TOPIC, number), self._store, lead=self._lead, make_simple_group=ClassicGroup)
        classic = ClassicProtocol(shard, self._services)
        consumer = ConsumerProtocol(shard, self._services, self._settings, self._topics, classic)
        return _Kinds(
            shard,
            classic,
            consumer,
            OffsetCommits(shard, self._services),
            ClassicMembers(shard, self._services, consumer),
        )

    def partition_of(self, group_id: str) -> int:
        """The partition that a group lives in. Raises `NotCoordinator` while there is none."""
        if not self._kinds:
            raise NotCoordinator
        return coordinator_partition(group_id, len(self._kinds))

    def _kind(self, group_id: str) -> _Kinds:
        number = self.partition_of(group_id)
        kind = self._kinds[number]
        if kind is None:
            raise NotCoordinator(f"{OFFSETS_TOPIC}-{number} could not be loaded at the start: see the broker's log")
        return kind

    def _loaded(self) -> Iterator[_Kinds]:
        return (kind for kind in self._kinds if kind is not None)

    def find(self, group_id: str) -> Group | None:
        """Return a group of any kind. Raises `NotCoordinator`."""
        return self._kind(group_id).shard.groups.get(group_id)

    def _get(self, group_id: str) -> Group:
        group = self.find(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        return group

    def groups(self) -> Iterator[Group]:
        """All groups, but those that could not be loaded."""
        return (group for kind in self._loaded() for group in kind.shard.groups.values())

    # -- classic members ------------------------------------------------------------------------------------------

    def join(self, request: JoinRequest, reply: JoinReply) -> None:
        """JoinGroup. The answer comes with the next generation."""
        try:
            self._check_join(request)
        except KafkaError as error:
            reply(JoinOutcome(member_id=request.member_id, error=error))
            return
        try:
            kind = self._kind(request.group_id)
            group = self._consumer_group_to_join(kind, request.group_id)
        except KafkaError as error:
            reply(JoinOutcome(member_id="", error=error))
            return
        if isinstance(kind.shard.groups.get(request.group_id), ForeignGroup):
            reply(JoinOutcome(member_id="", error=InconsistentGroupProtocol()))
            return
        if group is None:
            kind.classic.join(request, reply)
        else:
            kind.classic_members.join(group, request, reply)

    def _consumer_group_to_join(self, kind: _Kinds, group_id: str) -> ConsumerGroup | None:
        """Return the consumer group that a classic member joins; one without members makes way for a classic group."""
        group = kind.consumer.find(group_id)
        if group is None or not group.is_empty:
            return group
        _commit(kind.shard, group.tombstones())
        return None

    def sync(self, request: SyncRequest, reply: SyncReply) -> None:
        """SyncGroup. The answer comes when the leader has assigned."""
        try:
            kind = self._kind_for_member(request.group_id)
        except KafkaError as error:
            reply(SyncOutcome(error=error))
            return
        group = kind.consumer.find(request.group_id)
        if group is None:
            kind.classic.sync(request, reply)
        else:
            kind.classic_members.sync(group, request, reply)

    def heartbeat(self, group_id: str, member_id: str, group_instance_id: str | None, generation_id: int) -> None:
        """Heartbeat. Raises what the member must know."""
        kind = self._kind_for_member(group_id)
        group = kind.consumer.find(group_id)
        if group is None:
            kind.classic.heartbeat(group_id, member_id, group_instance_id, generation_id)
        else:
            kind.classic_members.heartbeat(group, member_id, group_instance_id, generation_id)

    def leave(
        self, group_id: str, leaving: Sequence[LeavingMember], reply: Callable[[list[LeaveOutcome]], None]
    ) -> None:
        """LeaveGroup. Raises what concerns no member in particular."""
        kind = self._kind_for_member(group_id)
        group = kind.consumer.find(group_id)
        if group is None:
            kind.classic.leave(group_id, leaving, reply)
        else:
            kind.classic_members.leave(group, leaving, reply)

    def _check_join(self, request: JoinRequest) -> None:
        """Raise what is wrong with the request itself, whoever coordinates the group."""
        if not request.group_id:
            raise InvalidGroupId("only offsets can be committed without a group id")
        shortest = self._services.integer("group.min.session.timeout.ms")
        longest = self._services.integer("group.max.session.timeout.ms")
        if not shortest <= request.session_timeout_ms <= longest:
            raise InvalidSessionTimeout(f"session timeouts are between {shortest} and {longest} ms here")

    def _kind_for_member(self, group_id: str) -> _Kinds:
        if not group_id:
            raise InvalidGroupId("only offsets can be committed without a group id")
        return self._kind(group_id)

    # -- members of consumer groups -------------------------------------------------------------------------------

    def consumer_heartbeat(self, beat: Heartbeat, reply: HeartbeatReply) -> None:
        """ConsumerGroupHeartbeat: join, go on, leave. The answer comes when what it says is durable."""
        try:
            self._check_consumer_groups_are_served()
            check_heartbeat(beat, self._settings.assignors)
            kind = self._kind(beat.group_id)
        except KafkaError as error:
            reply(error)
        else:
            kind.consumer.heartbeat(beat, reply)

    def describe_consumer(self, group_id: str) -> DescribedConsumerGroup:
        """Return a consumer group.

        Raises `GroupIdNotFound`, also for a group of another kind, `NotCoordinator`, and `UnsupportedVersion` where
        `group.version` has the new protocol switched off.
        """
        self._check_consumer_groups_are_served()
        if not group_id:
            raise InvalidGroupId
        return describe_consumer_group(self._kind(group_id).consumer.get(group_id), self._topics, self._settings)

    def _check_consumer_groups_are_served(self) -> None:
        if not self._settings.are_consumer_groups_served:
            raise UnsupportedVersion("groups of the new protocol are switched off here")

    def on_topics_changed(self, *, are_new: bool) -> None:
        """Topics were created (`are_new`), deleted, or have more partitions."""
        self._topics.on_topics_changed(are_new=are_new)

    # -- offsets --------------------------------------------------------------------------------------------------

    def commit_offsets(
        self,
        group_id: str,
        claim: MemberClaim,
        offsets: Sequence[OffsetToCommit],
        reply: Callable[[list[KafkaError | None]], None],
        *,
        expire_timestamp_ms: int = NO_EXPIRY,
    ) -> None:
        """Keep offsets; the answer, in the order of `offsets`, comes when they are durable.

        Raises what concerns all of them: `GroupIdNotFound` for a member of a group that is not there, or
        `IllegalGeneration` if it does not know member epochs, and what `Group.check_offset_commit` raises.
        """
        if self._is_read_only:
            raise refuse_change()
        commits = self._kind(group_id).offset_commits
        commits.commit(group_id, claim, offsets, reply, expire_timestamp_ms=expire_timestamp_ms)

    def check_offset_fetch(self, group_id: str, claim: MemberClaim) -> None:
        """Raise what keeps somebody from reading a group's offsets."""
        group = self.find(group_id)
        if group is not None:
            group.check_offset_fetch(claim)

    def committed_offset(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        """Return a group's offset; None where it has none."""
        return self._kind(group_id).shard.offsets.find(group_id, partition.topic, partition.partition)

    def committed_offsets(self, group_id: str) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """Return all offsets of a group, by topic and partition."""
        return self._kind(group_id).shard.offsets.of_group(group_id)

    def is_offset_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """True while an open transaction is about to move this offset."""
        return self._kind(group_id).shard.offsets.is_pending(group_id, partition.topic, partition.partition)

    def when_durable(self, group_id: str, done: Callable[[KafkaError | None], None]) -> None:
        """Call `done` once what the group's shard has decided so far is durable; answers about it wait for that."""
        self._kind(group_id).shard.when_durable(done)

    def delete_offsets(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition],
        reply: Callable[[list[KafkaError | None]], None],
    ) -> None:
        """Forget offsets; the answer is in the order of `partitions`. Raises what concerns the whole group."""
        kind = self._kind_for_member(group_id)
        if self._is_read_only:
            raise refuse_change()
        kind.offset_commits.delete(self._get(group_id), partitions, reply)

    # -- groups as a whole ----------------------------------------------------------------------------------------

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[Group]:
        """Return the groups in one of these states and of one of these types, in any case; no filter lets all pass.

        A group of a kind that has no name here is left out.
        """
        wanted_states = {state.lower() for state in states}
        wanted_types = {group_type.lower() for group_type in types}
        return [
            group
            for group in self.groups()
            if group.group_type is not GroupType.UNKNOWN
            and (not wanted_states or group.state_name.lower() in wanted_states)
            and (not wanted_types or group.group_type.lower() in wanted_types)
        ]

    def describe_classic(self, group_id: str) -> ClassicGroup:
        """Return a classic group. Raises `GroupIdNotFound`, also for a group of another kind, and `NotCoordinator`."""
        if not group_id:
            raise InvalidGroupId
        group = self._get(group_id)
        if not isinstance(group, ClassicGroup):
            raise GroupIdNotFound(f"group {group_id} is not a classic group")
        return group

    def delete_group(self, group_id: str, reply: Callable[[KafkaError | None], None]) -> None:
        """Delete a group that nobody is in, with its offsets."""
        if not group_id:
            reply(InvalidGroupId())
            return
        try:
            if self._is_read_only:
                raise refuse_change()
            self._kind(group_id).offset_commits.delete_group(self._get(group_id), reply)
        except KafkaError as error:
            reply(error)

    def forget_topics(self, topics: Iterable[str]) -> None:
        """Topics were deleted: their offsets go, in all groups."""
        names = list(topics)
        for kind in self._loaded():
            kind.offset_commits.forget_topics(names)

    def _expire_offsets(self) -> None:
        self._expiry.set(self._services.integer("offsets.retention.check.interval.ms"))
        for kind in self._loaded():
            kind.offset_commits.expire()


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Look for no garbage meanwhile: a load makes much that stays, and looking through it takes as long as the load."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _commit(shard: GroupShard, records: Sequence[CoordinatorRecord]) -> None:
    """Commit what a client asked for. Raises what the client is told."""
    try:
        shard.commit(records)
    except KafkaError as error:
        raise coordinator_error(error) or error from error
