"""Deciding ElectLeaders (KIP-183, KIP-460): there is one broker, and it leads whatever it has a replica of.

Pure. So an election never changes anything: either the right leader is in place, or nobody could take over.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from ottla.broker.metadata.image import NO_LEADER, MetadataView
from ottla.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidRequest,
    KafkaError,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)


class ElectionType(IntEnum):
    """Who shall lead: the first replica, or anybody at the price of records; the number is the one on the wire."""

    PREFERRED = 0
    UNCLEAN = 1


def check_election_type(election_type: int) -> ElectionType:
    """Return the election that is meant. Raises `InvalidRequest`."""
    try:
        return ElectionType(election_type)
    except ValueError:
        raise InvalidRequest(f"There is no election type {election_type}.") from None


def decide_election(view: MetadataView, election: ElectionType, topic: str, partition: int) -> KafkaError:
    """Return why no new leader is elected for a partition."""
    image = view.topic(topic)
    found = None if image is None else image.find_partition(partition)
    if image is None:
        return UnknownTopicOrPartition(f"No such topic as {topic}")
    if found is None:
        return UnknownTopicOrPartition(f"No such partition as {topic}-{partition}")
    if election is ElectionType.UNCLEAN:
        return EligibleLeadersNotAvailable() if found.leader == NO_LEADER else ElectionNotNeeded()
    return ElectionNotNeeded() if found.leader == found.replicas[0] else PreferredLeaderNotAvailable()


def elections_needed(view: MetadataView, election: ElectionType) -> Iterable[tuple[str, list[tuple[int, KafkaError]]]]:
    """Yield every topic with its partitions that should have another leader and cannot."""
    for topic in view.topics():
        outcomes = [
            (one.partition, decide_election(view, election, topic.name, one.partition)) for one in topic.partitions
        ]
        yield topic.name, [row for row in outcomes if not isinstance(row[1], ElectionNotNeeded)]
