"""Brokers under test as processes: Ottla, or Apache Kafka itself.

The same suite runs against both. Against Kafka (`OTTLA_INTEROP_BROKER=kafka`) it shows that the tests are right.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, Protocol

from benchmarks.processes import find_free_port

ROOT: Final = Path(__file__).resolve().parents[2]
KAFKA_HOME: Final = Path(os.environ.get("KAFKA_HOME", ROOT / ".cache/kafka-4.4.0"))
OTTLA: Final = Path(os.environ.get("OTTLA", Path(sys.executable).with_name("ottla")))

READY: Final = "ottla ready on "
START_TIMEOUT_S: Final = 90.0
STOP_TIMEOUT_S: Final = 30.0
POLL_S: Final = 0.02


class Broker(Protocol):
    """A broker on a data folder of its own, on loopback."""

    data: Path

    @property
    def address(self) -> str:
        """HOST:PORT, the same after every restart."""

    def start(self) -> None:
        """Start it; returns when it is ready."""

    def stop(self) -> None:
        """End it as an administrator would (SIGTERM) and wait until it is gone."""

    def restart(self) -> None: ...

    def kill(self) -> None:
        """End it as a crash would (SIGKILL); `start` brings it back on the same data."""


def is_open(host: str, port: int) -> bool:
    """Return whether somebody listens there."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


class BrokerProcess:
    """What both brokers share: start, wait until ready, stop, show the log when something is wrong."""

    address: str

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self._log = folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def printed(self) -> str:
        """What it has said since its last start."""
        return self._log.read_text(errors="replace")

    def command(self) -> list[str]:
        raise AssertionError("every broker says how it is started")

    def is_ready(self, printed: str) -> bool:
        raise AssertionError("every broker says when it is ready")

    def start(self) -> None:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.is_ready(self.printed):
            code = _wait(self._process, POLL_S)
            assert code is None, f"the broker ended with {code} before it was ready:\n{self.printed}"
            assert time.monotonic() < deadline, f"not ready in {START_TIMEOUT_S} s:\n{self.printed}"

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        os.killpg(process.pid, signal.SIGTERM)
        if _wait(process, STOP_TIMEOUT_S) is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise AssertionError(f"still running {STOP_TIMEOUT_S} s after SIGTERM:\n{self.printed}")

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        process, self._process = self._process, None
        assert process is not None, "only a broker that runs can be killed"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """Return the exit code, None when the process is still running after the time."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None


class OttlaBroker(BrokerProcess):
    """`ottla serve` as installed. The first start takes any port, later ones the same."""

    def __init__(self, folder: Path, *settings: str) -> None:
        super().__init__(folder)
        self._settings = settings
        self.address = "127.0.0.1:0"

    def command(self) -> list[str]:
        flags = [text for setting in self._settings for text in ("-o", setting)]
        return [str(OTTLA), "serve", "--data", str(self.data), "--listen", self.address, *flags]

    def is_ready(self, printed: str) -> bool:
        for line in printed.splitlines(keepends=True):
            _, found, address = line.partition(READY)
            if found and line.endswith("\n"):
                self.address = address.split()[0]
                return True
        return False


class KafkaBroker(BrokerProcess):
    """Apache Kafka 4.4 in one process."""

    def __init__(self, folder: Path, *settings: str) -> None:
        super().__init__(folder)
        self._settings = settings
        self._port = find_free_port(2)
        self.address = f"127.0.0.1:{self._port}"

    def command(self) -> list[str]:
        return [str(ROOT / "tools/kafka-start"), str(KAFKA_HOME), str(self.data), str(self._port), *self._settings]

    def is_ready(self, printed: str) -> bool:
        return is_open("127.0.0.1", self._port)


def make_broker(folder: Path, *settings: str) -> Broker:
    """Return the broker that the environment asks for, not started yet."""
    kinds: dict[str, type[OttlaBroker] | type[KafkaBroker]] = {"ottla": OttlaBroker, "kafka": KafkaBroker}
    return kinds[os.environ.get("OTTLA_INTEROP_BROKER", "ottla")](folder, *settings)
