"""Kafka's own dump tool reads the files that we leave, without a word of complaint."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.brokers import KAFKA_HOME, Broker
from tests.interop.clients import Codec, Row
from tests.interop.clients.client import run
from tests.interop.clients.confluent import ConfluentClient
from tests.interop.clients.console import QUICK_JVM

COMPLAINT = re.compile(r"(?i)exception|error|invalid|corrupt|mismatch|unexpected|could not|non-consecutive|not valid")
CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")

SMALLEST_SEGMENT_BYTES = 1 << 20  # KIP-1030


def dump(*arguments: str) -> str:
    return run([str(KAFKA_HOME / "bin/kafka-dump-log.sh"), *arguments], environment=QUICK_JVM)


def complaints(printed: str) -> list[str]:
    """Return the lines that speak of damage; `isvalid: true` and field names are no complaint."""
    lines = (line for line in printed.splitlines() if "isvalid: true" not in line or "isvalid: false" in line)
    return [line for line in lines if COMPLAINT.search(line)]


@pytest.fixture
def data(start_broker: Callable[..., Broker]) -> Path:
    """The data folder of a broker that was used, restarted, used again and stopped."""
    broker = start_broker(f"log.segment.bytes={SMALLEST_SEGMENT_BYTES}", "log.index.interval.bytes=1024")
    client, noise = ConfluentClient(broker.address), random.Random(44)
    client.create_topic("kept", {"retention.ms": "-1"})
    for codec in CODECS:
        client.produce("kept", [Row(f"{codec}-{i}", noise.randbytes(1500).hex()) for i in range(200)], codec=codec)
    broker.restart()
    for codec in CODECS:
        client.produce("kept", [Row(codec, codec)], codec=codec, is_idempotent=True)
    broker.stop()
    return broker.data


def test_dump_log_reads_segments_and_indexes(data: Path) -> None:
    files = sorted(str(path) for kind in ("log", "index", "timeindex") for path in (data / "kept-0").glob(f"*.{kind}"))

    printed = dump("--deep-iteration", "--files", ",".join(files))

    assert complaints(printed) == []
    assert "isvalid: false" not in printed
    assert len(re.findall(r"(?m)^\| offset: ", printed)) == 5 * 200 + 5
    assert len([name for name in files if name.endswith(".log")]) > 1, "the segments were meant to roll"


def test_dump_log_decodes_the_metadata_log_and_its_snapshots(data: Path) -> None:
    folder = data / "__cluster_metadata-0"
    for path in [*sorted(folder.glob("*.log")), *sorted(folder.glob("*.checkpoint"))]:
        printed = dump("--cluster-metadata-decoder", "--deep-iteration", "--files", str(path))

        assert complaints(printed) == [], path.name
        if path.suffix == ".log":
            assert '"TOPIC_RECORD"' in printed
            assert '"name":"kept"' in printed
        else:
            assert "SnapshotHeader" in printed
