"""Clients of Kafka 0.7's time on a Jafka listener: prozess (Node), and Jafka's own (Java)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.interop.brokers import ROOT, OttlaBroker
from tests.interop.clients.client import run

PROZESS: Final = Path(os.environ.get("PROZESS", ROOT / ".cache/interop/prozess"))
JAFKA: Final = Path(os.environ.get("JAFKA", ROOT / ".cache/interop/jafka"))
CLIENTS: Final = ROOT / "tests/interop/clients"


@pytest.fixture
def jafka(tmp_path: Path) -> Iterator[OttlaBroker]:
    """A broker whose only listener speaks Jafka."""
    broker = OttlaBroker(
        tmp_path / "broker",
        "listeners=JAFKA://127.0.0.1:0",
        "ottla.jafka.flush.messages=1",
        "ottla.jafka.password=plain:secret",
    )
    broker.start()
    yield broker
    broker.stop()


def test_prozess_produces_and_consumes(jafka: OttlaBroker) -> None:
    host, port = jafka.address.split(":")

    printed = run(
        ["node", str(CLIENTS / "prozess/client.cjs"), host, port, "t"],
        environment={"NODE_PATH": str(PROZESS / "node_modules")},
    )

    assert json.loads(printed) == {
        "payloads": ["one", "two", "three"],
        "next": "41",
        "latest": "41",
        "lost": "OffsetOutOfRange",
    }


def test_jafkas_own_client_does_everything(jafka: OttlaBroker) -> None:
    host, port = jafka.address.split(":")

    printed = run(["java", "-cp", f"{JAFKA}/classes:{JAFKA}/lib/*", "JafkaClient", host, port, "t", "secret"])

    assert printed.splitlines() == [
        "created 2",
        "fetched [one, two, packed1, packed2]",
        "fetched [other]",
        "multifetched [[one, two, packed1, packed2], [other]]",
        "earliest [0]",
        "latest of 1 [15, 0]",
        "latest 15",
        "error beyond the end OffsetOutOfRangeCode",
        "refused -1",
        "deleted 2",
        "deleted again 0",
    ]
