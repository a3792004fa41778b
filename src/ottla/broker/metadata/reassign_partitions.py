"""Deciding AlterPartitionReassignments (KIP-455): which brokers shall have a partition's replicas.

Pure. There is one live broker, so a partition that it has stays where it is, and at most loses replicas on brokers that
are gone (in a directory that came from a larger cluster). The checks come in Kafka's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.image import MetadataView, PartitionImage
from ottla.broker.metadata.placement import Candidates, check_assignment
from ottla.broker.metadata.records import MetadataRecord, PartitionChangeRecord
from ottla.errors import (
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    KafkaError,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from ottla.model import TopicId


class Reassignment(NamedTuple):
    """A partition and the brokers that shall have it; None takes back a reassignment that is under way."""

    topic: str
    partition: int
    replicas: Sequence[int] | None


ReassignmentAnswer = Sequence[KafkaError | None]


def decide_reassignments(
    view: MetadataView,
    reassignments: Sequence[Reassignment],
    *,
    allow_replication_factor_change: bool,
    is_closed: bool = False,
) -> Decision[ReassignmentAnswer]:
    """Decide a whole request. The answer has one entry for each reassignment, in their order: None where it is done.

    `is_closed` when none of this broker's log directories takes new partitions.
    """
    candidates = Candidates.of(view, is_closed=is_closed)
    answer: list[KafkaError | None] = []
    records: list[MetadataRecord] = []
    for asked in reassignments:
        try:
            topic_id, partition = _find(view, asked)
            if asked.replicas is None:
                target = _replicas_before(partition)
            else:
                check_assignment(asked.replicas, candidates, None)
                target = asked.replicas
            if not allow_replication_factor_change and len(target) != len(partition.replicas):
                raise InvalidReplicationFactor("The request does not allow another number of replicas.")
            records += _reduce(topic_id, partition, target, view.node_id)
        except KafkaError as error:
            answer.append(error)
        else:
            answer.append(None)
    return Decision(records, answer)


def _find(view: MetadataView, asked: Reassignment) -> tuple[TopicId, PartitionImage]:
    topic = view.topic(asked.topic)
    if topic is None:
        raise UnknownTopicOrPartition(f"There is no topic '{asked.topic}'.")
    partition = topic.find_partition(asked.partition)
    if partition is None:
        raise UnknownTopicOrPartition(f"There is no partition {asked.topic}-{asked.partition}.")
    return topic.topic_id, partition


def _replicas_before(partition: PartitionImage) -> Sequence[int]:
    """Return the replicas that a partition had before a reassignment that is still under way."""
    if not partition.adding_replicas and not partition.removing_replicas:
        raise NoReassignmentInProgress
    return [node_id for node_id in partition.replicas if node_id not in partition.adding_replicas]


def _reduce(topic_id: TopicId, partition: PartitionImage, target: Sequence[int], node_id: int) -> list[MetadataRecord]:
    """Return what leaves a partition with no replicas but `target`, this broker's among them."""
    if tuple(target) == partition.replicas and not partition.adding_replicas and not partition.removing_replicas:
        return []
    if node_id not in target or not set(target) <= set(partition.replicas):
        raise InvalidReplicaAssignment("This broker has no replica, and nobody is there from whom it could get one.")
    where = dict(zip(partition.replicas, partition.directories, strict=False))
    return [
        PartitionChangeRecord(
            partition_id=partition.partition,
            topic_id=topic_id,
            replicas=list(target),
            isr=[other for other in partition.isr if other in target] or [node_id],
            directories=[where[other] for other in target] if len(where) == len(partition.replicas) else None,
            adding_replicas=[],
            removing_replicas=[],
        )
    ]
