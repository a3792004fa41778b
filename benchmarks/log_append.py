"""What one append to a partition's log costs, beside the bare write of the same bytes.

Question: how much does storage add to `os.write`? Policy `os`, page cache only, one partition. Each size is measured in
rounds that alternate with the bare write; CPU time of the best round of each.

    python -m benchmarks.log_append [DIRECTORY]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ottla.clock import SystemClock
from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.model import TopicId, TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.storage.files import LocalFileSystem
from ottla.storage.inspection import InlineOffload
from ottla.storage.manager import LogManager

ROUNDS = 9
PARTITION = TopicPartition("bench", 0)
SIZES = {200: 20_000, 64 * 1024: 1_000}
"""Bytes of a batch to appends per round."""


def make_batch(size_bytes: int) -> bytearray:
    """Return a batch of one record that is about `size_bytes` long."""
    empty = BatchBuilder()
    empty.append(1_750_000_000_000, None, b"")
    builder = BatchBuilder()
    builder.append(1_750_000_000_000, None, os.urandom(size_bytes - empty.size_in_bytes))
    return bytearray(builder.build())


def measure(action: Callable[[], object], count: int) -> float:
    """Return microseconds of CPU time per call."""
    started = time.process_time()
    for _ in range(count):
        action()
    return (time.process_time() - started) / count * 1e6


def run(directory: Path) -> None:
    config = BrokerConfig.from_properties({"log.dirs": str(directory / "logs"), "ottla.flush.policy": "os"})
    manager = LogManager(config, SystemClock(), InlineOffload(), LocalFileSystem())
    manager.open()
    manager.load()
    manager.create(PARTITION, TopicId(bytes(15) + b"\x01"), LogConfig())
    bare = os.open(directory / "bare", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for size_bytes, count in SIZES.items():
        batch = make_batch(size_bytes)
        writes, appends = [], []
        for _ in range(ROUNDS):
            writes.append(measure(partial(os.write, bare, batch), count))
            appends.append(measure(partial(manager.begin_append, PARTITION, batch, leader_epoch=0), count))
        write_us, append_us = min(writes), min(appends)
        print(
            f"log_append {size_bytes:>6} bytes: {append_us:6.2f} us per append, {write_us:6.2f} us per os.write, "
            f"{append_us - write_us:5.2f} us on top"
        )
    os.close(bare)
    manager.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        run(Path(name))
