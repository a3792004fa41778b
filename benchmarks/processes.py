"""A server as a process: start it, read its CPU and memory from /proc, stop it.

What is measured is the process and its children, so that a launcher script does not hide the server. Linux only.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
STOP_TIMEOUT_S: Final = 20.0


PORTS: Final = range(20_000, 32_000)
"""Below those that systems give to outgoing connections: one of these could have the port before the server does."""


def find_free_port(count: int = 1) -> int:
    """Return the first of `count` neighbouring loopback ports that nobody has now."""
    while True:
        first = random.choice(PORTS)
        if all(_is_free(port) for port in range(first, first + count)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@dataclass(frozen=True, slots=True)
class Running:
    """A started server."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def family(self) -> list[int]:
        """The process ids of the server and everything that it started."""
        pids = [self.process.pid]
        for pid in pids:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                pids += [int(child) for child in _read(children).split()]
        return pids

    def cpu_seconds(self) -> float:
        """CPU time used so far, user and system."""
        ticks = 0
        for pid in self.family:
            fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
            ticks += sum(int(field) for field in fields[11:13])
        return ticks / TICKS_PER_SECOND

    def resident_mb(self) -> float:
        """Memory in use, in MB."""
        lines = [line for pid in self.family for line in _read(Path(f"/proc/{pid}/status")).splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

    def log_tail(self, characters: int = 300) -> str:
        """The last of what the server printed."""
        return self.log.read_text(errors="replace")[-characters:].strip()


def _read(path: Path) -> str:
    """Return the text of a /proc file, empty when its process has gone."""
    try:
        return path.read_text()
    except OSError:
        return ""


@contextmanager
def running(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Start a server in a process group of its own and stop it at the end: SIGTERM first, SIGKILL when it stays."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    try:
        yield Running(process, log)
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            pass
        return
