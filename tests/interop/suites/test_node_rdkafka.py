"""node-rdkafka's end-to-end tests of consumers, groups, admin and producers; those of transactions are left out.

They use one topic and look at what is new in it, so that only one may run at a time; and they wait most of the time. So
parts of the suite run side by side, each on a broker of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
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

FILES: Final = ("admin", "both", "consumer", "groups", "producer")
EMPTY_OR_HEADERS: Final = "header|empty|null key"
END: Final = "eof|EOF|consumeOnce"
PARTS: Final[Sequence[Sequence[str]]] = (
    ("admin",),
    ("groups", "producer"),
    ("consumer",),
    ("both", "--grep", EMPTY_OR_HEADERS),
    ("both", "--grep", END),
    ("both", "--grep", f"{EMPTY_OR_HEADERS}|{END}", "--invert"),
)
"""Files of tests, and which of their tests."""

IS_ONE_BY_ONE: Final = os.environ.get("OTTLA_INTEROP_BROKER") == "kafka"
"""Several of Apache Kafka's processes are too much for a small machine."""

TIMEOUT_MS: Final = 20_000
SECONDS: Final = 100
BETWEEN_TESTS: Final = " hook for "
"""In the name of what failed after a test; no other test of the file runs then."""


class Part:
    """Some of their tests, in a process of their own."""

    def __init__(self, words: Sequence[str], address: str, folder: Path) -> None:
        self.words = words
        self._report = folder / "report.json"
        files = [f"e2e/{word}.spec.js" for word in words if word in FILES]
        command = ["node", str(MODULES / "mocha/bin/mocha.js"), "--exit", "--timeout", str(TIMEOUT_MS)]
        command += ["--reporter", "json", "--reporter-option", f"output={self._report}"]
        self._process = subprocess.Popen(
            [*command, *words[len(files) :], *files],
            cwd=SUITE,
            env={**os.environ, "KAFKA_HOST": address},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def wait(self) -> dict[str, Outcome]:
        """Return what each test came out with, when all have run.

        Returns nothing when not all could run: now and then the binding crashes, or waits for ever until a client is
        disconnected, with Apache Kafka too.
        """
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS)
        self.kill()
        if not self._report.exists():
            return {}
        told: dict[str, list[dict[str, Any]]] = json.loads(self._report.read_text())
        if any(BETWEEN_TESTS in failed["fullTitle"] for failed in told["failures"]):
            return {}
        kinds: tuple[tuple[str, Outcome], ...] = (
            ("passes", "passed"),
            ("failures", "failed"),
            ("pending", "skipped"),
        )
        return {test["fullTitle"]: outcome for kind, outcome in kinds for test in told[kind]}

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


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

    def start(words: Sequence[str]) -> Part:
        if not (brokers and IS_ONE_BY_ONE):
            brokers.append(start_broker(*SETTINGS))
            make_topics(brokers[-1])
        parts.append(Part(words, brokers[-1].address, tmp_path_factory.mktemp("part")))
        return parts[-1]

    yield start
    for part in parts:
        part.kill()


def run_parts(start_part: Start) -> Iterator[tuple[Part, dict[str, Outcome]]]:
    """Run all parts and yield what came out, side by side unless they go one by one."""
    started = (start_part(words) for words in PARTS)
    for part in started if IS_ONE_BY_ONE else list(started):
        yield part, part.wait()


def test_node_rdkafkas_end_to_end_tests(start_part: Start) -> None:
    outcomes: dict[str, Outcome] = {}
    for part, found in run_parts(start_part):
        outcomes |= found
        if not found or set(found) & set(lacking(NAME, outcomes)):  # some hold a busy machine to fractions of a second
            outcomes |= passed_or(outcomes, start_part(part.words).wait())
    check_as_recorded(NAME, outcomes)
