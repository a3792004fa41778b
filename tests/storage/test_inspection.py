"""Tools on directories without a broker: what is in them, what is wrong, and made whole."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from ottla.config.log_config import LogConfig
from ottla.records.control import ControlType, EndTransactionMarker, end_transaction_batch
from ottla.records.jafka import build_set
from ottla.storage.dump import NothingToShow, dump_file, plain_record
from ottla.storage.files import LocalFileSystem
from ottla.storage.inspection import describe_directory, partition_directories, repair_partition
from ottla.storage.verify import verify_partition
from tests.storage.harness import GOLDEN, TOPIC_ID, TP, make_batch, start_manager

FILES = LocalFileSystem()
STEM = "00000000000000000000"


def write_log(directory: Path) -> Path:
    """A log of two segments, closed cleanly; returns its partition's directory."""
    manager = start_manager(directory)
    manager.create(TP, TOPIC_ID, LogConfig(internal_segment_bytes=600, index_interval_bytes=100))
    for sequence in range(2):
        batch = make_batch(producer_id=3, producer_epoch=0, base_sequence=sequence, is_transactional=True)
        manager.begin_append(TP, batch, leader_epoch=0)
    marker = EndTransactionMarker(ControlType.ABORT, 0)
    end = end_transaction_batch(marker, producer_id=3, producer_epoch=0, timestamp_ms=1_750_000_000_000)
    manager.begin_append(TP, bytearray(end), leader_epoch=0)
    for _ in range(10):
        manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.close()
    return directory / "t-0"


def problems(directory: Path) -> list[str]:
    return [finding.path.rpartition("/")[2] for finding in verify_partition(FILES, str(directory))]


def test_whole_log_has_no_findings(tmp_path: Path) -> None:
    assert problems(write_log(tmp_path)) == []


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
@pytest.mark.parametrize("damage", [b"", bytes(40), b"\x01" * 13])
def test_damaged_index_is_found_and_made_again(tmp_path: Path, suffix: str, damage: bytes) -> None:
    directory = write_log(tmp_path)
    path = directory / (STEM + suffix)
    before = path.read_bytes()
    path.write_bytes(damage)
    if damage or suffix == ".txnindex":
        assert path.name in problems(directory)
    assert repair_partition(FILES, str(directory)) == 0
    assert problems(directory) == []
    if suffix == ".txnindex":  # the others are sparse, and a repair knows no topic's index.interval.bytes
        assert path.read_bytes() == before


def test_flipped_bit_is_found_and_cut_off(tmp_path: Path) -> None:
    directory = write_log(tmp_path)
    path = directory / f"{STEM}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    first, *behind = [one for one in verify_partition(FILES, str(directory)) if one.loses_bytes]
    assert first.path == str(path)
    assert [(one.path, one.problem) for one in behind] == [
        (str(later), "stands behind what is damaged") for later in sorted(directory.glob("*.log"))[1:]
    ]
    assert repair_partition(FILES, str(directory)) == sum(one.loses_bytes for one in (first, *behind))
    assert problems(directory) == []


def test_of_a_damaged_segment_behind_another_all_goes(tmp_path: Path) -> None:
    directory = write_log(tmp_path)
    for path in (directory / f"{STEM}.log", max(directory.glob("*.log"))):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    findings = list(verify_partition(FILES, str(directory)))
    assert "checksum" in findings[-1].problem
    assert repair_partition(FILES, str(directory)) == sum(one.loses_bytes for one in findings)


@pytest.mark.parametrize("base_offset", [0, 1], ids=["all of it", "a part of it"])
def test_a_batch_that_begins_within_the_one_before_is_found_and_cut_off(tmp_path: Path, base_offset: int) -> None:
    """No checksum covers a base offset, and a repair believes none that goes back."""
    manager = start_manager(tmp_path)
    manager.create(TP, TOPIC_ID, LogConfig())
    for _ in range(2):
        manager.begin_append(TP, make_batch(3), leader_epoch=0)
    manager.close()
    log = tmp_path / "t-0" / f"{STEM}.log"
    data = bytearray(log.read_bytes())
    second = len(data) // 2
    data[second : second + 8] = base_offset.to_bytes(8, "big")
    log.write_bytes(data)
    assert problems(log.parent) == [log.name]
    assert repair_partition(FILES, str(log.parent)) == second
    assert problems(log.parent) == []


def test_damaged_snapshot_goes(tmp_path: Path) -> None:
    directory = write_log(tmp_path)
    newest = max(directory.glob("*.snapshot"))
    newest.write_bytes(b"nonsense")
    assert problems(directory) == [newest.name]
    repair_partition(FILES, str(directory))
    assert problems(directory) == []


def test_directory_is_described(tmp_path: Path) -> None:
    with tarfile.open(GOLDEN / "directories" / "torn.tar.gz") as archive:
        archive.extractall(tmp_path, filter="fully_trusted")
    directory = str(tmp_path / "kafka-logs")
    facts = describe_directory(FILES, directory)
    assert (facts["node_id"], facts["was_left_cleanly"]) == (1, False)
    assert len(facts["partitions"]) == len(partition_directories(FILES, directory))
    for path in partition_directories(FILES, directory):
        repair_partition(FILES, path)
        assert list(verify_partition(FILES, path)) == [], path


def test_every_kind_of_file_has_rows(tmp_path: Path) -> None:
    directory = write_log(tmp_path)
    rows = {path.name: list(dump_file(FILES, str(path), plain_record)) for path in directory.iterdir()}
    log = rows[f"{STEM}.log"]
    assert [row["base_offset"] for row in log if "base_offset" in row][:3] == [0, 1, 2]
    assert {"offset": 0, "timestamp": 1_750_000_000_000, "key": "k0", "value": "value"} in log
    assert any(row.get("control") == "ABORT" for row in log)
    assert rows[f"{STEM}.txnindex"][0]["producer_id"] == 3
    assert rows[f"{STEM}.index"][0].keys() == {"offset", "position"}
    assert rows[f"{STEM}.timeindex"][0].keys() == {"timestamp_ms", "offset"}
    assert rows[f"{13:020d}.snapshot"][0]["producer_id"] == 3
    assert rows["partition.metadata"][0] == {"line": "version: 0"}


def test_damage_is_a_row(tmp_path: Path) -> None:
    path = write_log(tmp_path) / f"{STEM}.log"
    path.write_bytes(path.read_bytes() + b"junk")
    *_, last = dump_file(FILES, str(path))
    assert "4 bytes" in last["problem"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"")
    with pytest.raises(NothingToShow):
        list(dump_file(FILES, str(tmp_path / "photo.jpg")))


# ---- logs in Jafka's form


def write_jafka_log(directory: Path) -> Path:
    """A log of three segments of two messages each; returns its partition's directory."""
    manager = start_manager(directory, properties={"ottla.jafka.file.size": "150"})
    config = LogConfig(ottla_format="jafka")
    manager.create(TP, TOPIC_ID, config)
    for offset in range(6):
        manager.jafka.of_topic(TP).append(build_set([bytes(90)]), 1, offset + 1)
    manager.close()
    return directory / "t-0"


def test_a_partition_that_nobody_has_opened_has_no_findings(tmp_path: Path) -> None:
    manager = start_manager(tmp_path)
    manager.create(TP, TOPIC_ID, LogConfig())
    manager.close()
    assert problems(tmp_path / "t-0") == []


def test_a_jafka_log_is_described_and_read_through(tmp_path: Path) -> None:
    directory = write_jafka_log(tmp_path)
    (row,) = describe_directory(FILES, str(tmp_path))["partitions"]
    assert (row["segments"], row["bytes"], row["first_offset"]) == (4, 600, 0)
    assert problems(directory) == []


def test_damage_in_a_jafka_log_is_found_and_its_end_made_whole(tmp_path: Path) -> None:
    directory = write_jafka_log(tmp_path)
    torn = directory / f"{600:020d}.jafka"
    torn.write_bytes(b"torn message")
    assert [finding.loses_bytes for finding in verify_partition(FILES, str(directory))] == [12]
    assert repair_partition(FILES, str(directory)) == 12
    assert problems(directory) == []
    older = directory / f"{200:020d}.jafka"
    data = bytearray(older.read_bytes())
    data[50] ^= 1
    older.write_bytes(data)
    assert [finding.loses_bytes for finding in verify_partition(FILES, str(directory))] == [0]
    older.write_bytes(data[:100])
    assert problems(directory) == [older.name, f"{400:020d}.jafka"]
