"""`ottla storage` and `ottla dump-log` on directories that Kafka wrote."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ottla.cli.dump_log import dump_log
from ottla.cli.storage import storage

GOLDEN = Path(__file__).parent.parent / "golden" / "directories"


def unpack(case: str, directory: Path) -> Path:
    with tarfile.open(GOLDEN / f"{case}.tar.gz") as archive:
        archive.extractall(directory, filter="fully_trusted")
    return directory / "kafka-logs"


def dump(*arguments: str) -> Result:
    return CliRunner().invoke(dump_log, arguments)


def rows(printed: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in printed.splitlines()]


def test_damage_is_found_said_and_repaired(tmp_path: Path) -> None:
    directory = unpack("torn", tmp_path)
    before = {path: path.read_bytes() for path in directory.rglob("*.log")}
    runner = CliRunner()

    assert runner.invoke(storage, ["verify", str(directory)]).exit_code == 1
    dry = runner.invoke(storage, ["repair", "--dry-run", str(directory)])
    assert "7039 bytes would be cut off" in dry.stdout
    assert {path: path.read_bytes() for path in directory.rglob("*.log")} == before
    assert "7039 bytes were cut off" in runner.invoke(storage, ["repair", str(directory)]).stdout
    whole = runner.invoke(storage, ["verify", "--json", str(directory)])
    assert (whole.exit_code, json.loads(whole.stdout)) == (0, [])


def test_damaged_metadata_is_cut_only_when_that_is_asked_for(tmp_path: Path) -> None:
    """All topics are known by it alone."""
    directory = unpack("plain", tmp_path)
    log = next((directory / "__cluster_metadata-0").glob("*.log"))
    damaged = bytearray(log.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    log.write_bytes(damaged)
    runner = CliRunner()

    for words in (["repair"], ["repair", "--dry-run"], ["repair", "--json"]):
        left = runner.invoke(storage, [*words, str(directory)])
        assert left.exit_code == 1
        assert "restore it from a backup, or see --cut-metadata" in left.stderr
        assert log.read_bytes() == damaged
    assert runner.invoke(storage, ["repair", "--cut-metadata", "--dry-run", str(directory)]).exit_code == 0
    assert log.read_bytes() == damaged
    assert runner.invoke(storage, ["repair", "--cut-metadata", str(directory)]).exit_code == 0
    assert len(log.read_bytes()) < len(damaged)


def test_info_lists_partitions(tmp_path: Path) -> None:
    directory = unpack("plain", tmp_path)
    result = CliRunner().invoke(storage, ["info", "--json", str(directory)])
    facts = json.loads(result.stdout)
    assert facts["was_left_cleanly"]
    assert {"partition", "topic_id", "segments", "bytes", "first_offset", "recovery_point"} == set(
        facts["partitions"][0]
    )


def test_info_is_told_in_words_and_in_the_order_of_numbers(tmp_path: Path) -> None:
    directory = unpack("plain", tmp_path)
    for number in (2, 10, 1):
        (directory / f"many-{number}").mkdir()
    lines = CliRunner().invoke(storage, ["info", str(directory)]).stdout.splitlines()
    assert "was_left_cleanly: yes" in lines
    many = [line.split()[0] for line in lines if line.split()[:1] and line.split()[0].startswith("many-")]
    assert many == ["many-1", "many-2", "many-10"]


@pytest.mark.parametrize(
    ("log", "type_name"), [("__cluster_metadata-0", "TopicRecord"), ("__consumer_offsets-*", "OffsetCommit")]
)
def test_records_of_the_brokers_own_topics_are_decoded(tmp_path: Path, log: str, type_name: str) -> None:
    directory = unpack("groups", tmp_path)
    paths = [str(path) for path in sorted(directory.glob(f"{log}/*.log"))]
    result = dump("--records", "--json", *paths)
    assert result.exit_code == 0
    assert type_name in {row.get("type") for row in rows(result.stdout)}
    assert not [row for row in rows(result.stdout) if "problem" in row]


def test_damaged_file_ends_with_1(tmp_path: Path) -> None:
    directory = unpack("torn", tmp_path)
    result = dump(str(directory / "tx-1"))
    assert result.exit_code == 1
    assert "problem=" in result.stdout
