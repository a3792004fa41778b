"""node-rdkafka's end-to-end tests of consumers, groups, admin and producers; those of transactions are left out.

They use one topic and look at what is new in it, so that only one may run at a time; and they wait most of the time. So
parts of the suite run side by side, each on a broker of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.interop.brokers import ROOT, Broker
from tests.interop.suites.outcomes import Outcome, check_as_recorded, lacking, passed_or

MODULES: Final = Path(os.environ.get("NODE_RDKAFKA", ROOT / ".cache/interop/node-rdkafka")) / "node_modules"
SUITE: Final = MODULES / "node-rdkafka"
NAME: Final = "node-rdkafka"
SETTINGS: Final = ("group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=1")
TOPICS: Final = ("test", "test2", "test3", "test4", "test5", "test6")
"""Those that their script for brokers makes."""

KINDS: Final = ("admin", "both", "consumer", "groups", "producer")
FILES: Final = tuple(f"e2e/{kind}.spec.js" for kind in KINDS)
ADMIN, BOTH, CONSUMER, GROUPS, PRODUCER = FILES
ONE_HEADER: Final = "one header|null key"
EMPTY_OR_HEADERS: Final = "multiple headers|empty"
END: Final = "eof|EOF|consumeOnce"
PARTS: Final[Sequence[Sequence[str]]] = (
    (ADMIN,),
    (GROUPS, PRODUCER),
    (CONSUMER,),
    ("--grep", ONE_HEADER, BOTH),
    ("--grep", EMPTY_OR_HEADERS, BOTH),
    ("--grep", END, BOTH),
    ("--grep", f"{ONE_HEADER}|{EMPTY_OR_HEADERS}|{END}", "--invert", BOTH),
)
"""Which tests run together, so that each part takes about as long."""

IS_ONE_BY_ONE: Final = os.environ.get("OTTLA_INTEROP_BROKER") == "kafka"
"""Several of Apache Kafka's processes are too much for a small machine."""

TIMEOUT_MS: Final = 15_000
SECONDS: Final = 100
END_SECONDS: Final = 2
POLL_SECONDS: Final = 0.1
TRIES: Final = 5
BETWEEN_TESTS: Final = " hook for "
"""In the name of what failed before or after a test."""


class Part:
    """Some of their tests, in a process of their own."""

    def __init__(self, selection: Sequence[str], address: str, folder: Path) -> None:
        self._report = folder / "report.json"
        self._process = subprocess.Popen(
            mocha(self._report, *selection),
            cwd=SUITE,
            env={**os.environ, "KAFKA_HOST": address},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def wait(self) -> dict[str, Outcome]:
        """Return what each test came out with that could run.

        Now and then the binding crashes, or waits for ever until a client is disconnected, with Apache Kafka too: as a
        consumer closes, librdkafka waits until somebody took note of its last rebalance, and a binding that closes does
        not any more (node-rdkafka 330 and 705, librdkafka 2615). No other test of the file runs then, and the process
        does not end.
        """
        deadline = time.monotonic() + SECONDS
        while self._process.poll() is None and not self._report.exists() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        self.kill()
        return read_report(self._report) if self._report.exists() else {}

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def mocha(report: Path, *selection: str) -> list[str]:
    """Return the command that runs the selected tests."""
    command = ["node", str(MODULES / "mocha/bin/mocha.js"), "--exit", "--timeout", str(TIMEOUT_MS)]
    return [*command, "--reporter", "json", "--reporter-option", f"output={report}", *selection]


def read_report(report: Path) -> dict[str, Outcome]:
    told: dict[str, list[dict[str, Any]]] = json.loads(report.read_text())
    kinds: tuple[tuple[str, Outcome], ...] = (("passes", "passed"), ("failures", "failed"), ("pending", "skipped"))
    titles = {test["fullTitle"]: outcome for kind, outcome in kinds for test in told[kind]}
    return {title: outcome for title, outcome in titles.items() if BETWEEN_TESTS not in title}


def list_tests(folder: Path) -> list[str]:
    """Return the names of all their tests, without running one."""
    report = folder / "all.json"
    subprocess.run(mocha(report, "--dry-run", *FILES), cwd=SUITE, capture_output=True, timeout=SECONDS, check=True)
    return sorted(read_report(report))


def make_topics(broker: Broker) -> None:
    """Make their topics, and that of groups, which takes Apache Kafka longer than their first test waits."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in TOPICS]).values():
        made.result()
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "first"})
    consumer.commit(offsets=[TopicPartition(TOPICS[0], 0, 0)], asynchronous=False)
    consumer.close()


Start = Callable[[Sequence[str]], Part]


@pytest.fixture
def start_part(start_broker: Callable[..., Broker], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start parts of the suite, each on a new broker unless they run one by one; in the end they are killed."""
    brokers: list[Broker] = []
    parts: list[Part] = []

    def start(selection: Sequence[str]) -> Part:
        if not (brokers and IS_ONE_BY_ONE):
            brokers.append(start_broker(*SETTINGS))
            make_topics(brokers[-1])
        parts.append(Part(selection, brokers[-1].address, tmp_path_factory.mktemp("part")))
        return parts[-1]

    yield start
    for part in parts:
        part.kill()


def run_side_by_side(start_part: Start) -> dict[str, Outcome]:
    """Run all parts, one by one where they have to be."""
    outcomes: dict[str, Outcome] = {}
    started = (start_part(selection) for selection in PARTS)
    for part in started if IS_ONE_BY_ONE else list(started):
        outcomes |= part.wait()
    return outcomes


def test_node_rdkafkas_end_to_end_tests(start_part: Start, tmp_path: Path) -> None:
    tests = list_tests(tmp_path)
    outcomes = run_side_by_side(start_part)
    for _ in range(TRIES):  # also since some hold a busy machine to fractions of a second
        if not (again := lacking(NAME, tests, outcomes)):
            break
        chosen = "|".join(f"^{re.escape(test)}$" for test in again)
        outcomes |= passed_or(outcomes, start_part(["--grep", chosen, *FILES]).wait())
    check_as_recorded(NAME, outcomes)
