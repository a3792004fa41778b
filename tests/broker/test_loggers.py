"""Levels of loggers, set and described as Kafka's BROKER_LOGGER."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.loggers import MODULES, alter_logger_resources, alter_loggers, describe_loggers
from ottla.broker.metadata.alter_configs import ConfigAlteration
from ottla.config.alter import Operation
from ottla.errors import InvalidConfig, InvalidRequest, KafkaError

SET, DELETE, APPEND, SUBTRACT = Operation
LOGGER = 8
NAME = "ottla.broker.broker"
LATE = "ottla.storage.cleaner"
SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture(autouse=True)
def _levels() -> Iterator[None]:
    logging.getLogger(NAME)
    yield
    for name in ("ottla", NAME):
        logging.getLogger(name).setLevel(logging.NOTSET)


def level(name: str) -> str | None:
    (entry,) = describe_loggers([name])
    return entry.value


def test_a_logger_has_the_level_of_those_above_it_until_it_gets_one() -> None:
    alter_loggers([("root", SET, "ERROR")])
    assert (level("root"), level(NAME)) == ("ERROR", "ERROR")
    alter_loggers([(NAME, SET, "TRACE")])
    assert (level("root"), level(NAME)) == ("ERROR", "TRACE")
    alter_loggers([(NAME, DELETE, None)])
    assert level(NAME) == "ERROR"


def test_all_that_a_broker_logs_with_is_named() -> None:
    of_others = {SOURCE / "ottla" / room for room in ("cli", "client")}
    logging_files = {
        path
        for path in SOURCE.rglob("*.py")
        if "getLogger(__name__)" in path.read_text(encoding="utf-8") and not of_others & set(path.parents)
    }
    assert sorted(".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in logging_files) == list(MODULES)


def test_a_module_that_is_not_loaded_has_its_logger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger().manager, "loggerDict", {})
    assert [entry.name for entry in describe_loggers()] == ["root", *MODULES]
    alter_loggers([(LATE, SET, "TRACE")])
    assert level(LATE) == "TRACE"


def test_the_programs_own_loggers_are_not_ours_to_change() -> None:
    before = logging.getLogger().level
    alter_loggers([("root", SET, "FATAL")])
    assert logging.getLogger().level == before
    assert {entry.name.partition(".")[0] for entry in describe_loggers()} == {"root", "ottla"}


@pytest.mark.parametrize("name", ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"])
def test_every_level_of_kafka_is_shown_as_it_was_set(name: str) -> None:
    alter_loggers([(NAME, SET, name)])
    assert level(NAME) == name


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ((NAME, SET, "LOUD"), InvalidConfig),
        ((NAME, SET, "debug"), InvalidConfig),
        ((NAME, SET, ""), InvalidConfig),
        ((NAME, SET, None), InvalidRequest),
        (("nobody", SET, "DEBUG"), InvalidConfig),
        (("nobody", DELETE, None), InvalidConfig),
        (("nobody", APPEND, "DEBUG"), InvalidRequest),
        ((NAME, SUBTRACT, "DEBUG"), InvalidRequest),
        ((NAME, 7, "DEBUG"), InvalidRequest),
        (("root", DELETE, None), InvalidRequest),
    ],
)
def test_refused(change: tuple[str, int, str | None], error: type[KafkaError]) -> None:
    with pytest.raises(error):
        alter_loggers([("root", SET, "FATAL"), change] if change[0] != "root" else [change])
    assert level("root") != "FATAL", "all of a request or none"


def test_validating_changes_nothing() -> None:
    alter_loggers([("root", SET, "FATAL")], validate_only=True)
    assert level("root") != "FATAL"


def test_each_resource_has_its_answer() -> None:
    twice = ConfigAlteration(LOGGER, "1", [("root", SET, "FATAL")])
    elsewhere = ConfigAlteration(LOGGER, "2", [("root", SET, "FATAL")])
    answer = alter_logger_resources([twice, elsewhere, twice], 1)
    assert [error and error.name for error in answer] == ["INVALID_REQUEST"] * 3
    assert alter_logger_resources([ConfigAlteration(LOGGER, "+1", [("root", SET, "ERROR")])], 1) == [None]
    assert level("root") == "ERROR"
