"""`ottla decode`: log bytes in a file, as a consumer sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.records.builder import BatchBuilder


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of three records in two batches."""
    first, second = BatchBuilder(), BatchBuilder(base_offset=2)
    first.append(1000, b"k1", b"one")
    first.append(2000, None, b"two\n")
    second.append(3000, b"\xff", None, (("h", b"x"),))
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(first.build() + second.build())
    return path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["decode", *words])
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_records_are_shown_with_the_position_after_them(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, str(log), "--from", "1", "--high-watermark", "3")

    assert code == 0
    assert out.splitlines() == [
        "offset\ttime\tkey\tvalue\theaders",
        "1\t1970-01-01T00:00:02.000Z\t-\ttwo\\n\t",
        "2\t1970-01-01T00:00:03.000Z\t\\xff\t-\th=x",
        "position 3, lag 0, next fetch offset 3",
    ]


def test_json_has_bytes_in_hex(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, str(log), "--high-watermark", "1", "--json")

    assert code == 0
    assert json.loads(out) == {
        "records": [{"offset": 0, "timestamp": 1000, "key": "6b31", "value": "6f6e65", "headers": []}],
        "position": 1,
        "lag": 0,
        "next_fetch_offset": 1,
    }


def test_damage_is_told_after_the_records_before_it(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)

    code, out, err = run(capsys, str(log), "--high-watermark", "3")

    assert code == 1
    assert out.splitlines()[-1] == "position 2, lag 1, next fetch offset 2"
    assert err == "ottla: the batch fails its checksum [corrupt_crc]\n"


def test_an_aborted_transaction_has_two_numbers(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, str(log), "--read-committed", "--aborted", "7")

    assert code == 2
    assert "is no PRODUCER:OFFSET" in err
