"""Which configurations start, what they mean, and which do not start and why."""

from __future__ import annotations

import pytest

from ottla.config.broker_config import BrokerConfig, ConfigError, environment_properties, parse_overrides
from ottla.config.listeners import Listener


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig.from_properties({name.replace("_", "."): text for name, text in settings.items()})


def test_an_empty_configuration_binds_loopback_and_keeps_its_data_here() -> None:
    empty = BrokerConfig.from_properties({})
    assert empty.listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT"),)
    assert empty.advertised_listeners == empty.listeners
    assert empty.log_dirs == ("./ottla-data",)
    assert empty.node_id == 1
    assert empty.flushes_before_ack
    assert empty.warnings == []
    assert empty.raw == {}


def test_log_dirs_wins_over_log_dir() -> None:
    assert config(log_dir="/a").log_dirs == ("/a",)
    assert config(log_dir="/a", log_dirs="/b,/c").log_dirs == ("/b", "/c")


def test_node_id_and_broker_id_are_one() -> None:
    assert config(broker_id="7").node_id == 7
    assert config(node_id="7", broker_id="-1").raw == {"node.id": "7", "broker.id": "7"}
    with pytest.raises(ConfigError, match=r"node\.id: 7 differs"):
        config(node_id="7", broker_id="8")


def test_kafkas_own_kraft_file_starts_without_its_controller_listener() -> None:
    kraft = config(
        process_roles="broker,controller",
        node_id="1",
        controller_quorum_bootstrap_servers="localhost:9093",
        listeners="PLAINTEXT://:9092,CONTROLLER://:9093",
        inter_broker_listener_name="PLAINTEXT",
        advertised_listeners="PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        controller_listener_names="CONTROLLER",
        listener_security_protocol_map="CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        num_network_threads="3",
        log_dirs="/tmp/kraft-combined-logs",
        offsets_topic_replication_factor="1",
        log_retention_hours="168",
    )
    assert kraft.listeners == (Listener("PLAINTEXT", "", 9092, "PLAINTEXT"),)
    assert kraft.advertised_listeners == (Listener("PLAINTEXT", "localhost", 9092, "PLAINTEXT"),)
    assert kraft.warnings == ["without effect here: controller.quorum.bootstrap.servers, num.network.threads"]


def test_addresses_of_the_sixth_version_and_free_ports_are_taken() -> None:
    listeners = config(
        listeners="PLAINTEXT://[::1]:0,inside://host.example:0",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
    ).listeners
    assert listeners == (
        Listener("PLAINTEXT", "::1", 0, "PLAINTEXT"),
        Listener("INSIDE", "host.example", 0, "PLAINTEXT"),
    )
    assert str(listeners[0]) == "PLAINTEXT://[::1]:0"


def test_what_binds_every_address_is_advertised_under_a_name_that_the_server_finds() -> None:
    assert config(listeners="PLAINTEXT://0.0.0.0:9092").advertised_listeners[0].host == ""
    assert config(listeners="PLAINTEXT://:9092").advertised_listeners[0].host == ""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listeners": "PLAINTEXT:9092"}, "NAME://host:port"),
        ({"listeners": "PLAINTEXT://:70000"}, "port between"),
        ({"listeners": "PLAINTEXT://:9092,plaintext://:9093"}, "stands twice"),
        ({"listeners": "OTHER://:9092"}, "says nothing about OTHER"),
        ({"listeners": "CONTROLLER://:9093"}, "none is left for clients"),
        ({"listeners": "PLAINTEXT://:9092,CONTROLLER://:9092"}, "same port"),
        ({"listeners": "SSL://:9092"}, "SSL, which is not served yet"),
        ({"listeners": "SASL_PLAINTEXT://:9092"}, "SASL_PLAINTEXT, which is not served yet"),
        ({"listeners": ""}, "must not be empty"),
        ({"security.inter.broker.protocol": "SSL"}, "no listener has the name 'SSL'; there are PLAINTEXT"),
        ({"security.inter.broker.protocol": "PLAINTEXT", "inter.broker.listener.name": "PLAINTEXT"}, "only one of"),
        ({"inter.broker.listener.name": "INSIDE"}, "no listener has the name 'INSIDE'; there are PLAINTEXT"),
        ({"inter.broker.listener.name": "CONTROLLER"}, "no listener has the name 'CONTROLLER'"),
        ({"inter.broker.listener.name": ""}, "no listener has the name ''"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "nobody can connect"),
        ({"advertised.listeners": "SSL://a:9092"}, "no listener of that name"),
        ({"listener.security.protocol.map": "PLAINTEXT"}, "NAME:PROTOCOL"),
        ({"listener.security.protocol.map": "PLAINTEXT:TLS"}, "'TLS' is none of"),
        ({"listener.security.protocol.map": "PLAINTEXT:SSL"}, "SSL, which is not served yet"),
        ({"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}, "less safe"),
        ({"super.users": "User:admin"}, "less safe"),
        ({"create.topic.policy.class.name": "org.example.Policy"}, "less safe"),
        ({"config.providers": "file"}, "less safe"),
        ({"process.roles": "controller"}, "controller only"),
        ({"process.roles": "king"}, "'king' is none of"),
        ({"node.id": "-5"}, r"node\.id: -5 lies outside"),
        ({"num.partitions": "0"}, r"num\.partitions: 0 lies outside \[1,\.\.\.\]"),
        ({"num.partitions": "many"}, "not a whole number"),
        ({"log.retention.ms": "0"}, r"log\.retention\.ms"),
        ({"log.retention.hours": "-2"}, r"log\.retention\.hours"),
        ({"group.min.session.timeout.ms": "1800001"}, r"above group\.max\.session\.timeout\.ms"),
        ({"group.consumer.session.timeout.ms": "1"}, r"group\.consumer\.min\.session\.timeout\.ms"),
        (
            {
                "group.streams.heartbeat.interval.ms": "60000",
                "group.streams.session.timeout.ms": "60000",
                "group.streams.max.heartbeat.interval.ms": "70000",
            },
            r"group\.streams\.heartbeat\.interval\.ms: 60000 is not below group\.streams\.session",
        ),
        (
            {
                "group.consumer.heartbeat.interval.ms": "60000",
                "group.consumer.max.heartbeat.interval.ms": "70000",
            },
            r"group\.consumer\.heartbeat\.interval\.ms: 60000 is not below group\.consumer\.session",
        ),
        ({"offsets.topic.compression.codec": "5"}, "no codec has the number 5"),
        ({"offsets.topic.compression.codec": "-1"}, "no codec has the number -1"),
        ({"ottla.flush.policy": "never"}, r"none of \[fsync, os\]"),
        ({"compression.type": "lzma"}, "none of"),
        ({"log.roll.ms": "0"}, r"log\.roll\.ms: 0 lies outside"),
        ({"max.connections.per.ip.overrides": "10.0.0.1"}, "address:number"),
    ],
)
def test_what_cannot_be_done_ends_the_start_in_one_line(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        BrokerConfig.from_properties(settings)
    assert "\n" not in str(caught.value)
    assert str(caught.value).split(":")[0] in {*settings, "listeners", "group.consumer.min.session.timeout.ms"}


def test_an_unknown_setting_is_one_warning_with_a_hint() -> None:
    warned = BrokerConfig.from_properties({"num.partition": "3", "zookeeper.connect": "localhost:2181"})
    assert warned.warnings == [
        "num.partition is not a setting and has no effect; did you mean num.partitions?",
        "zookeeper.connect is not a setting and has no effect",
    ]
    assert warned.num_partitions == 1


def test_settings_of_one_listener_are_known() -> None:
    names = (
        "listener.name.plaintext.max.connections",
        "listener.name.internal.scram-sha-256.sasl.jaas.config",
        "listener.name.plaintext.num.partitions",
        "listener.name.plaintext.no.such",
    )
    warnings = BrokerConfig.from_properties(dict.fromkeys(names, "1")).warnings
    assert warnings == [
        "listener.name.plaintext.no.such is not a setting and has no effect",
        f"without effect here: {names[1]}, {names[2]}",
    ]


def test_brokers_meet_at_a_listener_for_clients_in_any_case_of_letters() -> None:
    """One broker needs none: where nothing is set, what Kafka would take does not have to be there."""
    inside = {"listeners": "INSIDE://:9092", "listener.security.protocol.map": "INSIDE:PLAINTEXT"}
    for more in ({}, {"inter.broker.listener.name": "inside"}):
        assert BrokerConfig.from_properties({**inside, **more}).warnings == []
    with pytest.raises(ConfigError, match="no listener has the name 'PLAINTEXT'; there are INSIDE"):
        BrokerConfig.from_properties({**inside, "security.inter.broker.protocol": "PLAINTEXT"})


def test_protocols_of_groups_that_are_not_served_are_named() -> None:
    served, asked = (
        config(group_coordinator_rebalance_protocols=protocols).warnings
        for protocols in ("classic,consumer", "classic,consumer,streams,share")
    )
    assert served == []
    assert asked == ["group.coordinator.rebalance.protocols: not served here: streams, share"]


def test_values_come_typed_and_by_name() -> None:
    taken = config(num_partitions=" 3 ", auto_create_topics_enable="FALSE", broker_rack="r1")
    assert taken.get("num.partitions") == taken.num_partitions == 3
    assert taken.auto_create_topics_enable is False
    assert taken.rack == "r1"
    assert taken.explicit("log.segment.bytes") is None
    assert taken.get("log.segment.bytes") == 1_073_741_824
    with pytest.raises(KeyError):
        taken.get("no.such")
    for wrong in (taken.integer, taken.boolean, taken.items):
        with pytest.raises(TypeError):
            wrong("broker.rack")
    with pytest.raises(TypeError):
        taken.text("num.partitions")


def test_exceptions_for_addresses_are_pairs() -> None:
    limits = config(max_connections_per_ip_overrides="10.0.0.1:5, [::1]:7,")
    assert limits.max_connections_per_ip_overrides == {"10.0.0.1": 5, "::1": 7}


def test_flags_are_pairs_and_the_last_one_wins() -> None:
    assert parse_overrides(["a=1", "b = x=y", "a=2"]) == {"a": "2", "b": "x=y"}
    for bad in ("a", "=1", ""):
        with pytest.raises(ConfigError, match="key=value"):
            parse_overrides([bad])


def test_environment_variables_of_the_container_image_are_settings_where_they_name_one() -> None:
    environment = {"KAFKA_LOG_RETENTION_MS": "5", "KAFKA_OPTS": "-X", "HOME": "/", "KAFKA_SUPER_USERS": "User:a"}
    assert environment_properties(environment) == {"log.retention.ms": "5", "super.users": "User:a"}


def test_an_environment_variable_may_name_one_listener() -> None:
    """Underscores stand for what a variable's name cannot have, as Kafka's own image reads them."""
    environment = {
        "KAFKA_LISTENER_NAME_PLAINTEXT_MAX_CONNECTIONS": "5",
        "KAFKA_LISTENER_NAME_IN__SIDE_SCRAM___SHA___256_SASL_JAAS_CONFIG": "line",
        "KAFKA_LISTENER_NAME_PLAINTEXT_NO_SUCH": "1",
    }
    assert environment_properties(environment) == {
        "listener.name.plaintext.max.connections": "5",
        "listener.name.in_side.scram-sha-256.sasl.jaas.config": "line",
    }
