"""The layers of a running broker's settings, and who hears of changes."""

from __future__ import annotations

import pytest

from ottla.config.broker_config import BrokerConfig
from ottla.config.current_config import CurrentConfig

STARTED_WITH = {"log.retention.hours": "1", "message.max.bytes": "1000", "num.partitions": "3"}


def current(for_this_broker: dict[str, str] | None = None, for_all: dict[str, str] | None = None) -> CurrentConfig:
    config = CurrentConfig(BrokerConfig.from_properties(STARTED_WITH))
    config.change(for_this_broker or {}, for_all or {})
    return config


def test_this_brokers_change_goes_before_that_of_all_and_both_before_the_file() -> None:
    key = "message.max.bytes"
    assert current().values.integer(key) == 1000
    assert current({}, {key: "2000"}).values.integer(key) == 2000
    assert current({key: "3000"}, {key: "2000"}).values.integer(key) == 3000


def test_topics_inherit_what_was_changed() -> None:
    config = current({"log.retention.ms": "5000"}, {"message.max.bytes": "2000"})
    assert (config.log_config({}).retention_ms, config.log_config({}).max_message_bytes) == (5000, 2000)
    assert config.log_config({"max.message.bytes": "7"}).max_message_bytes == 7
    config.change({}, {})
    assert (config.log_config({}).retention_ms, config.log_config({}).max_message_bytes) == (3_600_000, 1000)


def test_topics_with_the_same_overrides_share_their_settings() -> None:
    config = current()
    assert config.log_config({"flush.ms": "5"}) is config.log_config({"flush.ms": "5"})
    assert config.log_config({"flush.ms": "5"}) is not config.log_config({"flush.ms": "6"})


@pytest.mark.parametrize(
    ("name", "text"), [("num.partitions", "9"), ("message.max.bytes", "many"), ("no.such.setting", "9")]
)
def test_what_is_read_only_or_not_allowed_counts_as_not_changed(name: str, text: str) -> None:
    config = current({name: text})
    assert config.values.num_partitions == 3
    assert config.values.integer("message.max.bytes") == 1000


def test_watchers_hear_of_every_change_and_of_nothing_else() -> None:
    config = current()
    heard: list[int] = []
    config.watch(lambda values: heard.append(values.integer("message.max.bytes")))
    config.change({"message.max.bytes": "2000"}, {})
    config.change({"message.max.bytes": "2000"}, {})
    config.change({}, {})
    assert heard == [1000, 2000, 1000]


def test_one_listener_may_have_its_own_limit() -> None:
    config = current({"listener.name.inside.max.connections": "7"}, {"max.connections": "9"})
    assert config.values.listener_integer("INSIDE", "max.connections") == 7
    assert config.values.listener_integer("OUTSIDE", "max.connections") == 9
