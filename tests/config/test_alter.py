"""Sides of altering that the recorded conversations do not show."""

from __future__ import annotations

import pytest

from ottla.config.alter import (
    ConfigChange,
    Operation,
    Resource,
    alter_incrementally,
    check_resource,
    check_values,
    replace_all,
)
from ottla.config.broker_config import BrokerConfig
from ottla.config.resource_type import ResourceType
from ottla.errors import InvalidConfig, InvalidRequest, KafkaError

BROKER = BrokerConfig.from_properties({})
TOPIC = Resource(ResourceType.TOPIC, "t")
THIS_BROKER = Resource(ResourceType.BROKER, "1")
ALL_BROKERS = Resource(ResourceType.BROKER, "")


def setting(resource: Resource, name: str, value: str, current: dict[str, str] | None = None) -> dict[str, str | None]:
    changes = alter_incrementally(resource, current or {}, [ConfigChange(name, Operation.SET, value)])
    check_values(resource, current or {}, changes, BROKER)
    return changes


def test_what_stays_the_same_is_not_recorded_except_of_brokers() -> None:
    assert setting(TOPIC, "retention.ms", "5", {"retention.ms": "5"}) == {}
    assert setting(THIS_BROKER, "log.retention.ms", "5", {"log.retention.ms": "5"}) == {"log.retention.ms": "5"}


def test_the_whole_of_what_a_topic_would_have_is_checked() -> None:
    with pytest.raises(InvalidConfig, match="above"):
        setting(TOPIC, "min.compaction.lag.ms", "6", {"max.compaction.lag.ms": "5"})


def test_replacing_removes_what_is_not_named() -> None:
    changes = replace_all(TOPIC, {"retention.ms": "5", "segment.ms": "6"}, [("segment.ms", "6"), ("flush.ms", "7")])
    assert changes == {"flush.ms": "7", "retention.ms": None}


def test_a_topics_format_stays_what_it_was_made_with() -> None:
    current = {"ottla.format": "jafka"}
    assert setting(TOPIC, "ottla.format", "jafka", current) == {}
    assert replace_all(TOPIC, current, []) == {}
    for change in (
        ConfigChange("ottla.format", Operation.SET, "kafka"),
        ConfigChange("ottla.format", Operation.DELETE, None),
    ):
        changes = alter_incrementally(TOPIC, current, [change])
        with pytest.raises(InvalidConfig, match="fixed"):
            check_values(TOPIC, current, changes, BROKER)
    with pytest.raises(InvalidConfig, match="fixed"):
        setting(TOPIC, "ottla.format", "jafka")
    with pytest.raises(InvalidConfig, match="keys"):
        setting(TOPIC, "cleanup.policy", "compact", current)


@pytest.mark.parametrize(
    ("resource", "name", "value", "error"),
    [
        (THIS_BROKER, "num.partitions", "3", InvalidRequest),
        (ALL_BROKERS, "num.partitions", "3", InvalidRequest),
        (ALL_BROKERS, "ssl.keystore.location", "/k", InvalidRequest),
        (THIS_BROKER, "log.retention.ms", "never", InvalidRequest),
        (ALL_BROKERS, "log.roll.ms", "0", InvalidRequest),
        (THIS_BROKER, "min.insync.replicas", "2", InvalidConfig),
        (THIS_BROKER, "ottla.flush.policy", "os", InvalidRequest),
        (THIS_BROKER, "ssl.keystore.location", "/k", InvalidRequest),
        (ALL_BROKERS, "listener.name.plaintext.ssl.keystore.location", "/k", InvalidRequest),
        (THIS_BROKER, "listener.name.plaintext.max.connections", "many", InvalidRequest),
        (THIS_BROKER, "listeners", "PLAINTEXT://localhost:1", InvalidRequest),
        (THIS_BROKER, "background.threads", "4", InvalidRequest),
        (THIS_BROKER, "background.threads", "21", InvalidRequest),
        (THIS_BROKER, "log.cleaner.threads", "0", InvalidRequest),
        (THIS_BROKER, "log.cleaner.dedupe.buffer.size", "1048576", InvalidRequest),
        (THIS_BROKER, "log.retention.ms", "0", InvalidRequest),
        (THIS_BROKER, "max.connections", "0", InvalidRequest),
        (THIS_BROKER, "listener.name.plaintext.max.connections", "0", InvalidRequest),
        (THIS_BROKER, "max.connection.creation.rate", "0", InvalidRequest),
        (THIS_BROKER, "max.connections.per.ip.overrides", "a b:7", InvalidRequest),
        (THIS_BROKER, "cordoned.log.dirs", "elsewhere", InvalidRequest),
        (THIS_BROKER, "principal.builder.class", "a.b.C", InvalidRequest),
        (THIS_BROKER, "metric.reporters", "a.b.C", InvalidRequest),
        (THIS_BROKER, "max.connections.per.ip", "0", InvalidRequest),
        (THIS_BROKER, "max.connections.per.ip.overrides", "somewhere", InvalidRequest),
        (Resource(ResourceType.BROKER_LOGGER, "1"), "root", "DEBUG", InvalidRequest),
        (Resource(ResourceType.TOPIC, ""), "retention.ms", "5", InvalidRequest),
        (Resource(ResourceType.GROUP, ""), "consumer.session.timeout.ms", "45000", InvalidRequest),
        (Resource(ResourceType.CLIENT_METRICS, ""), "interval.ms", "1000", InvalidRequest),
        (TOPIC, "", "5", InvalidConfig),
        (Resource(ResourceType.GROUP, "g"), "consumer.heartbeat.interval.ms", "46000", InvalidConfig),
        (Resource(ResourceType.GROUP, "g"), "streams.assignor.name", "mine", InvalidConfig),
        (Resource(ResourceType.GROUP, "g"), "share.delivery.count.limit", "11", InvalidConfig),
        (Resource(ResourceType.GROUP, "g"), "streams.rack.aware.assignment.tags", "zone,rack, zone", InvalidConfig),
        (Resource(ResourceType.GROUP, "g"), "errors.deadletterqueue.topic.name", " __letters", InvalidConfig),
        (Resource(ResourceType.GROUP, "g"), "share.auto.offset.reset", "by_duration:-PT1S", InvalidConfig),
        (Resource(ResourceType.CLIENT_METRICS, "m"), "match", "client_id=(", InvalidConfig),
        (Resource(ResourceType.CLIENT_METRICS, "m"), "interval.ms", "3600001", InvalidRequest),
        (Resource(ResourceType.CLIENT_METRICS, "m"), "interval.ms", "often", InvalidConfig),
    ],
)
def test_refused(resource: Resource, name: str, value: str, error: type[KafkaError]) -> None:
    with pytest.raises(error):
        setting(resource, name, value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "consumer.session.timeout.ms",
            "44999",
            "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        (
            "consumer.session.timeout.ms",
            "60001",
            "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        ("streams.num.standby.replicas", "3", "streams.num.standby.replicas must be less than or equal to 2"),
        (
            "streams.task.offset.interval.ms",
            "14999",
            "streams.task.offset.interval.ms must be greater than or equal to 15000",
        ),
    ],
)
def test_a_group_is_told_its_bounds_in_kafkas_words(name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidConfig) as refusal:
        setting(Resource(ResourceType.GROUP, "g"), name, value)
    assert str(refusal.value) == words


@pytest.mark.parametrize(
    ("resource", "name", "value"),
    [
        (THIS_BROKER, "listener.name.plaintext.ssl.keystore.location", "/k"),
        (ALL_BROKERS, "listener.name.plaintext.max.connections", "5"),
        (THIS_BROKER, "background.threads", "5"),
        (THIS_BROKER, "background.threads", "20"),
        (THIS_BROKER, "no.such.setting", "x"),
        (THIS_BROKER, "ssl.protocol", "TLSv1.3"),
        (THIS_BROKER, "cordoned.log.dirs", "*"),
        (THIS_BROKER, "metric.reporters", ""),
        (THIS_BROKER, "max.connections.per.ip.overrides", "::1:5,[fe80::1]:6,a.example:0"),
        (Resource(ResourceType.GROUP, "g"), "streams.assignor.name", "sticky"),
        (Resource(ResourceType.GROUP, "g"), "streams.rack.aware.assignment.tags", "zone,rack"),
        (Resource(ResourceType.GROUP, "g"), "consumer.session.timeout.ms", "45000"),
        (Resource(ResourceType.GROUP, "g"), "consumer.session.timeout.ms", "60000"),
        (THIS_BROKER, "", "x"),
        (THIS_BROKER, "log.retention.ms", "5"),
        (ALL_BROKERS, "log.retention.ms", "5"),
        (ALL_BROKERS, "leader.replication.throttled.rate", "5"),
        (Resource(ResourceType.GROUP, "g"), "share.auto.offset.reset", "by_duration:PT1H30M"),
        (Resource(ResourceType.CLIENT_METRICS, "m"), "match", "client_id=a.*,client_source_port=90..\\d"),
    ],
)
def test_taken(resource: Resource, name: str, value: str) -> None:
    assert setting(resource, name, value) == {name: value}


def test_lists_grow_from_and_shrink_to_what_is_set() -> None:
    current = {"leader.replication.throttled.replicas": "0:1,1:1"}
    name = "leader.replication.throttled.replicas"
    grown = alter_incrementally(TOPIC, current, [ConfigChange(name, Operation.APPEND, "1:1, 2:1")])
    assert grown == {name: "0:1,1:1,2:1"}
    shrunk = alter_incrementally(TOPIC, current, [ConfigChange(name, Operation.SUBTRACT, "0:1,9:9")])
    assert shrunk == {name: "1:1"}


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        (TOPIC, "retention.ms"),
        (TOPIC, "no.such.setting"),
        (THIS_BROKER, "num.partitions"),
        (Resource(ResourceType.GROUP, "g"), "streams.rack.aware.assignment.tags"),
        (Resource(ResourceType.CLIENT_METRICS, "m"), "match"),
    ],
)
@pytest.mark.parametrize("operation", [Operation.APPEND, Operation.SUBTRACT])
def test_what_is_no_list_of_a_topic_or_broker_does_not_grow(
    resource: Resource, name: str, operation: Operation
) -> None:
    with pytest.raises(InvalidConfig):
        alter_incrementally(resource, {}, [ConfigChange(name, operation, "5")])


@pytest.mark.parametrize(("resource_type", "name"), [(77, "x"), (4, "2"), (4, "x"), (4, "1_0"), (8, ""), (8, "2")])
def test_impossible_resources(resource_type: int, name: str) -> None:
    with pytest.raises(InvalidRequest):
        check_resource(resource_type, name, node_id=1)


@pytest.mark.parametrize("name", ["1", "+1", "01"])
def test_a_brokers_id_may_be_written_in_several_ways(name: str) -> None:
    assert check_resource(ResourceType.BROKER, name, node_id=1) == THIS_BROKER


def test_what_cannot_change_is_refused_before_what_needs_one_value_for_all() -> None:
    changes: dict[str, str | None] = {"min.insync.replicas": "2", "num.partitions": "3"}
    with pytest.raises(InvalidRequest):
        check_values(THIS_BROKER, {}, changes, BROKER)


def test_nobody_may_be_let_in_by_default_where_exceptions_are_made() -> None:
    changes: dict[str, str | None] = {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "10.0.0.1:5"}
    check_values(THIS_BROKER, {}, changes, BROKER)
    exceptions = BROKER.with_changes({"max.connections.per.ip.overrides": "10.0.0.1:5"})
    check_values(THIS_BROKER, {}, {"max.connections.per.ip": "0"}, exceptions)
