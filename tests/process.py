"""A broker as a process of its own, for what only a process shows: exit codes, signals, what is said on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SECONDS: Final = 20.0
READY: Final = "ottla ready on "


class Process:
    """A started broker; `address` is where it serves."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address


def command(directory: Path, *settings: str, listen: str = "127.0.0.1:0") -> list[str]:
    """The command line of a broker on a directory."""
    flags = [text for setting in settings for text in ("-o", setting)]
    return [sys.executable, "-m", "ottla.cli.main", "serve", "--data", str(directory), "--listen", listen, *flags]


@contextmanager
def started(directory: Path, *settings: str, listen: str = "127.0.0.1:0") -> Iterator[Process]:
    """Start a broker and wait for its ready line; at the end it is killed if it still runs."""
    with subprocess.Popen(
        command(directory, *settings, listen=listen), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith(READY), line
            yield Process(process, line.removeprefix(READY).strip())
        finally:
            if process.poll() is None:
                process.kill()


def refused(arguments: Sequence[str], environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Run a broker that must not start; returns its exit code and what it said on standard error."""
    done = subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    assert READY not in done.stdout
    return done.returncode, done.stderr


KILL: Final = signal.SIGKILL
TERM: Final = signal.SIGTERM
