"""New partitions get their directories in turns, and nobody who needs one earlier notices."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import LogOffsets, ReadLimit
from ottla.errors import KafkaStorageError, UnknownTopicOrPartition
from ottla.model import TopicPartition
from ottla.storage.files import LocalFileSystem
from ottla.storage.making import AT_ONCE, TURN_SECONDS
from ottla.storage.manager import LogManager
from ottla.testing.clock import ManualClock
from tests.storage.harness import TOPIC_ID, ManualOffload, make_batch, make_manager, start_manager, take_bytes

MANY = AT_ONCE + 20
MAKING_SECONDS = TURN_SECONDS / 4


class SlowDisk(LocalFileSystem):
    """One on which a new directory takes a quarter of a turn, or none can be made."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.is_full = False

    def make_directory(self, path: str) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "no space left on device")
        self.clock.advance(MAKING_SECONDS)
        super().make_directory(path)


class Bench:
    """A manager that was asked for more partitions than are made at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.offload = ManualOffload()
        self.clock = ManualClock()
        self.disk = SlowDisk(self.clock)
        self.manager: LogManager = make_manager(directory, filesystem=self.disk, offload=self.offload, clock=self.clock)
        self.manager.open()
        self.manager.load()

    def create(self, count: int = MANY) -> None:
        for number in range(count):
            self.manager.create(partition(number), TOPIC_ID, LogConfig())

    def made(self) -> int:
        return len(list(self.directory.glob("many-*/partition.metadata")))

    def turn(self) -> None:
        """Let the loop come around once."""
        for _ in range(len(self.offload.callbacks)):
            self.offload.callbacks.popleft()()


def partition(number: int) -> TopicPartition:
    return TopicPartition("many", number)


LAST = partition(MANY - 1)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_many_directories_are_made_in_turns(bench: Bench) -> None:
    bench.create()
    assert bench.made() == AT_ONCE
    assert set(bench.manager.partitions()) == {partition(number) for number in range(MANY)}

    bench.turn()
    assert bench.made() == AT_ONCE + TURN_SECONDS // MAKING_SECONDS
    while bench.offload.callbacks:
        bench.turn()
    assert bench.made() == MANY


def test_few_directories_are_there_at_once(bench: Bench) -> None:
    bench.create(3)
    assert bench.made() == 3


def test_a_log_that_has_no_directory_yet_takes_records_and_is_empty_before(bench: Bench) -> None:
    bench.create()
    assert bench.manager.contains(LAST)
    assert bench.manager.size_bytes(LAST) == 0
    assert LAST in bench.manager.describe_directories()[0].partitions
    assert bench.manager.offsets(LAST) == LogOffsets(0, 0, 0, 0)

    batch = make_batch(3)
    assert bench.manager.begin_append(LAST, batch, leader_epoch=0).last_offset == 2
    assert take_bytes(bench.manager.read(LAST, 0, ReadLimit(1000, 3, at_least_one_batch=True))) == bytes(batch)
    while bench.offload.callbacks:
        bench.turn()
    assert bench.manager.offsets(LAST) == LogOffsets(0, 3, 3, 3)


def test_what_is_deleted_before_its_turn_leaves_nothing(bench: Bench) -> None:
    bench.create()
    bench.manager.delete(LAST)
    while bench.offload.callbacks:
        bench.turn()

    assert bench.made() == MANY - 1
    assert not list(bench.directory.glob(f"{LAST}*"))
    with pytest.raises(UnknownTopicOrPartition):
        bench.manager.offsets(LAST)
    bench.manager.create(LAST, TOPIC_ID, LogConfig())
    assert bench.manager.offsets(LAST) == LogOffsets(0, 0, 0, 0)


def test_a_turn_that_finds_the_disk_full_says_so_and_the_log_is_made_when_it_is_used(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.create()
    bench.disk.is_full = True
    with caplog.at_level(logging.ERROR):
        bench.turn()
    assert f"{LAST} cannot be created" in caplog.text
    with pytest.raises(KafkaStorageError):
        bench.manager.begin_append(LAST, make_batch(1), leader_epoch=0)

    bench.disk.is_full = False
    assert bench.manager.begin_append(LAST, make_batch(1), leader_epoch=0).base_offset == 0


def test_a_full_disk_at_once_leaves_no_partition_behind(bench: Bench) -> None:
    bench.disk.is_full = True
    with pytest.raises(KafkaStorageError):
        bench.create(1)
    assert not bench.manager.contains(partition(0))

    bench.disk.is_full = False
    bench.create(1)
    assert bench.made() == 1


def test_a_stop_before_their_turn_leaves_the_others_to_the_next_start(bench: Bench) -> None:
    bench.create()
    bench.manager.prepare_close()
    bench.manager.close()

    again = start_manager(bench.directory)
    assert all(place.is_clean for place in again.places.values())
    for number in range(MANY):
        again.create(partition(number), TOPIC_ID, LogConfig())
    assert again.offsets(LAST) == LogOffsets(0, 0, 0, 0)
