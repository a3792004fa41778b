"""What the tests of a suite came out with, and the record of what they come out with on Apache Kafka."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

Outcome = Literal["passed", "failed", "skipped"]
Outcomes = Mapping[str, Outcome]

IS_RECORDING: Final = os.environ.get("OTTLA_RECORD_SUITES") == "1"
FOLDER: Final = Path(__file__).parent


def read_record(name: str) -> dict[str, Outcome]:
    """Read the record of a suite; lines that begin with # say where it is from."""
    record: dict[str, Outcome] = {}
    for line in _lines(name):
        if not line.startswith("#"):
            outcome, _, test = line.partition(" ")
            assert outcome in ("passed", "failed", "skipped"), line
            record[test] = outcome  # type: ignore[assignment]  # mypy does not narrow a str by `in`
    return record


def write_record(name: str, outcomes: Outcomes) -> None:
    """Replace the record of a suite, all but what it says about itself."""
    said = [line for line in _lines(name) if line.startswith("#")]
    told = sorted(f"{outcome} {test}" for test, outcome in outcomes.items())
    _path(name).write_text("".join(f"{line}\n" for line in [*said, *told]))


def check_as_recorded(name: str, outcomes: Outcomes) -> None:
    """Raises when a test came out otherwise than on Apache Kafka, or is missing, or is new."""
    if IS_RECORDING:
        write_record(name, outcomes)
        return
    record = read_record(name)
    other = {
        test: f"{outcomes.get(test, 'missing')} instead of {record.get(test, 'missing')}"
        for test in sorted({*record, *outcomes})
        if outcomes.get(test) != record.get(test)
    }
    assert not other, f"{len(other)} tests of {name} came out otherwise: {other}"


def lacking(name: str, tests: Iterable[str], outcomes: Outcomes) -> list[str]:
    """Return which of these tests did not run, or pass on Apache Kafka and did not now.

    Of a suite that is recorded, all that did not pass.
    """
    record = {} if IS_RECORDING else read_record(name)
    should_pass = {test for test in tests if record.get(test, "passed") == "passed"}
    return [test for test in tests if test not in outcomes or (test in should_pass and outcomes[test] != "passed")]


def passed_or(before: Outcomes, again: Outcomes) -> dict[str, Outcome]:
    """Return what a second run came out with, but for tests that had passed before."""
    return {test: "passed" if before.get(test) == "passed" else outcome for test, outcome in again.items()}


def _path(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def _lines(name: str) -> list[str]:
    return _path(name).read_text().splitlines()
