"""The systems that are measured, how each is started, and what each needs to be there.

A system that cannot be had is named with its reason; the others are measured all the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
CACHE: Final = ROOT / ".cache"
TOOLS: Final = ROOT / "tools"
KAFKA_VERSION: Final = "4.4.0"
PEER: Final = "noida-db"

KAFKA_JVM: Final = (
    "-Xms1g -Xmx1g -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35"
    " -XX:+ExplicitGCInvokesConcurrent -Djava.awt.headless=true"
)
"""Kafka's own defaults in its start script."""


class Unavailable(Exception):
    """A system or tool cannot be had on this machine; the message says why, in a line."""


@dataclass(frozen=True, slots=True)
class System:
    """One thing to measure: `prepare` makes it available, `command` starts it on a data folder and a port."""

    name: str
    prepare: Callable[[], None]
    command: Callable[[Path, int], list[str]]
    ports: int = 1


def _run(command: list[str], what: str, cwd: Path | None = None) -> None:
    if shutil.which(command[0]) is None:
        raise Unavailable(f"{what}: {command[0]} is not installed")
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]
        raise Unavailable(f"{what}: {last[0][:160]}")


def _is_newer(made: Path, *sources: Path) -> bool:
    return made.exists() and all(made.stat().st_mtime >= source.stat().st_mtime for source in sources)


def prepare_loadgen() -> Path:
    """Build the load generator where it is missing or old; returns its path."""
    made, source = CACHE / "loadgen", TOOLS / "loadgen"
    if not _is_newer(made, source / "main.go"):
        CACHE.mkdir(exist_ok=True)
        _run(["go", "build", "-o", str(made), "."], "loadgen", cwd=source)
    return made


def _prepare_floor() -> None:
    made, source = CACHE / "floor", TOOLS / "floor.c"
    if not _is_newer(made, source):
        CACHE.mkdir(exist_ok=True)
        _run([os.environ.get("CC", "cc"), "-O3", "-msse4.2", str(source), "-o", str(made)], "floor")


def _floor_command(data: Path, port: int) -> list[str]:
    return [str(CACHE / "floor"), str(data), str(port)]


def _kafka_home() -> Path:
    return Path(os.environ.get("KAFKA_HOME", CACHE / f"kafka-{KAFKA_VERSION}"))


def _prepare_kafka() -> None:
    _run([str(TOOLS / "kafka-home"), str(_kafka_home()), KAFKA_VERSION], "kafka")


def _kafka_command(data: Path, port: int) -> list[str]:
    return ["env", f"KAFKA_HEAP_OPTS={KAFKA_JVM}", str(TOOLS / "kafka-start"), str(_kafka_home()), str(data), str(port)]


def _prepare_peer() -> None:
    venv = CACHE / "peers"
    if not (venv / "bin" / PEER).exists():
        _run([sys.executable, "-m", "venv", str(venv)], PEER)
        _run([str(venv / "bin/pip"), "install", "-q", PEER], PEER)


def _peer_command(data: Path, port: int) -> list[str]:
    program = str(CACHE / "peers/bin" / PEER)
    return [program, "start", "--data-dir", str(data), "--only", "kafka", "--kafka-port", str(port)]


def _prepare_ottla() -> None:
    if not _ottla_program().exists():
        raise Unavailable("ottla: not installed, run `make build`")


def _ottla_program() -> Path:
    return ROOT / ".venv/bin/ottla"


def _ottla_command(data: Path, port: int) -> list[str]:
    return [str(_ottla_program()), "serve", "--data", str(data / "data"), "--listen", f"127.0.0.1:{port}"]


def _ottla_os_command(data: Path, port: int) -> list[str]:
    return [*_ottla_command(data, port), "-o", "ottla.flush.policy=os"]


SYSTEMS: Final = {
    system.name: system
    for system in (
        System("floor", _prepare_floor, _floor_command),
        System("kafka", _prepare_kafka, _kafka_command, ports=2),
        System("ottla-os", _prepare_ottla, _ottla_os_command),
        System("ottla", _prepare_ottla, _ottla_command),
        System("noida", _prepare_peer, _peer_command),
    )
}
"""In the order of the table. `floor` is one C thread with the same bytes and no checks; `kafka` flushes as it does by
default (not at all), and `ottla-os` does the same; `ottla`, our default, has one fsync for all earlier appends."""
