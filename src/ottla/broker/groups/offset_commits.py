"""`OffsetCommits`: what is done with committed offsets in one shard. They are kept, forgotten, and forgotten unasked.

Decides which offsets of a request are kept and which go when; who may commit and what members still need is the
group's to say. Answers are in the order that was asked in, and come when what they tell is durable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ottla.broker.groups.assignors import TopicIdPartition
from ottla.broker.groups.group import Group, MemberClaim
from ottla.broker.groups.offsets import (
    NO_EXPIRY,
    CommittedOffset,
    ExpiryRule,
    OffsetToCommit,
    offset_record,
    offset_tombstone,
)
from ottla.broker.groups.rebalance import GroupServices
from ottla.broker.groups.shard import GroupShard, coordinator_error
from ottla.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InvalidCommitOffsetSize,
    KafkaError,
    OffsetMetadataTooLarge,
    RecordListTooLarge,
)
from ottla.model import TopicId, TopicPartition
from ottla.protocol.internal.framing import CoordinatorRecord

_log = logging.getLogger(__name__)

MINUTE_MS: Final = 60_000
RECORDS_AT_ONCE: Final = 5_000
"""Tombstones in one batch, at most, of those that nobody waits for."""

Outcomes = list[KafkaError | None]


class OffsetCommits:
    """The offsets of one shard's groups."""

    __slots__ = ("_services", "_shard")

    def __init__(self, shard: GroupShard, services: GroupServices) -> None:
        self._shard = shard
        self._services = services

    # -- asked for ------------------------------------------------------------------------------------------------

    def commit(
        self,
        group_id: str,
        claim: MemberClaim,
        offsets: Sequence[OffsetToCommit],
        reply: Callable[[Outcomes], None],
        *,
        expire_timestamp_ms: int = NO_EXPIRY,
    ) -> None:
        """Keep offsets. Raises what concerns all of them: `GroupIdNotFound` for a member of no group, and more.

        Members from before KIP-848 do not know that a group may be unknown to its coordinator: `IllegalGeneration`.
        """
        group = self._shard.groups.get(group_id)
        if group is not None:
            group.check_offset_commit(claim, is_transactional=False)
            group.check_committed_partitions(claim, [_with_id(one) for one in offsets])
            group.touch(claim.member_id)
        elif claim.epoch >= 0:
            if not claim.knows_member_epochs:
                raise IllegalGeneration
            raise GroupIdNotFound(f"there is no group {group_id}")
        max_metadata_bytes = self._services.integer("offset.metadata.max.bytes")
        outcomes: Outcomes = [
            OffsetMetadataTooLarge() if len(one.metadata) > max_metadata_bytes else None for one in offsets
        ]
        now_ms = self._services.clock.wall_ms()
        self._commit(
            [
                offset_record(
                    group_id,
                    one.partition,
                    CommittedOffset(
                        one.offset, one.leader_epoch, one.metadata, now_ms, expire_timestamp_ms, one.topic_id
                    ),
                )
                for one, refusal in zip(offsets, outcomes, strict=True)
                if refusal is None
            ]
        )
        self._answer(outcomes, reply)

    def delete(self, group: Group, partitions: Sequence[TopicPartition], reply: Callable[[Outcomes], None]) -> None:
        """Forget offsets, but of topics that members read. Raises what concerns the whole group."""
        group.check_offset_delete()
        outcomes: Outcomes = [
            GroupSubscribedToTopic() if group.is_subscribed_to(partition.topic) else None for partition in partitions
        ]
        known = set(self._shard.offsets.partitions_of(group.group_id))
        self._commit(
            [
                offset_tombstone(group.group_id, partition)
                for partition, refusal in zip(partitions, outcomes, strict=True)
                if refusal is None and partition in known
            ]
        )
        self._answer(outcomes, reply)

    def delete_group(self, group: Group, reply: Callable[[KafkaError | None], None]) -> None:
        """Delete a group that nobody is in, with its offsets. Raises `NonEmptyGroup`, `NotCoordinator`."""
        group.check_delete()
        partitions = self._shard.offsets.partitions_of(group.group_id)
        forgotten = [offset_tombstone(group.group_id, partition) for partition in partitions]
        self._commit([*forgotten, *group.tombstones()])
        self._shard.when_durable(reply)

    def _commit(self, records: Sequence[CoordinatorRecord]) -> None:
        """Commit what a client asked for. Raises what the client is told."""
        try:
            self._shard.commit(records)
        except RecordListTooLarge as error:
            raise InvalidCommitOffsetSize(error.message) from error
        except KafkaError as error:
            raise coordinator_error(error) or error from error

    def _answer(self, outcomes: Outcomes, reply: Callable[[Outcomes], None]) -> None:
        self._shard.when_durable(
            lambda error: reply(outcomes if error is None else [outcome or error for outcome in outcomes])
        )

    # -- unasked --------------------------------------------------------------------------------------------------

    def forget_topics(self, topics: Iterable[str]) -> None:
        """Topics were deleted: their offsets go, in all groups."""
        offsets = self._shard.offsets
        self._commit_unasked(
            [
                offset_tombstone(group_id, partition)
                for topic in topics
                for group_id in offsets.groups_with(topic)
                for partition in offsets.partitions_of(group_id, topic)
            ]
        )

    def expire(self) -> None:
        """Forget offsets whose time is over, and empty groups that have none."""
        retention_ms = self._services.integer("offsets.retention.minutes") * MINUTE_MS
        rule = ExpiryRule(retention_ms, self._services.clock.wall_ms())
        self._commit_unasked([record for group in self._shard.groups.values() for record in self._expired(group, rule)])

    def _expired(self, group: Group, rule: ExpiryRule) -> list[CoordinatorRecord]:
        offsets, group_id = self._shard.offsets, group.group_id
        expired = [
            partition
            for partition, committed in offsets.expirable(group_id)
            if not group.is_subscribed_to(partition.topic)
            and (start_ms := group.retention_start_ms(committed.commit_timestamp_ms)) is not None
            and rule.is_over(committed, start_ms)
        ]
        records = [offset_tombstone(group_id, partition) for partition in expired]
        if group.is_empty and len(expired) == len(offsets.partitions_of(group_id)):
            records += group.tombstones()
        return records

    def _commit_unasked(self, records: Sequence[CoordinatorRecord]) -> None:
        try:
            for start in range(0, len(records), RECORDS_AT_ONCE):
                self._shard.commit(records[start : start + RECORDS_AT_ONCE])
        except KafkaError:
            _log.exception("records of groups are not stored", extra={"shard": str(self._shard.shard)})


def _with_id(offset: OffsetToCommit) -> TopicIdPartition:
    return TopicIdPartition(TopicId(offset.topic_id), offset.partition.partition)
