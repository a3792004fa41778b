"""The levels of our own loggers, as Kafka's resource BROKER_LOGGER (KIP-412).

A level that is set holds until the process ends; nothing is recorded. `root` is our own uppermost logger, `ottla`, and
not the process's: whoever runs a broker inside a program keeps their own loggers. Each module's logger has its module's
name and the level of those above it, until it is given one, which may be before the module is loaded.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from ottla.broker.metadata.alter_configs import AlterConfigsAnswer, ConfigAlteration
from ottla.config.alter import Operation, check_resource
from ottla.config.describe import UNKNOWN_TYPE, ConfigEntry, ConfigSource
from ottla.errors import InvalidConfig, InvalidRequest, KafkaError

ROOT: Final = "root"
OURS: Final = "ottla"

MODULES: Final = (
    "ottla.broker.broker",
    "ottla.broker.groups.consumer_sessions",
    "ottla.broker.groups.coordinator",
    "ottla.broker.groups.offset_commits",
    "ottla.broker.groups.rebalance",
    "ottla.broker.groups.shard",
    "ottla.broker.metadata.controller",
    "ottla.dialects.jafka.conversation",
    "ottla.dialects.kafka.dialect",
    "ottla.dialects.kafka.errors",
    "ottla.dialects.kafka.session",
    "ottla.dialects.listener",
    "ottla.dialects.lite.handlers",
    "ottla.storage.checkpointing",
    "ottla.storage.chores",
    "ottla.storage.cleaner",
    "ottla.storage.failed_flush",
    "ottla.storage.flusher",
    "ottla.storage.future_log",
    "ottla.storage.jafka_log",
    "ottla.storage.jafka_logs",
    "ottla.storage.jafka_topic_log",
    "ottla.storage.log",
    "ottla.storage.making",
    "ottla.storage.manager",
    "ottla.storage.metadata_log",
    "ottla.storage.moves",
    "ottla.storage.place_finder",
    "ottla.storage.places",
    "ottla.storage.recoveries",
    "ottla.storage.recovery",
    "ottla.storage.swap",
    "ottla.storage.sweeper",
)
"""A broker's modules that write to the log; some are loaded when they are needed first, and named before."""

LEVELS: Final = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}
"""Kafka's names of levels, lowest first, and Python's numbers for them."""


def describe_loggers(keys: Collection[str] | None = None) -> list[ConfigEntry]:
    """Describe every logger, or those of `keys` that there are, with the level that holds for it."""
    return [
        ConfigEntry(
            name,
            _level_name(_logger(name).getEffectiveLevel()),
            ConfigSource.DYNAMIC_BROKER_LOGGER,
            is_sensitive=False,
            read_only=False,
            config_type=UNKNOWN_TYPE,
            synonyms=(),
            documentation="",
        )
        for name in _names()
        if not keys or name in keys
    ]


def alter_logger_resources(
    alterations: Sequence[ConfigAlteration], node_id: int, *, validate_only: bool = False
) -> AlterConfigsAnswer:
    """Alter what a request asks of this broker's loggers: one answer for each resource, None where it was done."""
    names = [alteration.name for alteration in alterations]
    answer: list[KafkaError | None] = []
    for alteration in alterations:
        try:
            if names.count(alteration.name) > 1:
                raise InvalidRequest("The request names this resource more than once.")
            check_resource(alteration.resource_type, alteration.name, node_id)
            alter_loggers(alteration.changes, validate_only=validate_only)
        except KafkaError as error:
            answer.append(error)
        else:
            answer.append(None)
    return answer


def alter_loggers(changes: Sequence[tuple[str, int, str | None]], *, validate_only: bool = False) -> None:
    """Give loggers levels, or (DELETE) those of the loggers above them: all of `changes` or none.

    Raises `InvalidRequest` for what makes no sense, `InvalidConfig` for a logger or a level that there is not.
    """
    names = [name for name, _, _ in changes]
    if len(set(names)) != len(names):
        raise InvalidRequest("a logger stands twice in the request")
    for name, operation, value in changes:
        if value is None and operation != Operation.DELETE:
            raise InvalidRequest(f"{name} needs a level")
    existing = frozenset(_names())
    levels = [(name, _new_level(name, operation, value, existing)) for name, operation, value in changes]
    if not validate_only:
        for name, level in levels:
            _logger(name).setLevel(level)


def _new_level(name: str, operation: int, value: str | None, existing: Collection[str]) -> int:
    if operation not in (Operation.SET, Operation.DELETE):
        raise InvalidRequest(f"the level of {name} can be set or deleted, and nothing else")
    if name not in existing:
        raise InvalidConfig(f"there is no logger {name!r}")
    if operation == Operation.DELETE:
        if name == ROOT:
            raise InvalidRequest("the root logger's level cannot be deleted")
        return logging.NOTSET
    level = LEVELS.get(value or "")
    if level is None:
        raise InvalidConfig(f"{name}: {value!r} is no level; there are {', '.join(LEVELS)}")
    return level


def _names() -> Iterator[str]:
    loggers = logging.getLogger().manager.loggerDict.items()
    made = {name for name, logger in loggers if name.startswith(f"{OURS}.") and isinstance(logger, logging.Logger)}
    yield ROOT
    yield from sorted(made.union(MODULES))


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(OURS if name == ROOT else name)


def _level_name(level: int) -> str:
    """The highest of Kafka's levels that is not above this one."""
    return next((name for name, number in reversed(LEVELS.items()) if number <= level), "TRACE")
