"""The settings tables, against the list that Kafka 4.4's own classes give of themselves."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ottla.config.broker_changes import MIN_INSYNC_REPLICAS
from ottla.config.broker_settings import BROKER_SETTINGS, DYNAMIC_ONLY_SETTINGS, KAFKA_BROKER_SETTINGS, OTTLA_SETTINGS
from ottla.config.client_metrics_settings import CLIENT_METRICS_SETTINGS
from ottla.config.group_settings import BOUNDS, GROUP_SETTINGS
from ottla.config.quota_settings import IP_QUOTAS, USER_AND_CLIENT_QUOTAS
from ottla.config.setting import CLUSTER_WIDE, PER_BROKER, READ_ONLY, REQUIRED, Default, Setting
from ottla.config.topic_settings import KAFKA_TOPIC_SETTINGS, OTTLA_TOPIC_SETTINGS, TOPIC_SETTINGS

with gzip.open(Path(__file__).parents[1] / "golden" / "messages" / "configs.json.gz", "rt", encoding="utf-8") as file:
    KAFKA: dict[str, Any] = json.load(file)

TABLES: dict[str, Mapping[str, Setting]] = {
    "broker": KAFKA_BROKER_SETTINGS,
    "brokerDynamicOnly": DYNAMIC_ONLY_SETTINGS,
    "topic": KAFKA_TOPIC_SETTINGS,
    "group": GROUP_SETTINGS,
    "clientMetrics": CLIENT_METRICS_SETTINGS,
    "quotaUserAndClient": USER_AND_CLIENT_QUOTAS,
    "quotaIp": IP_QUOTAS,
}


def row(setting: Setting, scope: str) -> dict[str, Any]:
    """Say of one of our rows what Kafka's list says of its own."""
    said: dict[str, Any] = {
        "name": setting.name,
        "type": setting.type.name.lower(),
        "importance": setting.importance.value,
    }
    if setting.default is REQUIRED:
        said["required"] = True
    else:
        assert not isinstance(setting.default, Default)
        said["default"] = list(setting.default) if isinstance(setting.default, tuple) else setting.default
        said["defaultString"] = setting.format(setting.default)
    if setting.validator is not None:
        said["validator"] = str(setting.validator)
    for flag in ("internal", "sensitive"):
        if getattr(setting, flag):
            said[flag] = True
    if setting.update_mode is not None:
        said["updateMode"] = setting.update_mode.value
    if setting.topic_configs:
        said["topicConfigs"] = list(setting.topic_configs)
    return said | synonyms(setting, scope)


def synonyms(setting: Setting, scope: str) -> dict[str, Any]:
    names = [synonym.name for synonym in setting.synonyms]
    if not names:
        return {}
    if scope == "broker":
        return {"synonyms": names}
    if scope == "group":
        return {"brokerSynonym": names[0]}
    named = [{"name": s.name} | ({"timesToTopicUnit": s.factor} if s.factor != 1 else {}) for s in setting.synonyms]
    return {"brokerSynonyms": named, "serverDefault": names[0]}


@pytest.mark.parametrize("scope", TABLES)
def test_a_table_says_what_kafka_says(scope: str) -> None:
    ours = {name: row(setting, scope) for name, setting in TABLES[scope].items()}
    kafkas = {setting["name"]: setting for setting in KAFKA[scope]}
    assert list(ours) == list(kafkas)
    for name, setting in kafkas.items():
        assert ours[name] == setting, name


def test_defaults_pass_their_own_validators() -> None:
    for scope, table in TABLES.items():
        for name, setting in table.items():
            value = setting.effective_default
            if value is not None:
                assert setting.parse(setting.format(value) or "") == value, (scope, name)


def test_our_defaults_differ_only_where_one_node_or_safety_asks_for_it() -> None:
    differing = {name: s.ottla_default for name, s in BROKER_SETTINGS.items() if s.ottla_default is not Default.KAFKA}
    assert differing == {
        "controller.listener.names": ("CONTROLLER",),
        "listeners": ("PLAINTEXT://127.0.0.1:9092",),
        "log.dir": ("./ottla-data",),
        "node.id": 1,
        "offsets.topic.replication.factor": 1,
        "process.roles": ("broker", "controller"),
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.replication.factor": 1,
    }


def test_settings_of_our_own_start_with_our_name() -> None:
    assert all(name.startswith("ottla.") for name in [*OTTLA_SETTINGS, *OTTLA_TOPIC_SETTINGS])


def test_update_modes_are_kafkas_sets_of_dynamic_settings() -> None:
    sets = KAFKA["dynamicSets"]
    every = {**KAFKA_BROKER_SETTINGS, **DYNAMIC_ONLY_SETTINGS}
    assert sorted(name for name, s in every.items() if s.update_mode is not READ_ONLY) == sets["ALL_DYNAMIC_CONFIGS"]
    assert sorted(name for name, s in every.items() if s.update_mode is PER_BROKER) == sets["PER_BROKER_CONFIGS"]
    assert every[MIN_INSYNC_REPLICAS].update_mode is CLUSTER_WIDE


def test_every_synonym_and_bound_is_a_broker_setting() -> None:
    for table in (TOPIC_SETTINGS, GROUP_SETTINGS, BROKER_SETTINGS):
        for setting in table.values():
            assert all(synonym.name in BROKER_SETTINGS for synonym in setting.synonyms), setting.name
            assert all(name in TOPIC_SETTINGS for name in setting.topic_configs), setting.name
    for name, bounds in BOUNDS.items():
        assert name in GROUP_SETTINGS
        assert all(bound is None or bound in BROKER_SETTINGS for bound in bounds), name
