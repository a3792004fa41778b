"""What a start after a kill -9 reads and syncs: the tail behind the recovery point, and no more."""

from __future__ import annotations

from pathlib import Path
from random import Random

from ottla.config.log_config import LogConfig
from ottla.model import TopicPartition
from ottla.storage.manager import LogManager
from ottla.testing.clock import ManualClock
from ottla.testing.faults import Faults, FaultyFileSystem
from ottla.testing.memory import MemoryFileSystem
from tests.storage.harness import TOPIC_ID, ManualOffload, make_batch, make_manager

DATA = Path("/data")
PARTITIONS = [TopicPartition("t", number) for number in range(5)]
CONFIG = LogConfig(internal_segment_bytes=250)


def run(memory: MemoryFileSystem, *, checkpointed: int, behind: int) -> MemoryFileSystem:
    """Append to five partitions, so many before a checkpoint and, to the first, so many after it; then be killed."""
    offload = ManualOffload()
    manager = make_manager(DATA, fsync=True, filesystem=memory, offload=offload)
    manager.open()
    manager.load()
    for partition in PARTITIONS:
        manager.create(partition, TOPIC_ID, CONFIG)
        for _ in range(checkpointed):
            manager.begin_append(partition, make_batch(), leader_epoch=0)
    offload.run_all()
    manager.checkpoint()
    for _ in range(behind):
        manager.begin_append(PARTITIONS[0], make_batch(), leader_epoch=0)
    offload.run_all()
    return memory.kill()


def start(memory: MemoryFileSystem) -> tuple[LogManager, list[tuple[str, str]]]:
    """Start again; returns what was done with the file system, and to which file."""
    seen: list[tuple[str, str]] = []
    faults = Faults(Random(1))

    def note(call: str, path: str) -> bool:
        seen.append((call, path.removeprefix(f"{DATA}/")))
        return False

    faults.fails = note
    manager = make_manager(DATA, fsync=True, filesystem=FaultyFileSystem(memory, faults))
    manager.open()
    manager.load()
    return manager, seen


def test_only_segments_from_the_recovery_point_on_are_read() -> None:
    """The checkpoint was written at 9, which three segments hold; two more records began a fourth."""
    manager, seen = start(run(MemoryFileSystem(ManualClock()), checkpointed=9, behind=2))
    read = {path for call, path in seen if call == "pread"}
    assert {path for path in read if path.startswith("t-0")} == {"t-0/00000000000000000009.log"}
    assert {path for path in read if path.startswith("t-1")} == {"t-1/00000000000000000006.log"}
    assert [manager.offsets(partition).log_end_offset for partition in PARTITIONS] == [11, 9, 9, 9, 9]


def test_only_logs_with_records_behind_the_recovery_point_are_synced() -> None:
    """Of thousands of partitions few were written to since the last checkpoint."""
    _, seen = start(run(MemoryFileSystem(ManualClock()), checkpointed=4, behind=1))
    synced = {path.split("/")[0] for call, path in seen if call.startswith("sync") and path.startswith("t-")}
    assert synced == {"t-0"}
