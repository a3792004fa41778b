"""After an fsync that failed: what is served by the next broker is on disk, or the log stays closed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import ReadLimit
from ottla.errors import KafkaStorageError
from ottla.storage.failed_flush import MARK
from ottla.storage.manager import LogManager
from ottla.testing.clock import ManualClock
from ottla.testing.memory import MemoryFileSystem
from tests.storage.harness import TOPIC_ID, TP, ManualOffload, make_batch, start_manager, take_bytes

DATA = Path("/data")
CONFIG = LogConfig(internal_segment_bytes=250)


def begin(memory: MemoryFileSystem) -> tuple[LogManager, ManualOffload]:
    offload = ManualOffload()
    manager = start_manager(DATA, fsync=True, filesystem=memory, offload=offload)
    manager.create(TP, TOPIC_ID, CONFIG)
    return manager, offload


def append(manager: LogManager, offload: ManualOffload, count: int = 1) -> list[bool]:
    tickets = [manager.begin_append(TP, make_batch(), leader_epoch=0) for _ in range(count)]
    offload.run_all()
    return [ticket.is_durable for ticket in tickets]


def fail_a_flush(memory: MemoryFileSystem, *, durable: int = 4, lost: int = 2) -> MemoryFileSystem:
    """Append, fail a sync, and kill the broker; returns what the next one finds in memory."""
    manager, offload = begin(memory)
    assert all(append(manager, offload, durable))
    memory.sync_fails = lambda path: path.endswith(".log")
    assert not any(append(manager, offload, lost))
    return memory.kill()


@pytest.mark.parametrize("seed", range(8))
def test_records_behind_a_failed_flush_survive_the_power_cut_after_the_restart(seed: int) -> None:
    """The system says that all is on disk, and the pages of the failed flush are not."""
    left = fail_a_flush(MemoryFileSystem(ManualClock()))
    manager, offload = begin(left)
    assert manager.offsets(TP).high_watermark == 6
    assert all(append(manager, offload, 2))
    assert not left.exists(f"{DATA}/{TP}/{MARK}")

    again, _ = begin(left.cut_power(Random(seed)))

    assert again.offsets(TP).log_end_offset == 8
    read = take_bytes(again.read(TP, 5, ReadLimit(1_000, 8, at_least_one_batch=True)))
    assert int.from_bytes(read[:8], "big") == 5


def test_a_log_that_still_cannot_be_synced_stays_closed() -> None:
    left = fail_a_flush(MemoryFileSystem(ManualClock()))
    left.sync_fails = lambda path: path.endswith(".log.tmp")
    manager, _ = begin(left)
    with pytest.raises(KafkaStorageError, match="cannot be opened"):
        manager.offsets(TP)
    manager.close()
    assert left.exists(f"{DATA}/{TP}/{MARK}")
    assert not left.exists(f"{DATA}/.kafka_cleanshutdown")


@pytest.mark.parametrize("seed", range(8))
def test_a_recovery_that_cannot_sync_is_a_failed_flush(seed: int) -> None:
    memory = MemoryFileSystem(ManualClock())
    manager, _ = begin(memory)
    for _ in range(3):
        manager.begin_append(TP, make_batch(), leader_epoch=0)
    left = memory.kill()
    left.sync_fails = lambda path: path.endswith(".log")
    with pytest.raises(KafkaStorageError):
        begin(left)[0].offsets(TP)
    left = left.kill()

    manager, offload = begin(left)
    assert all(append(manager, offload))

    assert begin(left.cut_power(Random(seed)))[0].offsets(TP).log_end_offset == 4


def test_only_segments_in_doubt_are_written_anew(caplog: pytest.LogCaptureFixture) -> None:
    left = fail_a_flush(MemoryFileSystem(ManualClock()), durable=9, lost=1)
    begin(left)
    assert "a flush had failed; 1 segments from offset 9 on are written anew" in caplog.text
