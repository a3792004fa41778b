"""Standard streams that the caller closed, or that nobody reads: a command works and keeps its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ottla.client import TopicPartition, sync
from ottla.testing.cluster import broker_in_thread

DEAD = "127.0.0.1:1"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with broker_in_thread() as running:
        with sync.Admin(running.address) as admin:
            admin.create_topic("t")
        yield running.address


def run(shell: str, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command with redirections of a shell's behind it."""
    return subprocess.run(
        ["/bin/sh", "-c", f'"$@" {shell}', "sh", sys.executable, "-m", "ottla.cli.main", *words],
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_the_caller_closed_is_not_missed(address: str, closed: str) -> None:
    """A socket in its place makes libuv end the process with a signal."""
    done = run(closed, "topics", "list", "-b", address)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (b"t\t1\t1" in done.stdout) == (">&-" not in closed.replace("2>&-", ""))


def test_without_anybody_who_hears_of_it_a_failure_is_still_one() -> None:
    assert run("2>&-", "topics", "list", "-b", DEAD).returncode == 3


@pytest.mark.parametrize(("words", "code"), [(("topics", "list", "-b", DEAD), 3), (("nonsense",), 2), (("topics",), 2)])
def test_when_nobody_hears_what_went_wrong_any_more_the_code_tells_it(words: tuple[str, ...], code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [sys.executable, "-m", "ottla.cli.main", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=writing,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        os.close(writing)
        assert process.wait(60) == code


def test_an_output_that_cannot_have_all_letters_gets_them_escaped(address: str) -> None:
    with sync.Consumer(address, group="grüße") as consumer:
        consumer.commit({TopicPartition("t", 0): 0})
    assert b"gr\\xfc\\xdfe" in run("", "groups", "list", "-b", address, PYTHONIOENCODING="ascii").stdout
    assert b'"gr\\u00fc\\u00dfe"' in run("", "groups", "list", "--json", "-b", address, PYTHONIOENCODING="ascii").stdout
    assert "grüße".encode() in run("", "groups", "list", "--json", "-b", address, PYTHONIOENCODING="utf-8").stdout
