"""Deciding CreatePartitions: growing topics. They never shrink, and existing partitions never move.

Pure. The checks come in Kafka's order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.broker.metadata.create_topics import MAX_PARTITIONS_PER_REQUEST
from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.image import MetadataView, TopicImage
from ottla.broker.metadata.partition_records import partition_record
from ottla.broker.metadata.placement import Candidates, check_assignment, new_partition, place_replicas
from ottla.broker.metadata.records import MetadataRecord
from ottla.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    KafkaError,
    PolicyViolation,
    UnknownTopicOrPartition,
)


@dataclass(frozen=True, slots=True)
class GrownTopic:
    """A topic that shall have `count` partitions. `assignments` has the brokers of each new one; None: our choice."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


CreatePartitionsAnswer = Mapping[str, KafkaError | None]


def decide_create_partitions(
    view: MetadataView, topics: Sequence[GrownTopic], *, directory_id: bytes, is_closed: bool = False
) -> Decision[CreatePartitionsAnswer]:
    """Decide a whole request. The answer has None where a topic grows.

    `is_closed` when none of this broker's log directories takes new partitions.
    Raises `PolicyViolation` when it asks for too many partitions at once.
    """
    counts = Counter(topic.name for topic in topics)
    _check_total_partitions(view, [topic for topic in topics if counts[topic.name] == 1])
    candidates = Candidates.of(view, is_closed=is_closed)
    answer: dict[str, KafkaError | None] = {}
    records: list[MetadataRecord] = []
    for topic in topics:
        try:
            if counts[topic.name] > 1:
                raise InvalidRequest(f"The request names the topic {topic.name} more than once.")
            records += _grow(view, topic, candidates, directory_id)
        except KafkaError as error:
            answer[topic.name] = error
        else:
            answer[topic.name] = None
    return Decision(records, answer)


def _check_total_partitions(view: MetadataView, topics: Sequence[GrownTopic]) -> None:
    """Takes the topics that are named once. Those that are not there do not count, whatever is asked for them."""
    total = 0
    for asked in topics:
        topic = view.topic(asked.name)
        if topic is not None:
            total += max(asked.count - len(topic.partitions), 0)
    if total > MAX_PARTITIONS_PER_REQUEST:
        raise PolicyViolation("Excessively large number of additional partitions per request.")


def _grow(view: MetadataView, request: GrownTopic, candidates: Candidates, directory_id: bytes) -> list[MetadataRecord]:
    topic = view.topic(request.name)
    if topic is None:
        raise UnknownTopicOrPartition
    first = len(topic.partitions)
    if request.count < first:
        raise InvalidPartitions(
            f"The topic {request.name} currently has {first} partition(s); {request.count} would not be an increase."
        )
    if request.count == first:
        raise InvalidPartitions(f"Topic already has {first} partition(s).")
    return [
        partition_record(topic.topic_id, new_partition(first + number, brokers, directory_id))
        for number, brokers in enumerate(_assignments(topic, request, candidates))
    ]


def _assignments(topic: TopicImage, request: GrownTopic, candidates: Candidates) -> Sequence[Sequence[int]]:
    added = request.count - len(topic.partitions)
    replication_factor = len(topic.partitions[0].replicas)
    if request.assignments is None:
        return [place_replicas(min(replication_factor, len(candidates.live)), candidates)] * added
    if len(request.assignments) != added:
        raise InvalidReplicaAssignment(
            f"Attempted to add {added} additional partition(s), but only {len(request.assignments)} assignment(s) were "
            "specified."
        )
    for brokers in request.assignments:
        check_assignment(brokers, candidates, replication_factor)
    return request.assignments
