"""What IncrementalAlterConfigs and AlterConfigs decide: which values a resource gets, or why it gets none.

Pure: from what is set now and what is asked for to what must be recorded. A resource is changed as a whole or not at
all. Kafka's order of checks: `check_resource`, then the operations (`alter_incrementally`, `replace_all`), then the
name of a topic, then `check_values`, and last whether the topic exists. The caller looks that up, records the result
and applies it.

Which error a refusal is differs between resources, and clients see it (behaviour of Kafka 4.4): of topics and groups
unknown names and bad values are INVALID_CONFIG, of brokers and client metrics mostly INVALID_REQUEST. An unknown name
is taken for a broker, and may be deleted anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.config.broker_changes import check_broker_changes
from ottla.config.broker_config import BrokerConfig
from ottla.config.broker_settings import broker_setting
from ottla.config.client_metrics_settings import validate_client_metrics_configs
from ottla.config.group_settings import validate_group_configs
from ottla.config.resource_type import ResourceType
from ottla.config.setting import LIST, Setting
from ottla.config.topic_settings import FORMAT, TOPIC_SETTINGS, validate_topic_configs
from ottla.config.values import JAVA_BLANKS
from ottla.errors import InvalidConfig, InvalidRequest

_NODE_ID: Final = r"[+-]?[0-9]{1,10}"


class Operation(IntEnum):
    """What to do with one setting (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """One asked change. `value` is ignored for DELETE."""

    name: str
    operation: Operation
    value: str | None


class Resource(NamedTuple):
    """What is to be changed: a topic, a group, a client metrics subscription, one broker, or (no name) all brokers."""

    type: ResourceType
    name: str


def check_resource(resource_type: int, name: str, node_id: int) -> Resource:
    """Return the resource that is meant. Raises `InvalidRequest` for an unknown type, or a broker that is not this one.

    Whether a topic's name is allowed, and whether the topic exists, the caller finds out.
    """
    try:
        kind = ResourceType(resource_type)
    except ValueError:
        raise InvalidRequest(f"resources of type {resource_type} have no settings") from None
    if kind is ResourceType.BROKER_LOGGER or (kind is ResourceType.BROKER and name):
        return Resource(kind, _this_broker(name, node_id))
    return Resource(kind, name)


def alter_incrementally(
    resource: Resource, current: Mapping[str, str], changes: Sequence[ConfigChange]
) -> dict[str, str | None]:
    """Return what must be recorded: the new value of each changed setting, None for one that goes.

    Of all but brokers, values that stay the same are left out; a broker's are kept, since repeating one makes it read
    its files again (key stores). Raises `InvalidRequest` for changes that make no sense, `InvalidConfig` where there is
    no list to append to or subtract from.
    """
    _check_names(resource, [change.name for change in changes])
    for change in changes:
        if change.value is None and change.operation is not Operation.DELETE:
            raise InvalidRequest(f"{change.name} needs a value")
    result = {change.name: _apply(resource.type, change, current.get(change.name)) for change in changes}
    if resource.type is ResourceType.BROKER:
        return result
    return {name: value for name, value in result.items() if value != current.get(name)}


def replace_all(
    resource: Resource, current: Mapping[str, str], values: Sequence[tuple[str, str | None]]
) -> dict[str, str | None]:
    """Return what must be recorded so that the resource has exactly `values`, as AlterConfigs asks.

    Raises `InvalidRequest` for a request that makes no sense.
    """
    if resource.type is ResourceType.BROKER_LOGGER:
        raise InvalidRequest("the levels of loggers cannot be replaced as a whole")
    _check_names(resource, [name for name, _ in values])
    result: dict[str, str | None] = {name: None for name in current if name != FORMAT}
    for name, value in values:
        if value is None:
            raise InvalidRequest(f"{name} needs a value")
        result[name] = value
    return {name: value for name, value in result.items() if value != current.get(name)}


def check_values(
    resource: Resource, current: Mapping[str, str], changes: Mapping[str, str | None], broker: BrokerConfig
) -> None:
    """Check the whole of what the resource would have after `changes`; `broker` are the broker's settings as of now.

    Raises `InvalidConfig` or `InvalidRequest` (see above) for a value, a name or a resource's name that is not allowed.
    """
    values = _merged(current, changes)
    if resource.type is ResourceType.BROKER:
        check_broker_changes({name: text for name, text in changes.items() if text is not None}, resource.name, broker)
    elif not resource.name:
        raise InvalidRequest("the resource has no name")
    elif resource.type is ResourceType.TOPIC:
        validate_topic_configs(values)
        if FORMAT in changes:
            raise InvalidConfig(f"{FORMAT}: what a topic's files are is fixed when it is made")
    elif resource.type is ResourceType.GROUP:
        validate_group_configs(values, broker)
    elif resource.type is ResourceType.CLIENT_METRICS:
        validate_client_metrics_configs(values)
    else:
        raise InvalidRequest("the levels of loggers are not recorded")


def _this_broker(name: str, node_id: int) -> str:
    """The one way to write this broker's id: Kafka takes `+1` and `01` too."""
    if re.fullmatch(_NODE_ID, name) is None:
        raise InvalidRequest(f"a broker's id is a whole number, not {name!r}")
    if int(name) != node_id:
        raise InvalidRequest(f"{name!r} is not this broker, which is {node_id}")
    return str(node_id)


def _check_names(resource: Resource, names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise InvalidRequest(f"a setting of {resource.name!r} stands twice in the request")


def _list_setting(resource_type: ResourceType, name: str) -> Setting | None:
    """The row of a list that can be added to and taken from: of topics and brokers, in Kafka."""
    setting = None
    if resource_type is ResourceType.TOPIC:
        setting = TOPIC_SETTINGS.get(name)
    elif resource_type is ResourceType.BROKER:
        setting = broker_setting(name)
    return setting if setting is not None and setting.type is LIST else None


def _apply(resource_type: ResourceType, change: ConfigChange, old: str | None) -> str | None:
    if change.operation is Operation.SET:
        return change.value
    if change.operation is Operation.DELETE:
        return None
    setting = _list_setting(resource_type, change.name)
    if setting is None:
        verb = "append to" if change.operation is Operation.APPEND else "subtract from"
        raise InvalidConfig(f"{change.name} is no list, so there is nothing to {verb}")
    # Kafka starts from its own default where nothing is set, whatever the broker's synonyms say.
    text = old if old is not None else setting.format(setting.effective_default)
    parts = _parts(text or "")
    for part in _parts(change.value or ""):
        if change.operation is Operation.APPEND and part not in parts:
            parts.append(part)
        elif change.operation is Operation.SUBTRACT and part in parts:
            parts.remove(part)
    return ",".join(parts)


def _parts(text: str) -> list[str]:
    return [part for part in (piece.strip(JAVA_BLANKS) for piece in text.split(",")) if part]


def _merged(current: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    kept = {name: value for name, value in current.items() if name not in changes}
    return kept | {name: value for name, value in changes.items() if value is not None}
