"""What IncrementalAlterConfigs and AlterConfigs decide: which values a resource gets, or why it gets none.

Pure: from what is set now and what is asked for to what must be recorded. The caller looks up whether the resource
exists, records the result and applies it. A resource is changed as a whole or not at all.

Which error a refusal is differs between resources, and clients see it (behaviour of Kafka 4.4): of topics and groups
unknown names and bad values are INVALID_CONFIG, of brokers and client metrics mostly INVALID_REQUEST. An unknown name
is taken for a broker, and may be deleted anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.config.broker_config import BrokerConfig
from ottla.config.broker_settings import BROKER_SETTINGS, DYNAMIC_ONLY_SETTINGS
from ottla.config.client_metrics_settings import validate_client_metrics_configs
from ottla.config.group_settings import GROUP_SETTINGS, validate_group_configs
from ottla.config.setting import LIST, PER_BROKER, READ_ONLY, Setting
from ottla.config.topic_settings import TOPIC_SETTINGS, validate_topic_configs
from ottla.config.values import JAVA_BLANKS, ConfigError
from ottla.errors import InvalidConfig, InvalidRequest

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"


class ResourceType(IntEnum):
    """Kinds of resources that have settings; the number is the one on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


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


def alter_incrementally(
    resource: Resource, current: Mapping[str, str], changes: Sequence[ConfigChange], broker: BrokerConfig
) -> dict[str, str | None]:
    """Return what must be recorded: the new value of each changed setting, None for one that goes.

    Of all but brokers, values that stay the same are left out; a broker's are kept, since repeating one makes it read
    its files again (key stores). Raises `InvalidRequest` for a request that makes no sense, `InvalidConfig` (or
    `InvalidRequest`, see above) for values that are not allowed.
    """
    _check_names(resource, [change.name for change in changes])
    for change in changes:
        if change.value is None and change.operation is not Operation.DELETE:
            raise InvalidRequest(f"{change.name} needs a value")
    result: dict[str, str | None] = {}
    for change in changes:
        result[change.name] = _apply(resource.type, change, current.get(change.name))
    _validate(resource, _merged(current, result), {name for name, value in result.items() if value is not None}, broker)
    if resource.type is ResourceType.BROKER:
        return result
    return {name: value for name, value in result.items() if value != current.get(name)}


def replace_all(
    resource: Resource, current: Mapping[str, str], values: Mapping[str, str | None], broker: BrokerConfig
) -> dict[str, str | None]:
    """Return what must be recorded so that the resource has exactly `values`, as AlterConfigs asks.

    Raises as `alter_incrementally`. Keys that stand twice in the request are the caller's to refuse: here is a mapping.
    """
    _check_names(resource, list(values))
    wanted: dict[str, str] = {}
    for name, value in values.items():
        if value is None:
            raise InvalidRequest(f"{name} needs a value")
        wanted[name] = value
    _validate(resource, wanted, set(wanted), broker)
    result: dict[str, str | None] = {name: value for name, value in wanted.items() if value != current.get(name)}
    result |= {name: None for name in current if name not in wanted}
    return result


def check_resource(resource_type: int, name: str, node_id: int) -> Resource:
    """Return a resource that can be altered. Raises `InvalidRequest` for an unknown type or an impossible name.

    Whether a topic's name is allowed, and whether the topic exists, the caller finds out.
    """
    try:
        kind = ResourceType(resource_type)
    except ValueError:
        raise InvalidRequest(f"resources of type {resource_type} have no settings") from None
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        is_default = kind is ResourceType.BROKER and name == ""
        if not is_default and name != str(node_id):
            raise InvalidRequest(f"{name!r} is not this broker, which is {node_id}")
    elif not name:
        raise InvalidRequest("the resource has no name")
    return Resource(kind, name)


def _check_names(resource: Resource, names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise InvalidRequest(f"a setting of {resource.name!r} stands twice in the request")
    if "" in names:
        raise InvalidRequest("a setting without a name cannot be changed")


def _setting(resource_type: ResourceType, name: str) -> Setting | None:
    if resource_type is ResourceType.TOPIC:
        return TOPIC_SETTINGS.get(name)
    if resource_type is ResourceType.GROUP:
        return GROUP_SETTINGS.get(name)
    if resource_type is ResourceType.BROKER:
        return BROKER_SETTINGS.get(name) or DYNAMIC_ONLY_SETTINGS.get(name)
    return None


def _apply(resource_type: ResourceType, change: ConfigChange, old: str | None) -> str | None:
    if change.operation is Operation.SET:
        return change.value
    if change.operation is Operation.DELETE:
        return None
    setting = _setting(resource_type, change.name)
    if setting is None or setting.type is not LIST:
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


def _merged(current: Mapping[str, str], result: Mapping[str, str | None]) -> dict[str, str]:
    kept = {name: value for name, value in current.items() if name not in result}
    return kept | {name: value for name, value in result.items() if value is not None}


def _validate(resource: Resource, values: Mapping[str, str], touched: set[str], broker: BrokerConfig) -> None:
    """Check the whole of what the resource would have; `touched` are the names that the request sets."""
    if resource.type is ResourceType.TOPIC:
        validate_topic_configs(values)
    elif resource.type is ResourceType.GROUP:
        validate_group_configs(values, broker.integer)
    elif resource.type is ResourceType.CLIENT_METRICS:
        validate_client_metrics_configs(values)
    elif resource.type is ResourceType.BROKER:
        _validate_broker(resource.name, {name: text for name, text in values.items() if name in touched})
    else:
        raise InvalidRequest("the levels of loggers cannot be changed")


def _validate_broker(name: str, values: Mapping[str, str]) -> None:
    """Check settings to be set for one broker, or for all when `name` is empty. Unknown ones pass."""
    for key, text in values.items():
        setting = _setting(ResourceType.BROKER, key)
        if setting is None:
            continue
        if setting.update_mode is READ_ONLY:
            raise InvalidRequest(f"{key} cannot be changed while the broker runs")
        if not name and setting.update_mode is PER_BROKER:
            raise InvalidRequest(f"{key} is set for each broker, not for all")
        if name and key == MIN_INSYNC_REPLICAS:
            # Eligible leader replicas (KIP-966) need one value for the whole cluster.
            raise InvalidConfig(f"{key} is set for all brokers or for a topic, not for one broker")
        try:
            value = setting.parse(text)
            # What is handed down to topics must be allowed there.
            for topic_config in setting.topic_configs:
                TOPIC_SETTINGS[topic_config].check(key, value)
        except ConfigError as error:
            raise InvalidRequest(str(error)) from None
