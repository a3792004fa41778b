"""Where a topic's settings come from."""

from __future__ import annotations

import pytest

from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.config.topic_settings import TOPIC_SETTINGS, validate_topic_configs
from ottla.errors import InvalidConfig
from ottla.model import TimestampType

DEFAULTS = BrokerConfig.from_properties({})


def test_there_is_one_field_for_each_topic_setting() -> None:
    assert list(LogConfig._fields) == [name.replace(".", "_") for name in TOPIC_SETTINGS]


def test_without_any_setting_the_defaults_of_the_class_hold() -> None:
    assert LogConfig.resolve(DEFAULTS, {}, {}) == LogConfig()


def test_the_nearest_setting_wins() -> None:
    broker = BrokerConfig.from_properties({"log.segment.bytes": "2097152"})
    dynamic = {"log.segment.bytes": "3145728"}
    assert LogConfig.resolve(broker, {}, {}).segment_bytes == 2_097_152
    assert LogConfig.resolve(broker, dynamic, {}).segment_bytes == 3_145_728
    assert LogConfig.resolve(broker, dynamic, {"segment.bytes": "4194304"}).segment_bytes == 4_194_304


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "5"}, 300_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "5", "log.retention.ms": "9"}, 9),
        ({"log.retention.minutes": "-1"}, -1),
        ({"log.retention.ms": "-1", "log.retention.hours": "3"}, -1),
    ],
)
def test_synonyms_count_in_their_order_and_their_units(settings: dict[str, str], retention_ms: int) -> None:
    assert LogConfig.resolve(BrokerConfig.from_properties(settings), {}, {}).retention_ms == retention_ms


def test_a_dynamic_value_of_a_stronger_synonym_beats_the_file() -> None:
    broker = BrokerConfig.from_properties({"log.roll.hours": "1", "log.flush.scheduler.interval.ms": "7"})
    assert LogConfig.resolve(broker, {}, {}).segment_ms == 3_600_000
    assert LogConfig.resolve(broker, {"log.roll.ms": "5"}, {}).segment_ms == 5
    assert LogConfig.resolve(broker, {}, {}).flush_ms == 7
    assert (
        LogConfig.resolve(BrokerConfig.from_properties({"log.roll.jitter.hours": "0"}), {}, {}).segment_jitter_ms == 0
    )


def test_a_stored_value_that_is_no_longer_allowed_counts_as_not_set() -> None:
    broker = BrokerConfig.from_properties({"log.segment.bytes": "2097152", "log.roll.ms": "9"})
    dynamic = {"log.roll.ms": "0"}
    resolved = LogConfig.resolve(broker, dynamic, {"segment.bytes": "1000", "gone.in.kafka.four": "1"})
    assert resolved.segment_bytes == 2_097_152
    assert resolved.segment_ms == 9


def test_policies_and_timestamp_types_come_as_what_they_are() -> None:
    resolved = LogConfig.resolve(
        DEFAULTS, {}, {"cleanup.policy": "compact,delete,compact", "message.timestamp.type": "LogAppendTime"}
    )
    assert resolved.cleanup_policy == {"compact", "delete"}
    assert resolved.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    assert LogConfig.resolve(DEFAULTS, {}, {"cleanup.policy": ""}).cleanup_policy == frozenset()


@pytest.mark.parametrize(
    "overrides",
    [
        {"no.such": "1"},
        {"num.io.threads": "3"},
        {"message.format.version": "2.0"},
        {"retention.ms": None},
        {"retention.ms": ""},
        {"retention.ms": "abc"},
        {"retention.ms": "-2"},
        {"cleanup.policy": "foo"},
        {"cleanup.policy": "delete,"},
        {"min.insync.replicas": "0"},
        {"segment.bytes": "10"},
        {"compression.gzip.level": "0"},
        {"compression.lz4.level": "18"},
        {"min.cleanable.dirty.ratio": "1.5"},
        {"min.cleanable.dirty.ratio": "NaN"},
        {"message.timestamp.type": "createtime"},
        {"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"},
        {"remote.storage.enable": "true"},
        {"follower.replication.throttled.replicas": "0:1,x"},
        {"ottla.format": "other"},
        {"ottla.format": "jafka", "cleanup.policy": "delete,compact"},
    ],
)
def test_what_a_topic_may_not_set(overrides: dict[str, str | None]) -> None:
    with pytest.raises(InvalidConfig) as caught:
        validate_topic_configs(overrides)
    assert any(name in str(caught.value) for name in overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"cleanup.policy": ""},
        {"cleanup.policy": " compact , delete "},
        {"compression.gzip.level": "-1"},
        {"follower.replication.throttled.replicas": "*"},
        {"leader.replication.throttled.replicas": "0:1,1:2"},
        {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"},
        {"retention.ms": "-1", "retention.bytes": "-5"},
        {"ottla.format": "jafka", "cleanup.policy": "delete"},
        {"ottla.format": "kafka", "cleanup.policy": "compact"},
    ],
)
def test_what_a_topic_may_set(overrides: dict[str, str | None]) -> None:
    validate_topic_configs(overrides)
