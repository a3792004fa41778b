"""Every setting of a client metrics subscription (KIP-714)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ottla.config.setting import INT, LIST, MEDIUM, Setting, table
from ottla.config.validators import ListOf
from ottla.config.values import ConfigError
from ottla.errors import InvalidConfig, InvalidRequest

ANY_ITEMS: Final = ListOf(may_be_empty=True)

CLIENT_METRICS_SETTINGS: Final[Mapping[str, Setting]] = table(
    [
        Setting("interval.ms", INT, 300_000, None, MEDIUM),
        Setting("match", LIST, (), ANY_ITEMS, MEDIUM),
        Setting("metrics", LIST, (), ANY_ITEMS, MEDIUM),
    ]
)
"""Which clients push which metrics, and how often."""

MIN_INTERVAL_MS: Final = 100
MAX_INTERVAL_MS: Final = 3_600_000
MATCHABLE: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
"""What a subscription can choose clients by."""


def validate_client_metrics_configs(overrides: Mapping[str, str]) -> None:
    """Check a subscription. Raises `InvalidConfig` for wrong forms and patterns, else `InvalidRequest`, as Kafka."""
    for name, text in overrides.items():
        setting = CLIENT_METRICS_SETTINGS.get(name)
        if setting is None:
            raise InvalidRequest(f"Unknown client metrics configuration: {name}")
        try:
            value = setting.parse(text)
        except ConfigError as error:
            raise InvalidConfig(str(error)) from None
        if isinstance(value, int) and not MIN_INTERVAL_MS <= value <= MAX_INTERVAL_MS:
            raise InvalidRequest(f"{name}: {value} lies outside [{MIN_INTERVAL_MS},...,{MAX_INTERVAL_MS}]")
        if name == "match" and isinstance(value, tuple):
            for pattern in value:
                _check_pattern(pattern)


def _check_pattern(pattern: str) -> None:
    name, equals, expression = (part.strip() for part in pattern.partition("="))
    if not equals or not expression or name not in MATCHABLE:
        raise InvalidConfig(f"match: {pattern!r} is not one of {', '.join(sorted(MATCHABLE))} = expression")
    try:
        re.compile(expression)
    except re.error as error:
        raise InvalidConfig(f"match: {expression!r} is no regular expression: {error}") from None
