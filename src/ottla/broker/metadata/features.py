"""Finalized features: which levels this broker can keep, and which record version belongs to which metadata.version.

Decides what a directory's feature levels allow; who announces them to clients is the dialect's matter. Levels and
record versions are those of Kafka 4.4.0, read from the directories that it wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

METADATA_VERSION: Final = "metadata.version"
ELIGIBLE_LEADER_REPLICAS: Final = "eligible.leader.replicas.version"
KRAFT_VERSION: Final = "kraft.version"

ELIGIBLE_LEADER_REPLICAS_METADATA_VERSION: Final = 23
"""The level from which on partitions can have eligible leader replicas (4.0-IV1)."""
SCRAM_METADATA_VERSION: Final = 11
"""The level from which on users can stand in the metadata (3.5-IV2)."""

# The levels of metadata.version at which a record gained a version.
_BROKER_MIGRATION: Final = 8  # 3.4-IV0
_DIRECTORY_ASSIGNMENT: Final = 17  # 3.7-IV2
_CORDONED_LOG_DIRS: Final = 30  # 4.3-IV0


class FeatureRange(NamedTuple):
    """The levels of one feature that we can keep, both ends included."""

    min_level: int
    max_level: int


SUPPORTED_FEATURES: Final[Mapping[str, FeatureRange]] = MappingProxyType(
    {
        METADATA_VERSION: FeatureRange(7, 33),
        ELIGIBLE_LEADER_REPLICAS: FeatureRange(0, 1),
        "group.version": FeatureRange(0, 1),
        KRAFT_VERSION: FeatureRange(0, 1),
        "share.version": FeatureRange(0, 2),
        "streams.version": FeatureRange(0, 1),
        "transaction.version": FeatureRange(0, 2),
    }
)

FORMAT_LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {
        METADATA_VERSION: 33,
        ELIGIBLE_LEADER_REPLICAS: 1,
        "group.version": 1,
        "share.version": 2,
        "streams.version": 1,
        "transaction.version": 2,
    }
)
"""What a new directory is formatted with, in the order in which Kafka's format writes it."""


def register_broker_version(metadata_version: int) -> int:
    """Version of RegisterBrokerRecord to write."""
    if metadata_version >= _CORDONED_LOG_DIRS:
        return 4
    if metadata_version >= _DIRECTORY_ASSIGNMENT:
        return 3
    return 2 if metadata_version >= _BROKER_MIGRATION else 1


def partition_version(metadata_version: int) -> int:
    """Version of PartitionRecord and of PartitionChangeRecord to write; they moved together."""
    if metadata_version >= ELIGIBLE_LEADER_REPLICAS_METADATA_VERSION:
        return 2
    return 1 if metadata_version >= _DIRECTORY_ASSIGNMENT else 0


def registration_change_version(is_shutdown_change: bool) -> int:
    """Version of BrokerRegistrationChangeRecord: Kafka writes the lowest that has the changed field."""
    return 1 if is_shutdown_change else 0
