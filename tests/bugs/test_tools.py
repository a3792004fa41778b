"""Tools tell the truth by exit code: KAFKA-6656 "Config tool should return non-zero status code on failure", KAFKA-4480
"Report an error in 'kafka-configs' command if the config to be removed does not exist", KAFKA-12926 (a crash on missing
offsets).

Every verb against a cluster that is not there, things that do not exist, and a pipe that nobody reads any more.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from ottla.cli.main import main
from ottla.cli.reference import leaf_commands
from ottla.testing.cluster import broker_in_thread

DEAD = "127.0.0.1:1"


class Result(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


class Tool:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *words: str, stdin: bytes = b"x\n") -> Result:
        self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main(words)
        captured = self._capsys.readouterr()
        return Result(int(ended.value.code or 0), captured.out, captured.err)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("data")
    with broker_in_thread({"auto.create.topics.enable": "false", "log.dirs": str(directory)}) as running:
        yield running.address


@pytest.fixture
def tool(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Tool]:
    monkeypatch.setenv("OTTLA_BOOTSTRAP", address)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "values.log").write_bytes(b"")
    yield Tool(capsys, monkeypatch)


WORDS_OF = {
    "topics create": ("nope",),
    "topics describe": ("nope",),
    "topics alter": ("nope", "-c", "retention.ms=1"),
    "topics grow": ("nope", "2"),
    "topics delete": ("nope",),
    "topics offsets": ("nope",),
    "produce": ("nope",),
    "consume": ("nope",),
    "groups describe": ("nope",),
    "groups members": ("nope",),
    "groups reset": ("nope", "--topic", "nope", "--to", "start"),
    "groups delete": ("nope",),
    "groups forget": ("nope",),
    "configs get": ("topic", "nope"),
    "configs set": ("topic", "nope", "retention.ms=1"),
    "configs unset": ("topic", "nope", "retention.ms"),
    "ready": ("--timeout", "0.1"),
    "commitlog import": ("values.log", "nope"),
    "commitlog export": ("nope", "values.log"),
    "perf produce": ("nope", "-n", "1"),
    "perf consume": ("nope",),
    "perf latency": ("nope", "-n", "10"),
}
"""What a verb needs to be tried; the others need nothing."""

ALWAYS_ANSWERED = {"topics create", "topics list", "groups list", "cluster", "ping", "ready"}
"""Verbs that ask for nothing by name, or make it."""

REMOTE = [
    path
    for path, context in leaf_commands()
    if any(
        isinstance(parameter, click.Option) and parameter.name == "bootstrap" for parameter in context.command.params
    )
]


def words_of(path: str) -> tuple[str, ...]:
    return (*path.split(), *WORDS_OF.get(path, ()))


@pytest.mark.parametrize("path", REMOTE)
def test_no_cluster_is_exit_code_3_and_one_line_that_names_the_address(tool: Tool, path: str) -> None:
    code, out, err = tool(*words_of(path), "-b", DEAD)

    assert (code, out) == (3, "")
    assert DEAD in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize("path", [path for path in REMOTE if path not in ALWAYS_ANSWERED])
def test_what_does_not_exist_is_exit_code_1_and_one_line_that_names_it(tool: Tool, path: str) -> None:
    code, out, err = tool(*words_of(path))

    assert (code, out) == (1, "")
    assert "nope" in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_unsetting_what_is_not_set_is_refused(tool: Tool) -> None:
    tool("topics", "create", "set")
    code, out, err = tool("configs", "unset", "topic", "set", "retention.ms")
    assert (code, out) == (1, "")
    assert "retention.ms" in err
    assert tool("configs", "set", "topic", "set", "retention.ms=never").code == 1
    assert tool("topics", "alter", "set", "-u", "retention.ms").code == 1


def test_an_offset_that_is_not_known_is_a_dash(tool: Tool) -> None:
    tool("topics", "create", "dash", "-p", "2")
    tool("produce", "dash", "-p", "0", "-q")
    assert tool("consume", "dash", "-p", "0", "--group", "g", "--count", "1", "-q").code in (0, 2)
    assert tool("topics", "offsets", "dash", "--at", "2100-01-01").out.splitlines()[1:] == [
        "dash\t0\t0\t1\t-",
        "dash\t1\t0\t0\t-",
    ]


PRINTING = [
    ("--help",),
    ("--version",),
    ("topics", "--help"),
    ("topics", "list"),
    ("topics", "describe", "piped"),
    ("topics", "offsets", "piped"),
    ("consume", "piped", "--until", "end", "-q"),
    ("consume", "piped", "--until", "end", "-q", "--json"),
    ("groups", "list"),
    ("configs", "get", "topic", "piped", "--all"),
    ("cluster", "--versions"),
    ("cluster", "--json"),
    ("ping",),
    ("completion", "bash"),
]


@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_a_pipe_that_nobody_reads_ends_a_verb_in_silence(
    tool: Tool, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("topics", "create", "piped", "--if-not-exists")
    tool("produce", "piped", "-q", stdin=b"line\n" * 100)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        monkeypatch.setattr("sys.stdout", closed)
        code, _, err = tool(*words)
    assert (code, err) == (0, "")
