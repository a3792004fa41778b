"""Recovery: what a damaged segment keeps, and what a directory is worth after any stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.config.log_config import LogConfig
from ottla.errors import KafkaStorageError
from ottla.storage.files import LocalFileSystem
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.open_files import OpenFiles
from ottla.storage.producer_state import ProducerStates
from ottla.storage.recovery import LoadPoint, recover_segment
from ottla.storage.segment import Segment
from tests.storage.harness import A_DAY_MS, CLEAN, UNCLEAN, golden_lines, make_batch, make_host, open_log
from tests.storage.producers import describe_producers

FILES = LocalFileSystem()


@pytest.mark.parametrize("case", list(golden_lines("iterate")), ids=lambda case: f"{case['id']} {case['note']}")
def test_recovered_segment_agrees_with_kafka(tmp_path: Path, case: dict[str, Any]) -> None:
    config = LogConfig(index_interval_bytes=case["indexIntervalBytes"])
    segment = Segment(FILES, OpenFiles(FILES, 16), str(tmp_path), case["segmentBaseOffset"], config)
    FILES.write(segment.file.path, bytes.fromhex(case["hex"]))
    segment.attach(len(case["hex"]) // 2)
    producers = ProducerStates(A_DAY_MS)
    epochs = LeaderEpochs(FILES, str(tmp_path / "leader-epoch-checkpoint"))

    removed = recover_segment(segment, producers, epochs)

    expected = case["recover"]
    assert FILES.size(segment.file.path) == segment.size_bytes
    if "error" in expected:
        assert removed > 0  # Kafka gives the segment up; we keep what comes before the impossible offset
        return
    assert (removed, segment.size_bytes) == (expected["truncatedBytes"], expected["validBytes"])
    assert segment.next_offset == expected["nextOffset"]
    assert segment.max_timestamp_ms == expected["maxTimestamp"]
    assert segment.offset_of_max_timestamp == expected["offsetOfMaxTimestamp"]
    assert FILES.read(segment.offset_index.path).hex() == expected["indexHex"]
    assert FILES.read(segment.time_index.path).hex() == expected["timeIndexHex"]
    assert describe_producers(producers) == expected["producers"]
    assert [list(entry) for entry in epochs.entries] == expected["leaderEpochs"]
    assert [list(txn) for txn in segment.txn_index] == [
        [txn["producerId"], txn["firstOffset"], txn["lastOffset"], txn["lastStableOffset"]]
        for txn in expected["abortedTxns"]
    ]


class SyncsNoted(LocalFileSystem):
    """Remembers which files were synced by name."""

    __slots__ = ("synced",)

    def __init__(self) -> None:
        self.synced: list[str] = []

    def sync_file(self, path: str) -> None:
        self.synced.append(Path(path).name)
        super().sync_file(path)


@pytest.mark.parametrize("point", [CLEAN, UNCLEAN], ids=["missing", "checked"])
def test_indexes_that_are_made_anew_are_on_disk_before_they_count(tmp_path: Path, point: LoadPoint) -> None:
    """Below the recovery point the next start takes them as they are, and a power cut may tear what was not synced."""
    config = LogConfig(internal_segment_bytes=700, index_interval_bytes=10)
    log = open_log(tmp_path, config)
    for _ in range(8):
        log.append(make_batch(value=b"x" * 80), 0)
    log.close()
    index = tmp_path / f"{0:020d}.index"
    index.unlink()
    files = SyncsNoted()
    open_log(tmp_path, config, host=make_host(filesystem=files)[0], point=point)
    assert index.exists()
    assert index.name in files.synced


def set_base_offset(path: Path, number: int, base_offset: int) -> None:
    """Change the base offset of a batch, which no checksum covers."""
    data = bytearray(path.read_bytes())
    position = 0
    for _ in range(number):
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    data[position : position + 8] = base_offset.to_bytes(8, "big")
    path.write_bytes(data)


def write_log(directory: Path, config: LogConfig, count: int) -> None:
    log = open_log(directory, config)
    for number in range(count):
        log.append(make_batch(timestamp_ms=1_750_000_000_000 + number), 0)
    log.close()


@pytest.mark.parametrize("interval_bytes", [1, 4096])
@pytest.mark.parametrize("number", [6, 3], ids=["the last", "one in the middle"])
def test_a_batch_whose_offset_went_back_is_cut_off(
    tmp_path: Path, number: int, interval_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A power cut may leave zeros where the offset was. A reader of such a batch would go on at 1, for ever."""
    config = LogConfig(index_interval_bytes=interval_bytes)
    write_log(tmp_path, config, 7)
    set_base_offset(tmp_path / f"{0:020d}.log", number, 0)
    log = open_log(tmp_path, config, point=UNCLEAN)
    assert log.log_end_offset == number
    assert log.cut_bytes > 0
    assert "begins at 0, and" in caplog.text
    log.append(make_batch(), 0)
    assert log.log_end_offset == number + 1


def test_a_batch_that_was_known_to_be_on_the_disk_is_kept_as_kafka_does(tmp_path: Path) -> None:
    config = LogConfig()
    write_log(tmp_path, config, 7)
    set_base_offset(tmp_path / f"{0:020d}.log", 3, 0)
    log = open_log(tmp_path, config, point=UNCLEAN._replace(recovery_point=7))
    assert (log.log_end_offset, log.cut_bytes) == (7, 0)


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
def test_a_log_that_lost_what_was_on_the_disk_says_so(
    tmp_path: Path, is_clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Offsets that consumers have seen come again; whoever runs the broker must hear of it."""
    config = LogConfig(internal_segment_bytes=200)
    write_log(tmp_path, config, 6)
    point = LoadPoint(is_clean, recovery_point=6, log_start_offset=0)
    assert open_log(tmp_path, config, point=point).log_end_offset == 6
    assert not caplog.records
    max(tmp_path.glob("*.log")).unlink()
    end = open_log(tmp_path, config, point=point).log_end_offset
    assert end < 6
    assert f"t-0 ends at {end}, and records up to 6 were on disk" in caplog.text


def test_a_batch_that_reaches_into_the_next_segment_is_cut_off(tmp_path: Path) -> None:
    """Offsets of two segments would overlap, and what the second one holds could be read at two places."""
    config = LogConfig(internal_segment_bytes=200)
    write_log(tmp_path, config, 6)
    first, second = sorted(tmp_path.glob("*.log"))[:2]
    last = int(second.stem) - 1
    set_base_offset(first, last, int(second.stem))
    assert open_log(tmp_path, config, point=UNCLEAN).log_end_offset == last


def test_an_index_is_made_anew_of_a_log_whose_offsets_go_back(tmp_path: Path) -> None:
    """Nothing is checked after a clean stop, and what lies behind such a batch can still be read."""
    config = LogConfig(index_interval_bytes=1, internal_segment_bytes=900)
    write_log(tmp_path, config, 24)
    first = min(tmp_path.glob("*.log"))
    set_base_offset(first, 3, 0)
    first.with_suffix(".index").unlink()
    log = open_log(tmp_path, config)
    assert log.log_end_offset == 24
    found = log.segments[0].locate(5)
    assert found is not None
    assert found.base_offset == 5


@pytest.mark.parametrize("damage", ["a stray file", "its end is missing", "a bit turned"])
def test_a_damaged_segment_does_not_take_the_place_of_good_ones(tmp_path: Path, damage: str) -> None:
    """What a swap replaces is removed, and nobody could tell any more what was there."""
    write_log(tmp_path, LogConfig(), 6)
    log = tmp_path / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    if damage == "a bit turned":
        data[-1] ^= 1
    swap = Path(f"{log}.swap")
    swap.write_bytes(
        {"a stray file": b"half of somet", "its end is missing": bytes(data[:-1])}.get(damage, bytes(data))
    )
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    with pytest.raises(KafkaStorageError, match=r"log\.swap is damaged at byte"):
        open_log(tmp_path)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    swap.unlink()
    assert open_log(tmp_path).log_end_offset == 6


@pytest.mark.parametrize("stem", ["9" * 20, "\N{SUPERSCRIPT TWO}", "garbage", "-1"])
@pytest.mark.parametrize("suffix", [".log", ".snapshot"])
def test_a_file_that_is_named_after_no_offset_is_left_alone(tmp_path: Path, stem: str, suffix: str) -> None:
    log = open_log(tmp_path)
    log.append(make_batch(2), 0)
    log.close()
    (tmp_path / (stem + suffix)).write_bytes(b"x")

    for point in (CLEAN, UNCLEAN):
        assert open_log(tmp_path, point=point).log_end_offset == 2
    assert (tmp_path / (stem + suffix)).read_bytes() == b"x"
