"""From partition records to images and back: what a change does to a partition, and what a start does to its epoch.

Pure; `state` and the decisions share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ottla.broker.metadata.image import NO_LEADER, PartitionImage
from ottla.broker.metadata.records import PartitionChangeRecord, PartitionRecord
from ottla.model import TopicId

NO_LEADER_CHANGE: Final = -2
_NO_STATE_CHANGE: Final = -1


def raises_at_start(partition: PartitionImage) -> int:
    """By how much a start raises this partition's leader epoch.

    Kafka counts two changes, from its leader to none and back; after a clean stop the first is in the log already.
    """
    return 1 if partition.leader == NO_LEADER else 2


def changed_partition(partition: PartitionImage, record: PartitionChangeRecord) -> PartitionImage:
    """Return `partition` with what `record` changes. Naming a leader, even the same one, raises the leader epoch."""

    def kept(new: Sequence[Any] | None, old: tuple[Any, ...]) -> tuple[Any, ...]:
        return old if new is None else tuple(new)

    names_leader = record.leader != NO_LEADER_CHANGE
    has_new_state = record.leader_recovery_state != _NO_STATE_CHANGE
    return PartitionImage(
        partition=partition.partition,
        leader=record.leader if names_leader else partition.leader,
        leader_epoch=partition.leader_epoch + (1 if names_leader else 0),
        partition_epoch=partition.partition_epoch + 1,
        replicas=kept(record.replicas, partition.replicas),
        isr=kept(record.isr, partition.isr),
        directories=kept(record.directories, partition.directories),
        removing_replicas=kept(record.removing_replicas, partition.removing_replicas),
        adding_replicas=kept(record.adding_replicas, partition.adding_replicas),
        eligible_leader_replicas=kept(record.eligible_leader_replicas, partition.eligible_leader_replicas),
        last_known_elr=kept(record.last_known_elr, partition.last_known_elr),
        leader_recovery_state=record.leader_recovery_state if has_new_state else partition.leader_recovery_state,
    )


def partition_record(topic_id: TopicId, partition: PartitionImage) -> PartitionRecord:
    """Return the record that makes this partition."""
    return PartitionRecord(
        partition_id=partition.partition,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        eligible_leader_replicas=list(partition.eligible_leader_replicas) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )
