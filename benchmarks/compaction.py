"""Compact the same log by Kafka's cleaner and by ours, one after the other, and print a table.

    python -m benchmarks.compaction [--megabytes 1024] [--size 1000] [--copies 10] [--codec none] [--rounds 1]

A broker of ours writes the log once: random keys, each about `--copies` times, in batches of 16 KB. Both systems then
start on a copy of that directory, in which the topic is not compacted yet. Measured is from the moment at which its
`cleanup.policy` becomes `compact` until `cleaner-offset-checkpoint` says that all but the active segment is clean. Both
have one thread for it and Kafka's default buffers. What stays must be the same size, else that is said.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.bench import describe_machine, format_table
from benchmarks.loads import Target
from benchmarks.processes import Running, find_free_port, running
from benchmarks.systems import ROOT, SYSTEMS, prepare_loadgen
from ottla.broker.metadata.create_topics import NewTopic
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.testing.cluster import running_broker

TOPIC: Final = "compacted"
BATCH_BYTES: Final = 16 * 1024
SEGMENT_BYTES: Final = 100 << 20
SETTINGS: Final = ("log.cleaner.backoff.ms=100", "log.cleaner.min.cleanable.ratio=0.01")
TIMEOUT_S: Final = 600.0
SYSTEM_NAMES: Final = ("kafka", "ottla")


async def write_log(directory: Path, megabytes: int, size: int, copies: int, codec: Codec) -> None:
    """Write the log that is to be compacted."""
    settings = {"log.dirs": str(directory), "log.cleaner.enable": "false", "log.segment.bytes": str(SEGMENT_BYTES)}
    dice = random.Random(1)
    values = [dice.randbytes(size) for _ in range(64)]
    count = (megabytes << 20) // size
    keys = count // copies
    per_batch = max(BATCH_BYTES // size, 1)
    async with running_broker(settings) as broker:
        broker.broker.metadata.create_topics([NewTopic(TOPIC, 1, 1)])
        partition = broker.broker.partition(TOPIC, 0)
        for first in range(0, count, per_batch):
            builder = BatchBuilder(codec=codec)
            for number in range(first, first + per_batch):
                builder.append(1_750_000_000_000 + first, b"key-%012d" % dice.randrange(keys), values[number % 64])
            broker.broker.append(partition, memoryview(bytearray(builder.build())))


def command(system: str, folder: Path, port: int) -> list[str]:
    """Start a system on the directory `data` in a folder."""
    if system == "kafka":
        return [*SYSTEMS[system].command(folder / "data", port), *SETTINGS]
    return [*SYSTEMS[system].command(folder, port), *(part for setting in SETTINGS for part in ("-o", setting))]


def compact(system: str, log: Path, loadgen: Path) -> dict[str, float]:
    """Start a system on a copy of the log, have it compacted, and return what that took."""
    with tempfile.TemporaryDirectory(prefix=f"compact-{system}-") as folder:
        data = Path(folder) / "data"
        shutil.copytree(log, data)
        os.sync()  # what the copy left to write would be charged to whoever writes next
        port = find_free_port(2)
        with running(command(system, Path(folder), port), Path(folder) / "log") as server:
            Target(loadgen, f"127.0.0.1:{port}", server).call("ready", topic="ready", timeout=60)
            time.sleep(3)  # a JVM works for a while after it is ready
            return _measure(server, data, f"127.0.0.1:{port}")


def _measure(server: Running, data: Path, address: str) -> dict[str, float]:
    end = max(int(path.stem) for path in (data / f"{TOPIC}-0").glob("*.log"))
    before, cpu, begin = _size(data), server.cpu_seconds(), time.monotonic()
    subprocess.run(
        [str(ROOT / ".venv/bin/ottla"), "configs", "set", "topic", TOPIC, "cleanup.policy=compact", "-b", address],
        check=True,
        capture_output=True,
    )
    while _clean_offset(data) < end:
        if time.monotonic() - begin > TIMEOUT_S:
            raise TimeoutError(f"not clean after {TIMEOUT_S:g} s: {server.log_tail()}")
        time.sleep(0.02)
    seconds, used = time.monotonic() - begin, server.cpu_seconds() - cpu
    return {
        "seconds": round(seconds, 1),
        "MB/s": round(before / 1e6 / seconds),
        "CPU seconds": round(used, 1),
        "MB before": round(before / 1e6),
        "MB after": round(_size(data) / 1e6, 1),
        "memory, MB": round(server.resident_mb()),
    }


def _size(data: Path) -> int:
    return sum(path.stat().st_size for path in (data / f"{TOPIC}-0").glob("*.log"))


def _clean_offset(data: Path) -> int:
    try:
        lines = (data / "cleaner-offset-checkpoint").read_text().splitlines()
    except FileNotFoundError:
        return -1
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{TOPIC} 0 ")), -1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compact the same log by Kafka's cleaner and by ours.")
    parser.add_argument("--megabytes", type=int, default=1024, help="of the log (%(default)s)")
    parser.add_argument("--size", type=int, default=1000, help="bytes of a value (%(default)s)")
    parser.add_argument("--copies", type=int, default=10, help="records of each key, about (%(default)s)")
    parser.add_argument("--codec", default="none", choices=[codec.name.lower() for codec in Codec])
    parser.add_argument("--rounds", type=int, default=1, help="(%(default)s)")
    parser.add_argument("--systems", default=",".join(SYSTEM_NAMES), help="(%(default)s)")
    options = parser.parse_args()
    names: list[str] = options.systems.split(",")
    for name in names:
        SYSTEMS[name].prepare()
    loadgen = prepare_loadgen()
    cells: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    with tempfile.TemporaryDirectory(prefix="compact-log-") as folder:
        log = Path(folder) / "data"
        asyncio.run(write_log(log, options.megabytes, options.size, options.copies, Codec[options.codec.upper()]))
        for _ in range(options.rounds):
            for name in names:
                for line, value in compact(name, log, loadgen).items():
                    cells[name].setdefault(line, []).append(value)
    print(
        f"{options.megabytes} MB in records of {options.size} bytes, {options.copies} of each key, "
        f"{options.codec}, on {describe_machine()}.\n\n{format_table(cells)}"
    )
    after = {name: statistics.median(cells[name]["MB after"]) for name in names}
    if len(set(after.values())) > 1:
        print(f"\nWhat stays differs: {after}")


if __name__ == "__main__":
    main()
