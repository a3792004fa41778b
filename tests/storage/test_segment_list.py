"""Segments in order: which holds an offset, and how many keep their indexes in memory."""

from __future__ import annotations

from pathlib import Path

from ottla.config.log_config import LogConfig
from ottla.engine import ReadLimit
from ottla.storage.log import PartitionLog
from ottla.storage.segment_list import SegmentList
from tests.storage.harness import make_batch, open_log


def log_of(directory: Path, segments: int) -> PartitionLog:
    """A log with two records in each segment."""
    log = open_log(directory, LogConfig(index_interval_bytes=0))
    for number in range(segments):
        if number:
            log.roll()
        log.append(make_batch(2), leader_epoch=0)
    for segment in log.segments[:-1]:
        segment.unload_indexes()
    return log


def test_an_offset_is_in_the_last_segment_that_does_not_begin_above_it(tmp_path: Path) -> None:
    found = SegmentList(list(log_of(tmp_path, 4).segments))
    assert [segment.base_offset for segment in found.holding(3)] == [2, 4, 6]
    assert [segment.base_offset for segment in found.holding(4)] == [4, 6]
    assert [segment.base_offset for segment in found.holding(100)] == [6]


def test_a_few_old_segments_keep_their_indexes_and_the_active_one_always_does(tmp_path: Path) -> None:
    log = log_of(tmp_path, 9)
    for segment in log.segments:
        log.keep_warm(segment)
        segment.read(segment.base_offset + 1, limit=_everything())
    assert [segment.base_offset for segment in log.segments if segment.has_indexes] == [8, 10, 12, 14, 16]


def test_what_is_replaced_is_closed_and_forgotten(tmp_path: Path) -> None:
    log = log_of(tmp_path, 4)
    found = SegmentList(list(log.segments))
    first, second, third, active = found.all
    for segment in (first, second):
        found.keep_warm(segment)
    found.replace([first, second], [])
    assert found.all == [third, active]
    assert [segment.base_offset for segment in found.holding(0)] == [4, 6]
    assert not first.file.is_open
    assert found.drop_active() is active
    assert found.active is third


def _everything() -> ReadLimit:
    return ReadLimit(1_000_000, 1_000_000, at_least_one_batch=True)
