"""Where the partitions of a topic go: on the brokers that are asked for, or on this one.

Decides assignments only. There is one live broker, so a replication factor above one cannot be had, and a manual
assignment may name nobody else; the checks are Kafka's, in its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from ottla.broker.metadata.image import MetadataView, PartitionImage
from ottla.errors import InvalidReplicaAssignment, InvalidReplicationFactor


class Candidates(NamedTuple):
    """Brokers that may be replicas: all `live` ones but those that are `closed`, as no log directory takes more."""

    live: frozenset[int]
    closed: frozenset[int]

    @classmethod
    def of(cls, view: MetadataView, *, is_closed: bool) -> Self:
        """Return those of a cluster; `is_closed` tells of this broker, and it is the only one that can."""
        live = frozenset(broker.node_id for broker in view.brokers() if not broker.is_fenced)
        return cls(live, frozenset({view.node_id} if is_closed else ()))


def check_assignment(brokers: Sequence[int], candidates: Candidates, replication_factor: int | None) -> None:
    """Raise `InvalidReplicaAssignment` unless `brokers` can be the replicas of one partition.

    `replication_factor` is that of the topic's other partitions, None for the first.
    """
    if not brokers:
        raise InvalidReplicaAssignment("A partition's assignment names no broker.")
    if len(set(brokers)) != len(brokers):
        raise InvalidReplicaAssignment(f"A partition's assignment names a broker twice: {list(brokers)}.")
    unknown = [broker for broker in brokers if broker not in candidates.live]
    if unknown:
        raise InvalidReplicaAssignment(
            f"The manual partition assignment includes broker {unknown[0]}, but no such broker is registered."
        )
    closed = [broker for broker in brokers if broker in candidates.closed]
    if closed:
        raise InvalidReplicaAssignment(
            f"The manual partition assignment includes broker {closed[0]}, but all its log directories are cordoned."
        )
    if replication_factor is not None and len(brokers) != replication_factor:
        raise InvalidReplicaAssignment(
            f"A partition's assignment has {len(brokers)} replicas where the others have {replication_factor}."
        )


def place_replicas(replication_factor: int, candidates: Candidates) -> tuple[int, ...]:
    """Return the brokers of a new partition. Raises `InvalidReplicationFactor` when there are not enough of them."""
    brokers = candidates.live - candidates.closed
    if not brokers:
        raise InvalidReplicationFactor("All brokers are currently fenced, or have all their log directories cordoned.")
    if replication_factor > len(brokers):
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {len(brokers)} broker(s) are registered or some "
            "brokers have all their log directories cordoned."
        )
    return tuple(sorted(brokers)[:replication_factor])


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
