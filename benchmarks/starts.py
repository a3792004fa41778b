"""How long a broker with many partitions takes to start, and what it needs when idle.

    python -m benchmarks.starts [--partitions 1000] [--gigabytes 10] [--rounds 3]

A broker makes a topic of so many partitions, two records and segments in each (one without gigabytes), and stops in
order; then the older segments are made larger by holes, which nobody reads. A start counts from the program's begin
until it says that it is ready. It is started after the clean stop, then after a kill -9, which has it check every log.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.bench import describe_machine
from benchmarks.processes import Running, find_free_port, running
from benchmarks.systems import SYSTEMS
from ottla.broker.metadata.create_topics import NewTopic
from ottla.records.builder import BatchBuilder
from ottla.testing.cluster import running_broker

TOPIC: Final = "many"
TINY_SEGMENTS: Final = (("internal.segment.bytes", "100"), ("retention.ms", "-1"))
READY: Final = "ottla ready on"
TIMEOUT_S: Final = 120.0
SETTLE_SECONDS: Final = 3.0
"""A broker goes on importing for a while after it is ready."""


async def write_partitions(directory: Path, partitions: int, gigabytes: float) -> None:
    """Make the partitions, and blow their first segments up."""
    async with running_broker({"log.dirs": str(directory)}) as broker:
        broker.broker.metadata.create_topics([NewTopic(TOPIC, partitions, 1, configs=TINY_SEGMENTS)])
        for number in range(partitions):
            partition = broker.broker.partition(TOPIC, number)
            for _ in range(2 if gigabytes else 1):
                builder = BatchBuilder()
                builder.append(1_750_000_000_000, None, b"value")
                broker.broker.append(partition, memoryview(bytearray(builder.build())))
    size_bytes = int(gigabytes * 1e9) // partitions
    for number in range(partitions if gigabytes else 0):
        os.truncate(directory / f"{TOPIC}-{number}" / "00000000000000000000.log", size_bytes)


def wait_until_ready(server: Running) -> None:
    """Raises `TimeoutError`."""
    deadline = time.monotonic() + TIMEOUT_S
    while READY not in server.log.read_text():
        if time.monotonic() > deadline:
            raise TimeoutError(server.log_tail())
        time.sleep(0.005)


def start(folder: Path, *, is_killed: bool) -> tuple[float, float, float]:
    """Start the broker on `data` in a folder; returns seconds, MB when idle, and CPU percent when idle."""
    begin = time.monotonic()
    with running(SYSTEMS["ottla"].command(folder, find_free_port()), folder / "log") as server:
        wait_until_ready(server)
        seconds = time.monotonic() - begin
        time.sleep(SETTLE_SECONDS)
        memory, cpu = server.resident_mb(), server.cpu_seconds()
        time.sleep(SETTLE_SECONDS)
        idle = (server.cpu_seconds() - cpu) / SETTLE_SECONDS * 100
        if is_killed:
            os.killpg(server.process.pid, signal.SIGKILL)
            server.process.wait()
    return seconds, memory, idle


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure starts with many partitions.")
    parser.add_argument("--partitions", type=int, default=1000, help="(%(default)s)")
    parser.add_argument("--gigabytes", type=float, default=10.0, help="in holes (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    options = parser.parse_args()
    rows: dict[str, list[tuple[float, float, float]]] = {"a clean stop": [], "kill -9": []}
    with tempfile.TemporaryDirectory(prefix="starts-") as folder:
        asyncio.run(write_partitions(Path(folder) / "data", options.partitions, options.gigabytes))
        for _ in range(options.rounds):
            rows["a clean stop"].append(start(Path(folder), is_killed=True))
            rows["kill -9"].append(start(Path(folder), is_killed=False))
    print(f"{options.partitions:,} partitions, {options.gigabytes:g} GB, on {describe_machine()}.\n")
    print("| after | start, ms | idle memory, MB | idle CPU, % |\n|---|---|---|---|")
    for name, figures in rows.items():
        seconds, memory, idle = (statistics.median(column) for column in zip(*figures, strict=True))
        print(f"| {name} | {seconds * 1e3:,.0f} | {memory:.0f} | {idle:.1f} |")


if __name__ == "__main__":
    main()
