"""`ottla commitlog`: files from the command line, and to topics and back."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.commitlog import CommitLog
from ottla.testing.cluster import broker_in_thread

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with broker_in_thread({"num.partitions": "2"}) as running:
        yield running.address


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main(["commitlog", *words])
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return run


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "partition-0.log")


def test_appended_values_are_read_back(run: Run, file: str) -> None:
    assert run("append", file, "hello", "") == (0, "0\n1\n", "")
    assert run("append", file, stdin=b"world!\nlast") == (0, "2\n3\n", "")
    assert run("read", file, "--from", "1") == (0, "\nworld!\nlast\n", "")
    assert run("read", file, "--offsets", "--from", "3") == (0, "3\tlast\n", "")
    out = run("read", file, "--json", "--from", "2")[1]
    assert [json.loads(line) for line in out.splitlines()] == [
        {"offset": 2, "value": "world!"},
        {"offset": 3, "value": "last"},
    ]
    assert run("verify", file) == (0, "4 records in 63 of 63 bytes\n", "")


def test_a_torn_end_is_told_after_the_good_records(run: Run, file: str) -> None:
    with CommitLog(file) as log:
        log.append_many([b"good", b"torn"])
    path = Path(file)
    path.write_bytes(path.read_bytes()[:-1])

    assert run("read", file) == (
        1,
        "good\n",
        f"ottla: {file}: unexpected end of the file inside the record at byte 16\n",
    )
    code, out, _ = run("verify", "--json", file)
    assert (code, json.loads(out)["records"], json.loads(out)["valid_bytes"]) == (1, 1, 16)


def test_a_file_goes_to_a_topic_and_comes_back(run: Run, file: str, tmp_path: Path, address: str) -> None:
    values = [b"value %d" % number for number in range(2500)]
    with CommitLog(file) as log:
        log.append_many(values)
    back = str(tmp_path / "back.log")

    code, _, err = run("import", file, "logs", "-p", "1", "-b", address)
    assert (code, err) == (0, "2,500 records sent to logs-1\n")
    code, _, err = run("export", "logs", back, "-p", "1", "-b", address)
    assert (code, err) == (0, f"2,500 records written to {back}\n")
    assert Path(back).read_bytes() == Path(file).read_bytes()
    assert run("export", "logs", back, "--from", "2498", "-p", "1", "-b", address)[0] == 0
    with CommitLog(back) as log:
        assert [record.value for record in log.read(2500)] == values[2498:]


def test_a_torn_file_is_sent_as_far_as_it_is_good(run: Run, file: str, address: str) -> None:
    with CommitLog(file) as log:
        log.append_many([b"good", b"torn"])
    path = Path(file)
    path.write_bytes(path.read_bytes()[:-1])

    code, _, err = run("import", file, "torn", "-b", address)

    assert code == 1
    assert err.splitlines()[0] == "1 record sent to torn-0"
    assert "unexpected end" in err


def test_a_topic_in_jafkas_format_takes_a_file_once_nothing_needs_to_be_numbered(run: Run, file: str) -> None:
    with CommitLog(file) as log:
        log.append_many([b"one", b"two"])
    with broker_in_thread() as running:
        with pytest.raises(SystemExit):
            main(["topics", "create", "j", "--config", "ottla.format=jafka", "-b", running.address])
        code, _, err = run("import", file, "j", "-b", running.address)
        assert code == 1 and "take acks=1 or enable.idempotence=false" in err
        code, _, err = run("import", file, "j", "--acks", "1", "-b", running.address)
        assert (code, err) == (0, "2 records sent to j-0\n")


def test_an_unknown_topic_is_not_made_by_an_export(run: Run, file: str, address: str) -> None:
    code, _, err = run("export", "nowhere", file, "-b", address)

    assert code == 1
    assert "'nowhere' does not exist" in err
