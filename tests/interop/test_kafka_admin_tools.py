"""Kafka's own tools for administrators, with the output that they give on Kafka itself."""

from __future__ import annotations

import json
import re

import pytest

from tests.interop.brokers import KAFKA_HOME, Broker
from tests.interop.clients.client import run
from tests.interop.clients.confluent import ConfluentClient
from tests.interop.clients.console import QUICK_JVM


class Tools:
    """Kafka's tools on one broker."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __call__(self, tool: str, *arguments: str) -> str:
        where = ["--bootstrap-server", self.address]
        if tool == "kafka-cluster":  # takes it behind its verb, all others in front of it
            where, arguments = [arguments[0], *where], arguments[1:]
        return run([str(KAFKA_HOME / f"bin/{tool}.sh"), *where, *arguments], environment=QUICK_JVM)

    def configs(self, *arguments: str) -> str:
        return self("kafka-configs", *arguments)


@pytest.fixture
def tools(broker: Broker) -> Tools:
    return Tools(broker.address)


def test_log_dirs(broker: Broker, tools: Tools, topic: str) -> None:
    client = ConfluentClient(broker.address)
    client.create_topic(topic)
    printed = tools("kafka-log-dirs", "--describe", "--topic-list", topic)
    (node,) = json.loads(printed.splitlines()[-1])["brokers"]
    (directory,) = node["logDirs"]
    assert (node["broker"], directory["error"], directory["logDir"]) == (1, None, str(broker.data))
    assert directory["partitions"] == [{"partition": f"{topic}-0", "size": 0, "offsetLag": 0, "isFuture": False}]


def test_features(tools: Tools) -> None:
    printed = tools("kafka-features", "describe")
    levels = dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)\s", printed))
    assert levels["metadata.version"] == "4.4-IV2"
    assert levels["kraft.version"] == "1"
    assert "was upgraded to 1" in tools("kafka-features", "upgrade", "--feature", "group.version=1")


def test_metadata_quorum(tools: Tools) -> None:
    status = dict(re.findall(r"(?m)^(\w+):\s+(.*?)\s*$", tools("kafka-metadata-quorum", "describe", "--status")))
    assert (status["LeaderId"], status["MaxFollowerLag"], status["CurrentObservers"]) == ("1", "0", "[]")
    (voter,) = json.loads(status["CurrentVoters"])
    assert voter["id"] == 1
    assert [endpoint.split(":")[0] for endpoint in voter["endpoints"]] == ["CONTROLLER"]
    head, *rows = tools("kafka-metadata-quorum", "describe", "--replication").strip().splitlines()
    assert head.split()[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    assert [(row.split()[0], row.split()[3], row.split()[-1]) for row in rows] == [("1", "0", "Leader")]


def test_leader_election(broker: Broker, tools: Tools, topic: str) -> None:
    ConfluentClient(broker.address).create_topic(topic)
    one = tools("kafka-leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert f"Valid replica already elected for partitions {topic}-0" in one
    assert "not" not in tools("kafka-leader-election", "--election-type", "unclean", "--all-topic-partitions")


def test_cluster(broker: Broker, tools: Tools) -> None:
    assert re.fullmatch(r"Cluster ID: [\w-]{22}", tools("kafka-cluster", "cluster-id").strip())
    host, _, port = broker.address.rpartition(":")
    rows = [row.split() for row in tools("kafka-cluster", "list-endpoints").strip().splitlines()]
    assert rows[1:] == [["1", host, port, "null", "unfenced", "broker"]]


def test_quotas_of_users_clients_and_addresses(tools: Tools) -> None:
    user = ("--entity-type", "users", "--entity-name", "alice")
    both = (*user, "--entity-type", "clients", "--entity-name", "app")
    address = ("--entity-type", "ips", "--entity-name", "192.0.2.7")
    done = tools.configs("--alter", *user, "--add-config", "producer_byte_rate=1000,request_percentage=12.5")
    assert "Completed updating config for user alice." in done
    tools.configs("--alter", *both, "--add-config", "consumer_byte_rate=2000")
    tools.configs("--alter", *address, "--add-config", "connection_creation_rate=5")

    found = tools.configs("--describe", *user)
    assert "Quota configs for user-principal 'alice' are" in found
    assert {"producer_byte_rate=1000.0", "request_percentage=12.5"} <= set(re.findall(r"\w+=[0-9.]+", found))
    of_both = "Quota configs for user-principal 'alice', client-id 'app' are consumer_byte_rate=2000.0"
    assert of_both in tools.configs("--describe", *both)
    assert "Quota configs for ip '192.0.2.7' are connection_creation_rate=5.0" in tools.configs("--describe", *address)

    tools.configs("--alter", *user, "--delete-config", "producer_byte_rate,request_percentage")
    assert "Quota configs" not in tools.configs("--describe", *user)


def test_scram_users(tools: Tools) -> None:
    user = ("--entity-type", "users", "--entity-name", "bob")
    tools.configs("--alter", *user, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=secret]")
    wanted = "SCRAM credential configs for user-principal 'bob' are SCRAM-SHA-256=iterations=8192"
    assert wanted in tools.configs("--describe", *user)
    tools.configs("--alter", *user, "--delete-config", "SCRAM-SHA-256")
    assert "SCRAM" not in tools.configs("--describe", *user)


def test_broker_api_versions(broker: Broker, tools: Tools) -> None:
    printed = tools("kafka-broker-api-versions")
    assert printed.startswith(f"{broker.address} (id: 1 rack: null isFenced: false) -> (")
    ranges = dict(re.findall(r"(?m)^\s+(\w+)\(\d+\): (\d+ to \d+|\d+) \[usable", printed))
    assert ranges["Produce"] == "0 to 13"
    for api in ("DescribeLogDirs", "DescribeQuorum", "UpdateFeatures", "AlterClientQuotas", "ElectLeaders"):
        assert api in ranges, api


def test_producers_of_a_partition(broker: Broker, tools: Tools, topic: str) -> None:
    client = ConfluentClient(broker.address)
    client.create_topic(topic)
    head, *rows = tools("kafka-transactions", "describe-producers", "--topic", topic, "--partition", "0").splitlines()
    assert head.split()[:3] == ["ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch"]
    assert [row for row in rows if row.strip()] == []
