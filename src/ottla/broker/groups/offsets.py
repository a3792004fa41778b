"""`CommittedOffsets`: how far groups have read, as one shard of `__consumer_offsets` knows it.

State only, changed by `replay`. Who may commit is the group's to say, how long offsets are kept its too; what records
a commit makes is decided here. Offsets committed within a transaction wait beside the others until its end (KIP-447).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.model import NO_LEADER_EPOCH, NO_OFFSET, NO_PRODUCER_ID, TopicPartition
from ottla.protocol.internal.framing import CoordinatorRecord
from ottla.protocol.internal.group_records import OffsetCommitKey, OffsetCommitValue
from ottla.protocol.internal.stored_offset import StoredOffset

NO_EXPIRY: Final = -1
VALUE_VERSION: Final = 4
EXPIRING_VALUE_VERSION: Final = 1
"""The only version that can say when an offset expires, which clients could up to OffsetCommit v4."""


class CommittedOffset(NamedTuple):
    """A committed position with what its committer noted about it.

    `record_offset` is where it stands in the log: of a plain and a transactional commit the later one counts.
    """

    offset: int = NO_OFFSET
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int = NO_EXPIRY
    topic_id: bytes = bytes(16)
    record_offset: int = NO_OFFSET


NO_COMMITTED_OFFSET: Final = CommittedOffset()

TopicOffsets = dict[int, CommittedOffset]
GroupOffsets = dict[str, TopicOffsets]


def offset_record(group_id: str, partition: TopicPartition, committed: CommittedOffset) -> CoordinatorRecord:
    """Return the record of a commit."""
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    version = VALUE_VERSION if committed.expire_timestamp_ms == NO_EXPIRY else EXPIRING_VALUE_VERSION
    return CoordinatorRecord(_key(group_id, partition), value, version)


def offset_tombstone(group_id: str, partition: TopicPartition) -> CoordinatorRecord:
    """Return the record that forgets an offset."""
    return CoordinatorRecord(_key(group_id, partition), None, -1)


def _key(group_id: str, partition: TopicPartition) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)


class CommittedOffsets:
    """Offsets by group, topic and partition."""

    __slots__ = ("_by_group", "_pending")

    def __init__(self) -> None:
        self._by_group: dict[str, GroupOffsets] = {}
        self._pending: dict[int, dict[str, GroupOffsets]] = {}  # by producer id

    def find(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._by_group.get(group_id, {}).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """All offsets of a group, by topic and partition."""
        return self._by_group.get(group_id, {})

    def count(self) -> int:
        """How many offsets there are, those in open transactions aside."""
        return sum(len(topic) for group in self._by_group.values() for topic in group.values())

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """True while a transaction is open that commits an offset for this partition."""
        return any(partition in groups.get(group_id, {}).get(topic, {}) for groups in self._pending.values())

    def has_pending(self, group_id: str) -> bool:
        """True while a transaction is open that commits offsets of this group."""
        return any(group_id in groups for groups in self._pending.values())

    def groups_with(self, topic: str) -> list[str]:
        """Groups that have an offset for a topic, also in an open transaction."""
        places = [self._by_group, *self._pending.values()]
        return list(dict.fromkeys(group for place in places for group, topics in place.items() if topic in topics))

    def partitions_of(self, group_id: str, topic: str | None = None) -> list[TopicPartition]:
        """Partitions that a group has an offset for, also in an open transaction; of one topic, or of all."""
        places = [self._by_group, *self._pending.values()]
        found = (
            TopicPartition(name, partition)
            for place in places
            for name, partitions in place.get(group_id, {}).items()
            if topic is None or name == topic
            for partition in partitions
        )
        return list(dict.fromkeys(found))

    def expirable(self, group_id: str) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        """The offsets of a group that no open transaction is about to replace."""
        for topic, partitions in self._by_group.get(group_id, {}).items():
            for partition, committed in partitions.items():
                if not self.is_pending(group_id, topic, partition):
                    yield TopicPartition(topic, partition), committed

    # -- replay ---------------------------------------------------------------------------------------------------

    def replay(
        self, record: CoordinatorRecord, *, record_offset: int = NO_OFFSET, producer_id: int = NO_PRODUCER_ID
    ) -> None:
        """Apply the record of a commit, or its tombstone; with a producer id it waits for the transaction's end."""
        key, value = record.key, record.value
        assert isinstance(key, OffsetCommitKey)
        partition = TopicPartition(key.topic, key.partition)
        if value is None:
            self._forget(key.group, partition)
            return
        assert isinstance(value, OffsetCommitValue)
        committed = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
            record_offset,
        )
        place = self._by_group if producer_id == NO_PRODUCER_ID else self._pending.setdefault(producer_id, {})
        place.setdefault(key.group, {}).setdefault(key.topic, {})[key.partition] = committed

    def replay_stored(self, stored: StoredOffset, *, record_offset: int, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply the record of a commit that a start has read; what `replay` would do, without its messages."""
        group_id, topic, number, offset, leader_epoch, metadata, commit_timestamp_ms, topic_id = stored
        committed = CommittedOffset(
            offset, leader_epoch, metadata, commit_timestamp_ms, NO_EXPIRY, topic_id, record_offset
        )
        place = self._by_group if producer_id == NO_PRODUCER_ID else self._pending.setdefault(producer_id, {})
        topics = place.get(group_id)
        if topics is None:
            topics = place[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        partitions[number] = committed

    def replay_end_of_transaction(self, producer_id: int, *, is_commit: bool) -> list[str]:
        """Take over or drop what a transaction committed; returns the groups that it was for."""
        pending = self._pending.pop(producer_id, {})
        if is_commit:
            for group_id, topics in pending.items():
                for topic, partitions in topics.items():
                    place = self._by_group.setdefault(group_id, {}).setdefault(topic, {})
                    for partition, committed in partitions.items():
                        if partition not in place or place[partition].record_offset < committed.record_offset:
                            place[partition] = committed
        return list(pending)

    def _forget(self, group_id: str, partition: TopicPartition) -> None:
        for place in (self._by_group, *self._pending.values()):
            topics = place.get(group_id)
            if topics is None or partition.topic not in topics:
                continue
            topics[partition.topic].pop(partition.partition, None)
            if not topics[partition.topic]:
                del topics[partition.topic]
            if not topics:
                del place[group_id]


class OffsetToCommit(NamedTuple):
    """One offset of a commit request."""

    partition: TopicPartition
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: bytes


class ExpiryRule(NamedTuple):
    """How long offsets are kept, and what time it is."""

    retention_ms: int
    now_ms: int

    def is_over(self, committed: CommittedOffset, retention_start_ms: int) -> bool:
        """True when an offset's time is over; its own expiry, where a client set one, goes before the retention."""
        if committed.expire_timestamp_ms != NO_EXPIRY:
            return self.now_ms >= committed.expire_timestamp_ms
        return self.now_ms - retention_start_ms >= self.retention_ms
