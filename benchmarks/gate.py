"""What CI holds the broker to: CPU time, which noise hardly moves, against the C floor of the same run.

    python -m benchmarks.gate

CPU per GB on the two large produce loads and per request on single records may be so many times the floor's. Both run
beside each other and are measured by turns with the same bytes; the best of each counts, since whatever else the
machine does can only add to it. A cell that fails is measured a few times more before it counts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.loads import PRODUCE_16K, PRODUCE_64K, PRODUCE_ONE, Measured, ProduceLoad, Target
from benchmarks.processes import find_free_port, running
from benchmarks.systems import SYSTEMS, System, Unavailable, prepare_loadgen

WARM_SECONDS: Final = 2.0
MEGABYTES: Final = 256
ROUNDS: Final = 3
MOST_ROUNDS: Final = 24
TOPIC: Final = "gate"
FLOOR: Final = "floor"
BROKER: Final = "ottla-os"


@dataclass(frozen=True, slots=True)
class Gate:
    """One load, the figure that is compared, and how many times the floor's it may be."""

    load: ProduceLoad
    figure: Callable[[Measured], float]
    unit: str
    limit: float


GATES: Final = (
    Gate(PRODUCE_16K, lambda measured: measured.cpu_seconds_per_gb, "CPU s/GB", 2.0),
    Gate(PRODUCE_64K, lambda measured: measured.cpu_seconds_per_gb, "CPU s/GB", 2.0),
    Gate(PRODUCE_ONE, lambda measured: measured.cpu_us_per_request, "CPU µs/request", 3.5),
)


@dataclass(frozen=True, slots=True)
class Contestant:
    """A system that runs and is warm."""

    target: Target
    gate: Gate

    def measure(self) -> float:
        """Measure once. Raises `LoadFailed`."""
        return self.gate.figure(self.gate.load.run(self.target, TOPIC, megabytes=MEGABYTES))


@contextmanager
def contestant(system: System, loadgen: Path, gate: Gate) -> Iterator[Contestant]:
    """Start a system and warm it up. Raises `LoadFailed`."""
    with tempfile.TemporaryDirectory(prefix=f"gate-{system.name}-") as folder:
        port = find_free_port(system.ports)
        with running(system.command(Path(folder), port), Path(folder) / "log") as server:
            target = Target(loadgen, f"127.0.0.1:{port}", server)
            target.call("ready", topic="ready", timeout=20)
            gate.load.create(target, TOPIC)
            gate.load.warm_up(target, TOPIC, WARM_SECONDS)
            yield Contestant(target, gate)


def passes(gate: Gate, loadgen: Path) -> bool:
    """Measure both systems by turns, print a line, and return whether the limit holds for the best of each."""
    floors: list[float] = []
    brokers: list[float] = []
    with contestant(SYSTEMS[FLOOR], loadgen, gate) as floor, contestant(SYSTEMS[BROKER], loadgen, gate) as broker:
        while len(floors) < ROUNDS or (min(brokers) > gate.limit * min(floors) and len(floors) < MOST_ROUNDS):
            floors.append(floor.measure())
            brokers.append(broker.measure())
    times = min(brokers) / min(floors)
    holds = times <= gate.limit
    print(
        f"gate: {gate.load.name}: {min(brokers):.2f} {gate.unit}, floor {min(floors):.2f}, {times:.2f} times"
        f" (limit {gate.limit:g}, best of {len(floors)}): {'ok' if holds else 'ABOVE THE LIMIT'}",
        flush=True,
    )
    return holds


def main() -> None:
    begin = time.monotonic()
    try:
        loadgen = prepare_loadgen()
        for name in (FLOOR, BROKER):
            SYSTEMS[name].prepare()
    except Unavailable as reason:
        sys.exit(f"gate: {reason}")
    held = [passes(gate, loadgen) for gate in GATES]
    print(f"gate: {sum(held)} of {len(held)} limits hold, measured in {time.monotonic() - begin:.0f} s")
    if not all(held):
        sys.exit(1)


if __name__ == "__main__":
    main()
