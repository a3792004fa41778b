"""What a broker writes about itself: the first records of a new cluster, and its registration at each start.

Pure. The records and their order are those of Kafka 4.4 on one node, where they say something: a bootstrap transaction
with the feature levels, a registration that is fenced, and the change that unfences it once everything is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.broker.metadata.create_topics import config_records
from ottla.broker.metadata.features import ELIGIBLE_LEADER_REPLICAS, FORMAT_LEVELS, SUPPORTED_FEATURES
from ottla.broker.metadata.image import ListenerImage, PartitionImage
from ottla.broker.metadata.partition_records import raises_at_start
from ottla.broker.metadata.records import (
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from ottla.config.resource_type import ResourceType
from ottla.model import TopicId


class BrokerIdentity(NamedTuple):
    """Who this broker is, in this cluster, on this disk and in this run. Ids are 16 bytes."""

    cluster_id: str
    node_id: int
    directory_id: bytes
    incarnation_id: bytes
    listeners: Sequence[ListenerImage]
    rack: str | None = None
    log_dirs: Sequence[bytes] = ()
    """Ids of all log directories; empty where `directory_id`, to which new partitions are assigned, is the only one."""


def format_records(levels: Mapping[str, int] = FORMAT_LEVELS) -> list[MetadataRecord]:
    """Return what the first snapshot of a new directory holds."""
    return [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]


def bootstrap_records(levels: Mapping[str, int]) -> list[MetadataRecord]:
    """Return what the log of a new cluster begins with: the levels of the first snapshot, once more, as a transaction.

    With eligible leader replicas (KIP-966) the cluster-wide min.insync.replicas is pinned, because brokers' static
    settings no longer count.
    """
    records: list[MetadataRecord] = [BeginTransactionRecord(name="Bootstrap records"), *format_records(levels)]
    if levels.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0:
        records += config_records(ResourceType.BROKER, "", {"min.insync.replicas": "1"})
    records.append(EndTransactionRecord())
    return records


def registration_record(identity: BrokerIdentity, *, broker_epoch: int) -> RegisterBrokerRecord:
    """Return this broker's registration, fenced. `broker_epoch` is the offset at which the record will stand."""
    return RegisterBrokerRecord(
        broker_id=identity.node_id,
        incarnation_id=identity.incarnation_id,
        broker_epoch=broker_epoch,
        end_points=[
            BrokerEndpoint(
                name=listener.name, host=listener.host, port=listener.port, security_protocol=listener.security_protocol
            )
            for listener in identity.listeners
        ],
        features=[
            BrokerFeature(
                name=name, min_supported_version=supported.min_level, max_supported_version=supported.max_level
            )
            for name, supported in SUPPORTED_FEATURES.items()
        ],
        rack=identity.rack,
        fenced=True,
        log_dirs=list(identity.log_dirs or [identity.directory_id]),
    )


def unfence_record(node_id: int, *, broker_epoch: int) -> BrokerRegistrationChangeRecord:
    """Return the change that lets the registered broker serve."""
    return BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=broker_epoch, fenced=-1)


def leadership_records(topic_id: TopicId, recorded: PartitionImage, node_id: int) -> list[MetadataRecord]:
    """Return what writes the leader epoch that this start gave a partition.

    Each record that names a leader raises the epoch by one, so there are as many as the epoch rises.
    """
    had_eligible = bool(recorded.eligible_leader_replicas or recorded.last_known_elr)
    taken_over = PartitionChangeRecord(
        partition_id=recorded.partition,
        topic_id=topic_id,
        leader=node_id,
        isr=None if recorded.isr == (node_id,) else [node_id],
        eligible_leader_replicas=[] if had_eligible else None,
        last_known_elr=[] if had_eligible else None,
    )
    again = PartitionChangeRecord(partition_id=recorded.partition, topic_id=topic_id, leader=node_id)
    return [taken_over, *[again] * (raises_at_start(recorded) - 1)]
