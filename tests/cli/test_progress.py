"""The progress bar: a person who reads much into a file or a pipe sees how far that is, a script sees nothing of it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest

from ottla.cli.reading import LONG_READ_RECORDS
from ottla.client import sync
from ottla.testing.cluster import broker_in_thread

MANY = LONG_READ_RECORDS + 1
SECONDS = 60


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with broker_in_thread() as running:
        with sync.Admin(running.address) as admin:
            admin.create_topic("long")
            admin.create_topic("short")
        with sync.Producer(running.address) as producer:
            assert producer.send_many("long", [b"x"] * MANY) == MANY
            assert producer.send_many("short", [b"x"] * 10) == 10
        yield running.address


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ottla.cli.main", "consume", *words, "--until", "end"]


def environment(address: str) -> Mapping[str, str]:
    paths = os.pathsep.join(sys.path)
    return {**os.environ, "PYTHONPATH": paths, "OTTLA_BOOTSTRAP": address, "TERM": "xterm", "COLUMNS": "80"}


def seen_at_terminal(address: str, *words: str) -> tuple[int, str]:
    """Consume into a pipe with a terminal for stderr; return the number of lines in the pipe, and what was seen."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command(*words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment(address),
    ) as process:
        os.close(theirs)
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        read: dict[int, bytearray] = {ours: bytearray(), pipe: bytearray()}
        ready = select.poll()
        for descriptor in read:
            ready.register(descriptor, select.POLLIN)
        left = set(read)
        while left:
            events = ready.poll(SECONDS * 1000)
            assert events, "nothing more came"
            for descriptor, _ in events:
                chunk = _read(descriptor)
                read[descriptor] += chunk
                if not chunk:
                    ready.unregister(descriptor)
                    left.remove(descriptor)
        assert process.wait(SECONDS) == 0
    os.close(ours)
    return read[pipe].count(b"\n"), read[ours].decode()


def _read(descriptor: int) -> bytes:
    """Read what is there; nothing at the end, which Linux tells as an error for a terminal."""
    try:
        return os.read(descriptor, 65_536)
    except OSError:
        return b""


def test_a_long_read_on_a_terminal_shows_how_far_it_is(address: str) -> None:
    lines, seen = seen_at_terminal(address, "long")
    assert lines == MANY, "the bar is no part of the output"
    assert f"/{MANY}" in seen
    assert f"{MANY:,} records in" in seen
    assert "\x1b[?25h" in seen, "the cursor is shown again"


@pytest.mark.parametrize("words", [("short",), ("long", "--quiet")], ids=["a short read", "a quiet one"])
def test_no_bar_where_nobody_waits_or_wants_it(address: str, words: tuple[str, ...]) -> None:
    _, seen = seen_at_terminal(address, *words)
    assert "/" not in seen.replace("/s)", "")
    assert "\x1b" not in seen


def test_no_bar_when_stderr_is_piped(address: str) -> None:
    done = subprocess.run(command("long"), capture_output=True, check=True, timeout=SECONDS, env=environment(address))
    assert done.stdout.count(b"\n") == MANY
    assert done.stderr.startswith(f"{MANY:,} records in".encode())
    assert b"\x1b" not in done.stderr
    assert done.stderr.count(b"\n") == 1
