"""A topic's whole life as kafkajs and franz-go see it, each in one conversation; the same on Ottla and Apache Kafka."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from tests.interop.brokers import ROOT, Broker
from tests.interop.clients.client import run
from tests.interop.clients.franz import FranzClient

NODE_MODULES: Final = Path(os.environ.get("NODE_MODULES", ROOT / ".cache/interop/js/node_modules"))
KAFKAJS_CLIENT: Final = ROOT / "tests/interop/clients/js/client.cjs"


def test_franz_go_administers(broker: Broker, topic: str) -> None:
    seen = json.loads(FranzClient(broker.address).administer(topic))

    assert seen == {
        "created": ["", 2, 1],
        "created again": "TOPIC_ALREADY_EXISTS",
        "three copies": "INVALID_REPLICATION_FACTOR",
        "bad setting": "INVALID_CONFIG",
        "starts": {"0": 0, "1": 0},
        "ends": {"0": 10, "1": 0},
        "after 4.5 s": {"0": 5, "1": 0},
        "newest": {"0": 9, "1": 0},
        "deleted to": ["", 3],
        "starts after": {"0": 3, "1": 0},
        "grown": "",
        "partitions": ["", 3],
        "altered": "",
        "settings": ["cleanup.policy=compact", "retention.ms=3600000"],
        "epoch 0 ends": ["", 10],
        "gone": "",
        "gone again": "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_kafkajs_administers_produces_and_consumes(broker: Broker, topic: str) -> None:
    environment = {"NODE_PATH": str(NODE_MODULES), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    seen = json.loads(run(["node", str(KAFKAJS_CLIENT), broker.address, topic], environment=environment))

    assert seen == {
        "created": True,
        "created again": False,
        "bad setting": "INVALID_CONFIG",
        "listed": True,
        "partitions": [[0, 0], [1, 0]],
        "brokers": 1,
        "offsets": ["0", "3", None, "9"],
        "missing topic": "This server does not host this topic-partition",
        "idempotent 0": "0",
        "idempotent 1": "1",
        "consumed": {"0": consumed_rows(), "1": [["0", None, "once 0", None], ["1", None, "once 1", None]]},
        "bounds": [[0, "0", "12"], [1, "0", "2"]],
        "by time": [[0, "7"], [1, "0"]],
        "committed": [[0, "12"], [1, "2"]],
        "groups": [["Empty", 0]],
        "group gone": [0],
        "low after trimming": [[0, "5"], [1, "0"]],
        "shrunk": "INVALID_PARTITIONS",
        "settings": ["cleanup.policy=compact"],
        "gone again": "This server does not host this topic-partition",
    }


def consumed_rows() -> list[list[Any]]:
    """Four rounds of three records: offset, key, value, header."""
    return [[str(3 * r + n), f"k{n}", f"{r}.{n}", f"x{n}"] for r in range(4) for n in range(3)]
