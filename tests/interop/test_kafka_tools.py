"""Kafka's own command line tools: what an administrator types, and what comes back; the same on both brokers."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.interop.brokers import KAFKA_HOME, Broker
from tests.interop.clients import Row
from tests.interop.clients.client import TIMEOUT_S, run
from tests.interop.clients.confluent import ConfluentClient
from tests.interop.clients.console import QUICK_JVM


class Tools:
    """Kafka's scripts, for one broker."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __call__(self, tool: str, *arguments: str) -> str:
        """Run a tool that must succeed; returns what it printed."""
        return run(self._command(tool, *arguments), environment=QUICK_JVM)

    def fails(self, tool: str, *arguments: str) -> str:
        """Run a tool that must not succeed; returns all that it said."""
        done = subprocess.run(
            self._command(tool, *arguments), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stdout + done.stderr

    def _command(self, tool: str, *arguments: str) -> list[str]:
        return [str(KAFKA_HOME / f"bin/{tool}.sh"), "--bootstrap-server", self.address, *arguments]


@pytest.fixture
def tools(broker: Broker) -> Tools:
    return Tools(broker.address)


def test_kafka_topics_shows_a_topics_life(tools: Tools, topic: str) -> None:
    tools("kafka-topics", "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=3600000")
    assert "TopicExistsException" in tools.fails("kafka-topics", "--create", "--topic", topic)
    tools("kafka-topics", "--create", "--if-not-exists", "--topic", topic)
    assert topic in tools("kafka-topics", "--list").split()

    tools("kafka-topics", "--alter", "--topic", topic, "--partitions", "3")
    described = tools("kafka-topics", "--describe", "--topic", topic)
    assert re.search(r"PartitionCount: 3\s+ReplicationFactor: 1\s+Configs: .*retention\.ms=3600000", described)
    rows = re.findall(r"Partition: (\d)\s+Leader: 1\s+Replicas: 1\s+Isr: 1\b", described)
    assert rows == ["0", "1", "2"]

    tools("kafka-topics", "--delete", "--topic", topic)
    assert topic not in tools("kafka-topics", "--list").split()
    assert "does not exist" in tools.fails("kafka-topics", "--describe", "--topic", topic)


def test_kafka_topics_refuses_what_cannot_be(tools: Tools, topic: str) -> None:
    assert "InvalidTopicException" in tools.fails("kafka-topics", "--create", "--topic", "bad name")
    assert "InvalidReplicationFactor" in tools.fails(
        "kafka-topics", "--create", "--topic", topic, "--replication-factor", "3"
    )


def test_kafka_configs_alters_and_describes_topics(tools: Tools, topic: str) -> None:
    ConfluentClient(tools.address).create_topic(topic)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    assert "retention.ms" not in tools("kafka-configs", "--describe", *entity)

    tools("kafka-configs", "--alter", *entity, "--add-config", "retention.ms=60000,cleanup.policy=[compact,delete]")
    described = tools("kafka-configs", "--describe", *entity)
    assert re.search(
        r"retention\.ms=60000 sensitive=false synonyms=\{DYNAMIC_TOPIC_CONFIG:retention\.ms=60000", described
    )
    assert "cleanup.policy=compact,delete sensitive=false" in described

    tools("kafka-configs", "--alter", *entity, "--delete-config", "retention.ms")
    described = tools("kafka-configs", "--describe", *entity)
    assert "retention.ms" not in described
    assert "cleanup.policy" in described
    every = tools("kafka-configs", "--describe", "--all", *entity)
    assert re.search(r"segment\.bytes=1073741824 sensitive=false", every)
    assert "InvalidConfigurationException" in tools.fails(
        "kafka-configs", "--alter", *entity, "--add-config", "segment.bytes=abc"
    )


def test_kafka_configs_alters_and_describes_brokers(tools: Tools) -> None:
    entity = ("--entity-type", "brokers", "--entity-name", "1")
    tools("kafka-configs", "--alter", *entity, "--add-config", "log.cleaner.io.buffer.load.factor=0.8")
    described = tools("kafka-configs", "--describe", *entity)
    assert "log.cleaner.io.buffer.load.factor=0.8 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG" in described

    tools("kafka-configs", "--alter", *entity, "--delete-config", "log.cleaner.io.buffer.load.factor")
    assert "load.factor" not in tools("kafka-configs", "--describe", *entity)
    assert "Error" in tools.fails("kafka-configs", "--alter", *entity, "--add-config", "node.id=7")


def test_kafka_get_offsets_finds_them(tools: Tools, topic: str) -> None:
    client = ConfluentClient(tools.address)
    client.create_topic(topic)
    client.produce(topic, [Row("k", str(number)) for number in range(7)])

    def offsets(time: str) -> str:
        return tools("kafka-get-offsets", "--topic", topic, "--time", time).strip()

    assert offsets("latest") == f"{topic}:0:7"
    assert offsets("earliest") == f"{topic}:0:0"
    assert offsets("max-timestamp") in {f"{topic}:0:{number}" for number in range(7)}
    assert offsets("0") == f"{topic}:0:0"
    assert tools("kafka-get-offsets", "--topic-partitions", f"{topic}:0", "--time", "-1").strip() == f"{topic}:0:7"


def test_kafka_delete_records_trims(tools: Tools, topic: str, tmp_path: Path) -> None:
    client = ConfluentClient(tools.address)
    client.create_topic(topic)
    client.produce(topic, [Row("k", str(number)) for number in range(7)])

    def delete(offset: int) -> str:
        rows = [{"topic": topic, "partition": 0, "offset": offset}]
        wanted = tmp_path / "offsets.json"
        wanted.write_text(json.dumps({"partitions": rows, "version": 1}))
        return tools("kafka-delete-records", "--offset-json-file", str(wanted))

    assert re.search(rf"partition: {re.escape(topic)}-0\s+low_watermark: 4", delete(4))
    assert tools("kafka-get-offsets", "--topic", topic, "--time", "earliest").strip() == f"{topic}:0:4"
    assert "OffsetOutOfRangeException" in delete(100)
    assert re.search(r"low_watermark: 7", delete(-1))


@pytest.mark.parametrize("acks", ["1", "-1"])
def test_kafka_producer_perf_test_sends_all(tools: Tools, topic: str, acks: str) -> None:
    ConfluentClient(tools.address).create_topic(topic)
    printed = tools(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1"),
        *("--command-property", f"acks={acks}", "--command-property", "compression.type=lz4"),
    )

    assert "20000 records sent" in printed
    assert tools("kafka-get-offsets", "--topic", topic).strip() == f"{topic}:0:20000"


def test_kafka_verifiable_producer_has_every_record_acknowledged(tools: Tools, topic: str) -> None:
    ConfluentClient(tools.address).create_topic(topic)
    printed = tools("kafka-verifiable-producer", "--topic", topic, "--max-messages", "500", "--acks", "-1")
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    sent = [row for row in rows if row["name"] == "producer_send_success"]

    assert len(sent) == 500
    assert sorted(row["offset"] for row in sent) == list(range(500))
    (summary,) = [row for row in rows if row["name"] == "tool_data"]
    assert (summary["sent"], summary["acked"]) == (500, 500)


def test_kafka_broker_api_versions_reads_the_announcement(tools: Tools) -> None:
    printed = tools("kafka-broker-api-versions")

    assert tools.address in printed
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", printed)
    assert re.search(r"Fetch\(1\): 4 to 18 \[usable: 18\]", printed)
