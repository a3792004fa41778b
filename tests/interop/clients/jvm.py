"""Java programs that run beside a test until it ends them: with a word, or without one."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.interop.brokers import KAFKA_HOME, ROOT

QUICK: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m")
OUR_CLASS_PATH: Final = (os.environ.get("JAVA_CLASSES", f"{ROOT}/.cache/interop/java"), f"{KAFKA_HOME}/libs/*")
"""Our programs on Kafka's libraries, as `make interop` compiles them from `clients/java/`."""

STOP_TIMEOUT_S: Final = 60.0


def java(class_path: Sequence[str], main: str, *words: str) -> list[str]:
    """Return the command that runs a program, with warnings on its standard output."""
    logging = f"-Dlog4j2.configurationFile={KAFKA_HOME}/log4j2.properties"
    return ["java", *QUICK, logging, "-cp", os.pathsep.join(class_path), main, *words]


class JavaProcess:
    """One running program; what it prints goes to a file."""

    def __init__(self, log: Path, class_path: Sequence[str], main: str, *words: str) -> None:
        self._log = log
        with log.open("wb") as printed:
            self._process = subprocess.Popen(
                java(class_path, main, *words),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def printed(self) -> str:
        """What it has said so far."""
        return self._log.read_text(errors="replace")

    def check_runs(self) -> None:
        """Raises with what it said when it has ended by itself."""
        code = self._process.poll()
        assert code is None, f"it ended with {code}:\n{self.printed}"

    def stop(self) -> None:
        """Have it end in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """It dies without a word."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, how)
        self._process.wait(STOP_TIMEOUT_S)
