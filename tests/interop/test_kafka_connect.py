"""Kafka Connect in distributed mode copies one file into another through a topic, and loses no line.

The worker's group, its connectors, how far the source has read and the sink's commits are all kept by the broker; a
worker that comes after one that was killed knows nothing else.
"""

from __future__ import annotations

import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from benchmarks.processes import find_free_port
from tests.interop.brokers import ROOT, Broker
from tests.interop.clients.jvm import JavaProcess

LIBRARIES: Final = Path(os.environ.get("CONNECT", ROOT / ".cache/interop/connect")) / "lib/*"
WORKER: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
FILE_CONNECTORS: Final = "org.apache.kafka.connect.file."
SETTINGS: Final = (
    "group.initial.rebalance.delay.ms=0",
    "group.min.session.timeout.ms=500",
    "offsets.topic.num.partitions=4",
)
WAIT_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.1


class Worker:
    """A worker process, the files that its connectors copy, and its REST door."""

    def __init__(self, address: str, folder: Path, number: int) -> None:
        self._port = find_free_port()
        settings = {
            "bootstrap.servers": address,
            "group.id": "connect",
            "config.storage.topic": "connect-configs",
            "offset.storage.topic": "connect-offsets",
            "status.storage.topic": "connect-status",
            "config.storage.replication.factor": 1,
            "offset.storage.replication.factor": 1,
            "status.storage.replication.factor": 1,
            "offset.storage.partitions": 2,
            "status.storage.partitions": 1,
            "offset.flush.interval.ms": 200,
            "session.timeout.ms": 3000,
            "heartbeat.interval.ms": 300,
            "consumer.session.timeout.ms": 3000,
            "consumer.heartbeat.interval.ms": 300,
            "scheduled.rebalance.max.delay.ms": 0,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "plugin.discovery": "service_load",
            "listeners": f"http://127.0.0.1:{self._port}",
        }
        properties = folder / f"worker-{number}.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        log = folder / f"worker-{number}.log"
        self.process = JavaProcess(log, [str(LIBRARIES)], WORKER, str(properties))

    def put_connector(self, name: str, kind: str, settings: Mapping[str, str]) -> None:
        """Create a connector, as soon as the worker takes it."""
        body = json.dumps({"connector.class": FILE_CONNECTORS + kind, "tasks.max": "1", **settings}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/connectors/{name}/config",
            data=body,
            headers={"Content-Type": "application/json"},
            method="PUT",
        )
        self.wait_until(lambda: is_taken(request), f"connector {name} is taken")

    def wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not is_so():
            self.process.check_runs()
            assert time.monotonic() < deadline, f"not so after {WAIT_SECONDS} s: {what}:\n{self.process.printed}"
            time.sleep(POLL_SECONDS)


def is_taken(request: urllib.request.Request) -> bool:
    """Say whether the worker took it; while it starts or balances it refuses everything."""
    try:
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        assert error.code in (404, 409, 500, 503), error
        return False
    except urllib.error.URLError:
        return False


@pytest.fixture
def broker(start_broker: Callable[..., Broker]) -> Broker:
    return start_broker(*SETTINGS)


@pytest.fixture
def start_worker(broker: Broker, tmp_path: Path) -> Iterator[Callable[[], Worker]]:
    """Start workers of one Connect cluster."""
    started: list[Worker] = []

    def start() -> Worker:
        started.append(Worker(broker.address, tmp_path, len(started)))
        return started[-1]

    yield start
    for worker in started:
        worker.process.kill()


def write_lines(path: Path, count: int, start: int) -> None:
    with path.open("a") as file:
        file.writelines(f"<{number}>\n" for number in range(start, start + count))


def lines_of(path: Path) -> list[int]:
    """The numbers of the lines that are there, also of one that a killed worker didn't end."""
    return [int(number) for number in re.findall(r"<(\d+)>", path.read_text())] if path.exists() else []


def test_a_file_is_copied_whole(broker: Broker, start_worker: Callable[[], Worker], tmp_path: Path) -> None:
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    write_lines(source, 100, start=0)
    first = start_worker()
    first.put_connector("source", "FileStreamSourceConnector", {"file": str(source), "topic": "lines"})
    first.put_connector("sink", "FileStreamSinkConnector", {"file": str(sink), "topics": "lines"})
    first.wait_until(lambda: len(lines_of(sink)) >= 100, "the first lines are copied")
    assert lines_of(sink) == list(range(100))

    write_lines(source, 100, start=100)
    first.process.kill()
    broker.restart()
    write_lines(source, 100, start=200)
    second = start_worker()
    second.wait_until(lambda: set(lines_of(sink)) == set(range(300)), "another worker goes on")

    broker.kill()
    broker.start()
    write_lines(source, 100, start=300)
    second.wait_until(lambda: set(lines_of(sink)) == set(range(400)), "the broker that was killed goes on")
