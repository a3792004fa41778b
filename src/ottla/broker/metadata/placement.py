"""Where the partitions of a topic go: on the brokers that are asked for, or on this one.

Decides assignments only. There is one live broker, so a replication factor above one cannot be had, and a manual
assignment may name nobody else; the checks are Kafka's, in its order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ottla.broker.metadata.image import PartitionImage
from ottla.errors import InvalidReplicaAssignment, InvalidReplicationFactor


def check_assignment(brokers: Sequence[int], live_brokers: Collection[int], replication_factor: int | None) -> None:
    """Raise `InvalidReplicaAssignment` unless `brokers` can be the replicas of one partition.

    `replication_factor` is that of the topic's other partitions, None for the first.
    """
    if not brokers:
        raise InvalidReplicaAssignment("A partition's assignment names no broker.")
    if len(set(brokers)) != len(brokers):
        raise InvalidReplicaAssignment(f"A partition's assignment names a broker twice: {list(brokers)}.")
    unknown = [broker for broker in brokers if broker not in live_brokers]
    if unknown:
        raise InvalidReplicaAssignment(
            f"The manual partition assignment includes broker {unknown[0]}, but no such broker is registered."
        )
    if replication_factor is not None and len(brokers) != replication_factor:
        raise InvalidReplicaAssignment(
            f"A partition's assignment has {len(brokers)} replicas where the others have {replication_factor}."
        )


def place_replicas(replication_factor: int, live_brokers: Collection[int]) -> tuple[int, ...]:
    """Return the brokers of a new partition. Raises `InvalidReplicationFactor` when there are not enough of them."""
    if replication_factor > len(live_brokers):
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {len(live_brokers)} broker(s) are registered or some "
            "brokers have all their log directories cordoned."
        )
    return tuple(sorted(live_brokers)[:replication_factor])


def new_partition(partition: int, replicas: Sequence[int], directory_id: bytes) -> PartitionImage:
    """Return a partition as it is made: led by its first replica, all of them in sync, epochs at 0."""
    return PartitionImage(
        partition=partition,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        replicas=tuple(replicas),
        isr=tuple(replicas),
        directories=(directory_id,) * len(replicas),
    )
