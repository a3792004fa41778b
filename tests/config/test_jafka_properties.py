"""A Jafka configuration, and listeners that speak something else than Kafka."""

from __future__ import annotations

import pytest

from ottla.config.broker_config import BrokerConfig, ConfigError
from ottla.config.properties import decode_properties

SAMPLE = b"""\
brokerid=1
port=9092
num.threads=4
socket.send.buffer=1048576
socket.receive.buffer=1048576
max.socket.request.bytes=104857600
log.dir=/var/jafka-data
num.partitions=1
topic.partition.count.map=orders:3, logs:4
log.file.size=536870912
log.flush.interval=10000
log.default.flush.interval.ms=1000
log.default.flush.scheduler.interval.ms=2000
log.retention.hours=168
topic.log.retention.hours=orders:2
topic.flush.intervals.ms=orders:5,logs:10
log.retention.size=1073741824
log.cleanup.interval.mins=1
enable.zookeeper=false
zk.connect=localhost:2181
password=plain:jafka
http.port=8080
"""


def test_a_jafka_configuration_is_understood_as_it_is() -> None:
    config = BrokerConfig.from_properties(decode_properties(SAMPLE))

    assert config.node_id == 1
    assert config.log_dirs == ("/var/jafka-data",)
    assert [str(listener) for listener in config.listeners] == ["JAFKA://:9092", "JAFKA_HTTP://:8080"]
    assert config.items("ottla.jafka.partition.counts") == ("orders:3", "logs:4")
    assert config.integer("ottla.jafka.file.size") == 536870912
    assert config.integer("ottla.jafka.flush.messages") == 10000
    assert config.integer("ottla.jafka.flush.ms") == 1000
    assert config.items("ottla.jafka.flush.intervals") == ("orders:5", "logs:10")
    assert config.items("ottla.jafka.retention.hours") == ("orders:2",)
    assert config.integer("log.retention.bytes") == 1073741824
    assert config.integer("log.retention.check.interval.ms") == 60000
    assert config.integer("socket.request.max.bytes") == 104857600
    assert config.text("ottla.jafka.password") == "plain:jafka"
    assert not [warning for warning in config.warnings if "not a setting" in warning]


def test_defaults_are_jafkas() -> None:
    config = BrokerConfig.from_properties(
        {"brokerid": "0", "log.dir": "/data", "log.default.flush.scheduler.interval.ms": "7"}
    )

    assert [str(listener) for listener in config.listeners] == ["JAFKA://:9092"]
    assert config.integer("ottla.jafka.file.size") == 1 << 30
    assert config.integer("ottla.jafka.flush.messages") == 500
    assert config.integer("ottla.jafka.flush.ms") == 7
    assert config.integer("ottla.jafka.max.message.bytes") == 1 << 20


def test_what_has_no_counterpart_is_told() -> None:
    properties = {"brokerid": "0", "log.dir": "/data", "log.rolling.strategy": "some.Class"}

    assert any("log.rolling.strategy" in warning for warning in BrokerConfig.from_properties(properties).warnings)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("enable.zookeeper", "true", "no ZooKeeper"),
        ("log.cleanup.interval.mins", "often", "not a whole number"),
        ("topic.partition.count.map", "t3", "list of topic:number"),
        ("topic.log.retention.hours", "t:-1", "list of topic:number"),
        ("port", "high", "not of the form"),
    ],
)
def test_what_cannot_be_served_ends_the_start(name: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        BrokerConfig.from_properties({"brokerid": "0", "log.dir": "/data", name: value})


def test_other_listeners_can_open_kafkas_for_jafka_too() -> None:
    config = BrokerConfig.from_properties(
        {"brokerid": "0", "log.dir": "/data", "listeners": "JAFKA://:9092,PLAINTEXT://127.0.0.1:9093"}
    )

    assert [listener.speaks_kafka for listener in config.listeners] == [False, True]


def test_listeners_speak_what_their_name_says_or_the_map() -> None:
    config = BrokerConfig.from_properties(
        {
            "listeners": "PLAINTEXT://:9092,LITE://127.0.0.1:9095,OLD://:9097,COURSE://:9098",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OLD:JAFKA,COURSE:LITE",
            "listener.name.course.ottla.lite.errors": "close",
        }
    )

    assert [listener.security_protocol for listener in config.listeners] == ["PLAINTEXT", "LITE", "JAFKA", "LITE"]
    assert config.listener_get("COURSE", "ottla.lite.errors") == "close"
    assert config.listener_get("LITE", "ottla.lite.errors") == "frame"


def test_a_listener_named_lite_speaks_kafka_where_the_map_says_so() -> None:
    config = BrokerConfig.from_properties(
        {"listeners": "LITE://:9092", "listener.security.protocol.map": "LITE:PLAINTEXT"}
    )

    assert config.listeners[0].speaks_kafka
