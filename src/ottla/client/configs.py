"""Settings of topics and brokers as an admin client sees them: whose, which value, where it comes from.

Values only, and their way into requests and out of answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Self

from ottla.protocol.messages.describe_configs import DescribeConfigsResource, DescribeConfigsResult
from ottla.protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource

ConfigValue = str | None
"""None takes a setting back to its default."""


class ResourceType(IntEnum):
    """What has settings; the numbers are the wire's."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from, nearest first; the numbers are the wire's."""

    UNKNOWN = -1
    TOPIC = 1
    BROKER = 2
    CLUSTER = 3
    FILE = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class AlterOperation(IntEnum):
    """How a setting changes; the numbers are the wire's."""

    SET = 0
    DELETE = 1


class ConfigResource(NamedTuple):
    """Whose settings. A broker's name is its node id, or empty for the defaults of all brokers."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> Self:
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node_id: int | None) -> Self:
        return cls(ResourceType.BROKER, "" if node_id is None else str(node_id))

    @classmethod
    def group(cls, group_id: str) -> Self:
        return cls(ResourceType.GROUP, group_id)

    @classmethod
    def logger(cls, node_id: int) -> Self:
        """The loggers of a broker; their settings are levels."""
        return cls(ResourceType.BROKER_LOGGER, str(node_id))

    @classmethod
    def of(cls, number: int, name: str) -> Self:
        """From the wire; a type that is not known here is UNKNOWN."""
        known = number in ResourceType._value2member_map_
        return cls(ResourceType(number) if known else ResourceType.UNKNOWN, name)

    @property
    def broker_to_ask(self) -> int | None:
        """The node id of the only broker that can answer, None when any can."""
        is_own = self.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and self.name.isdecimal()
        return int(self.name) if is_own else None


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting. `value` is None when it is unset or sensitive; `synonyms` are what it falls back to, in order."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    synonyms: Sequence[tuple[str, str | None, ConfigSource]]

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT


def describe_rows(resources: Sequence[ConfigResource], names: Sequence[str] | None) -> list[DescribeConfigsResource]:
    """Rows for a request about these settings, all of them when `names` is None."""
    return [
        DescribeConfigsResource(
            resource_type=resource.type,
            resource_name=resource.name,
            configuration_keys=None if names is None else list(names),
        )
        for resource in resources
    ]


def config_entries(result: DescribeConfigsResult) -> dict[str, ConfigEntry]:
    """Return an answer's settings by name."""
    return {
        row.name: ConfigEntry(
            row.name,
            row.value,
            _source(row.config_source),
            row.read_only,
            row.is_sensitive,
            tuple((synonym.name, synonym.value, _source(synonym.source)) for synonym in row.synonyms),
        )
        for row in sorted(result.configs, key=lambda row: row.name)
    }


def alteration_rows(changes: Mapping[ConfigResource, Mapping[str, ConfigValue]]) -> list[AlterConfigsResource]:
    """Rows for a request that makes these changes."""
    return [
        AlterConfigsResource(
            resource_type=resource.type,
            resource_name=resource.name,
            configs=[
                AlterableConfig(
                    name=name,
                    config_operation=AlterOperation.DELETE if value is None else AlterOperation.SET,
                    value=value,
                )
                for name, value in settings.items()
            ],
        )
        for resource, settings in changes.items()
    ]


def _source(number: int) -> ConfigSource:
    return ConfigSource(number) if number in ConfigSource._value2member_map_ else ConfigSource.UNKNOWN
