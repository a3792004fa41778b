"""The log manager: partitions by name, lazily opened, over one or several log directories."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import LogOffsets, ReadLimit, RecordLog
from ottla.errors import KafkaStorageError, OffsetOutOfRange, UnknownTopicOrPartition
from ottla.model import ZERO_TOPIC_ID, AppendOrigin, TopicId, TopicPartition
from ottla.records.batch import split_batches
from ottla.records.control import ControlType, EndTransactionMarker, end_transaction_batch
from ottla.storage.directory import DirectoryError
from ottla.storage.files import LocalFileSystem
from ottla.storage.future_log import WHOLE_MARK
from ottla.storage.manager import LogManager
from ottla.testing.clock import ManualClock
from ottla.testing.faults import Faults, FaultyFileSystem
from ottla.testing.memory import MemoryFileSystem
from tests.storage.harness import (
    TOPIC_ID,
    TP,
    FailingFileSystem,
    Kept,
    ManualOffload,
    make_batch,
    make_manager,
    start_manager,
    take_bytes,
)

OTHER_ID = TopicId(bytes(15) + b"\x08")
EVERYTHING = ReadLimit(1_000_000, 1_000_000, at_least_one_batch=True)


def with_partition(directory: Path, **settings: Any) -> LogManager:
    manager = start_manager(directory, **settings)
    manager.create(TP, TOPIC_ID, LogConfig())
    return manager


def test_manager_is_a_record_log(tmp_path: Path) -> None:
    log: RecordLog = start_manager(tmp_path)
    assert log.partitions() == {}


def test_created_partition_takes_records(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    ticket = manager.begin_append(TP, make_batch(3), leader_epoch=0)
    assert (ticket.base_offset, ticket.last_offset, ticket.is_durable) == (0, 2, True)
    assert manager.offsets(TP) == LogOffsets(0, 3, 3, 3)
    assert manager.latest_leader_epoch(TP) == 0
    assert manager.end_offset_for_epoch(TP, 0) == (0, 3)
    assert manager.offset_for_timestamp(TP, -1) == (-1, 3, 0)
    assert manager.size_bytes(TP) == manager.read(TP, 0, EVERYTHING).size_bytes


def test_creation_is_idempotent(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.create(TP, TOPIC_ID, LogConfig())
    assert manager.offsets(TP).log_end_offset == 1


def test_log_of_another_topic_id_is_set_aside(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(), leader_epoch=0)

    manager.create(TP, OTHER_ID, LogConfig())

    assert manager.offsets(TP).log_end_offset == 0
    assert manager.partitions() == {TP: OTHER_ID}
    assert len(list(tmp_path.glob("t-0.*-stray"))) == 1


def test_log_without_topic_id_is_adopted(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.close()
    (tmp_path / "t-0" / "partition.metadata").unlink()
    again = start_manager(tmp_path)
    assert again.partitions() == {TP: ZERO_TOPIC_ID}

    again.create(TP, TOPIC_ID, LogConfig())

    assert again.partitions() == {TP: TOPIC_ID}
    assert again.offsets(TP).log_end_offset == 1


def test_unknown_partition_is_said_so(tmp_path: Path) -> None:
    manager = start_manager(tmp_path)
    assert not manager.contains(TP)
    with pytest.raises(UnknownTopicOrPartition):
        manager.offsets(TP)
    with pytest.raises(UnknownTopicOrPartition):
        manager.begin_append(TP, make_batch(), leader_epoch=0)


def test_deleted_log_is_gone_at_once_and_its_files_later(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.manager.create(TP, TOPIC_ID, LogConfig(file_delete_delay_ms=1_000))
    kept.manager.begin_append(TP, make_batch(), leader_epoch=0)

    kept.manager.delete(TP)

    assert not kept.manager.contains(TP)
    kept.advance(0.9)
    assert len(list(tmp_path.glob("t-0.*-delete"))) == 1
    kept.advance(0.2)
    assert not list(tmp_path.glob("t-0*"))


def test_appends_that_wait_fail_when_their_log_is_deleted(tmp_path: Path) -> None:
    manager = with_partition(tmp_path, fsync=True)
    ticket = manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.delete(TP)
    assert isinstance(ticket.error, UnknownTopicOrPartition)
    assert not ticket.is_durable


def test_directories_that_wait_for_removal_go_at_start(tmp_path: Path) -> None:
    (tmp_path / f"t-0.{'0' * 32}-delete").mkdir()
    Kept(tmp_path).advance(0.1)
    assert not list(tmp_path.glob("*-delete"))


OTHER_ID = TopicId(bytes(15) + b"\x08")


def topic_of(topic_id: TopicId, partition: int) -> str | None:
    return "t" if topic_id == TOPIC_ID and partition == 0 else None


@pytest.mark.parametrize("suffix", ["0" * 32, TOPIC_ID.hex()])
def test_directory_of_a_topic_that_is_there_after_all_is_taken_back(tmp_path: Path, suffix: str) -> None:
    """Its deletion was not on disk when the broker ended; nobody was told of it. The first is a name as Kafka's."""
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.close()
    (tmp_path / "t-0").rename(tmp_path / f"t-0.{suffix}-delete")
    if suffix != "0" * 32:
        (tmp_path / f"t-0.{suffix}-delete" / "partition.metadata").unlink()
    manager = make_manager(tmp_path)
    manager.open()
    manager.find_logs()

    manager.settle_deleted(topic_of)

    assert manager.offsets(TP).log_end_offset == 1
    assert not list(tmp_path.glob("*-delete"))


def test_finding_logs_changes_nothing(tmp_path: Path) -> None:
    """Not even where a copy that has all of a log waits for its name: a start may be refused yet."""
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.close()
    future = tmp_path / f"t-0.{'0' * 32}-future"
    (tmp_path / "t-0").rename(future)
    (future / WHOLE_MARK).touch()
    names = sorted(tmp_path.rglob("*"))
    manager = make_manager(tmp_path)
    manager.open()

    manager.find_logs()

    assert sorted(tmp_path.rglob("*")) == names
    assert not manager.contains(TP)
    manager.begin()
    assert manager.offsets(TP).log_end_offset == 1
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_the_topic_that_came_in_between_makes_room(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(2), leader_epoch=0)
    manager.delete(TP)
    manager.create(TP, OTHER_ID, LogConfig())
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.close()
    manager = make_manager(tmp_path)
    manager.open()
    manager.find_logs()
    manager.settle_deleted(topic_of)
    assert manager.offsets(TP).log_end_offset == 2
    assert len(list(tmp_path.glob("t-0.*-stray"))) == 1


@pytest.mark.parametrize("found", [None, "t"])
def test_directory_of_a_topic_that_is_gone_or_has_another_goes(tmp_path: Path, found: str | None) -> None:
    kept = Kept(tmp_path)
    kept.manager.create(TP, TOPIC_ID, LogConfig())
    discarded = tmp_path / f"t-0.{TOPIC_ID.hex()}-delete"
    discarded.mkdir()
    kept.manager.settle_deleted(lambda topic_id, partition: found)
    kept.advance(0.1)
    assert not discarded.exists()
    assert kept.manager.offsets(TP).log_end_offset == 0


def test_a_deleted_topics_files_go_when_the_disk_knows_of_the_deletion(tmp_path: Path) -> None:
    faults = Faults(Random(1))
    kept = Kept(tmp_path, filesystem=FaultyFileSystem(LocalFileSystem(), faults))
    metadata = kept.manager.open_metadata_log(kept.manager.directories[0], LogConfig(), 0)
    kept.manager.create(TP, TOPIC_ID, LogConfig(file_delete_delay_ms=0))
    metadata.append(make_batch(), leader_epoch=0)
    faults.fails = lambda call, path: call == "sync_file" and path == metadata.active.file.path
    kept.manager.delete(TP)
    kept.advance(0.1)
    assert list(tmp_path.glob("*-delete"))


def test_a_deleted_topics_files_stay_when_the_disk_will_never_know(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    metadata = kept.manager.open_metadata_log(kept.manager.directories[0], LogConfig(), 0)
    kept.manager.create(TP, TOPIC_ID, LogConfig(file_delete_delay_ms=0))
    metadata.fail(KafkaStorageError("the metadata's flush failed"))
    kept.manager.delete(TP)
    kept.advance(0.1)
    assert list(tmp_path.glob("*-delete"))


def test_untouched_partition_keeps_nothing_open(tmp_path: Path) -> None:
    manager = start_manager(tmp_path)
    for number in range(50):
        manager.create(TopicPartition("t", number), TOPIC_ID, LogConfig())
    assert manager.open_file_count == 0
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    assert manager.open_file_count == 1


def test_clean_stop_is_clean_also_for_logs_that_were_not_touched(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.close()
    start_manager(tmp_path).close(broker_epoch=5)

    again = start_manager(tmp_path)

    assert again.directories[0].was_clean
    assert again.directories[0].broker_epoch == 5
    assert again.offsets(TP) == LogOffsets(0, 1, 1, 1)
    assert "t 0 1" in (tmp_path / "recovery-point-offset-checkpoint").read_text()


def test_log_start_survives_a_restart(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(5), leader_epoch=0)
    assert manager.delete_records(TP, 3) == 3
    manager.close()
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 3\n"
    assert start_manager(tmp_path).offsets(TP).log_start_offset == 3


def test_new_partitions_go_where_the_fewest_are(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    manager = start_manager(tmp_path, properties={"log.dirs": f"{first},{second}"})
    for number in range(6):
        manager.create(TopicPartition("t", number), TOPIC_ID, LogConfig())
    assert len(list(first.glob("t-*"))) == len(list(second.glob("t-*"))) == 3
    assert {manager.directory_of(TopicPartition("t", number)).path for number in range(6)} == {str(first), str(second)}


def test_partition_in_two_directories_ends_the_start(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    (first / "t-0").mkdir(parents=True)
    (second / "t-0").mkdir(parents=True)
    manager = make_manager(tmp_path, properties={"log.dirs": f"{first},{second}"})
    manager.open()
    with pytest.raises(DirectoryError, match="both"):
        manager.load()


def test_unclean_stop_cuts_the_torn_tail_at_start(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    for directory in manager.directories:
        directory.release()
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-5])

    again = start_manager(tmp_path)

    assert not again.directories[0].was_clean
    assert again.offsets(TP) == LogOffsets(0, 1, 1, 1)


def test_failed_flush_at_the_stop_leaves_no_clean_mark(tmp_path: Path) -> None:
    files = FailingFileSystem()
    manager = start_manager(tmp_path, filesystem=files)
    manager.create(TP, TOPIC_ID, LogConfig())
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    files.is_sync_failing = True

    manager.close()

    assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_log_that_could_not_be_checked_leaves_no_clean_mark(tmp_path: Path) -> None:
    """Else the next start would take its torn tail for whole, and append behind it."""
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    for directory in manager.directories:
        directory.release()
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-5])

    hidden = tmp_path / "t-0" / "hidden"
    path.rename(hidden)
    path.mkdir()
    start_manager(tmp_path).close()
    path.rmdir()
    hidden.rename(path)

    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert start_manager(tmp_path).offsets(TP) == LogOffsets(0, 1, 1, 1)


def after_power_cut(memory: MemoryFileSystem, seed: int) -> LogManager:
    return start_manager(Path("/data"), fsync=True, filesystem=memory.cut_power(Random(seed)))


@pytest.mark.parametrize("seed", range(20))
def test_what_a_killed_broker_left_in_memory_is_synced_before_it_counts(seed: int) -> None:
    """Neither rolled segments nor names were flushed; the next broker finds them, builds on them, and power goes."""
    memory, config = MemoryFileSystem(ManualClock()), LogConfig(internal_segment_bytes=150)
    killed = start_manager(Path("/data"), fsync=True, filesystem=memory)
    killed.create(TP, TOPIC_ID, config)
    for _ in range(6):
        killed.begin_append(TP, make_batch(), leader_epoch=0)
    memory, offload = memory.kill(), ManualOffload()
    second = start_manager(Path("/data"), fsync=True, filesystem=memory, offload=offload)
    second.create(TP, TOPIC_ID, LogConfig())
    ticket = second.begin_append(TP, make_batch(), leader_epoch=0)
    offload.run_all()
    assert ticket.is_durable
    second.checkpoint()

    assert after_power_cut(memory, seed).offsets(TP).log_end_offset == 7


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean-stop", "killed"])
@pytest.mark.parametrize("seed", range(10))
def test_aborted_transactions_survive_a_power_cut_after_the_stop(seed: int, *, is_clean: bool) -> None:
    """A transaction index that is gone is not missed by anyone, but readers of committed records need it."""
    memory, offload, config = MemoryFileSystem(ManualClock()), ManualOffload(), LogConfig(internal_segment_bytes=150)
    manager = start_manager(Path("/data"), fsync=True, filesystem=memory, offload=offload)
    manager.create(TP, TOPIC_ID, config)
    for sequence in range(2):
        batch = make_batch(producer_id=1, producer_epoch=0, base_sequence=sequence, is_transactional=True)
        manager.begin_append(TP, batch, leader_epoch=0)
        marker = EndTransactionMarker(ControlType.ABORT, 0)
        end = end_transaction_batch(marker, producer_id=1, producer_epoch=0, timestamp_ms=1_750_000_000_000)
        manager.begin_append(TP, bytearray(end), leader_epoch=0, origin=AppendOrigin.COORDINATOR)
    if is_clean:
        manager.prepare_close()
        offload.run_all()
    else:
        memory = memory.kill()
        manager = start_manager(Path("/data"), fsync=True, filesystem=memory)
    manager.close()

    again = after_power_cut(memory, seed)
    assert again.directories[0].was_clean
    assert len(again.aborted_transactions(TP, 0, 10)) == 2


class SyncedNames(LocalFileSystem):
    """Remembers the directories whose names were synced."""

    def __init__(self) -> None:
        self.synced: list[str] = []

    def sync_directory(self, path: str) -> None:
        self.synced.append(path)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("fsync", [False, True])
def test_indexes_and_epochs_survive_a_power_cut_after_the_stop(seed: int, *, fsync: bool) -> None:
    """Nobody checks them after a clean stop: times would be searched in a short index, and epochs be unknown."""
    clock, offload = ManualClock(), ManualOffload()
    memory = MemoryFileSystem(clock)
    manager = make_manager(Path("/data"), fsync=fsync, filesystem=memory, offload=offload, clock=clock)
    manager.open()
    manager.load()
    manager.create(TP, TOPIC_ID, LogConfig(internal_segment_bytes=700, index_interval_bytes=80))
    for number in range(20):
        manager.begin_append(TP, make_batch(timestamp_ms=1_000 + number), leader_epoch=number // 5)
    if seed % 2:
        manager.prepare_close()
    offload.run_all()
    manager.close()
    names = [name for name in memory.list("/data/t-0") if name.endswith(("index", "leader-epoch-checkpoint"))]
    before = {name: memory.read(f"/data/t-0/{name}") for name in names}
    assert len([name for name in names if name.endswith("timeindex") and before[name]]) > 2

    left = memory.cut_power(Random(seed))

    assert left.exists("/data/.kafka_cleanshutdown")
    there = [name for name in names if left.exists(f"/data/t-0/{name}")]  # those that are not are made again
    assert {name: left.read(f"/data/t-0/{name}") for name in there} == {name: before[name] for name in there}
    assert "leader-epoch-checkpoint" in there


def test_a_stop_that_cannot_write_an_index_is_not_clean(tmp_path: Path) -> None:
    faults = Faults(Random(1))
    manager = make_manager(tmp_path, filesystem=FaultyFileSystem(LocalFileSystem(), faults))
    manager.open()
    manager.load()
    for partition in (TP, TopicPartition("t", 1)):
        manager.create(partition, TOPIC_ID, LogConfig())
        manager.begin_append(partition, make_batch(), leader_epoch=0)
    faults.fails = lambda call, path: path.endswith("t-0/00000000000000000000.index")
    manager.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "t-1" / "00000000000000000000.timeindex").stat().st_size == 12


def test_a_stop_syncs_no_index_that_has_not_changed(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.close()
    faults = Faults(Random(1))
    again = start_manager(tmp_path, filesystem=FaultyFileSystem(LocalFileSystem(), faults))
    again.create(TP, TOPIC_ID, LogConfig())
    assert again.offsets(TP).log_end_offset == 1
    faults.fails = lambda call, path: call == "sync_file" and path.endswith("index")
    again.prepare_close()
    again.close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_first_flush_of_a_log_that_an_earlier_run_made_syncs_its_names(tmp_path: Path) -> None:
    first = start_manager(tmp_path, fsync=True)
    first.create(TP, TOPIC_ID, LogConfig())
    first.close()
    files, offload = SyncedNames(), ManualOffload()
    second = start_manager(tmp_path, fsync=True, filesystem=files, offload=offload)
    files.synced.clear()
    second.begin_append(TP, make_batch(), leader_epoch=0)
    offload.run_all()
    assert {str(tmp_path), str(tmp_path / "t-0")} <= set(files.synced)


def test_settings_hold_from_the_next_append_on(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.configure(TP, LogConfig(internal_segment_bytes=100))
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    assert len(list((tmp_path / "t-0").glob("*.log"))) == 2


def test_silent_producers_are_forgotten_when_that_is_due(tmp_path: Path) -> None:
    clock = ManualClock()
    manager = start_manager(tmp_path, clock=clock)
    manager.create(TP, TOPIC_ID, LogConfig())
    manager.begin_append(TP, make_batch(producer_id=1, producer_epoch=0, base_sequence=0), leader_epoch=0)
    manager.expire_producers()
    assert len(manager.log(TP).producers) == 1
    clock.advance(86_400)
    manager.expire_producers()
    assert len(manager.log(TP).producers) == 0


def test_progress_is_told(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    told: list[TopicPartition] = []
    manager.on_advance(told.append)
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    assert told == [TP]


def test_truncation_takes_records_back(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    for _ in range(3):
        manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.truncate_to(TP, 1)
    assert manager.offsets(TP) == LogOffsets(0, 1, 1, 1)
    with pytest.raises(OffsetOutOfRange):
        manager.read(TP, 2, EVERYTHING)


def test_truncation_forgets_what_producers_did_there(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    manager.configure(TP, LogConfig(internal_segment_bytes=200))
    for sequence in range(6):
        batch = make_batch(producer_id=1, producer_epoch=0, base_sequence=sequence)
        manager.begin_append(TP, batch, leader_epoch=0)
    manager.truncate_to(TP, 3)

    assert [state.last_sequence for state in manager.log(TP).producers] == [2]
    again = manager.begin_append(TP, make_batch(producer_id=1, producer_epoch=0, base_sequence=3), leader_epoch=0)
    assert (again.base_offset, again.is_duplicate) == (3, False)
    assert max(int(path.stem) for path in (tmp_path / "t-0").glob("*.snapshot")) <= 3


def test_flush_that_ran_during_a_truncation_says_nothing_of_later_records(tmp_path: Path) -> None:
    offload = ManualOffload()
    manager = with_partition(tmp_path, fsync=True, offload=offload)
    for _ in range(4):
        manager.begin_append(TP, make_batch(), leader_epoch=0)
    offload.run_loop()
    manager.truncate_to(TP, 1)
    ticket = manager.begin_append(TP, make_batch(), leader_epoch=0)
    offload.run_work()
    assert not ticket.is_durable
    offload.run_all()
    assert ticket.is_durable


def test_stops_leave_one_producer_snapshot(tmp_path: Path) -> None:
    for sequence in range(4):
        manager = with_partition(tmp_path)
        batch = make_batch(producer_id=1, producer_epoch=0, base_sequence=sequence)
        manager.begin_append(TP, batch, leader_epoch=0)
        manager.close()
    assert sorted(path.stem for path in (tmp_path / "t-0").glob("*.snapshot")) == [f"{3:020d}", f"{4:020d}"]
    start_manager(tmp_path).log(TP)
    assert [path.stem for path in (tmp_path / "t-0").glob("*.snapshot")] == [f"{4:020d}"]


def test_snapshot_of_records_that_a_crash_took_goes(tmp_path: Path) -> None:
    """Else it would speak of others than are there, once the log has grown past it again."""
    manager = with_partition(tmp_path)
    manager.configure(TP, LogConfig(internal_segment_bytes=200))
    for sequence in range(4):
        batch = make_batch(producer_id=1, producer_epoch=0, base_sequence=sequence)
        manager.begin_append(TP, batch, leader_epoch=0)
    for directory in manager.directories:
        directory.release()
    first, *others = sorted((tmp_path / "t-0").glob("*.log"))
    first.write_bytes(first.read_bytes()[:-5])
    for path in others:
        path.unlink()

    assert start_manager(tmp_path).offsets(TP).log_end_offset == 1
    assert not list((tmp_path / "t-0").glob("*.snapshot"))


def test_name_of_a_long_topic_still_fits_when_deleted(tmp_path: Path) -> None:
    manager = start_manager(tmp_path)
    partition = TopicPartition("x" * 249, 12)
    manager.create(partition, TOPIC_ID, LogConfig())
    manager.delete(partition)
    (name,) = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert len(name) == 255
    assert name.endswith(f"-12.{TOPIC_ID.hex()}-delete")


def test_file_that_cannot_be_opened_is_a_storage_error(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.close()
    again = start_manager(tmp_path)
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.unlink()
    path.mkdir()
    with pytest.raises(KafkaStorageError, match="t-0"):
        again.offsets(TP)


def test_read_gives_the_appended_bytes(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    small, large = make_batch(2), make_batch(value=bytes(100_000))
    manager.begin_append(TP, small, leader_epoch=0)
    manager.begin_append(TP, large, leader_epoch=0)
    assert take_bytes(manager.read(TP, 0, EVERYTHING)) == small + large


@pytest.mark.parametrize("seed", range(5))
def test_records_are_durable_together_with_the_record_of_their_topic(seed: int) -> None:
    """A new topic's first records are flushed before the metadata is: then they bring it to disk themselves."""
    files, offload = MemoryFileSystem(ManualClock()), ManualOffload()
    manager = start_manager(Path("/data"), fsync=True, filesystem=files, offload=offload)
    metadata = manager.open_metadata_log(manager.directories[0], LogConfig(), 0)
    metadata.append(make_batch(), leader_epoch=0)
    offload.run_all()
    metadata.append(make_batch(), leader_epoch=0)
    manager.create(TP, TOPIC_ID, LogConfig())
    ticket = manager.begin_append(TP, make_batch(), leader_epoch=0)
    offload.run_loop()

    (flush, done), _ = offload.work  # the metadata has no names to bring along, and is begun with all such files
    flush()
    done(None)

    assert ticket.is_durable
    left = files.cut_power(Random(seed))
    assert left.size(metadata.active.file.path) == metadata.active.size_bytes
    assert left.size("/data/t-0/00000000000000000000.log") == len(make_batch())


def test_a_new_log_takes_nothing_where_the_record_of_its_topic_was_lost(tmp_path: Path) -> None:
    manager = start_manager(tmp_path)
    metadata = manager.open_metadata_log(manager.directories[0], LogConfig(), 0)
    manager.create(TP, TOPIC_ID, LogConfig())
    metadata.fail(KafkaStorageError("the metadata's flush failed"))

    with pytest.raises(KafkaStorageError, match="metadata"):
        manager.begin_append(TP, make_batch(), leader_epoch=0)


def test_log_that_was_emptied_does_not_keep_others_from_a_clean_stop(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    for _ in range(3):
        manager.begin_append(TP, make_batch(3), leader_epoch=0)
    manager.close()
    (tmp_path / f"{TP}" / f"{0:020d}.log").write_bytes(b"")

    manager = start_manager(tmp_path)
    assert manager.begin_append(TP, make_batch(1), leader_epoch=0).base_offset == 0
    manager.close()

    assert (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("is_clean", [True, False])
def test_log_that_cannot_be_opened_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, is_clean: bool
) -> None:
    """Whoever asks for it hears it each time, and clients ask again and again."""
    manager = with_partition(tmp_path)
    manager.begin_append(TP, make_batch(3), leader_epoch=0)
    manager.close()
    path = tmp_path / f"{TP}" / f"{0:020d}.log"
    path.unlink()
    path.mkdir()
    if not is_clean:
        (tmp_path / ".kafka_cleanshutdown").unlink()

    manager = start_manager(tmp_path)
    for _ in range(3):
        with pytest.raises(KafkaStorageError, match="Is a directory"):
            manager.read(TP, 0, EVERYTHING)

    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [line.startswith(f"{TP} in {tmp_path}/{TP} cannot be opened: ") for line in told] == [True]
    manager.close()


def test_log_whose_newest_segment_is_damaged_names_the_file_and_the_place(tmp_path: Path) -> None:
    manager = with_partition(tmp_path)
    for _ in range(3):
        manager.begin_append(TP, make_batch(3), leader_epoch=0)
    manager.close()
    path = tmp_path / f"{TP}" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    position = 2 * len(data) // 3
    data[position + 8 : position + 12] = bytes(4)
    path.write_bytes(data)

    with pytest.raises(KafkaStorageError, match=f"{path}: no batch begins at position {position}: "):
        start_manager(tmp_path).offsets(TP)


@pytest.mark.parametrize("whole_batches", [2, 0])
@pytest.mark.parametrize("is_read_first", [True, False])
def test_a_torn_end_after_a_clean_stop_takes_no_later_record_with_it(
    tmp_path: Path, whole_batches: int, *, is_read_first: bool
) -> None:
    """A copy that was cut short, say. Kafka appends behind what is torn, and nobody can read that."""
    manager = with_partition(tmp_path)
    for _ in range(whole_batches + 1):
        manager.begin_append(TP, make_batch(1), leader_epoch=0)
    manager.close()
    path = tmp_path / f"{TP}" / f"{0:020d}.log"
    torn = path.read_bytes()[:-5]
    path.write_bytes(torn)

    manager = start_manager(tmp_path)
    if is_read_first:
        assert manager.offsets(TP).log_end_offset == whole_batches
        assert path.read_bytes() == torn
    for number in range(3):
        assert manager.begin_append(TP, make_batch(1), leader_epoch=0).base_offset == whole_batches + number
    for _ in range(2):
        for offset in range(whole_batches + 3):
            (first, *_) = split_batches(take_bytes(manager.read(TP, offset, EVERYTHING)))
            assert first.base_offset == offset
            assert first.is_crc_valid()
        manager.close()
        manager = start_manager(tmp_path)
    manager.close()
