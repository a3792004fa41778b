"""Ctrl-C at every moment: while a command is imported, while it waits for a terminal, while it measures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ottla.client import sync
from ottla.testing.cluster import broker_in_thread


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with broker_in_thread() as running:
        with sync.Admin(running.address) as admin:
            for topic in ("typed", "measured"):
                admin.create_topic(topic)
        yield running.address


def start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_while_a_command_is_imported_the_process_just_ends() -> None:
    """An import that is cut off anywhere shows a traceback, or another error in its place."""
    code = """
import os, signal
from ottla.cli import main
main._run = lambda words: os.kill(os.getpid(), signal.SIGINT)
main.main(["topics", "list"])
"""
    with start("-c", code) as process:
        assert process.communicate(timeout=10) == (b"", b"")
        assert process.returncode == -signal.SIGINT


def test_a_command_that_is_there_gets_its_interrupts() -> None:
    code = """
import signal
from ottla.cli.interrupts import hold_off
from ottla.cli.commands import COMMANDS, Commands
hold_off()
assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
Commands().get_command(None, "cluster")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""
    with start("-c", code) as process:
        assert process.communicate(timeout=10)[1] == b""
        assert process.returncode == 0


def test_one_who_types_records_may_stop(address: str) -> None:
    """The thread that waits for the terminal must not keep the interpreter from ending."""
    with start("-m", "ottla.cli.main", "produce", "typed", "-b", address) as process:
        assert process.stdin is not None
        process.stdin.write(b"a line\n")
        process.stdin.flush()
        with start("-m", "ottla.cli.main", "consume", "typed", "-n", "1", "-b", address) as reader:
            reader.wait(timeout=20)  # else the line would still be under way
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stderr is not None
        err = process.stderr.read()
        assert err.startswith(b"1 record in ")
        assert err.count(b"\n") == 1


def test_a_measurement_says_how_far_it_was(address: str) -> None:
    with start(
        "-m", "ottla.cli.main", "perf", "produce", "measured", "-n", "1000000", "-r", "1000", "-b", address
    ) as process:
        with start("-m", "ottla.cli.main", "consume", "measured", "-n", "1", "-b", address) as reader:
            reader.wait(timeout=20)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        assert process.returncode == 130
        assert err.startswith(b"\nstopped after ")
