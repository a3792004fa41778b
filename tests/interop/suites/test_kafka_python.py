"""kafka-python's integration tests of consumers, groups, admin and producers.

Left out are those that start brokers of their own (SASL, TLS) and those of transactions, which Ottla does not serve.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from benchmarks.processes import find_free_port
from tests.interop.brokers import KAFKA_HOME, ROOT, Broker, OttlaBroker, make_broker
from tests.interop.suites.outcomes import FOLDER, Outcome, check_as_recorded, lacking, passed_or

SUITE: Final = Path(os.environ.get("KAFKA_PYTHON", ROOT / ".cache/interop/kafka-python/kafka_python-3.0.12"))
FILES: Final = tuple(f"test/integration/test_{kind}_integration.py" for kind in ("admin", "consumer", "producer"))
NAME: Final = "kafka-python"
SETTINGS: Final = ("node.id=0", "group.min.session.timeout.ms=500", "group.initial.rebalance.delay.ms=0")
SECONDS_FOR_ONE: Final = 60
SECONDS: Final = 400
AT_ONCE: Final = 2
"""They wait most of the time."""


def run_suite(broker: Broker, report: Path, *selected: str) -> dict[str, Outcome]:
    """Run their tests on a broker; returns what each came out with."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        "KAFKA_URI": f"kafka://{broker.address}",
        "KAFKA_VERSION": "4.4.0",
        "KAFKA_ROOT": str(KAFKA_HOME),
        "PYTHONPATH": str(FOLDER),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "their_services", "-p", "no:cacheprovider"]
    command += ["-n", str(AT_ONCE), "--timeout", str(SECONDS_FOR_ONE), "--timeout-method", "signal"]
    command += ["--log-level", "ERROR", "--junitxml", str(report), "-k", "not transactional", *selected]
    done = subprocess.run(
        command, cwd=SUITE, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {
        f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}": outcome_of(case)
        for case in ElementTree.parse(report).iter("testcase")
    }


def outcome_of(case: ElementTree.Element) -> Outcome:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.find("skipped") is None else "skipped"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker as theirs is: it has id 0, lets sessions be short, and is told what to advertise."""
    started = make_broker(tmp_path, *SETTINGS)
    if isinstance(started, OttlaBroker):
        address = f"127.0.0.1:{find_free_port()}"
        started = OttlaBroker(tmp_path, *SETTINGS, f"advertised.listeners=PLAINTEXT://{address}")
        started.address = address
    started.start()
    yield started
    started.stop()


def test_kafka_pythons_integration_tests(broker: Broker, tmp_path: Path) -> None:
    outcomes = run_suite(broker, tmp_path / "report.xml", *FILES)
    if again := lacking(NAME, sorted(outcomes), outcomes):  # some hold a busy machine to fractions of a second
        selected = [f"test/integration/{test.replace('::', '.py::', 1)}" for test in again]
        outcomes |= passed_or(outcomes, run_suite(broker, tmp_path / "again.xml", *selected))

    check_as_recorded(NAME, outcomes)
