"""`preallocate`: room is reserved for a segment when it begins, and what is left of it given back when it ends."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random

import pytest

from ottla.config.log_config import LogConfig
from ottla.errors import KafkaStorageError
from ottla.storage.files import LocalFile, LocalFileSystem
from ottla.testing.faults import Faults, FaultyFileSystem
from tests.storage.harness import UNCLEAN, make_batch, make_host, open_log

CONFIG = LogConfig(segment_bytes=1 << 20, preallocate=True)
FIRST = "00000000000000000000.log"


class NotedFile(LocalFile):
    """A file that notes what is reserved and given back."""

    __slots__ = ("_name", "_notes")

    def __init__(self, descriptor: int, name: str, notes: list[tuple[str, str, int]]) -> None:
        super().__init__(descriptor)
        self._name = name
        self._notes = notes

    def preallocate(self, size_bytes: int) -> None:
        super().preallocate(size_bytes)
        self._notes.append(("reserve", self._name, size_bytes))

    def truncate(self, size_bytes: int) -> None:
        super().truncate(size_bytes)
        self._notes.append(("trim", self._name, size_bytes))


class NotedFileSystem(LocalFileSystem):
    def __init__(self) -> None:
        self.notes: list[tuple[str, str, int]] = []

    def open(self, path: str, *, create: bool = False) -> NotedFile:
        return NotedFile(super().open(path, create=create).descriptor, Path(path).name, self.notes)


def test_a_segments_room_is_reserved_at_its_begin_and_trimmed_at_its_end(tmp_path: Path) -> None:
    files = NotedFileSystem()
    log = open_log(tmp_path, CONFIG, host=make_host(filesystem=files)[0])
    size = len(make_batch())
    log.append(make_batch(), leader_epoch=0)
    log.roll()
    log.append(make_batch(), leader_epoch=0)
    log.close()
    second = "00000000000000000001.log"
    assert files.notes == [
        ("reserve", FIRST, 1 << 20),
        ("trim", FIRST, size),
        ("reserve", second, 1 << 20),
        ("trim", second, size),
    ]


def test_nothing_is_reserved_unasked(tmp_path: Path) -> None:
    files = NotedFileSystem()
    log = open_log(tmp_path, LogConfig(), host=make_host(filesystem=files)[0])
    log.append(make_batch(), leader_epoch=0)
    log.roll()
    log.close()
    assert files.notes == []


def test_the_file_is_as_large_as_what_was_written(tmp_path: Path) -> None:
    """So appends find its end, whoever opens it, and recovery finds nothing to cut."""
    log = open_log(tmp_path, CONFIG)
    log.append(make_batch(), leader_epoch=0)
    assert (tmp_path / FIRST).stat().st_size == len(make_batch())
    log.active.file.close_if_idle()
    log.active.file.close_if_idle()
    log.append(make_batch(), leader_epoch=0)
    again = open_log(tmp_path, CONFIG, point=UNCLEAN)
    assert (again.log_end_offset, again.cut_bytes) == (2, 0)


def test_the_blocks_are_there_and_go_with_the_trim(tmp_path: Path) -> None:
    """On file systems that can; others have none before and after."""
    log = open_log(tmp_path, CONFIG)
    reserved = (tmp_path / FIRST).stat().st_blocks
    log.append(make_batch(), leader_epoch=0)
    log.close()
    assert reserved in (0, (1 << 20) // 512)
    assert (tmp_path / FIRST).stat().st_blocks <= 16


def test_without_room_no_segment_begins_and_the_old_one_stays(tmp_path: Path) -> None:
    faults = Faults(Random(1))
    faults.error = errno.ENOSPC
    host, _ = make_host(filesystem=FaultyFileSystem(LocalFileSystem(), faults))
    log = open_log(tmp_path, LogConfig(internal_segment_bytes=100, preallocate=True), host=host)
    log.append(make_batch(), leader_epoch=0)
    faults.fails = lambda call, _: call == "preallocate"
    with pytest.raises(KafkaStorageError, match="no new segment"):
        log.append(make_batch(), leader_epoch=0)
    assert sorted(path.name for path in tmp_path.glob("*.log")) == [FIRST]
    faults.fails = None
    assert log.append(make_batch(), leader_epoch=0).base_offset == 1


def test_the_zeros_at_the_end_of_what_kafka_preallocated_are_cut_off(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(make_batch(), leader_epoch=0)
    log.close()
    with (tmp_path / FIRST).open("ab") as file:
        file.truncate(1 << 20)
    again = open_log(tmp_path, CONFIG, point=UNCLEAN)
    assert again.log_end_offset == 1
    assert (tmp_path / FIRST).stat().st_size == len(make_batch())
    assert again.append(make_batch(), leader_epoch=0).base_offset == 1
