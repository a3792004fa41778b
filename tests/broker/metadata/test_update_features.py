"""UpdateFeatures, decided. What is refused was seen on a running 4.4.0."""

from __future__ import annotations

import pytest

from ottla.broker.metadata.features import FORMAT_LEVELS
from ottla.broker.metadata.records import ConfigRecord, FeatureLevelRecord
from ottla.broker.metadata.state import MetadataState
from ottla.broker.metadata.update_features import FeatureUpdate, decide_update_features
from ottla.errors import InvalidUpdateVersion
from tests.broker.metadata.harness import state_of

UPGRADE, SAFE, UNSAFE = 1, 2, 3
NEWEST = state_of(*(FeatureLevelRecord(name=name, feature_level=level) for name, level in FORMAT_LEVELS.items()))
OLD = state_of(FeatureLevelRecord(name="metadata.version", feature_level=20))


def levels(*updates: tuple[str, int, int], state: MetadataState = NEWEST, kraft_version: int = 1) -> dict[str, int]:
    decision = decide_update_features(
        state, [FeatureUpdate(*one) for one in updates], kraft_version=kraft_version, min_insync_replicas=2
    )
    assert list(decision.answer) == [name for name, _, _ in updates]
    return {one.name: one.feature_level for one in decision.records if isinstance(one, FeatureLevelRecord)}


@pytest.mark.parametrize(
    "update",
    [
        ("transaction.version", 2, UPGRADE),
        ("transaction.version", 2, SAFE),
        ("transaction.version", 1, SAFE),
        ("transaction.version", 0, UNSAFE),
        ("group.version", 0, SAFE),
        ("metadata.version", 33, UPGRADE),
        ("metadata.version", 33, UNSAFE),
    ],
)
def test_a_level_that_can_be_is_recorded(update: tuple[str, int, int]) -> None:
    assert levels(update) == {update[0]: update[1]}


@pytest.mark.parametrize(
    "update",
    [
        ("transaction.version", 1, 0),
        ("transaction.version", 1, 9),
        ("transaction.version", 1, UPGRADE),
        ("transaction.version", 3, UPGRADE),
        ("transaction.version", -1, SAFE),
        ("nope", 1, UPGRADE),
        ("nope", 0, SAFE),
        ("", 0, SAFE),
        ("metadata.version", 32, UPGRADE),
        ("metadata.version", 32, SAFE),
        ("metadata.version", 32, UNSAFE),
        ("metadata.version", 34, UPGRADE),
        ("metadata.version", 0, UNSAFE),
        ("kraft.version", 0, SAFE),
        ("kraft.version", 2, UPGRADE),
    ],
)
def test_a_level_that_cannot_be_is_refused(update: tuple[str, int, int]) -> None:
    with pytest.raises(InvalidUpdateVersion):
        levels(update)


def test_one_that_is_refused_keeps_all_as_they_are() -> None:
    with pytest.raises(InvalidUpdateVersion):
        levels(("group.version", 0, SAFE), ("transaction.version", 9, UPGRADE))
    with pytest.raises(InvalidUpdateVersion):
        levels(("group.version", 0, SAFE), ("group.version", 1, UPGRADE))


def test_kraft_version_stands_elsewhere_and_is_not_recorded() -> None:
    assert levels(("kraft.version", 1, UPGRADE)) == {}


def test_eligible_leader_replicas_need_a_metadata_version_that_has_them() -> None:
    with pytest.raises(InvalidUpdateVersion):
        levels(("eligible.leader.replicas.version", 1, UPGRADE), state=OLD)
    together = levels(("eligible.leader.replicas.version", 1, UPGRADE), ("metadata.version", 33, UPGRADE), state=OLD)
    assert together == {"eligible.leader.replicas.version": 1, "metadata.version": 33}


def test_eligible_leader_replicas_pin_the_clusters_min_insync_replicas() -> None:
    """Brokers' own values count no more, so those that were changed at run time go, and the configured one stays."""
    state = state_of(
        FeatureLevelRecord(name="metadata.version", feature_level=33),
        ConfigRecord(resource_type=4, resource_name="1", name="min.insync.replicas", value="3"),
        ConfigRecord(resource_type=4, resource_name="1", name="log.retention.ms", value="3"),
    )
    update = FeatureUpdate("eligible.leader.replicas.version", 1, UPGRADE)
    decision = decide_update_features(state, [update], kraft_version=1, min_insync_replicas=2)
    assert [one for one in decision.records if isinstance(one, ConfigRecord)] == [
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2"),
        ConfigRecord(resource_type=4, resource_name="1", name="min.insync.replicas", value=None),
    ]
    again = state_of(
        FeatureLevelRecord(name="metadata.version", feature_level=33),
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
    )
    kept = decide_update_features(again, [update], kraft_version=1, min_insync_replicas=2)
    assert [one for one in kept.records if isinstance(one, ConfigRecord)] == []
