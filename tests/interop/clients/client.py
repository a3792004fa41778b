"""The verbs that a client must have. Everything happens on partition 0, by assignment, without a group."""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal[0, 1, -1]

TIMEOUT_S = 60.0
"""No step of a test takes longer; a JVM alone may need a third of it on a busy machine."""

BATCH_BYTES = 4 << 20
"""Room for the largest batch: what is too large is for the broker to say, not for the client."""


class Row(NamedTuple):
    """A record as the tests see it. Text only, without tabs and line ends, for the sake of command line clients."""

    key: str
    value: str


class Client(ABC):
    """One client library or tool, for the broker at `address`."""

    name: ClassVar[str]
    can_acks: ClassVar[Sequence[Acks]] = (0, 1, -1)

    def __init__(self, address: str) -> None:
        self.address = address

    @abstractmethod
    def create_topic(self, topic: str, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic of one partition."""

    @abstractmethod
    def produce(
        self,
        topic: str,
        rows: Sequence[Row],
        *,
        codec: Codec = "none",
        acks: Acks = -1,
        is_idempotent: bool = False,
    ) -> None:
        """Produce to partition 0 and wait until all is sent (acks=0) or answered. Raises when a record is refused."""

    @abstractmethod
    def consume(self, topic: str, count: int, *, offset: int = 0) -> list[Row]:
        """Return `count` rows of partition 0 from `offset` on."""

    @abstractmethod
    def consume_new(self, topic: str, produce: Callable[[], None]) -> Row:
        """Stand at the end of partition 0, call `produce` (again and again where a tool doesn't tell when it stands
        there), and return the first row that came."""


def run(command: Sequence[str], *, text: str = "", environment: Mapping[str, str] | None = None) -> str:
    """Run a command line client on some input; returns its output, and raises with its errors when it fails."""
    done = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**os.environ, **(environment or {})},
        check=False,
    )
    assert done.returncode == 0, f"{Path(command[0]).name} ended with {done.returncode}: {done.stderr[-1000:]}"
    return done.stdout


def run_while(command: Sequence[str], again: Callable[[], None]) -> str:
    """Run a command and call `again` four times a second until it ends; returns its output."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        for _ in range(int(TIMEOUT_S * 4)):
            again()
            try:
                return process.communicate(timeout=0.25)[0]
            except subprocess.TimeoutExpired:
                continue
        raise AssertionError(f"{Path(command[0]).name} did not end in {TIMEOUT_S} s")
    finally:
        process.kill()
        process.wait()


def parse_rows(printed: str) -> list[Row]:
    """Read lines of key, tab, value."""
    return [Row(*line.split("\t", 1)) for line in printed.splitlines() if "\t" in line]


def format_rows(rows: Sequence[Row]) -> str:
    return "".join(f"{row.key}\t{row.value}\n" for row in rows)
