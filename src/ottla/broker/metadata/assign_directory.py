"""Deciding what Kafka's brokers ask for by AssignReplicasToDirs (KIP-858): in which log directory a replica is.

Pure. Recorded when a log moves, so that whoever starts on the metadata next, a Kafka perhaps, looks for it there.
"""

from __future__ import annotations

from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.image import MetadataView
from ottla.broker.metadata.records import PartitionChangeRecord
from ottla.model import TopicPartition


def decide_assign_directory(view: MetadataView, where: TopicPartition, directory_id: bytes) -> Decision[None]:
    """Record the directory of this broker's replica; nothing where it is known, or cannot be said."""
    topic = view.topic(where.topic)
    partition = None if topic is None else topic.find_partition(where.partition)
    if topic is None or partition is None or len(partition.directories) != len(partition.replicas):
        return Decision([], None)
    directories = [
        directory_id if replica == view.node_id else other
        for replica, other in zip(partition.replicas, partition.directories, strict=True)
    ]
    if tuple(directories) == partition.directories:
        return Decision([], None)
    record = PartitionChangeRecord(partition_id=partition.partition, topic_id=topic.topic_id, directories=directories)
    return Decision([record], None)
