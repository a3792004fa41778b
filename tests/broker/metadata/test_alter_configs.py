"""Altering settings, decided: what needs the metadata. Which values are allowed is `ottla.config.alter`'s test."""

from __future__ import annotations

import pytest

from ottla.broker.metadata.alter_configs import ConfigAlteration, decide_alter_configs
from ottla.broker.metadata.records import ClearElrRecord, ConfigRecord, FeatureLevelRecord, TopicRecord
from tests.broker.metadata.harness import config, state_of, topic_id

SET, DELETE, APPEND = 0, 1, 2
TOPIC, BROKER, GROUP = 2, 4, 32
STATE = state_of(
    FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
    TopicRecord(name="t", topic_id=topic_id(1)),
    ConfigRecord(resource_type=TOPIC, resource_name="t", name="retention.ms", value="5"),
    ConfigRecord(resource_type=TOPIC, resource_name="t", name="segment.ms", value="7"),
)


def decide(*alterations: ConfigAlteration) -> tuple[list[tuple[str, str | None]], list[str | None]]:
    """The changed settings (or the kind of another record), and the errors."""
    decision = decide_alter_configs(STATE, alterations, config(node_id="1"))
    changes = [
        (record.name, record.value) if isinstance(record, ConfigRecord) else (type(record).__name__, None)
        for record in decision.records
    ]
    return changes, [None if error is None else error.name for error in decision.answer]


def test_only_what_changes_is_recorded() -> None:
    changes, errors = decide(ConfigAlteration(TOPIC, "t", [("retention.ms", SET, "5"), ("segment.ms", DELETE, None)]))
    assert changes == [("segment.ms", None)]
    assert errors == [None]


def test_values_are_appended_to_a_lists_default() -> None:
    changes, _ = decide(ConfigAlteration(TOPIC, "t", [("cleanup.policy", APPEND, "compact")]))
    assert changes == [("cleanup.policy", "delete,compact")]


def test_replacing_removes_what_is_not_named() -> None:
    changes, errors = decide(ConfigAlteration(TOPIC, "t", [("retention.ms", SET, "9")], replaces=True))
    assert sorted(changes, key=str) == [("retention.ms", "9"), ("segment.ms", None)]
    assert errors == [None]


@pytest.mark.parametrize(
    ("alteration", "error"),
    [
        (ConfigAlteration(TOPIC, "nope", [("retention.ms", SET, "5")]), "UNKNOWN_TOPIC_OR_PARTITION"),
        (ConfigAlteration(TOPIC, "..", [("retention.ms", SET, "5")]), "INVALID_TOPIC_EXCEPTION"),
        (ConfigAlteration(TOPIC, "", [("retention.ms", SET, "5")]), "INVALID_REQUEST"),
        (ConfigAlteration(77, "x", []), "INVALID_REQUEST"),
        (ConfigAlteration(BROKER, "7", []), "INVALID_REQUEST"),
        (ConfigAlteration(TOPIC, "t", [("retention.ms", 9, "5")]), "INVALID_REQUEST"),
        (ConfigAlteration(TOPIC, "t", [("retention.ms", SET, "x")]), "INVALID_CONFIG"),
        (ConfigAlteration(TOPIC, "t", [("a", SET, "1"), ("a", SET, "2")], replaces=True), "INVALID_REQUEST"),
        (ConfigAlteration(BROKER, "", [("min.insync.replicas", DELETE, None)]), "INVALID_CONFIG"),
    ],
)
def test_what_cannot_be_altered_is_refused(alteration: ConfigAlteration, error: str) -> None:
    assert decide(alteration) == ([], [error])


def test_a_resource_that_stands_twice_is_altered_by_neither() -> None:
    alteration = ConfigAlteration(TOPIC, "t", [("retention.ms", SET, "9")])
    assert decide(alteration, alteration) == ([], ["INVALID_REQUEST", "INVALID_REQUEST"])


def test_one_resource_that_fails_harms_no_other() -> None:
    bad = ConfigAlteration(TOPIC, "nope", [])
    good = ConfigAlteration(TOPIC, "t", [("retention.ms", SET, "9")])
    assert decide(bad, good) == ([("retention.ms", "9")], ["UNKNOWN_TOPIC_OR_PARTITION", None])


@pytest.mark.parametrize(("resource_type", "name", "cleared"), [(TOPIC, "t", "t"), (BROKER, "", "")])
def test_changing_min_insync_replicas_clears_eligible_leaders(resource_type: int, name: str, cleared: str) -> None:
    alteration = ConfigAlteration(resource_type, name, [("min.insync.replicas", SET, "2")])
    records = decide_alter_configs(STATE, [alteration], config(node_id="1")).records
    assert records[-1] == ClearElrRecord(topic_name=cleared)


def test_groups_have_settings_whether_or_not_they_exist() -> None:
    changes, errors = decide(ConfigAlteration(GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]))
    assert changes == [("consumer.session.timeout.ms", "50000")]
    assert errors == [None]
