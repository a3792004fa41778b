"""What commands do about files that are not what they need, brokers that hang, and numbers that are none."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli.formats import format_writer
from ottla.client import TopicPartition, sync
from ottla.commitlog import CommitLog
from ottla.records.record import Record
from ottla.testing.cluster import broker_in_thread
from tests.cli.test_commands import Ottla


@pytest.fixture
def ottla(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ottla:
    return Ottla(capsys, monkeypatch)


# ---- files


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is no log directory, with files that are no logs."""
    (tmp_path / "directory").mkdir()
    (tmp_path / "empty").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


READERS = [
    (("storage", "info"), "directory"),
    (("storage", "verify"), "directory"),
    (("storage", "repair"), "directory"),
    (("dump-log",), "file or directory"),
    (("decode",), "file"),
    (("commitlog", "read"), "file"),
    (("commitlog", "verify"), "file"),
]


@pytest.mark.parametrize("words", [words for words, _ in READERS], ids=" ".join)
def test_a_missing_file_is_wrong_use(ottla: Ottla, here: Path, words: tuple[str, ...]) -> None:
    code, out, err = ottla(*words, "nope")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "'nope' does not exist" in err


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (words, "empty" if takes == "directory" else "directory")
        for words, takes in READERS
        if takes != "file or directory"
    ],
    ids=str,
)
def test_a_file_for_a_directory_or_the_other_way_round_is_wrong_use(
    ottla: Ottla, here: Path, words: tuple[str, ...], wrong: str
) -> None:
    code, out, err = ottla(*words, wrong)
    assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("words", [words for words, takes in READERS if "directory" in takes], ids=" ".join)
def test_what_is_no_log_directory_is_refused_and_left_as_it_was(
    ottla: Ottla, here: Path, words: tuple[str, ...]
) -> None:
    """An empty list of findings would say that all is well."""
    code, out, err = ottla(*words, "directory")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "directory has" in err
    assert list((here / "directory").iterdir()) == []


@pytest.mark.parametrize("words", [("storage", "info"), ("storage", "verify"), ("dump-log",)], ids=" ".join)
def test_a_device_is_neither(ottla: Ottla, here: Path, words: tuple[str, ...]) -> None:
    code, out, err = ottla(*words, os.devnull)
    assert (code, out) in ((1, ""), (2, ""))
    assert err.count("\n") == 1


def test_a_file_that_cannot_be_shown_is_not_announced(ottla: Ottla, here: Path) -> None:
    assert ottla("dump-log", "empty") == (
        2,
        "",
        "ottla: empty is of no kind that can be shown; see: ottla dump-log --help\n",
    )


def test_what_the_system_refuses_is_one_line_with_the_name(ottla: Ottla, here: Path) -> None:
    """A name too long stands for all that `open` may say: tests that run as root may read everything."""
    code, out, err = ottla("commitlog", "append", "x" * 300, "value")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "x" * 300 + ": File name too long" in err


def test_a_read_that_fails_names_the_file(ottla: Ottla, here: Path) -> None:
    """Linux has a file that opens and cannot be read from its start."""
    if not Path("/proc/self/mem").exists():
        return
    assert ottla("decode", "/proc/self/mem") == (1, "", "ottla: /proc/self/mem: Input/output error\n")


def test_a_whole_directory_is_told_to_be_so(ottla: Ottla, tmp_path: Path) -> None:
    with broker_in_thread({"log.dirs": str(tmp_path)}) as running:
        assert ottla("topics", "create", "kept", "-p", "2", "-b", running.address).code == 0
        code, out, err = ottla("storage", "verify", str(tmp_path))
        assert (code, out, "is in use; stop the broker first" in err) == (1, "", True)
    assert ottla("storage", "verify", str(tmp_path)) == (0, "", "3 partitions read, 0 findings\n")


# ---- a broker that hangs


@pytest.fixture
def hung() -> Iterator[str]:
    """An address where connections are accepted and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


class FallsSilent:
    """A way to a broker on which only so many bytes come back."""

    def __init__(self, address: str, answer_bytes: int) -> None:
        host, port = address.rsplit(":", 1)
        self._target = (host, int(port))
        self._left = answer_bytes
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        client, _ = self._server.accept()
        with client, socket.create_connection(self._target) as broker:
            threading.Thread(target=self._answer, args=(broker, client), daemon=True).start()
            while data := client.recv(65_536):
                broker.sendall(data)

    def _answer(self, broker: socket.socket, client: socket.socket) -> None:
        while self._left > 0 and (data := broker.recv(min(65_536, self._left))):
            self._left -= len(data)
            client.sendall(data)

    def close(self) -> None:
        self._server.close()


@pytest.mark.parametrize("words", [("ready", "--timeout"), ("ping", "--timeout")], ids=" ".join)
def test_a_port_that_only_accepts_is_given_up_in_time(ottla: Ottla, hung: str, words: tuple[str, ...]) -> None:
    code, out, err = ottla(*words, "0.3", "-b", hung)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert hung in err
    assert "no answer" in err


def test_a_broker_that_falls_silent_halfway_is_not_ready(ottla: Ottla) -> None:
    """It has told its versions, and nothing after them: what a broker does that is stopped or stuck."""
    with broker_in_thread() as running:
        way = FallsSilent(running.address, 200)
        try:
            code, out, err = ottla("ready", "--timeout", "1", "-b", way.address)
        finally:
            way.close()
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert f"tried {way.address} (no answer" in err


def test_one_dead_address_of_two_is_a_partial_failure(ottla: Ottla) -> None:
    with broker_in_thread() as running:
        code, out, err = ottla("ping", "-b", f"127.0.0.1:1,{running.address}")
    assert (code, err) == (1, "ottla: no answer from 127.0.0.1:1: connection refused\n")
    assert out.startswith(f"{running.address} answers")


# ---- nobody who reads


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "list"),
        ("topics", "describe", "many", "--json"),
        ("consume", "many"),
        ("consume", "many", "--group", "g", "-q"),
        ("groups", "list"),
        ("configs", "get", "broker", "1", "--all"),
        ("configs", "explain", "*"),
        ("cluster", "--versions"),
        ("produce", "many", "--json"),
        ("commitlog", "read", "{log}"),
        ("dump-log", "{data}/many-0"),
        ("--help",),
        ("completion", "bash"),
    ],
    ids=" ".join,
)
def test_a_closed_pipe_ends_every_command_in_silence(closed_pipe: ClosedPipe, words: tuple[str, ...]) -> None:
    assert closed_pipe(*words) == (0, "")


class ClosedPipe:
    """Runs commands whose output nobody reads; gives exit code and what stands on stderr."""

    def __init__(self, address: str, data: Path) -> None:
        self._address = address
        self._names = {"data": data, "log": data / "values"}

    def __call__(self, *words: str) -> tuple[int, str]:
        reading, writing = os.pipe()
        os.close(reading)
        with subprocess.Popen(
            [sys.executable, "-m", "ottla.cli.main", *(word.format(**self._names) for word in words)],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OTTLA_BOOTSTRAP": self._address},
        ) as process:
            os.close(writing)
            try:
                _, err = process.communicate(timeout=40)
            finally:
                process.kill()
        return process.returncode, err


@pytest.fixture(scope="module")
def closed_pipe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClosedPipe]:
    data = tmp_path_factory.mktemp("data")
    with broker_in_thread({"log.dirs": str(data), "group.initial.rebalance.delay.ms": "0"}) as running:
        with sync.Producer(running.address) as producer:
            for number in range(1000):
                producer.send("many", b"%d" % number)
        with CommitLog(str(data / "values")) as log:
            log.append_many([b"value"] * 1000)
        yield ClosedPipe(running.address, data)


# ---- numbers


@pytest.mark.parametrize(
    "words",
    [
        ("ready", "--timeout", "nan"),
        ("ready", "--timeout", "inf"),
        ("ready", "--timeout", "-1"),
        ("ping", "--timeout", "nan"),
        ("produce", "t", "--linger-ms", "nan"),
        ("perf", "produce", "t", "--rate", "nan"),
        ("perf", "latency", "t", "--rate", "0"),
        ("groups", "list", "--state", "sleepy"),
        ("groups", "list", "--type", "sleepy"),
        ("configs", "get", "logger", "x"),
        ("consume", "t", "--group", ""),
        ("consume", "t", "--format", "%"),
        ("consume", "t", "--format", r"\xZZ"),
        ("consume", "t", "--format", r"\x4"),
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_wrong_use(ottla: Ottla, words: tuple[str, ...]) -> None:
    code, out, err = ottla(*words, "-b", "127.0.0.1:1")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.endswith(" --help\n")


def test_a_start_that_is_refused_is_one_line(tmp_path: Path) -> None:
    """Nothing is said about serving before something is served."""
    with subprocess.Popen(
        [sys.executable, "-m", "ottla.cli.main", "serve", "--read-only", str(tmp_path / "nope")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (1, "")
    assert [line for line in err.splitlines() if "few files" not in line] == [
        f"ottla: there is no directory {tmp_path / 'nope'} to serve read-only"
    ]


# ---- words that no request can carry


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "create", "\udcff"),
        ("topics", "alter", "t", "-c", "a=\udcff"),
        ("groups", "describe", "\udcff"),
        ("configs", "get", "group", "\udcff"),
        ("consume", "\udcff"),
        ("consume", "t", "-g", "\udcff"),
        ("consume", "t", "-g", "g" * 40_000),
        ("topics", "alter", "t", "-c", f"a={'b' * 40_000}"),
        ("produce", "t", "-H", "\udcff=value"),
    ],
    ids=lambda words: " ".join(words)[:40].encode("ascii", "backslashreplace").decode(),
)
def test_a_word_that_no_request_can_carry_is_wrong_use(ottla: Ottla, words: tuple[str, ...]) -> None:
    """Bytes that are not UTF-8 come as surrogates from the command line."""
    with broker_in_thread() as running:
        assert ottla("topics", "create", "t", "-b", running.address).code == 0
        code, out, err = ottla(*words, "-b", running.address, stdin=b"x\n")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "is no text in UTF-8" in err or "more than a request can carry" in err


@pytest.mark.parametrize("words", [("--null", "\udcff"), ("--format", "\udcff%s")], ids=["null", "format"])
def test_bytes_that_are_no_text_may_stand_for_null_and_in_formats(ottla: Ottla, words: tuple[str, ...]) -> None:
    assert ottla("consume", "t", *words, "-b", "127.0.0.1:1").code == 3, "only the cluster is missing"
    assert (
        format_writer("\udcff%s", null=b"-", is_hex=False)(TopicPartition("t", 0), [Record(0, 0, None, b"v")])
        == b"\xffv"
    )


@pytest.mark.parametrize(
    "line",
    [
        b'{"value": "x", "timestamp_ms": -2}',
        b'{"value": "x", "timestamp_ms": 9223372036854775808}',
        b'{"value": "x", "timestamp_ms": true}',
        b'{"value": "x", "timestamp_ms": 1.5}',
        b'{"value": "x", "headers": [{"name": "\\ud800"}]}',
        b'{"value": "\\ud800"}',
        b"[" * 200_000,
    ],
    ids=lambda line: line[:40].decode(),
)
def test_a_record_that_cannot_be_is_told_by_its_line(ottla: Ottla, line: bytes) -> None:
    with broker_in_thread() as running:
        told = ottla("produce", "t", "--input", "json", "-b", running.address, stdin=b'{"value": 1}\n' + line)
    assert told.code == 1
    assert told.err.count("\n") == 2
    assert "standard input, line 2: not a record in JSON" in told.err


def test_a_record_of_old_without_a_time_gets_one(ottla: Ottla) -> None:
    with broker_in_thread() as running:
        line = b'{"value": "x", "timestamp_ms": -1}'
        assert ottla("produce", "t", "--input", "json", "-q", "-b", running.address, stdin=line).code == 0
        out = ottla("consume", "t", "-u", "end", "-q", "--format", "%T", "-b", running.address).out
    assert int(out) > 0


def test_a_broker_that_advertises_no_address_is_told_by_ping(ottla: Ottla) -> None:
    with broker_in_thread({"advertised.listeners": "PLAINTEXT://a..b:9092"}) as running:
        code, _, err = ottla("ping", "-b", running.address)
    assert (code, err.count("\n")) == (1, 1)
    assert "advertises a..b:9092, which cannot be reached from here (no host can have that name)" in err


# ---- names that are there already


def test_what_was_not_created_is_told_as_json_too(ottla: Ottla) -> None:
    with broker_in_thread() as running:
        assert ottla("topics", "create", "old", "-b", running.address).code == 0
        code, out, _ = ottla("topics", "create", "old", "new", "--json", "-b", running.address)
        assert code == 1
        told = {row["topic"]: (row["partitions"], row["error"]) for row in json.loads(out)}
        assert told == {"old": (None, "TOPIC_ALREADY_EXISTS"), "new": (1, None)}
        assert ottla("topics", "create", "old", "--if-not-exists", "-b", running.address) == (
            0,
            "",
            "old exists already\n",
        )
