"""Measure all systems side by side in one run and print one table.

    python -m benchmarks.bench [--systems floor,kafka,...] [--megabytes 256] [--rounds 3] [--write docs/performance.md]

Rounds are interleaved, so that what else the machine does meets all systems alike; a cell is the median (lowest to
highest). Times and throughputs of a shared machine mean something only against each other. What could not be had stands
in a line below the table.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.loads import FETCH_LOADS, PRODUCE_LOADS, FetchLoad, LoadFailed, ProduceLoad, Target
from benchmarks.processes import find_free_port, running
from benchmarks.systems import SYSTEMS, System, Unavailable, prepare_loadgen

WARM_SECONDS: Final = 6.0
READY_TIMEOUT_S: Final = 40
SETTLE_SECONDS: Final = 1.5
IDLE_SECONDS: Final = 2.0
MARK: Final = "table"

Cells = dict[str, list[float]]
"""Measured values of one system by line, one for each round."""


class Sheet:
    """What was measured so far, and what went wrong."""

    def __init__(self) -> None:
        self.cells: dict[str, Cells] = {}
        self.notes: list[str] = []

    def put(self, system: str, line: str, value: float, digits: int = 0) -> None:
        self.cells.setdefault(system, {}).setdefault(line, []).append(round(value, digits))

    def note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)


def measure(system: System, loadgen: Path, megabytes: int, sheet: Sheet) -> None:
    """Start one system, put every load on it, stop it."""
    with tempfile.TemporaryDirectory(prefix=f"bench-{system.name}-") as folder:
        port = find_free_port(system.ports)
        command = system.command(Path(folder), port)
        os.sync()  # what the system before has left to write would be charged to this one's start
        begin_ns = time.time_ns()
        with running(command, Path(folder) / "log") as server:
            target = Target(loadgen, f"127.0.0.1:{port}", server)
            try:
                ready = target.call("ready", topic="ready", timeout=READY_TIMEOUT_S)
            except LoadFailed as failure:
                sheet.note(f"{system.name}: {failure}; it printed: {server.log_tail()}")
                return
            sheet.put(system.name, "start to first produce and fetch, ms", (ready["at_ns"] - begin_ns) / 1e6)
            _measure_idle(system.name, target, sheet)
            for number, load in enumerate(PRODUCE_LOADS):
                _measure_produce(system.name, target, f"load{number}", load, megabytes, sheet)
            for fetch in FETCH_LOADS:
                topic = f"load{PRODUCE_LOADS.index(fetch.produced)}"
                _measure_fetch(system.name, target, topic, fetch, megabytes, sheet)
            _measure_end_to_end(system.name, target, sheet)
            sheet.put(system.name, "memory after all loads, MB", server.resident_mb())


def _measure_idle(name: str, target: Target, sheet: Sheet) -> None:
    time.sleep(SETTLE_SECONDS)  # a JVM works for a while after it is ready
    sheet.put(name, "idle memory, MB", target.server.resident_mb())
    before = target.server.cpu_seconds()
    time.sleep(IDLE_SECONDS)
    sheet.put(name, "idle CPU, %", (target.server.cpu_seconds() - before) / IDLE_SECONDS * 100, 1)


def _measure_produce(name: str, target: Target, topic: str, load: ProduceLoad, megabytes: int, sheet: Sheet) -> None:
    try:
        load.create(target, topic)
        measured = load.run(target, topic, megabytes=megabytes, warm_seconds=WARM_SECONDS)
    except LoadFailed as failure:
        sheet.note(f"{name}, {load.name}: {failure}")
        return
    if load.is_small:
        sheet.put(name, f"{load.name}, requests/s", measured.requests_per_second)
        sheet.put(name, f"{load.name}, p50 µs", measured.answer["p50_us"])
        sheet.put(name, f"{load.name}, p99 µs", measured.answer["p99_us"])
        sheet.put(name, f"{load.name}, broker CPU µs each", measured.cpu_us_per_request, 1)
    else:
        sheet.put(name, f"{load.name}, MB/s", measured.megabytes_per_second)
        sheet.put(name, f"{load.name}, broker CPU s/GB", measured.cpu_seconds_per_gb, 2)


def _measure_fetch(name: str, target: Target, topic: str, load: FetchLoad, megabytes: int, sheet: Sheet) -> None:
    try:
        measured = load.run(target, topic, megabytes=megabytes, warm_seconds=WARM_SECONDS)
    except LoadFailed as failure:
        sheet.note(f"{name}, {load.name}: {failure}")
        return
    sheet.put(name, f"{load.name}, MB/s", measured.megabytes_per_second)
    sheet.put(name, f"{load.name}, broker CPU s/GB", measured.cpu_seconds_per_gb, 2)


def _measure_end_to_end(name: str, target: Target, sheet: Sheet) -> None:
    try:
        target.call("create", topic="e2e", partitions=1)
        answer = target.call("e2e", topic="e2e", size=100, rate=400, seconds=6)
    except LoadFailed as failure:
        sheet.note(f"{name}, end to end: {failure}")
        return
    sheet.put(name, "end to end at 400/s, p50 µs", answer["p50_us"])
    sheet.put(name, "end to end at 400/s, p99 µs", answer["p99_us"])


def format_table(cells: Mapping[str, Cells]) -> str:
    """Return a Markdown table with a column for each system."""
    systems = list(cells)
    lines = list(dict.fromkeys(line for measured in cells.values() for line in measured))
    rows = [_row(["", *systems]), "|---" * (len(systems) + 1) + "|"]
    rows += [_row([line, *(_format_cell(cells[system].get(line, [])) for system in systems)]) for line in lines]
    return "\n".join(rows)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _format_cell(values: Sequence[float]) -> str:
    if not values:
        return "–"
    median = f"{statistics.median(values):,g}"
    return median if len(values) == 1 else f"{median} ({min(values):,g} to {max(values):,g})"


def describe_machine() -> str:
    """Return a sentence about where this was measured."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    return f"{os.cpu_count()} cores ({model}), CPython {platform.python_version()}, {platform.system()}"


def write_into(page: Path, text: str, mark: str = MARK) -> None:
    """Put the text between the two marks of a page that have this word."""
    begin, end = f"<!-- {mark} begins -->", f"<!-- {mark} ends -->"
    before, _, rest = page.read_text().partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def available(names: Sequence[str], sheet: Sheet) -> list[System]:
    """Prepare the systems; returns those that could be had and notes why the others could not."""
    found = []
    for name in names:
        try:
            SYSTEMS[name].prepare()
        except Unavailable as reason:
            sheet.note(f"not measured: {reason}")
        else:
            found.append(SYSTEMS[name])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure all systems side by side.")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="names, separated by commas (%(default)s)")
    parser.add_argument("--megabytes", type=int, default=256, help="size of one large load (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--write", type=Path, help="a page to put the table into, between its marks")
    options = parser.parse_args()
    sheet = Sheet()
    try:
        loadgen = prepare_loadgen()
    except Unavailable as reason:
        sys.exit(f"nothing was measured: {reason}")
    systems = available(options.systems.split(","), sheet)
    for number in range(options.rounds):
        for system in systems:
            print(f"round {number + 1} of {options.rounds}: {system.name}", file=sys.stderr, flush=True)
            measure(system, loadgen, options.megabytes, sheet)
    header = f"{options.rounds} rounds of {options.megabytes} MB on {describe_machine()}."
    text = "\n".join(
        [header, "", format_table(sheet.cells), *(["", *(f"* {n}" for n in sheet.notes)] if sheet.notes else [])]
    )
    print(text)
    if options.write is not None:
        write_into(options.write, text)


if __name__ == "__main__":
    main()
