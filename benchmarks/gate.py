"""What CI holds the broker to: CPU time, which noise hardly moves, against the C floor of the same run.

    python -m benchmarks.gate

CPU per GB on the two large produce loads and per request on single records may be so many times the floor's. Both run
one after the other with the same bytes. A cell that fails is measured once more, both systems anew, before it counts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.loads import PRODUCE_16K, PRODUCE_64K, PRODUCE_ONE, Measured, ProduceLoad, Target
from benchmarks.processes import find_free_port, running
from benchmarks.systems import SYSTEMS, System, Unavailable, prepare_loadgen

WARM_SECONDS: Final = 2.0
MEGABYTES: Final = 512
TRIES: Final = 2
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


def measure(system: System, loadgen: Path, gate: Gate) -> float:
    """Start the system, warm it up, and return the gate's figure. Raises `LoadFailed`."""
    with tempfile.TemporaryDirectory(prefix=f"gate-{system.name}-") as folder:
        port = find_free_port(system.ports)
        with running(system.command(Path(folder), port), Path(folder) / "log") as server:
            target = Target(loadgen, f"127.0.0.1:{port}", server)
            target.call("ready", topic="ready", timeout=20)
            gate.load.create(target, "gate")
            return gate.figure(gate.load.run(target, "gate", megabytes=MEGABYTES, warm_seconds=WARM_SECONDS))


def passes(gate: Gate, loadgen: Path) -> bool:
    """Measure both systems, print a line, and return whether the limit holds; the second try decides."""
    for attempt in range(1, TRIES + 1):
        floor = measure(SYSTEMS[FLOOR], loadgen, gate)
        broker = measure(SYSTEMS[BROKER], loadgen, gate)
        times = broker / floor
        holds = times <= gate.limit
        verdict = "ok" if holds else f"above the limit, try {attempt} of {TRIES}"
        print(
            f"gate: {gate.load.name}: {broker:.2f} {gate.unit}, floor {floor:.2f},"
            f" {times:.2f} times (limit {gate.limit:g}): {verdict}",
            flush=True,
        )
        if holds:
            return True
    return False


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
