"""A log that moves to another log directory, asked for and watched by Kafka's own tools, through a kill."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.interop.brokers import KAFKA_HOME, Broker, KafkaBroker, OttlaBroker
from tests.interop.clients import Row
from tests.interop.clients.client import run
from tests.interop.clients.confluent import ConfluentClient
from tests.interop.clients.console import QUICK_JVM
from tests.interop.test_kafka_admin_tools import Tools

SECONDS = 30.0
SLOW, FAST = 10_000, 1_000_000_000
ROWS = 3000
"""About three MB, in segments of one MB."""


def rows(topic: str) -> Iterator[Row]:
    noise = random.Random(topic)
    return (Row(f"{number}", noise.randbytes(500).hex()) for number in range(ROWS))


def replicas(tools: Tools, topic: str) -> dict[str, dict[str, Any]]:
    """Return what each directory has of the partition, by the directory's name."""
    printed = tools("kafka-log-dirs", "--describe", "--topic-list", topic)
    (node,) = json.loads(printed.splitlines()[-1])["brokers"]
    return {Path(found["logDir"]).name: found["partitions"][0] for found in node["logDirs"] if found["partitions"]}


def reassign(tools: Tools, *arguments: str) -> str:
    command = [str(KAFKA_HOME / "krun"), "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"]
    return run([*command, "--bootstrap-server", tools.address, *arguments], environment=QUICK_JVM)


def move(tools: Tools, folder: Path, topic: str, directory: Path, throttle: int, *more: str) -> str:
    plan = folder / "plan.json"
    wanted = {"topic": topic, "partition": 0, "replicas": [1], "log_dirs": [str(directory)]}
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    throttling = ("--replica-alter-log-dirs-throttle", str(throttle))
    return reassign(tools, "--execute", "--reassignment-json-file", str(plan), *throttling, *more)


def test_a_log_moves_while_it_is_used_and_through_a_kill(start_broker: Callable[..., Broker], tmp_path: Path) -> None:
    directories = {name: tmp_path / name for name in ("one", "two")}
    setting = f"log.dirs={directories['one']},{directories['two']}"
    broker = start_broker(setting, "log.segment.bytes=1048576")
    tools, client = Tools(broker.address), ConfluentClient(broker.address)
    client.create_topic("moved")
    sent = list(rows("moved"))
    client.produce("moved", sent)
    ((source, found),) = replicas(tools, "moved").items()
    assert (found["offsetLag"], found["isFuture"]) == (0, False)
    (target,) = directories.keys() - {source}

    printed = move(tools, tmp_path, "moved", directories[target], SLOW)
    assert f"moving log directory to {directories[target]} for replica moved-0 with broker 1" in printed
    on_its_way = replicas(tools, "moved")
    assert on_its_way[source]["isFuture"] is False
    assert on_its_way[target]["isFuture"] is True
    assert 0 < on_its_way[target]["offsetLag"] <= ROWS

    broker.kill()
    broker.start()
    client.produce("moved", [Row("late", "later")])
    assert replicas(tools, "moved")[target]["isFuture"] is True
    move(tools, tmp_path, "moved", directories[target], FAST, "--additional")
    deadline = time.monotonic() + SECONDS
    while (directories[source] / "moved-0").exists():
        assert time.monotonic() < deadline, "it does not arrive"
        time.sleep(0.1)
    printed = reassign(tools, "--verify", "--reassignment-json-file", str(tmp_path / "plan.json"))
    assert "Reassignment of replica moved-0-1 completed successfully" in printed
    assert client.consume("moved", ROWS + 1) == [*sent, Row("late", "later")]

    if isinstance(broker, OttlaBroker):
        broker.stop()
        kafka = KafkaBroker(tmp_path / "kafka", setting)
        kafka.data = directories["one"]
        kafka.start()
        try:
            assert ConfluentClient(kafka.address).consume("moved", ROWS + 1) == [*sent, Row("late", "later")]
            assert list(replicas(Tools(kafka.address), "moved")) == [target]
        finally:
            kafka.stop()
