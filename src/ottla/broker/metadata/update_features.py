"""Deciding UpdateFeatures: which levels of which features the cluster shall use (KIP-584, KIP-778).

Pure. The checks are Kafka's, in its order; one feature that cannot be changed keeps all of them as they are. What a
feature does at its level is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from ottla.broker.metadata.create_topics import config_records
from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS,
    ELIGIBLE_LEADER_REPLICAS_METADATA_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
)
from ottla.broker.metadata.image import MetadataView
from ottla.broker.metadata.records import FeatureLevelRecord, MetadataRecord
from ottla.config.broker_changes import MIN_INSYNC_REPLICAS
from ottla.config.resource_type import ResourceType
from ottla.errors import InvalidUpdateVersion


class UpgradeType(IntEnum):
    """Which way a level may go; the number is the one on the wire."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """A level that is asked for; 0 disables the feature. `upgrade_type` is the wire's and may be unknown."""

    name: str
    level: int
    upgrade_type: int


RECORDED_ELSEWHERE: Final = (KRAFT_VERSION,)
"""Features whose level stands in the log's control records, where we write it once and for all."""


def decide_update_features(
    view: MetadataView, updates: Sequence[FeatureUpdate], *, kraft_version: int, min_insync_replicas: int
) -> Decision[Sequence[str]]:
    """Decide a whole request; the answer names what was updated.

    `kraft_version` is the level in the log, `min_insync_replicas` what this broker's configuration says.
    Raises `InvalidUpdateVersion` for the first update that cannot be made, and then nothing is changed.
    """
    levels = {**view.features, KRAFT_VERSION: kraft_version}
    wanted: dict[str, int] = {}
    for update in updates:
        if update.name in wanted:
            raise InvalidUpdateVersion(f"The request names the feature {update.name} more than once.")
        _check(update, levels.get(update.name, 0))
        wanted[update.name] = update.level
    _check_dependencies(levels | wanted)
    records: list[MetadataRecord] = [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in wanted.items()
        if name not in RECORDED_ELSEWHERE
    ]
    if wanted.get(ELIGIBLE_LEADER_REPLICAS, 0) > levels.get(ELIGIBLE_LEADER_REPLICAS, 0):
        records += _pin_min_insync_replicas(view, min_insync_replicas)
    return Decision(records, list(wanted))


def _check(update: FeatureUpdate, current: int) -> None:
    """Raise `InvalidUpdateVersion` unless the feature, now at `current`, may go to the level that is asked for."""
    what = f"{update.name} cannot be set to {update.level}"
    if update.upgrade_type not in tuple(UpgradeType):
        raise InvalidUpdateVersion(f"{what}: there is no upgrade type {update.upgrade_type}.")
    if update.level < 0:
        raise InvalidUpdateVersion(f"{what}: levels start at 0.")
    supported = SUPPORTED_FEATURES.get(update.name)
    if supported is None:
        raise InvalidUpdateVersion(f"{what}: there is no such feature.")
    if not supported.min_level <= update.level <= supported.max_level:
        raise InvalidUpdateVersion(f"{what}: this broker has levels {supported.min_level} to {supported.max_level}.")
    if update.level >= current:
        return
    if update.upgrade_type == UpgradeType.UPGRADE:
        raise InvalidUpdateVersion(f"{what}: it is at {current}, and a downgrade was not asked for.")
    if update.name in (METADATA_VERSION, KRAFT_VERSION):
        raise InvalidUpdateVersion(f"{what}: it is at {current}, and metadata could be lost by going back.")


def _check_dependencies(levels: Mapping[str, int]) -> None:
    needed = ELIGIBLE_LEADER_REPLICAS_METADATA_VERSION
    if levels.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0 and levels.get(METADATA_VERSION, 0) < needed:
        raise InvalidUpdateVersion(f"{ELIGIBLE_LEADER_REPLICAS} needs {METADATA_VERSION} {needed} or later.")


def _pin_min_insync_replicas(view: MetadataView, min_insync_replicas: int) -> list[MetadataRecord]:
    """With eligible leader replicas (KIP-966) only the cluster's and the topics' min.insync.replicas count."""
    records: list[MetadataRecord] = []
    if MIN_INSYNC_REPLICAS not in view.configs(ResourceType.BROKER, ""):
        records += config_records(ResourceType.BROKER, "", {MIN_INSYNC_REPLICAS: str(min_insync_replicas)})
    for name in view.config_resources(ResourceType.BROKER):
        if name and MIN_INSYNC_REPLICAS in view.configs(ResourceType.BROKER, name):
            records += config_records(ResourceType.BROKER, name, {MIN_INSYNC_REPLICAS: None})
    return records
