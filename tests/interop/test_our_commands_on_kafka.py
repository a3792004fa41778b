"""Our command line on the shared broker, whichever that is: the same answers from Ottla and from Apache Kafka.

`OTTLA_INTEROP_BROKER=kafka` makes the broker a real Kafka.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from tests.interop.brokers import OTTLA, Broker

NO = 1
"""The exit code for what the broker refuses or does not have."""


def ottla(broker: Broker, *words: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [OTTLA, *words],
        input=data,
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, "OTTLA_BOOTSTRAP": broker.address},
    )


def answer(broker: Broker, *words: str, code: int = 0) -> Any:
    """Run a command with `--json` that must end with this code; returns its JSON."""
    done = ottla(broker, *words, "--json")
    assert done.returncode == code, done.stderr.decode()
    return json.loads(done.stdout)


def changed(name: str, error: str | None = None) -> list[dict[str, str | None]]:
    return [{"name": name, "error": error}]


def test_the_command_line_says_the_same_on_every_broker(broker: Broker, topic: str) -> None:
    assert ottla(broker, "ready").returncode == 0
    assert ottla(broker, "topics", "create", topic, "-p", "1", "-r", "1").returncode == 0
    assert ottla(broker, "produce", topic, "-k", ":", "-q", data=b"a:1\nb:2\n").returncode == 0
    consumed = ottla(broker, "consume", topic, "--until", "end", "-q", "--json")
    assert [json.loads(line)["value"] for line in consumed.stdout.splitlines()] == ["1", "2"]
    missing = ottla(broker, "topics", "describe", f"{topic}-missing")
    assert (missing.returncode, missing.stdout) == (1, b"")
    assert missing.stderr.endswith(b"[UNKNOWN_TOPIC_OR_PARTITION]\n")
    assert ottla(broker, "topics", "delete", topic).returncode == 0


def test_topics(broker: Broker, topic: str) -> None:
    words = ("topics", "create", topic, "-p", "1", "-r", "1", "-c", "retention.ms=1000000")
    (created,) = answer(broker, *words)
    size = {"partitions": 1, "replication_factor": 1}
    assert created == {"topic": topic, "topic_id": created["topic_id"], "error": None, **size}
    listed = {"topic": topic, "topic_id": created["topic_id"], "is_internal": False, **size}
    assert listed in answer(broker, "topics", "list")
    altered = answer(broker, "topics", "alter", topic, "-c", "segment.bytes=2000000", "-u", "retention.ms")
    assert altered == changed(topic)
    assert answer(broker, "topics", "grow", topic, "2") == changed(topic)
    assert answer(broker, "topics", "grow", topic, "1", code=NO) == changed(topic, "INVALID_PARTITIONS")
    (described,) = answer(broker, "topics", "describe", topic)
    assert described["configs"] == {"segment.bytes": "2000000"}
    assert [(row["partition"], row["leader"], row["isr"]) for row in described["partitions"]] == [
        (0, 1, [1]),
        (1, 1, [1]),
    ]
    assert answer(broker, "topics", "delete", topic) == changed(topic)


def test_offsets_and_a_measured_load(broker: Broker, topic: str) -> None:
    answer(broker, "topics", "create", topic, "-p", "1", "-r", "1")
    sent = answer(broker, "perf", "produce", topic, "-n", "100", "-s", "10")
    assert (sent["records"], sent["size_bytes"]) == (100, 10)
    read = answer(broker, "perf", "consume", topic)
    assert read["records"] == 100
    assert answer(broker, "perf", "consume", topic, "-n", "7")["records"] == 7
    assert sent.keys() - read.keys() == {"size_bytes", "latency_ms"}
    assert 0 < sent["latency_ms"]["p50"] <= sent["latency_ms"]["p99.9"] <= sent["latency_ms"]["max"]
    row = {"topic": topic, "partition": 0, "beginning_offset": 0, "end_offset": 100}
    assert answer(broker, "topics", "offsets", topic) == [row]
    assert answer(broker, "topics", "offsets", topic, "--at", "-1h") == [{**row, "offset_at_time": 0}]


def test_groups(broker: Broker, topic: str) -> None:
    answer(broker, "topics", "create", topic, "-p", "1", "-r", "1")
    assert ottla(broker, "produce", topic, "-q", data=b"1\n2\n3\n").returncode == 0
    read = ottla(broker, "consume", topic, "--group", topic, "--protocol", "consumer", "--count", "2", "-q")
    assert read.stdout == b"1\n2\n", read.stderr

    facts = {"group": topic, "type": "consumer", "protocol_type": "consumer", "state": "Empty"}
    assert facts in answer(broker, "groups", "list", "--state", "empty", "--type", "consumer")
    (described,) = answer(broker, "groups", "describe", topic)
    assert described.items() >= {**facts, "assignor": "uniform", "members": 0, "lag": 1}.items()
    place = {"topic": topic, "partition": 0}
    where = {"committed_offset": 2, "beginning_offset": 0, "high_watermark": 3, "lag": 1}
    assert described["partitions"] == [{**place, **where, "metadata": "", "member_id": None}]
    assert answer(broker, "groups", "members", topic)["members"] == []
    nobody = ottla(broker, "groups", "members", topic, "--remove", "nobody")
    assert (nobody.returncode, nobody.stdout) == (NO, b"")
    assert b"has no member 'nobody'" in nobody.stderr

    planned = {**place, "committed_offset": 2, "new_offset": 0, "error": None}
    assert answer(broker, "groups", "reset", topic, "--to", "start", "--dry-run") == [planned]
    assert answer(broker, "groups", "reset", topic, "--to", "-1") == [{**planned, "new_offset": 1}]
    assert answer(broker, "groups", "reset", topic, "--to", "end", "-n") == [
        {**planned, "committed_offset": 1, "new_offset": 3}
    ]
    assert answer(broker, "groups", "delete", topic) == changed(topic)
    assert answer(broker, "groups", "delete", topic, code=NO) == changed(topic, "GROUP_ID_NOT_FOUND")
    assert answer(broker, "groups", "describe", topic, code=NO) == []


def test_settings(broker: Broker, topic: str) -> None:
    answer(broker, "topics", "create", topic, "-p", "1", "-r", "1", "-c", "segment.bytes=2000000")
    resource, key = ("topic", topic), "max.message.bytes"
    open_to_all = {"is_read_only": False, "is_sensitive": False}

    assert {"name": "segment.bytes", "value": "2000000", "source": "topic", **open_to_all} in answer(
        broker, "configs", "get", *resource
    )
    assert answer(broker, "configs", "set", *resource, f"{key}=5000") == changed(f"topic {topic}")
    entry = {"name": key, "value": "5000", "source": "topic", **open_to_all}
    assert answer(broker, "configs", "get", *resource, key) == [entry]
    assert answer(broker, "configs", "unset", *resource, key) == changed(f"topic {topic}")
    default = {**entry, "value": "1048588", "source": "default"}
    assert answer(broker, "configs", "get", *resource, key, "nope", code=NO) == [default]
    refused = changed(f"topic {topic}", "INVALID_CONFIG")
    assert answer(broker, "configs", "set", *resource, "nope=1", code=NO) == refused


def test_the_cluster_and_a_ping(broker: Broker) -> None:
    host, _, port = broker.address.rpartition(":")
    described = answer(broker, "cluster")
    assert described["controller_id"] == 1
    assert described["brokers"] == [{"node_id": 1, "host": host, "port": int(port), "rack": None}]
    levels = {name: row["level"] for name, row in described["features"].items()}
    assert levels.items() >= {"group.version": 1, "kraft.version": 1, "metadata.version": 33}.items()
    served = {row["api"]: row["served"] for row in described["versions"] if row["known"] is not None}

    (pinged,) = answer(broker, "ping", "--count", "2")
    assert (pinged["address"], pinged["advertised"]) == (broker.address, [broker.address])
    assert (pinged["cluster_id"], pinged["brokers"]) == (described["cluster_id"], 1)
    assert 0 < pinged["round_trip_ms"]["min"] <= pinged["round_trip_ms"]["median"] <= pinged["round_trip_ms"]["max"]
    assert pinged["versions"].items() <= served.items()
    wanted = {
        "Produce": [0, 13],
        "Fetch": [4, 18],
        "ListOffsets": [1, 11],
        "Metadata": [0, 13],
        "OffsetCommit": [2, 10],
    }
    assert pinged["versions"].items() >= wanted.items()
