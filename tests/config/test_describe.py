"""Sides of describing that the recorded conversations do not show."""

from __future__ import annotations

from ottla.config.broker_config import BrokerConfig
from ottla.config.broker_layers import BrokerLayers
from ottla.config.describe import (
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_new_topic,
    describe_topic,
    documented,
)
from ottla.config.setting import Scope
from ottla.config.values import ConfigType


def layers(
    static: dict[str, str] | None = None, own: dict[str, str] | None = None, cluster: dict[str, str] | None = None
) -> BrokerLayers:
    return BrokerLayers(BrokerConfig.from_properties(static or {}), own or {}, cluster or {})


def only(entries: list[ConfigEntry]) -> ConfigEntry:
    (entry,) = entries
    return entry


def test_sources_come_before_nearness_of_names() -> None:
    entry = only(
        describe_topic(
            layers({"log.retention.hours": "1"}, {"log.retention.ms": "7"}, {"log.retention.ms": "8"}),
            {"retention.ms": "5"},
            ["retention.ms"],
        )
    )
    assert entry.value == "5"
    assert entry.synonyms == [
        ConfigSynonym("retention.ms", "5", ConfigSource.TOPIC),
        ConfigSynonym("log.retention.ms", "7", ConfigSource.DYNAMIC_BROKER),
        ConfigSynonym("log.retention.ms", "8", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ConfigSynonym("log.retention.hours", "1", ConfigSource.STATIC_BROKER),
        ConfigSynonym("log.retention.hours", "168", ConfigSource.DEFAULT),
    ]


def test_a_topic_shows_what_it_inherits_in_its_own_unit() -> None:
    entry = only(describe_topic(layers({"log.retention.minutes": "5"}), {}, ["retention.ms"]))
    assert entry.value == "300000"


def test_weaker_names_alone_are_not_spoken_of_but_to_whoever_creates_a_topic() -> None:
    static = layers({"log.retention.minutes": "5"})
    entry = only(describe_topic(static, {}, ["retention.ms"]))
    assert (entry.source, entry.synonyms) == (ConfigSource.DEFAULT, [])
    created = {entry.name: entry for entry in describe_new_topic(static, {"flush.ms": "5"})}
    assert (created["retention.ms"].value, created["retention.ms"].source) == ("300000", ConfigSource.STATIC_BROKER)
    assert created["flush.ms"].source is ConfigSource.TOPIC
    assert created["segment.ms"].source is ConfigSource.DEFAULT


def test_one_listeners_setting_stands_before_the_general_one() -> None:
    name = "listener.name.plaintext.max.connections"
    entry = only(describe_broker(layers({"max.connections": "9"}, {name: "5"}), [name]))
    assert (entry.value, entry.read_only, entry.config_type) == ("5", True, ConfigType.INT)
    assert entry.synonyms == [
        ConfigSynonym(name, "5", ConfigSource.DYNAMIC_BROKER),
        ConfigSynonym("max.connections", "9", ConfigSource.STATIC_BROKER),
        ConfigSynonym("max.connections", "2147483647", ConfigSource.DEFAULT),
    ]


def test_only_groups_speak_of_defaults_of_their_own() -> None:
    group = only(describe_group(layers(), {}, ["share.auto.offset.reset"]))
    assert group.synonyms == [ConfigSynonym("share.auto.offset.reset", "latest", ConfigSource.DEFAULT)]
    assert only(describe_topic(layers(), {}, ["remote.storage.enable"])).synonyms == []
    metrics = only(describe_client_metrics(layers(), {"interval.ms": "6000"}, ["interval.ms"]))
    assert metrics.synonyms == [ConfigSynonym("interval.ms", "6000", ConfigSource.CLIENT_METRICS)]


def test_of_a_brokers_synonyms_only_the_weaker_ones_stand_behind_it() -> None:
    static = layers({"log.retention.ms": "5", "log.retention.hours": "1"})
    hours = only(describe_broker(static, ["log.retention.hours"]))
    assert (hours.value, hours.source) == ("1", ConfigSource.STATIC_BROKER)
    assert hours.synonyms[0].name == "log.retention.hours"
    minutes = only(describe_broker(static, ["log.retention.minutes"]))
    assert (minutes.value, minutes.source, minutes.synonyms) == (None, ConfigSource.DEFAULT, [])


def test_a_password_is_never_shown() -> None:
    secret = layers({"ssl.key.password": "s3cret"}, cluster={"sasl.jaas.config": "s3cret"})
    assert "s3cret" not in repr(describe_broker(secret)) + repr(describe_broker_default(secret))
    entry = only(describe_broker(secret, ["ssl.key.password"]))
    assert (entry.value, entry.is_sensitive, entry.source) == (None, True, ConfigSource.STATIC_BROKER)


def test_a_key_that_nothing_knows_may_be_a_secret() -> None:
    entry = only(describe_broker(layers({"my.plugin.token": "s3cret"}), ["my.plugin.token"]))
    assert (entry.value, entry.is_sensitive, entry.read_only, entry.config_type) == (None, True, True, 0)


def test_throttles_that_exist_only_at_run_time_show_once_they_are_set() -> None:
    entry = only(
        describe_broker(layers(own={"leader.replication.throttled.rate": "9"}), ["leader.replication.throttled.rate"])
    )
    assert (entry.value, entry.source, entry.read_only) == ("9", ConfigSource.DYNAMIC_BROKER, False)


def test_internal_settings_show_only_where_they_are_set() -> None:
    internal = "internal.segment.bytes"
    assert internal not in {entry.name for entry in describe_topic(layers(), {})}
    assert only(describe_topic(layers(), {internal: "1024"}, [internal])).value == "1024"
    assert describe_broker(layers(), ["unstable.api.versions.enable"]) == []


def test_settings_of_our_own_are_answered_by_name_only() -> None:
    assert not any(entry.name.startswith("ottla.") for entry in describe_broker(layers({"ottla.flush.policy": "os"})))
    assert only(describe_broker(layers({"ottla.flush.policy": "os"}), ["ottla.flush.policy"])).value == "os"


def test_a_group_that_chooses_no_assignor_shows_the_brokers_first() -> None:
    entry = only(describe_group(layers({"group.streams.assignors": "sticky,other"}), {}, ["streams.assignor.name"]))
    assert (entry.value, entry.config_type) == ("sticky", ConfigType.STRING)


def test_a_stored_value_that_is_no_longer_allowed_is_shown_as_it_stands() -> None:
    assert only(describe_topic(layers(), {"segment.bytes": "1000"}, ["segment.bytes"])).value == "1000"


def test_sentences_are_added_on_demand() -> None:
    entries = describe_topic(layers(), {}, ["segment.bytes"])
    assert only(entries).documentation is None
    assert only(documented(entries, Scope.TOPIC)).documentation == "Bytes after which a new segment is begun."
