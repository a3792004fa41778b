"""What may be set on which resource, by the tables of `ottla.config`.

Checks whole sets of settings; which of them change, and how, is decided in `alter_configs`. The errors are Kafka's, who
answers wrong broker settings with INVALID_REQUEST and wrong settings of everything else with INVALID_CONFIG.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ottla.broker.metadata.image import ConfigResourceType
from ottla.config.broker_config import BrokerConfig
from ottla.config.broker_settings import BROKER_SETTINGS
from ottla.config.client_metrics_settings import CLIENT_METRICS_SETTINGS
from ottla.config.group_settings import GROUP_SETTINGS
from ottla.config.setting import Setting, UpdateMode
from ottla.config.topic_settings import TOPIC_SETTINGS, validate_topic_configs
from ottla.config.values import ConfigError, ConfigType, Value
from ottla.errors import InvalidConfig, InvalidRequest

TABLES: Final[Mapping[ConfigResourceType, Mapping[str, Setting]]] = {
    ConfigResourceType.TOPIC: TOPIC_SETTINGS,
    ConfigResourceType.BROKER: BROKER_SETTINGS,
    ConfigResourceType.CLIENT_METRICS: CLIENT_METRICS_SETTINGS,
    ConfigResourceType.GROUP: GROUP_SETTINGS,
}

_METRICS_INTERVAL_MS: Final = (100, 3_600_000)
_CLIENT_MATCHES: Final = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


class ConfigRules:
    """The rules for one broker: the limits of group settings stand in its own configuration."""

    __slots__ = ("_config",)

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config

    def check_topic_configs(self, configs: Mapping[str, str]) -> None:
        """Raise `InvalidConfig` unless a topic may have these settings."""
        validate_topic_configs(configs)

    def check(self, resource_type: ConfigResourceType, name: str, configs: Mapping[str, str]) -> None:
        """Raise `InvalidConfig` or `InvalidRequest` unless the resource may have these settings together."""
        if resource_type == ConfigResourceType.TOPIC:
            validate_topic_configs(configs)
        elif resource_type == ConfigResourceType.BROKER:
            self._check_broker(configs, is_cluster_wide=not name)
        elif resource_type == ConfigResourceType.GROUP:
            self._check_group(configs)
        else:
            _check_client_metrics(configs)

    def is_list(self, resource_type: ConfigResourceType, key: str) -> bool:
        """Say whether values can be appended to a setting and subtracted from it."""
        setting = TABLES[resource_type].get(key)
        return setting is not None and setting.type is ConfigType.LIST

    def default_items(self, resource_type: ConfigResourceType, key: str) -> str:
        """The list that a setting has where nobody set it, as text."""
        setting = TABLES[resource_type][key]
        for synonym in setting.synonyms:
            if resource_type == ConfigResourceType.TOPIC and self._config.explicit(synonym.name) is not None:
                return setting.format(self._config.explicit(synonym.name)) or ""
        return setting.format(setting.effective_default) or ""

    def _check_broker(self, configs: Mapping[str, str], *, is_cluster_wide: bool) -> None:
        for key, text in configs.items():
            setting = BROKER_SETTINGS.get(key)
            if setting is None:
                continue  # plugins may have settings of their own, so Kafka takes names that it does not know
            if setting.update_mode is UpdateMode.READ_ONLY:
                raise InvalidRequest(f"{key} cannot be changed while the broker runs")
            if is_cluster_wide and setting.update_mode is UpdateMode.PER_BROKER:
                raise InvalidRequest(f"{key} can only be changed for one broker")
            try:
                setting.parse(text)
            except ConfigError as error:
                raise InvalidRequest(str(error)) from None

    def _check_group(self, configs: Mapping[str, str]) -> None:
        for key, value in _parse_all(GROUP_SETTINGS, configs).items():
            kind, _, rest = key.partition(".")
            for bound, is_beyond in (("min", _is_below), ("max", _is_above)):
                limit_name = f"group.{kind}.{bound}.{rest}"
                if limit_name in BROKER_SETTINGS and is_beyond(value, self._config.get(limit_name)):
                    raise InvalidConfig(f"{key} is {value}; {limit_name} is {self._config.get(limit_name)}")


def _parse_all(settings: Mapping[str, Setting], configs: Mapping[str, str]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for key, text in configs.items():
        if key not in settings:
            raise InvalidConfig(f"{key} is not a setting of this resource")
        try:
            values[key] = settings[key].parse(text)
        except ConfigError as error:
            raise InvalidConfig(str(error)) from None
    return values


def _is_below(value: Value, limit: Value) -> bool:
    return isinstance(value, int) and isinstance(limit, int) and value < limit


def _is_above(value: Value, limit: Value) -> bool:
    return isinstance(value, int) and isinstance(limit, int) and value > limit


def _check_client_metrics(configs: Mapping[str, str]) -> None:
    unknown = [key for key in configs if key not in CLIENT_METRICS_SETTINGS]
    if unknown:
        raise InvalidRequest(f"{unknown[0]} is not a setting of client metrics")
    values = _parse_all(CLIENT_METRICS_SETTINGS, configs)
    interval_ms = values.get("interval.ms")
    lowest, highest = _METRICS_INTERVAL_MS
    if isinstance(interval_ms, int) and not lowest <= interval_ms <= highest:
        raise InvalidRequest(f"interval.ms is {interval_ms}; it may be {lowest} to {highest}")
    matches = values.get("match")
    for match in matches if isinstance(matches, tuple) else ():
        key, equals, pattern = match.partition("=")
        if not equals or key.strip() not in _CLIENT_MATCHES or not _is_pattern(pattern.strip()):
            raise InvalidConfig(f"match: {match!r} is not of the form name=pattern")


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True
