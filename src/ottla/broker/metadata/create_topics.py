"""Deciding CreateTopics, and which topics are created unasked.

Pure: image and values in, records and one answer per topic out. The checks come in Kafka's order: the whole request's
size, names named twice, the metadata topic's name, illegal and colliding names, existing topics, settings, then
partitions and replicas. A topic whose row fails changes nothing for the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.features import ELIGIBLE_LEADER_REPLICAS
from ottla.broker.metadata.image import MetadataView
from ottla.broker.metadata.partition_records import partition_record
from ottla.broker.metadata.placement import Candidates, check_assignment, new_partition, place_replicas
from ottla.broker.metadata.records import ClearElrRecord, ConfigRecord, MetadataRecord, TopicRecord
from ottla.broker.metadata.topic_names import check_topic_name
from ottla.broker.turns import Steps
from ottla.config.resource_type import ResourceType
from ottla.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    PolicyViolation,
    TopicAlreadyExists,
)
from ottla.model import METADATA_TOPIC, TopicId

MAX_PARTITIONS_PER_REQUEST: Final = 10_000
"""Kafka refuses larger requests whole (POLICY_VIOLATION), so that one batch of records never grows without bound."""

NAMES_A_STEP: Final = 64

USE_DEFAULT: Final = -1


class NewTopic(NamedTuple):
    """A topic that is asked for. Counts of -1 mean the broker's default; `assignments` are (partition, brokers)."""

    name: str
    num_partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


class CreatedTopic(NamedTuple):
    """A topic that was created, or would be."""

    name: str
    topic_id: TopicId
    num_partitions: int
    replication_factor: int
    configs: Mapping[str, str]


class TopicPlacement(NamedTuple):
    """What a new topic gets where the request says nothing, and the log directory that it goes to."""

    num_partitions: int
    replication_factor: int
    directory_id: bytes
    is_closed: bool = False
    """True when none of this broker's log directories takes new partitions."""


CreateTopicsAnswer = Mapping[str, CreatedTopic | KafkaError]


def decide_create_topics(
    view: MetadataView,
    topics: Sequence[NewTopic],
    placement: TopicPlacement,
    *,
    check_configs: Callable[[Mapping[str, str]], None],
    new_topic_id: Callable[[], TopicId],
    companions: Container[str] = (),
) -> Decision[CreateTopicsAnswer]:
    """Decide a whole request; `validate_only` is the caller's matter, who then leaves the records alone.

    `companions` are the other topics of a request that is decided in parts: names may collide with theirs.
    Raises `PolicyViolation` when it asks for too many partitions at once.
    """
    check_total(sum(partitions_of(topic, placement) for topic in topics))
    counts = Counter(topic.name for topic in topics)
    answer: dict[str, CreatedTopic | KafkaError] = {}
    records: list[MetadataRecord] = []
    for topic in topics:
        if topic.name in answer:
            continue
        try:
            if counts[topic.name] > 1:
                raise _repeated(topic.name)
            _check_name(view, topic.name, companions)
            created, topic_records = _create_topic(view, topic, placement, check_configs, new_topic_id())
        except KafkaError as error:
            answer[topic.name] = error
        else:
            answer[topic.name] = created
            records += topic_records
    return Decision(records, answer)


def name_errors(view: MetadataView, topics: Sequence[NewTopic]) -> Steps[dict[str, KafkaError | None]]:
    """Return what is wrong with each name of a request, in their order. Goes in steps."""
    counts = Counter(topic.name for topic in topics)
    errors: dict[str, KafkaError | None] = {}
    for name, count in counts.items():
        try:
            if count > 1:
                raise _repeated(name)
            _check_name(view, name)
        except KafkaError as error:
            errors[name] = error
        else:
            errors[name] = None
        if len(errors) % NAMES_A_STEP == 0:
            yield
    return errors


def _repeated(name: str) -> KafkaError:
    return InvalidRequest(f"The request names the topic {name} more than once.")


def partitions_of(topic: NewTopic, placement: TopicPlacement) -> int:
    """Return how many partitions are asked for."""
    if topic.assignments:
        return len(topic.assignments)
    return placement.num_partitions if topic.num_partitions == USE_DEFAULT else topic.num_partitions


def check_total(partitions: int) -> None:
    """Raise `PolicyViolation` when a request asks for so many partitions at once."""
    if partitions > MAX_PARTITIONS_PER_REQUEST:
        raise PolicyViolation("Excessively large number of partitions per request.")


def _check_name(view: MetadataView, name: str, companions: Container[str] = ()) -> None:
    """Names within one request may collide with each other: Kafka looks at existing topics only."""
    if name == METADATA_TOPIC:
        raise InvalidRequest(f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
    check_topic_name(name)
    rivals = [rival for rival in view.colliding_topics(name) if rival not in companions]
    if rivals:
        raise InvalidTopicException(f"Topic '{name}' collides with existing topic: {', '.join(rivals)}")
    if view.topic(name) is not None:
        raise TopicAlreadyExists(f"Topic '{name}' already exists.")


def _create_topic(
    view: MetadataView,
    topic: NewTopic,
    placement: TopicPlacement,
    check_configs: Callable[[Mapping[str, str]], None],
    topic_id: TopicId,
) -> tuple[CreatedTopic, list[MetadataRecord]]:
    configs = _new_configs(topic, check_configs)
    assignments = _assignments(view, topic, placement)
    records: list[MetadataRecord] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    records += config_records(ResourceType.TOPIC, topic.name, configs)
    if "min.insync.replicas" in configs and view.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0:
        records.append(ClearElrRecord(topic_name=topic.name))
    records += [
        partition_record(topic_id, new_partition(number, brokers, placement.directory_id))
        for number, brokers in enumerate(assignments)
    ]
    return CreatedTopic(topic.name, topic_id, len(assignments), len(assignments[0]), configs), records


def _new_configs(topic: NewTopic, check_configs: Callable[[Mapping[str, str]], None]) -> dict[str, str]:
    configs: dict[str, str] = {}
    for key, value in topic.configs:
        if value is None:
            raise InvalidConfig(f"The setting {key} has no value.")
        configs[key] = value  # the last one wins, as in Kafka
    check_configs(configs)
    return configs


def _assignments(view: MetadataView, topic: NewTopic, placement: TopicPlacement) -> list[Sequence[int]]:
    candidates = Candidates.of(view, is_closed=placement.is_closed)
    if topic.assignments:
        return _manual_assignments(topic, candidates)
    if topic.replication_factor != USE_DEFAULT and topic.replication_factor < 1:
        raise InvalidReplicationFactor("The replication factor must be at least 1, or -1 for the broker's default.")
    if topic.num_partitions != USE_DEFAULT and topic.num_partitions < 1:
        raise InvalidPartitions("The number of partitions must be at least 1, or -1 for the broker's default.")
    uses_default_factor = topic.replication_factor == USE_DEFAULT
    uses_default_count = topic.num_partitions == USE_DEFAULT
    replication_factor = placement.replication_factor if uses_default_factor else topic.replication_factor
    replicas = place_replicas(replication_factor, candidates)
    return [replicas] * (placement.num_partitions if uses_default_count else topic.num_partitions)


def _manual_assignments(topic: NewTopic, candidates: Candidates) -> list[Sequence[int]]:
    if topic.replication_factor != USE_DEFAULT:
        raise InvalidRequest("A manual assignment and a replication factor cannot be given together.")
    if topic.num_partitions != USE_DEFAULT:
        raise InvalidRequest("A manual assignment and a number of partitions cannot be given together.")
    assigned: dict[int, Sequence[int]] = {}
    replication_factor: int | None = None
    for partition, brokers in topic.assignments:
        if partition in assigned:
            raise InvalidReplicaAssignment(f"The assignment names partition {partition} twice.")
        check_assignment(brokers, candidates, replication_factor)
        replication_factor = len(brokers)
        assigned[partition] = brokers
    if sorted(assigned) != list(range(len(assigned))):
        raise InvalidReplicaAssignment("The assigned partitions must be numbered from 0 without gaps.")
    return [assigned[partition] for partition in range(len(assigned))]


def config_records(resource_type: ResourceType, name: str, changes: Mapping[str, str | None]) -> list[MetadataRecord]:
    """Return one record per changed setting; None removes it."""
    return [
        ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)
        for key, value in changes.items()
    ]
