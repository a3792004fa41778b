"""Offset and time indexes: Kafka's own files, entry by entry, and what happens to damaged ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.storage.files import LocalFileSystem
from ottla.storage.index import CorruptIndex, OffsetIndex, TimeIndex
from tests.storage.harness import golden_lines

FILES = LocalFileSystem()


def offset_index(path: Path, base_offset: int = 0, max_size_bytes: int = 4096) -> OffsetIndex:
    return OffsetIndex(FILES, str(path / "0.index"), base_offset, max_size_bytes)


def time_index(path: Path, base_offset: int = 0, max_size_bytes: int = 4096) -> TimeIndex:
    return TimeIndex(FILES, str(path / "0.timeindex"), base_offset, max_size_bytes)


SANITY = [case for case in golden_lines("indexes") if case["kind"] == "indexSanity"]


@pytest.mark.parametrize("case", SANITY, ids=lambda case: case["note"])
def test_sanity_check_agrees_with_kafka(tmp_path: Path, case: dict[str, Any]) -> None:
    """A file that ends in zeros passes Kafka's check of offset indexes and not ours: it would hide a position."""
    make = offset_index if case["file"] == "index" else time_index
    index = make(tmp_path, case["baseOffset"])
    FILES.write(index.path, bytes.fromhex(case["hex"]))
    ends_in_zeros = case["file"] == "index" and case["hex"].endswith("0" * 16)

    if case["sanity"] == "ok" and not ends_in_zeros:
        index.load()
    else:
        with pytest.raises(CorruptIndex):
            index.load()

    assert [list(entry) for entry in index.entries()] == case["decoded"]


def test_offset_lookup_finds_the_last_entry_at_or_below(tmp_path: Path) -> None:
    index = offset_index(tmp_path, base_offset=100)
    index.append(105, 50)
    index.append(120, 90)

    assert index.lookup(104) == (100, 0)
    assert index.lookup(105) == (105, 50)
    assert index.lookup(119) == (105, 50)
    assert index.lookup(1000) == (120, 90)


def test_upper_bound_lies_behind_the_position(tmp_path: Path) -> None:
    index = offset_index(tmp_path, max_size_bytes=65536)
    assert index.find_upper_bound(0) is None
    for offset in range(1, 3000):
        index.append(offset, offset * 10)

    assert index.find_upper_bound(5) == (1, 10)
    assert index.find_upper_bound(51) == (6, 60)
    assert index.find_upper_bound(29_985) == (2999, 29_990)
    assert index.find_upper_bound(29_991) is None


def test_offset_must_rise(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    index.append(5, 50)
    with pytest.raises(ValueError, match="not above"):
        index.append(5, 60)


def test_full_index_takes_no_entry(tmp_path: Path) -> None:
    index = offset_index(tmp_path, max_size_bytes=8)
    index.append(5, 50)
    assert index.is_full
    with pytest.raises(ValueError, match="no room"):
        index.append(6, 60)


def test_time_index_keeps_one_slot_for_the_roll(tmp_path: Path) -> None:
    index = time_index(tmp_path, max_size_bytes=24)
    index.maybe_append(10, 1)
    with pytest.raises(ValueError, match="no room"):
        index.maybe_append(20, 2)
    index.maybe_append(20, 2, use_last_slot=True)
    assert index.entries() == [(10, 1), (20, 2)]


def test_time_index_takes_only_newer_timestamps(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    index.maybe_append(10, 1)
    index.maybe_append(10, 2)
    index.maybe_append(9, 3)
    assert index.entries() == [(10, 1)]


def test_time_index_refuses_an_offset_that_falls(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    index.maybe_append(10, 5)
    with pytest.raises(ValueError, match="below"):
        index.maybe_append(11, 4)


def test_truncation_drops_entries_at_and_above_the_offset(tmp_path: Path) -> None:
    offsets, times = offset_index(tmp_path), time_index(tmp_path)
    for offset in (1, 5, 9):
        offsets.append(offset, offset * 10)
        times.maybe_append(offset * 100, offset)

    offsets.truncate_to(5)
    times.truncate_to(5)

    assert offsets.entries() == [(1, 10)]
    assert times.entries() == [(100, 1)]


def test_stored_entries_come_back(tmp_path: Path) -> None:
    index = offset_index(tmp_path, base_offset=7)
    index.append(9, 77)
    index.store()
    index.unload()
    assert len(index) == 0

    index.load()

    assert index.entries() == [(9, 77)]


def test_time_entry_below_the_segment_is_corrupt(tmp_path: Path) -> None:
    index = time_index(tmp_path, base_offset=100)
    FILES.write(index.path, bytes.fromhex("00000000000000ff") + (-1).to_bytes(4, "big", signed=True))
    with pytest.raises(CorruptIndex, match="below"):
        index.load()


def test_offset_entry_below_the_segment_is_corrupt(tmp_path: Path) -> None:
    index = offset_index(tmp_path, base_offset=100)
    FILES.write(index.path, (-1).to_bytes(4, "big", signed=True) + (5).to_bytes(4, "big"))
    with pytest.raises(CorruptIndex, match="below"):
        index.load()


def test_an_entry_that_has_no_place_leaves_nothing_behind(tmp_path: Path) -> None:
    """Half an entry would move all that follow."""
    offsets = OffsetIndex(LocalFileSystem(), str(tmp_path / "i"), 10, 1024)
    times = TimeIndex(LocalFileSystem(), str(tmp_path / "t"), 10, 1024)
    for offset, position in ((15, 2**31), (10 + 2**31, 0)):
        with pytest.raises(OverflowError):
            offsets.append(offset, position)
    with pytest.raises(OverflowError):
        times.maybe_append(7, 10 + 2**31)
    offsets.append(16, 2**31 - 1)
    times.maybe_append(8, 9 + 2**31)

    assert offsets.entries() == [(16, 2**31 - 1)]
    assert times.entries() == [(8, 9 + 2**31)]
