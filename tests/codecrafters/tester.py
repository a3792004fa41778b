"""How the challenge starts a program and judges it: `your_program.sh` as a process, within the challenge's limits.

Every stage starts a program of its own on files that were just laid down, at the port that the one before it had, in a
working directory of the tester, with pipes for its output, and ends it. The challenge's port and places are fixed;
here they are what the test was given.
"""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from tests.codecrafters.files import LOG_NAME, TopicFiles, lay_down

PROGRAM: Final = Path(__file__).parents[2] / "tools" / "codecrafters" / "your_program.sh"
STAGE_SECONDS: Final = 10.0
"""From the start of the program to the end of a stage."""
ANSWER_SECONDS: Final = 0.1
"""Within this an answer follows its first bytes, and what is sent is taken."""
STOP_SECONDS: Final = 2.0
ADDRESS_SPACE_KIB: Final = 6 * 1024 * 1024
RESIDENT_KIB: Final = 2 * 1024 * 1024
OUTPUT_BYTES: Final = 30_000
"""A program that has said more counts as ended."""


class Client:
    """One connection."""

    def __init__(self, port: int, until: float) -> None:
        self._socket = socket.create_connection(("localhost", port), until - time.monotonic())
        self._until = until

    def send(self, frame: bytes) -> None:
        self._socket.settimeout(ANSWER_SECONDS)
        self._socket.sendall(len(frame).to_bytes(4, "big") + frame)

    def receive(self) -> bytes:
        """Return an answer behind its size: the first bytes may take the stage's time, the others follow at once."""
        self._socket.settimeout(self._until - time.monotonic())
        size = self._socket.recv(4)
        self._socket.settimeout(ANSWER_SECONDS)
        size += self._exactly(4 - len(size))
        return self._exactly(int.from_bytes(size, "big"))

    def ask(self, frame: bytes) -> bytes:
        self.send(frame)
        return self.receive()

    def finish(self) -> None:
        """End the connection. Nothing comes that was not asked for."""
        self._socket.settimeout(self._until - time.monotonic())
        self._socket.shutdown(socket.SHUT_WR)
        assert self._socket.recv(1) == b""

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            assert piece, "the connection was closed"
            data += piece
        return data


class Stage:
    """A running program with its data directory."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, directory: Path, until: float) -> None:
        self._process = process
        self._port = port
        self._directory = directory
        self._until = until
        self._clients: list[Client] = []

    def connect(self) -> Client:
        client = Client(self._port, self._until)
        self._clients.append(client)
        return client

    def log(self, topic: str, partition: int) -> bytes:
        """What is in a partition's only file now."""
        return (self._directory / f"{topic}-{partition}" / LOG_NAME).read_bytes()

    def wait_until_ready(self) -> None:
        """Wait for the line that says so, so that nobody has to try again and again."""
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], self._until - time.monotonic())[0], "it is not ready"
        said = self._process.stdout.readline()
        assert said.startswith(b"ottla ready on "), said

    def finish(self) -> None:
        """Close the connections, see that the program was within its limits, and end it as the challenge does."""
        for client in self._clients:
            client.finish()
        peaks = Path(f"/proc/{self._process.pid}/status").read_text()
        assert int(re.findall(r"VmHWM:\s*(\d+) kB", peaks)[0]) <= RESIDENT_KIB
        assert time.monotonic() < self._until
        os.killpg(self._process.pid, signal.SIGTERM)
        out, err = self._process.communicate(timeout=STOP_SECONDS)
        assert self._process.returncode == 0, err
        assert len(out) + len(err) < OUTPUT_BYTES

    def close(self) -> None:
        """Let go of what is left of it after a mistake."""
        for client in self._clients:
            client.close()
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)


@contextmanager
def stage(
    root: Path, port: int, topics: Sequence[TopicFiles] | None = None, *, seconds: float = STAGE_SECONDS
) -> Iterator[Stage]:
    """Lay the files down, start the program, and end it; on the way every limit is looked at."""
    properties = lay_down(root, topics, listen=f"localhost:{port}")
    elsewhere = root / "tester"
    elsewhere.mkdir()
    until = time.monotonic() + seconds
    with (
        subprocess.Popen(
            ["sh", "-c", f'ulimit -v {ADDRESS_SPACE_KIB} && exec "$@"', "sh", PROGRAM, properties],
            cwd=elsewhere,
            env={**os.environ, "PYTHON": sys.executable},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process,
        closing(Stage(process, port, root / "kraft-combined-logs", until)) as running,
    ):
        running.wait_until_ready()
        yield running
        running.finish()
    assert not list(elsewhere.iterdir()), "it left something in its working directory"
