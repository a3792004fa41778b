"""Recovery: what a damaged segment keeps, and what a directory is worth after any stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.config.log_config import LogConfig
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


def test_a_last_batch_whose_offset_went_back_does_not_end_the_start(tmp_path: Path) -> None:
    """A power cut may leave zeros where the offset was, which no checksum covers."""
    config = LogConfig(index_interval_bytes=1)
    log = open_log(tmp_path, config)
    for number in range(6):
        log.append(make_batch(timestamp_ms=1_750_000_000_000 + number), 0)
    position = log.active.size_bytes
    log.append(make_batch(timestamp_ms=1_750_000_001_000), 0)
    log.close()
    path = tmp_path / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[position : position + 8] = bytes(8)
    path.write_bytes(data)
    assert open_log(tmp_path, config, point=UNCLEAN).log_end_offset == 6
