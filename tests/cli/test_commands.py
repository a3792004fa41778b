"""Commands against a broker in this process: data on stdout, talk on stderr, honest exit codes."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.cli.main import main
from ottla.cli.reference import leaf_commands
from ottla.testing.cluster import broker_in_thread

DEAD = "127.0.0.1:1"
DIRECTORIES = Path(__file__).parents[1] / "golden" / "directories"


class Result(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with broker_in_thread({"auto.create.topics.enable": "false"}) as running:
        yield running.address


class Ottla:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *words: str, stdin: bytes = b"") -> Result:
        self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main(words)
        code = ended.value.code
        captured = self._capsys.readouterr()
        return Result(code if isinstance(code, int) else 0, captured.out, captured.err)


@pytest.fixture
def ottla(address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ottla:
    monkeypatch.setenv("OTTLA_BOOTSTRAP", address)
    return Ottla(capsys, monkeypatch)


def test_a_topic_from_creation_to_deletion(ottla: Ottla) -> None:
    assert ottla("topics", "create", "life", "-p", "2") == (0, "life (2 partitions, 1 copy) created\n", "")
    assert ottla("topics", "create", "life").code == 1
    assert ottla("topics", "create", "life", "--if-not-exists").code == 0
    assert ottla("topics", "grow", "life", "3") == (0, "life has 3 partitions\n", "")
    assert "life\t3\t1\n" in ottla("topics", "list").out
    described = json.loads(ottla("topics", "describe", "life", "--json").out)
    assert [row["end_offset"] for row in described[0]["partitions"]] == [0, 0, 0]
    assert ottla("topics", "offsets", "life").out == (
        "topic\tpartition\tbeginning\tend\nlife\t0\t0\t0\nlife\t1\t0\t0\nlife\t2\t0\t0\n"
    )
    assert ottla("topics", "delete", "life") == (0, "life deleted\n", "")
    assert "life" not in ottla("topics", "list").out


def test_lines_go_in_and_come_out(ottla: Ottla) -> None:
    ottla("topics", "create", "lines", "-p", "1")
    produced = ottla("produce", "lines", stdin=b"one\ntwo\r\n\nfour")
    assert (produced.code, produced.out) == (0, "")
    assert produced.err.startswith("4 records in ")

    consumed = ottla("consume", "lines", "--until", "end")
    assert (consumed.code, consumed.out) == (0, "one\ntwo\n\nfour\n")
    assert consumed.err.startswith("4 records in ")
    assert ottla("consume", "lines", "-n", "2", "-q") == (0, "one\ntwo\n", "")
    assert ottla("consume", "lines", "--from", "-1", "--until", "end", "-q").out == "four\n"
    assert ottla("consume", "lines", "--from", "1", "-n", "1", "-q").out == "two\n"
    assert ottla("consume", "lines", "--from", "@-1h", "-n", "1", "-q").out == "one\n"
    assert ottla("consume", "lines", "--until", "@-1h", "-q").out == ""
    assert ottla("consume", "lines", "--from", "end", "--until", "end", "-q").out == ""


def test_keys_headers_and_tombstones(ottla: Ottla) -> None:
    ottla("topics", "create", "keyed", "-p", "1")
    ottla("produce", "keyed", "-k", ":", "-H", "h=1", "--null", "NIL", "-q", stdin=b"a:1\nb:NIL\n")

    assert ottla("consume", "keyed", "-u", "end", "-q", "-k", "-H").out == "h=1\ta\t1\nh=1\tb\tNULL\n"
    assert ottla("consume", "keyed", "-u", "end", "-q", "--format", r"%p:%o %k=%s (%S)\n").out == (
        "0:0 a=1 (1)\n0:1 b=NULL (-1)\n"
    )
    refused = ottla("produce", "keyed", "-k", ":", stdin=b"no key\n")
    assert refused.code == 1
    assert "standard input, line 1: there is no key separator in it" in refused.err


def test_json_lines_make_a_copy(ottla: Ottla) -> None:
    ottla("topics", "create", "source", "copy", "-p", "1")
    ottla("produce", "source", "-k", ":", "-H", "h=1", "-q", stdin=b"a:1\n\xff:\xfe\n")
    lines = ottla("consume", "source", "-u", "end", "-q", "--json").out
    assert ottla("produce", "copy", "--input", "json", "-q", stdin=lines.encode()) == (0, "", "")

    copied = ottla("consume", "copy", "-u", "end", "-q", "--json").out
    assert copied == lines.replace('"source"', '"copy"')
    assert ottla("produce", "copy", "--input", "json", stdin=b"[1]\n").code == 1


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"valeu": "x"}', 'it has no "value"; null is one'),
        ('{"value": "x", "headers": {"a": "b"}}', "headers are a list"),
        ('{"value": "x", "headers": [1]}', "headers are a list"),
        ('{"value": "x", "timestamp_ms": "now"}', "timestamp_ms is no whole number"),
        ("{", "not a record in JSON"),
    ],
)
def test_json_that_is_no_record_is_refused_with_its_line(ottla: Ottla, line: str, problem: str) -> None:
    ottla("topics", "create", "strict", "-p", "1", "--if-not-exists")
    before = ottla("topics", "offsets", "strict").out
    code, out, err = ottla("produce", "strict", "-i", "json", stdin=line.encode())
    assert (code, out) == (1, "")
    assert "standard input, line 1: " in err
    assert problem in err
    assert ottla("topics", "offsets", "strict").out == before


def test_what_was_produced_is_told_as_json(ottla: Ottla) -> None:
    ottla("topics", "create", "counted", "-p", "2")
    ottla("produce", "counted", "-p", "1", "-q", stdin=b"before\n")
    code, out, err = ottla("produce", "counted", "-p", "1", "--json", stdin=b"one\ntwo\nthree\n")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert (told["topic"], told["records"], told["failed"], told["error"]) == ("counted", 3, 0, None)
    (row,) = told["partitions"]
    assert (row["partition"], row["records"], row["first_offset"], row["last_offset"]) == (1, 3, 1, 3)
    assert told["bytes"] == row["bytes"] > len("onetwothree")

    told = json.loads(ottla("produce", "counted", "-p", "0", "--acks", "0", "--json", stdin=b"one\n").out)
    assert (told["partitions"][0]["first_offset"], told["partitions"][0]["records"]) == (None, 1)


def test_what_was_not_produced_is_told_as_json_too(ottla: Ottla) -> None:
    ottla("topics", "create", "small", "-p", "1", "-c", "max.message.bytes=100")
    code, out, err = ottla("produce", "small", "--json", stdin=b"x" * 200)
    assert (code, json.loads(out)["error"], json.loads(out)["failed"]) == (1, "MESSAGE_TOO_LARGE", 1)
    assert err.count("\n") == 1

    code, out, err = ottla("produce", "small", "--json", "-k", ":", stdin=b"a:1\nb\n")
    assert (code, json.loads(out)["error"]) == (1, "standard input, line 2: there is no key separator in it")
    assert err == "ottla: standard input, line 2: there is no key separator in it\n"


def test_whole_files_and_several_topics(ottla: Ottla, tmp_path_factory: pytest.TempPathFactory) -> None:
    ottla("topics", "create", "blob", "other", "-p", "1")
    file = tmp_path_factory.mktemp("files") / "blob"
    file.write_bytes(b"a\nb\n")
    ottla("produce", "blob", "--input", "whole", "-q", str(file))
    ottla("produce", "other", "-q", str(file))

    assert ottla("consume", "blob", "-u", "end", "-q", "-x").out == "610a620a\n"
    assert sorted(ottla("consume", "blob", "other", "-u", "end", "-q", "--format", r"%t %S\n").out.splitlines()) == [
        "blob 4",
        "other 1",
        "other 1",
    ]


def test_the_cluster_and_its_health(ottla: Ottla, address: str) -> None:
    cluster = json.loads(ottla("cluster", "--json").out)
    assert [f"{row['host']}:{row['port']}" for row in cluster["brokers"]] == [address]
    produce = next(row for row in cluster["versions"] if row["api"] == "Produce")
    assert produce == {"key": 0, "api": "Produce", "served": [0, 13], "known": [3, 13]}
    assert ottla("cluster", "--versions").code == 0
    assert ottla("ready", "-q") == (0, "", "")
    pinged = json.loads(ottla("ping", "--json").out)
    assert pinged[0]["address"] == address
    assert pinged[0]["versions"]["Fetch"][1] >= 12


def test_bounded_loads(ottla: Ottla) -> None:
    ottla("topics", "create", "load", "-p", "2")
    assert json.loads(ottla("perf", "produce", "load", "-n", "500", "--json").out)["records"] == 500
    assert json.loads(ottla("perf", "consume", "load", "--json").out)["records"] == 500
    code, out, err = ottla("perf", "consume", "load", "-n", "501")
    assert (code, out.split()[0], err) == (0, "500", "topic 'load' has only 500 records to read\n")
    out = ottla("perf", "produce", "load", "-n", "1").out
    assert out.startswith("1 record in ")
    assert [word for word in out.splitlines()[1].split() if word.isalnum() and word != "ms"] == [
        *("latency", "avg", "p50", "p90", "p95", "p99", "max"),
    ]
    measured = json.loads(ottla("perf", "latency", "load", "-n", "20", "-r", "1000", "--json").out)
    assert all(0 < measured[name]["p50"] <= measured[name]["max"] for name in ("acknowledged", "received"))


MISSING = [
    ("topics", "describe", "nope"),
    ("topics", "delete", "nope"),
    ("topics", "grow", "nope", "4"),
    ("topics", "offsets", "nope"),
    ("produce", "nope"),
    ("consume", "nope"),
    ("consume", "nope", "--group", "g"),
    ("topics", "describe", "nope", "--json"),
    ("topics", "alter", "nope", "-c", "retention.ms=1"),
    ("configs", "get", "topic", "nope"),
    ("configs", "set", "topic", "nope", "retention.ms=1"),
    ("configs", "unset", "topic", "nope", "retention.ms"),
    ("groups", "reset", "g", "--to", "end", "--topic", "nope"),
    ("commitlog", "export", "nope", "{file}"),
    ("commitlog", "import", "{file}", "nope"),
    ("perf", "produce", "nope", "-n", "1"),
    ("perf", "consume", "nope"),
    ("perf", "latency", "nope", "-n", "10"),
]


@pytest.mark.parametrize("words", MISSING, ids=" ".join)
def test_a_missing_topic_is_exit_code_1_and_one_line(ottla: Ottla, words: tuple[str, ...], file: str) -> None:
    code, out, err = ottla(*(word.format(file=file) for word in words), stdin=b"x\n")

    assert code == 1
    assert "nope" in err
    assert err.count("\n") == 1
    assert "nope" not in out
    if words[0] == "perf":  # which needs a topic that was made for it
        assert "`ottla topics create nope` makes it" in err


UNREACHABLE = [
    ("topics", "list"),
    ("topics", "create", "t"),
    ("topics", "describe", "t"),
    ("topics", "grow", "t", "2"),
    ("topics", "delete", "t"),
    ("topics", "offsets", "t"),
    ("topics", "alter", "t", "-c", "a=b"),
    ("produce", "t"),
    ("consume", "t"),
    ("consume", "t", "--group", "g"),
    ("groups", "list"),
    ("groups", "describe", "g"),
    ("groups", "members", "g"),
    ("groups", "reset", "g", "--to", "end"),
    ("groups", "forget", "g"),
    ("groups", "delete", "g"),
    ("configs", "get", "topic", "t"),
    ("configs", "set", "topic", "t", "a=b"),
    ("configs", "unset", "topic", "t", "a"),
    ("cluster",),
    ("ping",),
    ("ready", "--timeout", "0.1"),
    ("perf", "produce", "t"),
    ("perf", "consume", "t"),
    ("perf", "latency", "t"),
    ("commitlog", "import", "{file}", "t"),
    ("commitlog", "export", "t", "{file}"),
]


def test_every_command_that_connects_is_tried_on_a_dead_port() -> None:
    connecting = {
        path
        for path, context in leaf_commands()
        if any(parameter.name == "bootstrap" for parameter in context.command.params)
    }
    tried = {" ".join(words[: len(path.split())]) for words in UNREACHABLE for path in connecting}
    assert connecting <= tried


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A commit log with nothing in it."""
    (tmp_path / "values.log").touch()
    return str(tmp_path / "values.log")


@pytest.mark.parametrize("words", UNREACHABLE, ids=" ".join)
def test_a_dead_port_is_exit_code_3_and_named(ottla: Ottla, words: tuple[str, ...], file: str) -> None:
    code, out, err = ottla(*(word.format(file=file) for word in words), "-b", DEAD, stdin=b"x\n")

    assert (code, out) == (3, "")
    assert f"{DEAD}" in err
    assert "connection refused" in err
    assert err.count("\n") == 1


WRONG = [
    ("frobnicate",),
    ("topics", "list", "-b", "host:port"),
    ("topics", "alter", "t"),
    ("topics", "create", "t", "-c", "novalue"),
    ("consume", "t", "--from", "somewhere"),
    ("consume", "t", "--until", "noon"),
    ("consume", "t", "--format", "%q"),
    ("consume", "t", "--json", "--keys"),
    ("configs", "get", "broker", "x"),
    ("produce", "t", "-k", ""),
    ("produce", "t", "-k", ":", "--input", "json"),
    ("topics", "create", "t", "--partitions", "3000000000"),
    ("topics", "create", "t", "--replication-factor", "99999"),
    ("topics", "grow", "t", "99999999999"),
    ("consume", "t", "--from", "@99999999999999999999"),
    ("consume", "t", "--until", "@99999999999999999999"),
]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_use_is_exit_code_2_and_one_line_that_names_the_help(ottla: Ottla, words: tuple[str, ...]) -> None:
    code, out, err = ottla(*words)

    assert (code, out) == (2, "")
    assert err.startswith("ottla: ")
    assert err.endswith(" --help\n")
    assert err.count("\n") == 1


def test_without_a_verb_the_help_is_shown_and_nothing_was_done(ottla: Ottla) -> None:
    for words in ((), ("topics",)):
        code, out, err = ottla(*words)
        assert (code, out) == (2, "")
        assert err.startswith("Usage: ottla")


def test_changes_are_told_as_json(ottla: Ottla) -> None:
    ottla("topics", "create", "told", "-p", "1")
    done = [
        ("topics", "grow", "told", "2"),
        ("topics", "alter", "told", "-c", "retention.ms=1000"),
        ("configs", "set", "topic", "told", "retention.ms=2000"),
        ("configs", "unset", "topic", "told", "retention.ms"),
        ("topics", "delete", "told"),
    ]
    for words in done:
        (row,) = json.loads(ottla(*words, "--json").out)
        assert row["error"] is None, words
    code, out, _ = ottla("topics", "delete", "told", "--json")
    assert (code, json.loads(out)) == (1, [{"name": "told", "error": "UNKNOWN_TOPIC_OR_PARTITION"}])
    assert json.loads(ottla("ready", "--json").out)["is_ready"] is True


def test_python_finds_the_command_by_the_name_of_the_package() -> None:
    words = [sys.executable, "-m", "ottla", "--version"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run(words, capture_output=True, env=env, timeout=20, check=True)
    assert said.stdout.startswith(b"ottla ")


def test_help_and_version(ottla: Ottla) -> None:
    assert "Exit codes: 0 done" in ottla("--help").out
    assert ottla("--version").out.startswith("ottla ")
    for shell in ("bash", "zsh", "fish"):
        assert "_OTTLA_COMPLETE" in ottla("completion", shell).out


def start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "ottla.cli.main", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_a_closed_pipe_is_silent(ottla: Ottla, address: str) -> None:
    ottla("topics", "create", "piped", "-p", "1")
    ottla("produce", "piped", "-q", stdin=b"some line\n" * 50_000)
    with start("consume", "piped", "-u", "end", "-q", "-b", address) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"some line\n"
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(10) == 0


def test_an_interrupt_says_where_it_was(ottla: Ottla, address: str) -> None:
    ottla("topics", "create", "live", "-p", "1")
    ottla("produce", "live", "-q", stdin=b"first\n")
    with start("consume", "live", "-b", address) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"first\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        assert process.returncode == 130
        assert err.strip() == b"stopped after 1 record: live-0 at 1"


@pytest.mark.parametrize("isolation", [(), ("--committed",)])
def test_reading_to_the_end_ends_where_only_the_ends_of_transactions_are_left(
    tmp_path: Path, isolation: tuple[str, ...]
) -> None:
    """Nothing that a consumer gets stands between the last records and the end of these partitions."""
    with tarfile.open(DIRECTORIES / "transactions.tar.gz") as archive:
        archive.extractall(tmp_path, filter="fully_trusted")
    with gzip.open(DIRECTORIES / "transactions.json.gz", "rt") as file:
        partitions = json.load(file)["topics"]["pay"]["partitions"]
    seen = "read_committed_offsets" if isolation else "records"
    expected = sum(len(partition[seen]) for partition in partitions.values())
    settings = {"log.dirs": str(tmp_path / "kafka-logs"), "log.retention.ms": "-1"}
    words = ("consume", "pay", "-u", "end", "-q", "--format", r"%p\n", *isolation)
    with broker_in_thread(settings) as running, start(*words, "-b", running.address) as process:
        try:
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (len(out.splitlines()), err, process.returncode) == (expected, b"", 0)


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (["--help"], {"asyncio", "rich", "uvloop", "ottla.client", "ottla.server"}),
        (["consume", "--help"], {"asyncio", "rich", "uvloop", "ottla.client.cluster", "ottla.server"}),
        (["perf", "produce", "--help"], {"asyncio", "rich", "uvloop", "ottla.client.cluster", "ottla.server"}),
        (["commitlog", "import", "--help"], {"rich", "uvloop", "ottla.client.cluster", "ottla.server"}),
        (["topics", "--help"], {"rich", "uvloop", "ottla.client.consumer", "ottla.client.producer", "ottla.server"}),
    ],
    ids=["ottla", "consume", "perf", "commitlog", "topics"],
)
def test_help_imports_nothing_heavy(words: list[str], heavy: set[str]) -> None:
    """What makes help quick, stated so that a slow machine cannot break it."""
    code = (
        "import sys\n"
        "from ottla.cli.main import main\n"
        f"try:\n    main({words!r})\n"
        "except SystemExit:\n    pass\n"
        f"heavy = {heavy!r} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        _, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (0, b"")


@pytest.mark.parametrize(("typed", "offered"), [("ottla to", "topics"), ("ottla topics gr", "grow")])
def test_a_shell_is_told_what_could_come_next(
    ottla: Ottla, monkeypatch: pytest.MonkeyPatch, typed: str, offered: str
) -> None:
    monkeypatch.setenv("_OTTLA_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    assert ottla().out == f"plain,{offered}\n"
