"""Measure all systems side by side in one run and print one table.

    python -m benchmarks.bench [--systems floor,kafka,...] [--megabytes 256] [--turns 5] [--write docs/performance.md]

All systems run at once, and each load is put on one after the other, so that what else the machine does meets all of
them alike; a cell is the median of all turns (lowest to highest). Times and throughputs of a shared machine mean
something only against each other. What could not be had stands in a line below the table.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

from benchmarks.loads import (
    FETCH_LOADS,
    PRODUCE_LOADS,
    PRODUCE_ONE_PARTITION,
    FetchLoad,
    LoadFailed,
    ProduceLoad,
    Target,
)
from benchmarks.processes import find_free_port, running
from benchmarks.systems import SYSTEMS, System, Unavailable, prepare_loadgen

WARM_SECONDS: Final = 6.0
READY_TIMEOUT_S: Final = 40
SETTLE_SECONDS: Final = 1.5
IDLE_SECONDS: Final = 2.0
IDLE_LOOK_SECONDS: Final = 0.3
IDLE_LOOKS: Final = 20
IDLE_SHARE: Final = 0.1
"""Of one core, by all systems together: below it they are idle."""
END_TO_END_SECONDS: Final = 3
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


class Bench:
    """All systems side by side: each load is put on one after the other, several times over.

    So a minute in which the machine does something else, or is slower, meets all of them alike.
    """

    def __init__(self, systems: Sequence[System], loadgen: Path, turns: int, megabytes: int, sheet: Sheet) -> None:
        self._systems = systems
        self._loadgen = loadgen
        self._turns = turns
        self._megabytes = megabytes
        self._sheet = sheet
        self._targets: dict[str, Target] = {}
        self._numbers = count()

    def run(self) -> None:
        """Measure everything."""
        _say("starts")
        for _ in range(self._turns):
            for system in self._systems:
                with ExitStack() as stack:
                    self._start(stack, system, is_measured=True)
        with ExitStack() as stack:
            for system in self._systems:
                target = self._start(stack, system, is_measured=False)
                if target is not None:
                    self._targets[system.name] = target
                    self._measure_idle(system.name, target)
            for number, load in enumerate(PRODUCE_LOADS):
                self._put_on(load.name, partial(_prepare, load, f"load{number}"), partial(self._produce, number, load))
            for fetch in FETCH_LOADS:
                topic = f"load{PRODUCE_LOADS.index(fetch.produced)}"
                warm_up = partial(fetch.warm_up, topic=topic, seconds=WARM_SECONDS)
                self._put_on(fetch.name, warm_up, partial(self._fetch, topic, fetch))
            self._put_on("end to end", lambda target: None, self._go_end_to_end)
            for name, target in self._targets.items():
                self._sheet.put(name, "memory after all loads, MB", target.server.resident_mb())

    def _start(self, stack: ExitStack, system: System, *, is_measured: bool) -> Target | None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"bench-{system.name}-")))
        port = find_free_port(system.ports)
        command = system.command(folder, port)
        os.sync()  # what others have left to write would be charged to this one's start
        begin_ns = time.time_ns()
        server = stack.enter_context(running(command, folder / "log"))
        target = Target(self._loadgen, f"127.0.0.1:{port}", server)
        try:
            ready = target.call("ready", topic="ready", timeout=READY_TIMEOUT_S)
        except LoadFailed as failure:
            self._sheet.note(f"{system.name}: {failure}; it printed: {server.log_tail()}")
            return None
        if is_measured:
            self._sheet.put(system.name, "start to first produce and fetch, ms", (ready["at_ns"] - begin_ns) / 1e6)
        return target

    def _put_on(self, name: str, warm_up: Callable[[Target], None], measure: Callable[[str, Target], None]) -> None:
        """Put one load on all systems, by turns, once they are warm."""
        _say(name)
        for system, target in self._targets.items():
            self._try(system, name, partial(warm_up, target))
        for _ in range(self._turns):
            for system, target in self._targets.items():
                os.sync()  # what others have left to write would slow this one down
                self._wait_until_idle()
                self._try(system, name, partial(measure, system, target))

    def _wait_until_idle(self) -> None:
        """Wait for what systems do once a load is over, as a JVM compiles on for seconds; the next one would pay."""
        for _ in range(IDLE_LOOKS):
            before = self._cpu_seconds()
            time.sleep(IDLE_LOOK_SECONDS)
            if self._cpu_seconds() - before < IDLE_LOOK_SECONDS * IDLE_SHARE:
                return

    def _cpu_seconds(self) -> float:
        return sum(target.server.cpu_seconds() for target in self._targets.values())

    def _try(self, system: str, load: str, work: Callable[[], None]) -> None:
        try:
            work()
        except LoadFailed as failure:
            self._sheet.note(f"{system}, {load}: {failure}")

    def _measure_idle(self, name: str, target: Target) -> None:
        time.sleep(SETTLE_SECONDS)  # a JVM works for a while after it is ready
        self._sheet.put(name, "idle memory, MB", target.server.resident_mb())
        before = target.server.cpu_seconds()
        time.sleep(IDLE_SECONDS)
        self._sheet.put(name, "idle CPU, %", (target.server.cpu_seconds() - before) / IDLE_SECONDS * 100, 1)

    def _produce(self, number: int, load: ProduceLoad, name: str, target: Target) -> None:
        measured = load.run(target, f"load{number}", megabytes=self._megabytes)
        put = self._sheet.put
        if load.is_small:
            put(name, f"{load.name}, requests/s", measured.requests_per_second)
            put(name, f"{load.name}, p50 µs", measured.answer["p50_us"])
            put(name, f"{load.name}, p99 µs", measured.answer["p99_us"])
            put(name, f"{load.name}, broker CPU µs each", measured.cpu_us_per_request, 1)
        else:
            put(name, f"{load.name}, MB/s", measured.megabytes_per_second)
            put(name, f"{load.name}, broker CPU s/GB", measured.cpu_seconds_per_gb, 2)

    def _fetch(self, topic: str, load: FetchLoad, name: str, target: Target) -> None:
        measured = load.run(target, topic, megabytes=self._megabytes)
        self._sheet.put(name, f"{load.name}, MB/s", measured.megabytes_per_second)
        self._sheet.put(name, f"{load.name}, broker CPU s/GB", measured.cpu_seconds_per_gb, 2)

    def _go_end_to_end(self, name: str, target: Target) -> None:
        topic = f"e2e{next(self._numbers)}"  # a new one, as its reader begins at its start
        PRODUCE_ONE_PARTITION.create(target, topic)
        answer = target.call("e2e", topic=topic, size=100, rate=400, seconds=END_TO_END_SECONDS)
        self._sheet.put(name, "end to end at 400/s, p50 µs", answer["p50_us"])
        self._sheet.put(name, "end to end at 400/s, p99 µs", answer["p99_us"])


def _prepare(load: ProduceLoad, topic: str, target: Target) -> None:
    load.create(target, topic)
    load.warm_up(target, topic, WARM_SECONDS)


def _say(what: str) -> None:
    print(f"measuring: {what}", file=sys.stderr, flush=True)


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
    parser.add_argument("--turns", type=int, default=5, help="how often each load is measured (%(default)s)")
    parser.add_argument("--write", type=Path, help="a page to put the table into, between its marks")
    options = parser.parse_args()
    sheet = Sheet()
    try:
        loadgen = prepare_loadgen()
    except Unavailable as reason:
        sys.exit(f"nothing was measured: {reason}")
    systems = available(options.systems.split(","), sheet)
    Bench(systems, loadgen, options.turns, options.megabytes, sheet).run()
    header = f"{options.turns} turns of {options.megabytes} MB on {describe_machine()}."
    text = "\n".join(
        [header, "", format_table(sheet.cells), *(["", *(f"* {n}" for n in sheet.notes)] if sheet.notes else [])]
    )
    print(text)
    if options.write is not None:
        write_into(options.write, text)


if __name__ == "__main__":
    main()
