"""Single records that are on disk before they are acknowledged: Ottla as it is by default beside Kafka that flushes.

    python -m benchmarks.durable [--rounds 3] [--requests 20000]

`kafka-fsync` is Kafka with `log.flush.interval.messages=1`, the only way to have it answer for what is on disk. Sixteen
connections send one record of 100 bytes each and wait, into one partition and into sixteen. Rounds are interleaved; a
cell is the median. The last column says how many times Kafka's requests Ottla takes, and how many it should.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.bench import describe_machine
from benchmarks.loads import PRODUCE_ONE, PRODUCE_ONE_PARTITION, LoadFailed, ProduceLoad, Target
from benchmarks.processes import find_free_port, running
from benchmarks.systems import SYSTEMS, System, prepare_loadgen

WARM_SECONDS: Final = 4.0
KAFKA: Final = "kafka-fsync"
OTTLA: Final = "ottla"
LOADS: Final = (
    (replace(PRODUCE_ONE_PARTITION, name="one partition"), 5.0),
    (replace(PRODUCE_ONE, name="16 partitions"), 1.5),
)
"""With how many times Kafka's requests each second we want to take."""


def _kafka_fsync() -> System:
    kafka = SYSTEMS["kafka"]
    return replace(
        kafka,
        name=KAFKA,
        command=lambda data, port: [*kafka.command(data, port), "log.flush.interval.messages=1"],
    )


def measure(system: System, loadgen: Path, requests: int, cells: dict[tuple[str, str], list[float]]) -> None:
    """Start one system and put both loads on it. Raises `LoadFailed`."""
    with tempfile.TemporaryDirectory(prefix=f"durable-{system.name}-") as folder:
        port = find_free_port(system.ports)
        with running(system.command(Path(folder), port), Path(folder) / "log") as server:
            target = Target(loadgen, f"127.0.0.1:{port}", server)
            target.call("ready", topic="ready", timeout=60)
            for number, (load, _) in enumerate(LOADS):
                _measure_load(target, f"load{number}", replace(load, requests=requests), system.name, cells)


def _measure_load(
    target: Target, topic: str, load: ProduceLoad, system: str, cells: dict[tuple[str, str], list[float]]
) -> None:
    load.create(target, topic)
    load.warm_up(target, topic, WARM_SECONDS)
    measured = load.run(target, topic, megabytes=0)
    for line, value in (
        ("requests/s", measured.requests_per_second),
        ("p50 µs", measured.answer["p50_us"]),
        ("p99 µs", measured.answer["p99_us"]),
        ("broker CPU µs each", measured.cpu_us_per_request),
    ):
        cells.setdefault((f"{load.name}, {line}", system), []).append(value)


def format_table(cells: dict[tuple[str, str], list[float]]) -> str:
    """Return a Markdown table with both systems and their ratio."""
    rows = [f"| | {KAFKA} | {OTTLA} | ratio |", "|---|---|---|---|"]
    goals = {f"{load.name}, requests/s": goal for load, goal in LOADS}
    for line in dict.fromkeys(line for line, _ in cells):
        kafka, ottla = (statistics.median(cells[line, system]) for system in (KAFKA, OTTLA))
        ratio = f"{ottla / kafka:.1f}" + (f" (goal {goals[line]:g})" if line in goals else "")
        rows.append(f"| {line} | {kafka:,.0f} | {ottla:,.0f} | {ratio} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure single durable records beside Kafka with fsync.")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--requests", type=int, default=20_000, help="measured in each load (%(default)s)")
    options = parser.parse_args()
    systems = (_kafka_fsync(), SYSTEMS[OTTLA])
    for system in systems:
        system.prepare()
    loadgen = prepare_loadgen()
    cells: dict[tuple[str, str], list[float]] = {}
    for number in range(options.rounds):
        for system in systems:
            print(f"round {number + 1} of {options.rounds}: {system.name}", file=sys.stderr, flush=True)
            try:
                measure(system, loadgen, options.requests, cells)
            except LoadFailed as failure:
                sys.exit(f"{system.name}: {failure}")
    print(f"{options.rounds} rounds on {describe_machine()}.\n\n{format_table(cells)}")


if __name__ == "__main__":
    main()
