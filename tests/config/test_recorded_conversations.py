"""Describing and altering, against what Kafka 4.4 answered in recorded conversations.

Only what pure logic decides is replayed: whether a resource exists, and which names are allowed, is the handlers' part.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ottla.config.alter import (
    ConfigChange,
    Operation,
    Resource,
    alter_incrementally,
    check_resource,
    check_values,
    replace_all,
)
from ottla.config.broker_config import BrokerConfig
from ottla.config.broker_layers import BrokerLayers
from ottla.config.describe import (
    ConfigEntry,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from ottla.config.resource_type import ResourceType
from ottla.errors import NONE, InvalidRequest, KafkaError
from tests.behaviour.recorded_broker import RECORDED_WITH

RECORDING = BrokerConfig.from_properties(RECORDED_WITH)
LAYERS = BrokerLayers(RECORDING, {}, {"min.insync.replicas": "1"})
OUR_DEFAULTS = {"log.dir", "node.id", "process.roles", "controller.listener.names", "listeners"}
"""Where our default is not Kafka's, synonyms end differently."""


def scenarios() -> Iterator[Any]:
    path = Path(__file__).parents[1] / "golden" / "behaviour" / "configs.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            scenario = json.loads(line)
            yield pytest.param(scenario, id=scenario["name"])


class Replay:
    """The settings of all resources, changed and described by the rules under test."""

    def __init__(self) -> None:
        self.configs: dict[Resource, dict[str, str]] = {}

    def create_topics(self, request: Mapping[str, Any]) -> None:
        for topic in request["topics"]:
            configs = {config["name"]: config["value"] for config in topic["configs"]}
            self.configs[Resource(ResourceType.TOPIC, topic["name"])] = configs

    def alter(self, api: str, request: Mapping[str, Any], index: int) -> int | None:
        """Return the error code of one resource, None where more than settings decides."""
        row = request["resources"][index]
        twins = [r for r in request["resources"] if r["resourceName"] == row["resourceName"]]
        try:
            resource = check_resource(row["resourceType"], row["resourceName"], node_id=1)
            if resource.type is ResourceType.TOPIC and resource not in self.configs:
                return None
            if len(twins) > 1:
                raise InvalidRequest("the resource stands twice")
            current = self.configs.get(resource, {})
            result = self.decide(api, resource, current, row["configs"])
            check_values(resource, current, result, RECORDING)
        except KafkaError as error:
            return error.code
        if not request["validateOnly"]:
            merged = {**current, **result}
            self.configs[resource] = {name: value for name, value in merged.items() if value is not None}
        return NONE

    def decide(
        self, api: str, resource: Resource, current: Mapping[str, str], rows: list[dict[str, Any]]
    ) -> dict[str, str | None]:
        if api == "AlterConfigs":
            return replace_all(resource, current, [(row["name"], row["value"]) for row in rows])
        changes = [ConfigChange(row["name"], Operation(row["configOperation"]), row["value"]) for row in rows]
        return alter_incrementally(resource, current, changes)

    def describe(self, row: Mapping[str, Any]) -> list[ConfigEntry]:
        resource = check_resource(row["resourceType"], row["resourceName"], node_id=1)
        keys = row["configurationKeys"]
        if resource.type is ResourceType.BROKER:
            return describe_broker(LAYERS, keys) if resource.name else describe_broker_default(LAYERS, keys)
        describe = {
            ResourceType.TOPIC: describe_topic,
            ResourceType.GROUP: describe_group,
            ResourceType.CLIENT_METRICS: describe_client_metrics,
        }[resource.type]
        return describe(LAYERS, self.configs.get(resource, {}), keys)


def as_row(entry: ConfigEntry, expected: Mapping[str, Any], with_synonyms: bool) -> dict[str, Any]:
    row = {
        "name": entry.name,
        "value": entry.value,
        "readOnly": entry.read_only,
        "configSource": int(entry.source),
        "isSensitive": entry.is_sensitive,
        "configType": int(entry.config_type),
        "documentation": None,
        "synonyms": [{"name": s.name, "value": s.value, "source": int(s.source)} for s in entry.synonyms],
    }
    if not with_synonyms:
        row["synonyms"] = []
    return {name: value for name, value in row.items() if name in expected}


def same(ours: Any, recorded: Any) -> bool:
    """Compare as the recordings say: any value, or lists in any order."""
    if recorded == "$any":
        return True
    if isinstance(recorded, dict):
        return isinstance(ours, dict) and all(same(ours.get(key), recorded[key]) for key in recorded)
    if isinstance(recorded, list):
        rest = list(ours)
        for item in recorded:
            match = next((candidate for candidate in rest if same(candidate, item)), None)
            if match is None:
                return False
            rest.remove(match)
        return not rest
    return bool(ours == recorded)


@pytest.mark.parametrize("scenario", list(scenarios()))
def test_answers_are_the_recorded_ones(scenario: Mapping[str, Any]) -> None:
    replay = Replay()
    for step in scenario["steps"]:
        api = step.get("api")
        if api == "CreateTopics":
            replay.create_topics(step["request"])
        elif api in ("IncrementalAlterConfigs", "AlterConfigs"):
            for index, expected in enumerate(step["response"]["responses"]):
                code = replay.alter(api, step["request"], index)
                assert code in (None, expected["errorCode"]), (step["request"], expected)
        elif api == "DescribeConfigs":
            for row, result in zip(step["request"]["resources"], step["response"]["results"], strict=True):
                if result["errorCode"] == NONE:
                    check_description(replay, step["request"], row, result["configs"])


def check_description(replay: Replay, request: Mapping[str, Any], row: Mapping[str, Any], recorded: list[Any]) -> None:
    entries = {entry.name: entry for entry in replay.describe(row)}
    assert sorted(entries) == sorted(expected["name"] for expected in recorded)
    for expected in recorded:
        ours = as_row(entries[expected["name"]], expected, request["includeSynonyms"])
        if expected["name"] in OUR_DEFAULTS:
            ours["synonyms"] = expected["synonyms"]
        assert same(ours, expected), (ours, expected)
