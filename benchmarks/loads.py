"""The loads that are put on a system, and the load generator's answers as numbers.

Every load runs unmeasured first: a JVM is several times slower before it is warm.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.processes import Running

REQUEST_TIMEOUT_S: Final = 90
LEADERS_SECONDS: Final = 2.0
"""A new topic of Kafka's has no leader for a moment, which the load generator would count as errors."""


class LoadFailed(Exception):
    """The load generator stopped, saw errors, or got no answer; the message is its last line."""


@dataclass(frozen=True, slots=True)
class Target:
    """A running system as the load generator sees it."""

    loadgen: Path
    address: str
    server: Running

    def call(self, command: str, **flags: object) -> dict[str, float]:
        """Run one command of the load generator. Raises `LoadFailed`."""
        arguments = [text for name, value in flags.items() for text in (f"-{name}", str(value))]
        try:
            done = subprocess.run(
                [str(self.loadgen), command, "-addr", self.address, *arguments],
                capture_output=True,
                text=True,
                timeout=REQUEST_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LoadFailed(f"{command}: no answer in {REQUEST_TIMEOUT_S} s") from None
        if done.returncode or not done.stdout.strip():
            raise LoadFailed(f"{command}: {(done.stderr or 'no output').strip()[-200:]}")
        answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        if answer.get("errors"):
            raise LoadFailed(f"{command}: {answer['errors']:g} errors, the last with code {answer.get('last_error')}")
        return answer


@dataclass(frozen=True, slots=True)
class Measured:
    """What one load took: the generator's answer and the CPU time of the server meanwhile."""

    answer: dict[str, float]
    cpu_seconds: float

    @property
    def megabytes_per_second(self) -> float:
        return self.answer["MBps"]

    @property
    def requests_per_second(self) -> float:
        return self.answer["rps"]

    @property
    def cpu_seconds_per_gb(self) -> float:
        return self.cpu_seconds / (self.answer["MBps"] * self.answer["seconds"] / 1e3)

    @property
    def cpu_us_per_request(self) -> float:
        return self.cpu_seconds / (self.answer["rps"] * self.answer["seconds"]) * 1e6


def _have_memory_for(megabytes: int) -> None:
    """Have the kernel hold free memory for so much new data.

    A virtual machine that gives free memory back gets it again page by page, which costs several times more than all
    that is measured here, and whoever comes after another that left some does not pay. It keeps it for a second or two.
    """
    with tempfile.TemporaryFile() as scratch:
        piece = bytes(1 << 20)
        for _ in range(2 * megabytes):
            scratch.write(piece)


@dataclass(frozen=True, slots=True)
class ProduceLoad:
    """Batches of `records` records of `size` bytes, `depth` requests in progress on each of `conns` connections.

    Measured over `requests` requests, or over as many MB as the run asks for where that is None.
    """

    name: str
    conns: int
    depth: int
    records: int
    size: int
    partitions: int
    requests: int | None = None

    @property
    def is_small(self) -> bool:
        """True where requests count, not bytes."""
        return self.requests is not None

    def create(self, target: Target, topic: str) -> None:
        target.call("create", topic=topic, partitions=self.partitions)
        time.sleep(LEADERS_SECONDS)

    def warm_up(self, target: Target, topic: str, seconds: float) -> None:
        """Put the load on for at most so long, unmeasured."""
        self._produce(target, topic, seconds, {"requests": 300_000} if self.is_small else {"total": 1024})

    def run(self, target: Target, topic: str, *, megabytes: int) -> Measured:
        """Measure once."""
        if not self.is_small:
            _have_memory_for(megabytes)
        before = target.server.cpu_seconds()
        amount = {"requests": self.requests} if self.requests is not None else {"total": megabytes}
        answer = self._produce(target, topic, REQUEST_TIMEOUT_S / 2, amount)
        return Measured(answer, target.server.cpu_seconds() - before)

    def _produce(self, target: Target, topic: str, max_seconds: float, amount: dict[str, int]) -> dict[str, float]:
        return target.call(
            "produce",
            topic=topic,
            conns=self.conns,
            depth=self.depth,
            records=self.records,
            size=self.size,
            partitions=self.partitions,
            maxseconds=max_seconds,
            **amount,
        )


PRODUCE_16K: Final = ProduceLoad("produce 16 KB, 1 connection", 1, 5, 16, 1024, 1)
PRODUCE_64K: Final = ProduceLoad("produce 64 KB, 4 connections", 4, 5, 64, 1024, 8)
PRODUCE_ONE: Final = ProduceLoad("produce one record of 100 B, 16 connections", 16, 1, 1, 100, 16, requests=40_000)
PRODUCE_ONE_PARTITION: Final = ProduceLoad("the same into one partition", 16, 1, 1, 100, 1, requests=40_000)
PRODUCE_ONE_CONNECTION: Final = ProduceLoad("the same on one connection", 1, 1, 1, 100, 1, requests=4_000)
PRODUCE_LOADS: Final = (PRODUCE_16K, PRODUCE_64K, PRODUCE_ONE, PRODUCE_ONE_PARTITION, PRODUCE_ONE_CONNECTION)


@dataclass(frozen=True, slots=True)
class FetchLoad:
    """Fetches of at most `max_bytes` of what a produce load has left, from the start over and over."""

    name: str
    produced: ProduceLoad
    conns: int
    max_bytes: int

    def warm_up(self, target: Target, topic: str, seconds: float) -> None:
        """Put the load on for at most half as long as a produce load, unmeasured."""
        self._fetch(target, topic, 8192, seconds / 2)

    def run(self, target: Target, topic: str, *, megabytes: int) -> Measured:
        """Measure once: three times the MB for large fetches, a quarter for small ones."""
        is_large = self.max_bytes > 1 << 16
        before = target.server.cpu_seconds()
        answer = self._fetch(target, topic, megabytes * 3 if is_large else megabytes // 4, REQUEST_TIMEOUT_S / 2)
        return Measured(answer, target.server.cpu_seconds() - before)

    def _fetch(self, target: Target, topic: str, total: int, max_seconds: float) -> dict[str, float]:
        return target.call(
            "fetch",
            topic=topic,
            conns=self.conns,
            partitions=self.produced.partitions,
            maxbytes=self.max_bytes,
            total=total,
            maxseconds=max_seconds,
        )


FETCH_LOADS: Final = (
    FetchLoad("fetch 1 MB, 1 connection", PRODUCE_16K, 1, 1 << 20),
    FetchLoad("fetch 1 MB, 4 connections", PRODUCE_64K, 4, 1 << 20),
    FetchLoad("fetch 16 KB, 1 connection", PRODUCE_16K, 1, 16 << 10),
)
