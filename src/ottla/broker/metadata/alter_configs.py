"""Deciding IncrementalAlterConfigs and AlterConfigs: settings of topics, brokers, groups and client metrics.

Pure. One alteration per resource; those that fail change nothing for the others. What is checked is the whole set that
the resource would have afterwards. AlterConfigs, the older request, replaces that set; it is the same decision with
`replaces` set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.broker.metadata.config_rules import TABLES, ConfigRules
from ottla.broker.metadata.create_topics import config_records
from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.features import ELIGIBLE_LEADER_REPLICAS
from ottla.broker.metadata.image import ConfigResourceType, MetadataView
from ottla.broker.metadata.records import ClearElrRecord, MetadataRecord
from ottla.broker.metadata.topic_names import check_topic_name
from ottla.errors import InvalidConfig, InvalidRequest, KafkaError, UnknownTopicOrPartition

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"


class AlterOperation(IntEnum):
    """What to do with one setting (KIP-339); the numbers are those of the wire."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_OPERATIONS: Final = frozenset(AlterOperation)


class ConfigChange(NamedTuple):
    """One setting to change. `operation` is the wire's number, which may be none of `AlterOperation`."""

    key: str
    operation: int
    value: str | None


@dataclass(frozen=True, slots=True)
class ConfigAlteration:
    """The changes asked for on one resource. `resource_type` is the wire's number, which may be unknown."""

    resource_type: int
    name: str
    changes: Sequence[ConfigChange]
    replaces: bool = False


AlterConfigsAnswer = Sequence[KafkaError | None]


def decide_alter_configs(
    view: MetadataView, alterations: Sequence[ConfigAlteration], rules: ConfigRules
) -> Decision[AlterConfigsAnswer]:
    """Decide a whole request. The answer has one entry per alteration, in their order: None where it was done."""
    times = Counter((alteration.resource_type, alteration.name) for alteration in alterations)
    answer: list[KafkaError | None] = []
    records: list[MetadataRecord] = []
    for alteration in alterations:
        try:
            if times[alteration.resource_type, alteration.name] > 1:
                raise InvalidRequest("The request names this resource more than once.")
            records += _alter(view, alteration, rules)
        except KafkaError as error:
            answer.append(error)
        else:
            answer.append(None)
    return Decision(records, answer)


def _alter(view: MetadataView, alteration: ConfigAlteration, rules: ConfigRules) -> list[MetadataRecord]:
    resource_type = _known_type(alteration.resource_type)
    _check_changes(alteration.changes)
    _check_resource(view, resource_type, alteration.name)
    old = view.configs(resource_type, alteration.name)
    new: dict[str, str] = {} if alteration.replaces else dict(old)
    for change in alteration.changes:
        _apply(new, change, resource_type, rules)
    rules.check(resource_type, alteration.name, new)
    changes: dict[str, str | None] = {key: value for key, value in new.items() if old.get(key) != value}
    changes.update((key, None) for key in old if key not in new)
    if MIN_INSYNC_REPLICAS in changes and view.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0:
        return _change_min_insync_replicas(resource_type, alteration.name, changes)
    return config_records(resource_type, alteration.name, changes)


def _known_type(resource_type: int) -> ConfigResourceType:
    if resource_type not in TABLES:
        raise InvalidRequest(f"Settings of resource type {resource_type} cannot be altered.")
    return ConfigResourceType(resource_type)


def _check_changes(changes: Sequence[ConfigChange]) -> None:
    keys = [change.key for change in changes]
    if len(set(keys)) != len(keys):
        raise InvalidRequest("The request names a setting more than once.")
    for change in changes:
        if change.operation not in _OPERATIONS:
            raise InvalidRequest(f"{change.key}: there is no operation {change.operation}.")
        if change.value is None and change.operation != AlterOperation.DELETE:
            raise InvalidRequest(f"{change.key} needs a value.")


def _check_resource(view: MetadataView, resource_type: ConfigResourceType, name: str) -> None:
    checks: Mapping[ConfigResourceType, Callable[[MetadataView, str], None]] = {
        ConfigResourceType.TOPIC: _check_topic,
        ConfigResourceType.BROKER: _check_broker,
    }
    check = checks.get(resource_type)
    if check is not None:
        check(view, name)
    elif not name:
        raise InvalidRequest("The resource has no name.")


def _check_topic(view: MetadataView, name: str) -> None:
    if not name:
        raise InvalidRequest("Settings of all topics at once are the brokers' settings.")
    check_topic_name(name)
    if view.topic(name) is None:
        raise UnknownTopicOrPartition(f"There is no topic '{name}'.")


def _check_broker(view: MetadataView, name: str) -> None:
    if name and name != str(view.node_id):
        raise InvalidRequest(f"This is broker {view.node_id}; settings of broker {name} cannot be altered here.")


def _apply(
    configs: dict[str, str], change: ConfigChange, resource_type: ConfigResourceType, rules: ConfigRules
) -> None:
    if change.operation == AlterOperation.DELETE:
        configs.pop(change.key, None)
        return
    assert change.value is not None, "checked before"
    if change.operation == AlterOperation.SET:
        configs[change.key] = change.value
        return
    if not rules.is_list(resource_type, change.key):
        raise InvalidConfig(f"{change.key} is no list, so nothing can be appended to it or subtracted from it.")
    old = configs.get(change.key, rules.default_items(resource_type, change.key))
    configs[change.key] = ",".join(_changed_items(_items(old), _items(change.value), change.operation))


def _changed_items(old: Sequence[str], named: Sequence[str], operation: int) -> list[str]:
    if operation == AlterOperation.SUBTRACT:
        return [item for item in old if item not in named]
    return [*old, *(item for item in dict.fromkeys(named) if item not in old)]


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")] if text.strip() else []


def _change_min_insync_replicas(
    resource_type: ConfigResourceType, name: str, changes: Mapping[str, str | None]
) -> list[MetadataRecord]:
    """With eligible leader replicas (KIP-966), this setting is a topic's or the cluster's; changing it clears them."""
    if resource_type == ConfigResourceType.BROKER:
        if name:
            raise InvalidConfig(f"{MIN_INSYNC_REPLICAS} cannot be set on a single broker.")
        if changes[MIN_INSYNC_REPLICAS] is None:
            raise InvalidConfig(f"{MIN_INSYNC_REPLICAS} of the cluster cannot be removed.")
    topic_name = name if resource_type == ConfigResourceType.TOPIC else ""
    return [*config_records(resource_type, name, changes), ClearElrRecord(topic_name=topic_name)]
