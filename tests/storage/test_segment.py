"""Segments: index entries as Kafka makes them, and where batches and times are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import ReadLimit
from ottla.errors import KafkaStorageError
from ottla.records.legacy import split_any
from ottla.storage.files import LocalFileSystem
from ottla.storage.open_files import OpenFiles
from ottla.storage.segment import Segment
from ottla.storage.timestamps import find_timestamp
from tests.storage.harness import golden_lines, make_batch

FILES = LocalFileSystem()
CASES = [case for case in golden_lines("indexes") if case["kind"] == "segment"]


def segment_at(path: Path, base_offset: int = 0, config: LogConfig | None = None) -> Segment:
    return Segment(FILES, OpenFiles(FILES, 16), str(path), base_offset, LogConfig() if config is None else config)


def append_case(segment: Segment, case: dict[str, Any]) -> None:
    """Append what the case appends; each step has one batch or several."""
    for step in case["appends"]:
        data = bytes.fromhex(step["hex"])
        assert segment.size_bytes == step["position"]
        for batch in split_any(data):
            piece = data[: batch.size_in_bytes]
            data = data[batch.size_in_bytes :]
            if "error" in step:
                with pytest.raises(ValueError, match=r"no room|too far"):
                    segment.append(piece, batch.last_offset, batch.max_timestamp)
            else:
                segment.append(piece, batch.last_offset, batch.max_timestamp)
        if "error" not in step:
            assert len(segment.offset_index) == step["offsetIndexEntries"]
            assert len(segment.time_index) == step["timeIndexEntries"]


@pytest.fixture(params=CASES, ids=lambda case: f"{case['id']} {case['note']}")
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


@pytest.fixture
def segment(tmp_path: Path, case: dict[str, Any]) -> Segment:
    config = LogConfig(index_interval_bytes=case["indexIntervalBytes"], segment_index_bytes=case["segmentIndexBytes"])
    segment = segment_at(tmp_path, case["segmentBaseOffset"], config)
    append_case(segment, case)
    return segment


def test_indexes_agree_with_kafka_while_open_and_after(segment: Segment, case: dict[str, Any]) -> None:
    opened, closed = case["open"], case["inactive"]
    assert [list(entry) for entry in segment.offset_index.entries()] == opened["offsetIndex"]
    assert [list(entry) for entry in segment.time_index.entries()] == opened["timeIndex"]
    assert segment.size_bytes == opened["logBytes"]
    assert segment.max_timestamp_ms == opened["maxTimestamp"]
    assert segment.offset_of_max_timestamp == opened["offsetOfMaxTimestamp"]
    assert segment.offset_index.max_entries == opened["maxOffsetEntries"]
    assert segment.time_index.max_entries == opened["maxTimeEntries"]
    assert segment.offset_index.is_full == opened["offsetIndexFull"]
    assert segment.time_index.is_full == opened["timeIndexFull"]

    segment.become_inactive()

    assert FILES.read(segment.offset_index.path).hex() == closed["indexHex"]
    assert FILES.read(segment.time_index.path).hex() == closed["timeIndexHex"]
    assert FILES.exists(segment.txn_index.path) == closed["txnIndexExists"]


@pytest.mark.parametrize("from_memory", [True, False], ids=["from the tail in memory", "from the file"])
def test_batches_are_found_where_kafka_finds_them(segment: Segment, case: dict[str, Any], from_memory: bool) -> None:
    if not from_memory:
        segment.forget_tail()
    for query in case["lookups"]:
        entry = segment.offset_index.lookup(query["offset"])
        found = segment.locate(query["offset"])

        assert entry == (query["indexOffset"], query["indexPosition"]), query
        if query["found"] is None:
            assert found is None, query
        else:
            assert found is not None, query
            assert (found.position, found.size_bytes) == (query["found"]["position"], query["found"]["size"]), query
            if not from_memory and found.magic == 2:
                assert found.base_offset == query["found"]["baseOffset"], query


def test_times_are_found_where_kafka_finds_them(segment: Segment, case: dict[str, Any]) -> None:
    for query in case["timeLookups"]:
        entry = segment.time_index.lookup(query["timestamp"])
        found = find_timestamp(segment, query["timestamp"], segment.base_offset)

        assert entry == (query["indexTimestamp"], query["indexOffset"]), query
        if query["found"] is None:
            assert found is None, query
        else:
            epoch = query["found"]["leaderEpoch"]
            expected = (query["found"]["timestamp"], query["found"]["offset"], -1 if epoch is None else epoch)
            assert found == expected, query


def append_batches(segment: Segment, count: int, *, value: bytes = b"value") -> None:
    for offset in range(count):
        batch = make_batch(value=value, timestamp_ms=1000 + offset)
        batch[:8] = offset.to_bytes(8, "big")
        segment.append(batch, offset, 1000 + offset)


def test_tail_in_memory_is_bounded_and_the_rest_is_found_in_the_file(tmp_path: Path) -> None:
    segment = segment_at(tmp_path)
    append_batches(segment, 5000)
    size = segment.size_bytes // 5000
    for offset in (0, 1, 17, 2500, 3951, 3952, 3953, 4999):
        found = segment.locate(offset)
        assert found is not None
        assert (found.position, found.last_offset) == (offset * size, offset)


def test_missing_and_damaged_indexes_are_made_anew(tmp_path: Path) -> None:
    segment = segment_at(tmp_path)
    append_batches(segment, 200)
    segment.become_inactive()
    offsets, times = FILES.read(segment.offset_index.path), FILES.read(segment.time_index.path)
    assert offsets
    FILES.remove(segment.time_index.path)
    FILES.write(segment.offset_index.path, offsets[:-3])

    again = segment_at(tmp_path)
    again.attach(segment.size_bytes)
    again.next_offset = 200
    again.load_indexes()

    assert FILES.read(segment.offset_index.path) == offsets
    assert FILES.read(segment.time_index.path) == times


def test_indexes_of_a_file_that_was_emptied_are_made_anew(tmp_path: Path) -> None:
    """Or the first append, and the stop, would be refused for going back."""
    segment = segment_at(tmp_path)
    append_batches(segment, 200)
    segment.become_inactive()

    again = segment_at(tmp_path)
    FILES.write(again.file.path, b"")
    again.attach(0)
    append_batches(again, 1)
    again.become_inactive()

    assert again.offset_index.last_offset == 0
    assert again.time_index.last_entry.offset == 0


def test_truncation_ends_before_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    segment = segment_at(tmp_path, config=LogConfig(index_interval_bytes=0))
    append_batches(segment, 10)
    size = segment.size_bytes // 10

    removed = segment.truncate_to(4)

    assert removed == 6 * size
    assert segment.size_bytes == FILES.size(segment.file.path) == 4 * size
    assert segment.next_offset == 4
    assert segment.offset_index.last_offset == 3
    assert segment.max_timestamp_ms == 1003


def test_read_of_a_file_that_is_no_log_is_a_storage_error(tmp_path: Path) -> None:
    segment = segment_at(tmp_path)
    append_batches(segment, 3)
    FILES.write(segment.file.path, bytes(segment.size_bytes))
    segment.forget_tail()
    with pytest.raises(KafkaStorageError, match="no batch begins"):
        segment.read(1, ReadLimit(1000, 3, at_least_one_batch=True))
