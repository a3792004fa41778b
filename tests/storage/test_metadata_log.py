"""The metadata log on disk: Kafka's files, epochs that rise, snapshots, and what is refused instead of repaired."""

from __future__ import annotations

import errno
import os
import stat
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import Shard, StateRecord, Ticket
from ottla.errors import KafkaStorageError
from ottla.model import METADATA_TOPIC, TopicPartition
from ottla.records.batch import split_batches
from ottla.storage.directory import DirectoryError, MetaProperties
from ottla.storage.files import FileSystem, LocalFileSystem
from ottla.storage.manager import LogManager
from ottla.storage.metadata_log import (
    METADATA_SHARD,
    RESERVE_BYTES,
    MetadataLog,
    find_metadata_directory,
    metadata_log_config,
)
from ottla.storage.metadata_recovery_point import MetadataRecoveryPoint
from ottla.storage.metadata_snapshots import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    ControlBodies,
    SnapshotId,
    control_types,
    parse_snapshot_name,
)
from ottla.storage.quorum_state import CorruptQuorumState
from ottla.testing.clock import ManualClock
from ottla.testing.faults import Faults, FaultyFileSystem, PowerCut
from ottla.testing.memory import MemoryFileSystem
from tests.small_disk import SmallDisk
from tests.storage.harness import GOLDEN, TOPIC_ID, TP, FailingFileSystem, ManualOffload, make_manager

METADATA = "__cluster_metadata-0"
CONTROL = ControlBodies(b"leader", lambda contained_ms: b"header %d" % contained_ms, b"footer")
VOTERS = {"kraft_version": b"version", "voters": b"voters"}
A_WEEK_MS = 604_800_000
CONFIG = metadata_log_config(segment_bytes=1 << 20, segment_ms=A_WEEK_MS)
FIRST_SNAPSHOT = "00000000000000000000-0000000000.checkpoint"


def start(
    directory: Path,
    *,
    fsync: bool = False,
    offload: ManualOffload | None = None,
    filesystem: FileSystem | None = None,
    config: LogConfig = CONFIG,
    opens: bool = True,
) -> tuple[LogManager, MetadataLog]:
    """Bring the metadata log of a directory up to where it can be loaded, formatting it when it is new."""
    clock = ManualClock()
    filesystem = LocalFileSystem() if filesystem is None else filesystem
    manager = make_manager(directory, fsync=fsync, offload=offload, clock=clock, filesystem=filesystem)
    manager.open()
    try:
        if manager.directories[0].meta is None:
            manager.directories[0].format(MetaProperties("a-cluster", 1, bytes(16)))
        manager.load()
        log = MetadataLog(
            manager,
            find_metadata_directory(manager.directories, filesystem),
            filesystem,
            clock,
            node_id=1,
            control=CONTROL,
        )
        if not log.is_formatted:
            log.format(records(b"level"), **VOTERS)
        if opens:
            log.open(config)
    except BaseException:
        for found in manager.directories:
            found.release()
        raise
    return manager, log


def records(*values: bytes) -> Iterator[StateRecord]:
    return (StateRecord(None, value) for value in values)


def append(log: MetadataLog, *values: bytes) -> None:
    log.append(METADATA_SHARD, list(records(*values)), log.leader_epoch)


def loaded(log: MetadataLog) -> list[bytes]:
    return [record.value or b"" for batch in log.load(METADATA_SHARD) for record in batch.records]


def run_once(directory: Path, *values: bytes) -> None:
    """One start that appends these values, and a clean stop."""
    manager, log = start(directory)
    loaded(log)
    log.become_leader()
    append(log, *values)
    manager.close()


def test_a_new_directory_begins_with_a_snapshot_like_kafkas(tmp_path: Path) -> None:
    start(tmp_path)
    path = tmp_path / METADATA / FIRST_SNAPSHOT
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    header, content, footer = split_batches(path.read_bytes())
    assert control_types(header) == [SNAPSHOT_HEADER, KRAFT_VERSION, KRAFT_VOTERS]
    assert [record.value for record in content.records()] == [b"level"]
    assert control_types(footer) == [SNAPSHOT_FOOTER]
    assert [batch.base_offset for batch in (header, content, footer)] == [0, 3, 4]
    assert {batch.partition_leader_epoch for batch in (header, content, footer)} == {0}


def test_the_first_epoch_names_the_voters_and_later_ones_only_the_leader(tmp_path: Path) -> None:
    run_once(tmp_path, b"a")
    run_once(tmp_path, b"b")
    batches = list(split_batches((tmp_path / METADATA / "00000000000000000000.log").read_bytes()))
    assert [control_types(batch) for batch in batches] == [
        [LEADER_CHANGE, KRAFT_VERSION, KRAFT_VOTERS],
        [],
        [LEADER_CHANGE],
        [],
    ]
    assert [batch.partition_leader_epoch for batch in batches] == [1, 1, 2, 2]
    assert [batch.base_offset for batch in batches] == [0, 3, 4, 5]


def test_records_come_back_in_order_without_control_records(tmp_path: Path) -> None:
    run_once(tmp_path, b"a", b"b")
    run_once(tmp_path, b"c")
    _, log = start(tmp_path)
    assert loaded(log) == [b"level", b"a", b"b", b"c"]


def test_the_files_around_the_log_are_kafkas(tmp_path: Path) -> None:
    run_once(tmp_path, b"a")
    directory = tmp_path / METADATA
    assert (directory / "partition.metadata").read_text() == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    assert (directory / "leader-epoch-checkpoint").read_text() == "0\n1\n1 0\n"
    assert '"leaderId":1,"leaderEpoch":1' in (directory / "quorum-state").read_text()


def test_the_metadata_log_stands_in_no_checkpoint(tmp_path: Path) -> None:
    run_once(tmp_path, b"a")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        assert METADATA_TOPIC not in (tmp_path / name).read_text()


def test_an_epoch_is_remembered_before_anything_is_written_in_it(tmp_path: Path) -> None:
    """A start that got no further than `quorum-state` has used its epoch up."""
    run_once(tmp_path, b"a")
    path = tmp_path / METADATA / "quorum-state"
    path.write_text(path.read_text().replace('"leaderEpoch":1', '"leaderEpoch":8'))
    _, log = start(tmp_path)
    loaded(log)
    assert log.become_leader() == 9


def test_a_deleted_quorum_state_does_not_bring_an_epoch_back(tmp_path: Path) -> None:
    run_once(tmp_path, b"a")
    (tmp_path / METADATA / "quorum-state").unlink()
    _, log = start(tmp_path)
    loaded(log)
    assert log.become_leader() == 2


def test_a_garbled_quorum_state_ends_the_start(tmp_path: Path) -> None:
    run_once(tmp_path, b"a")
    (tmp_path / METADATA / "quorum-state").write_text("garbage")
    with pytest.raises(CorruptQuorumState):
        start(tmp_path)


def test_a_log_that_changes_between_loading_and_opening_is_not_opened(tmp_path: Path) -> None:
    run_once(tmp_path, b"a")
    manager, log = start(tmp_path, opens=False)
    loaded(log)
    path = tmp_path / METADATA / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(KafkaStorageError, match="what was loaded"):
        log.open(CONFIG)
    manager.directories[0].release()


def test_a_snapshot_replaces_what_came_before_it(tmp_path: Path) -> None:
    manager, log = start(tmp_path)
    loaded(log)
    log.become_leader()
    append(log, b"a", b"b")
    log.snapshot(METADATA_SHARD, records(b"all"))
    append(log, b"c")
    manager.close()
    _, again = start(tmp_path)
    assert loaded(again) == [b"all", b"c"]
    assert (tmp_path / METADATA / SnapshotId(5, 1).file_name).exists()


def test_only_what_was_appended_since_the_snapshot_counts_for_the_next(tmp_path: Path) -> None:
    manager, log = start(tmp_path)
    loaded(log)
    log.become_leader()
    append(log, b"a" * 1_000)
    assert log.record_bytes_since_snapshot > 1_000
    log.snapshot(METADATA_SHARD, records(b"all"))
    assert log.record_bytes_since_snapshot == 0
    append(log, b"b" * 500)
    manager.close()
    _, again = start(tmp_path)
    loaded(again)
    assert 500 < again.record_bytes_since_snapshot < 700


def snapshots_in(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / METADATA).glob("*.checkpoint"))


def segments_in(directory: Path) -> list[int]:
    return sorted(int(path.stem) for path in (directory / METADATA).glob("*.log"))


def test_old_snapshots_go_by_their_age(tmp_path: Path) -> None:
    _, log = start(tmp_path, config=metadata_log_config(segment_bytes=1 << 20, segment_ms=A_WEEK_MS, retention_ms=1))
    loaded(log)
    log.become_leader()
    for value in (b"a", b"b"):
        append(log, value)
        log.snapshot(METADATA_SHARD, records(value))
    assert snapshots_in(tmp_path) == [FIRST_SNAPSHOT, SnapshotId(4, 1).file_name, SnapshotId(5, 1).file_name]
    for name in (FIRST_SNAPSHOT, SnapshotId(4, 1).file_name):
        os.utime(tmp_path / METADATA / name, (0, 0))
    append(log, b"c")
    log.snapshot(METADATA_SHARD, records(b"c"))
    assert snapshots_in(tmp_path) == [SnapshotId(5, 1).file_name, SnapshotId(6, 1).file_name]


def test_old_snapshots_go_by_size_and_the_log_before_the_oldest_with_them(tmp_path: Path) -> None:
    config = metadata_log_config(segment_bytes=500, segment_ms=A_WEEK_MS, retention_bytes=3_000)
    manager, log = start(tmp_path, config=config)
    loaded(log)
    log.become_leader()
    for number in range(100):
        append(log, b"%d" % number * 20)
        if number % 10 == 9:
            log.snapshot(METADATA_SHARD, records(b"as of %d" % number))
    kept = snapshots_in(tmp_path)
    assert 1 < len(kept) < 10
    oldest = int(kept[0].split("-")[0])
    assert 0 < segments_in(tmp_path)[0] <= oldest < segments_in(tmp_path)[1]
    assert not [path for path in (tmp_path / METADATA).iterdir() if path.stem.isdigit() and int(path.stem) == 0]
    append(log, b"last")
    manager.close()

    _, again = start(tmp_path, config=config)
    assert loaded(again) == [b"as of 99", b"last"]


def test_newest_snapshot_stays_whatever_its_size(tmp_path: Path) -> None:
    _, log = start(tmp_path, config=metadata_log_config(segment_bytes=5_000, segment_ms=A_WEEK_MS, retention_bytes=0))
    loaded(log)
    log.become_leader()
    append(log, bytes(2_000))
    log.snapshot(METADATA_SHARD, records(bytes(2_000)))
    assert snapshots_in(tmp_path) == [SnapshotId(4, 1).file_name]


def test_failed_sync_before_a_snapshot_ends_appends(tmp_path: Path) -> None:
    """The system tells of a failed write-back once; the next flush would report records as durable that are lost."""
    files = FailingFileSystem()
    manager, log = start(tmp_path, fsync=True, filesystem=files)
    loaded(log)
    log.become_leader()
    ticket = log.append(METADATA_SHARD, list(records(b"a")), log.leader_epoch)
    files.is_sync_failing = True
    with pytest.raises(OSError):
        log.snapshot(METADATA_SHARD, records(b"all"))
    files.is_sync_failing = False

    assert ticket.error is not None
    with pytest.raises(KafkaStorageError):
        append(log, b"b")
    manager.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_snapshot_that_was_not_finished_is_removed(tmp_path: Path) -> None:
    run_once(tmp_path, b"a")
    leftover = tmp_path / METADATA / "00000000000000000004-0000000001.checkpoint.tmp"
    leftover.write_bytes(b"half")
    _, log = start(tmp_path)
    assert not leftover.exists()
    assert loaded(log) == [b"level", b"a"]


def test_a_large_state_is_written_in_several_batches(tmp_path: Path) -> None:
    _, log = start(tmp_path)
    loaded(log)
    log.become_leader()
    values = [b"%d" % number + b"x" * 400_000 for number in range(6)]
    log.snapshot(METADATA_SHARD, records(*values))
    batches = list(split_batches((tmp_path / METADATA / SnapshotId(3, 1).file_name).read_bytes()))
    assert len(batches) > 3
    assert [batch.base_offset for batch in batches[1:]] == [batch.next_offset for batch in batches[:-1]]
    assert loaded(log) == values


@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_a_damaged_snapshot_is_refused(tmp_path: Path, damage: str) -> None:
    run_once(tmp_path, b"a")
    path = tmp_path / METADATA / FIRST_SNAPSHOT
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[120] ^= 1
    path.chmod(0o600)
    path.write_bytes(data if damage == "flip" else data[:-80])
    _, log = start(tmp_path)
    with pytest.raises(KafkaStorageError):
        loaded(log)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_flipped_bit_before_the_end_is_refused_and_nothing_is_cut(tmp_path: Path, *, is_clean: bool) -> None:
    """Kafka cuts the log there, and the topics behind it are gone and their files stray."""
    run_once(tmp_path, b"a" * 300)
    run_once(tmp_path, b"b" * 300)
    if not is_clean:
        (tmp_path / ".kafka_cleanshutdown").unlink()
    path = tmp_path / METADATA / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)
    with pytest.raises(KafkaStorageError):
        loaded(start(tmp_path)[1])
    assert path.read_bytes() == bytes(data)


def test_a_damaged_length_before_the_end_is_refused(tmp_path: Path) -> None:
    run_once(tmp_path, b"a" * 300)
    run_once(tmp_path, b"b" * 300)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    path = tmp_path / METADATA / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[8] = 0x40  # the first batch claims to be longer than the file
    path.write_bytes(data)
    with pytest.raises(KafkaStorageError, match="damaged at byte 0"):
        start(tmp_path)


@pytest.mark.parametrize("cut_bytes", [1, 40, 70])
def test_a_torn_end_is_cut_off_after_an_unclean_stop(tmp_path: Path, cut_bytes: int) -> None:
    run_once(tmp_path, b"a", b"b")
    (tmp_path / ".kafka_cleanshutdown").unlink()
    (tmp_path / METADATA / "recovery-point").unlink()  # which Kafka does not write
    path = tmp_path / METADATA / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-cut_bytes])
    _, log = start(tmp_path)
    assert loaded(log) == [b"level"]
    log.become_leader()
    append(log, b"c")
    assert loaded(log) == [b"level", b"c"]


@pytest.mark.parametrize("cut_bytes", [1, 40, 74, 150])
def test_an_end_that_was_on_disk_is_not_cut_off(tmp_path: Path, cut_bytes: int) -> None:
    """Whole batches included: 74 bytes are one."""
    run_once(tmp_path, b"a")
    run_once(tmp_path, b"b")
    (tmp_path / ".kafka_cleanshutdown").unlink()
    path = tmp_path / METADATA / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-cut_bytes])
    left = path.read_bytes()
    with pytest.raises(KafkaStorageError, match="up to 6 were on disk"):
        start(tmp_path)
    assert path.read_bytes() == left


class Run:
    """A run under `fsync` that flushes when told, and its log's file."""

    def __init__(self, directory: Path, filesystem: FileSystem | None = None) -> None:
        self.directory = directory
        self.offload = ManualOffload()
        self.manager, self.log = start(directory, fsync=True, offload=self.offload, filesystem=filesystem)
        loaded(self.log)
        self.log.become_leader()
        self.flush()

    def flush(self) -> None:
        self.offload.run_all()

    def append(self, value: bytes) -> Ticket:
        return self.log.append(METADATA_SHARD, list(records(value)), self.log.leader_epoch)

    def die(self) -> None:
        for found in self.manager.directories:
            found.release()

    @property
    def path(self) -> Path:
        return self.directory / METADATA / "00000000000000000000.log"

    def size_bytes(self) -> int:
        return self.path.stat().st_size

    def make_hole(self, position: int, size_bytes: int = 80) -> None:
        """Leave zeros behind a position, as a power cut does where blocks were not written yet."""
        data = bytearray(self.path.read_bytes())
        data[position : position + size_bytes] = bytes(len(data[position : position + size_bytes]))
        self.path.write_bytes(data)


def test_a_hole_in_what_was_never_acknowledged_is_cut_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = Run(tmp_path)
    assert run.append(b"a") is not None
    run.flush()
    hole = run.size_bytes()
    lost = [run.append(value) for value in (b"b" * 50, b"c", b"d")]
    assert not any(ticket.is_durable for ticket in lost)
    run.die()
    run.make_hole(hole)

    _, log = start(tmp_path)

    assert loaded(log) == [b"level", b"a"]
    assert f"is damaged at byte {hole}: offset 4 and what follows goes" in caplog.text
    log.become_leader()
    append(log, b"e")
    assert loaded(log) == [b"level", b"a", b"e"]


def test_a_hole_in_what_was_acknowledged_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path)
    hole = run.size_bytes()
    ticket = run.append(b"a" * 50)
    run.flush()
    assert ticket.is_durable
    run.append(b"b")
    run.die()
    run.make_hole(hole)
    left = run.path.read_bytes()
    with pytest.raises(KafkaStorageError, match=f"damaged at byte {hole}: it has records up to offset 3, and .* to 4"):
        start(tmp_path)
    assert run.path.read_bytes() == left


def test_a_hole_is_refused_where_another_broker_wrote_last(tmp_path: Path) -> None:
    """Kafka does not say what was on disk."""
    run = Run(tmp_path)
    hole = run.size_bytes()
    for value in (b"a" * 50, b"b"):
        run.append(value)
    run.die()
    run.make_hole(hole)
    quorum_state = tmp_path / METADATA / "quorum-state"
    quorum_state.write_text(quorum_state.read_text().replace('"leaderEpoch":1', '"leaderEpoch":2'))
    with pytest.raises(KafkaStorageError, match="before its end"):
        start(tmp_path)


def test_without_room_to_note_what_is_on_disk_nothing_is_cut_off(tmp_path: Path) -> None:
    faults = Faults(Random(1))
    faults.error = errno.ENOSPC
    run = Run(tmp_path, FaultyFileSystem(LocalFileSystem(), faults))
    faults.fails = lambda call, path: call in ("append", "write") and "recovery-point" in path
    hole = run.size_bytes()
    tickets = [run.append(value) for value in (b"a" * 50, b"b")]
    run.flush()
    assert all(ticket.is_durable for ticket in tickets)
    run.die()
    run.make_hole(hole)
    with pytest.raises(KafkaStorageError, match="before its end"):
        start(tmp_path)


def test_what_is_on_disk_is_noted_again_when_there_is_room(tmp_path: Path) -> None:
    faults = Faults(Random(1))
    run = Run(tmp_path, FaultyFileSystem(LocalFileSystem(), faults))
    faults.fails = lambda call, path: call in ("append", "write") and "recovery-point" in path
    run.append(b"a")
    run.flush()
    faults.fails = None
    run.append(b"b")
    run.flush()
    run.append(b"c")
    run.flush()
    assert MetadataRecoveryPoint(LocalFileSystem(), str(tmp_path / METADATA)).read() == (6, 1)


@pytest.mark.parametrize("seed", range(60))
def test_a_start_after_a_power_cut_has_all_that_was_acknowledged(seed: int) -> None:
    """And it starts, whatever the cut left of the rest."""
    dice = Random(seed)
    memory, acknowledged = MemoryFileSystem(ManualClock()), [b"level"]
    sent = 0
    for _ in range(3):
        directory = Path("/data")
        faulty = FaultyFileSystem(memory, Faults(dice, dice.randrange(15, 60)))
        try:
            run = Run(directory, faulty)
            for _ in range(10):
                for _ in range(dice.randrange(1, 5)):
                    sent += 1
                    ticket = run.append(b"%d;" % sent * dice.randrange(1, 9))
                    ticket.on_done(partial(acknowledged.append, b"%d;" % sent))
                if dice.random() < 2 / 3:
                    run.flush()
        except PowerCut:
            pass
        memory = memory.cut_power(dice)
        _, log = start(Path("/data"), filesystem=memory)
        found = loaded(log)
        lost = [value for value in acknowledged if not any(one.startswith(value) for one in found)]
        assert not lost
        memory = memory.kill()


def test_a_missing_metadata_log_is_not_begun_anew_beside_partitions(tmp_path: Path) -> None:
    manager, log = start(tmp_path)
    loaded(log)
    log.become_leader()
    manager.create(TP, TOPIC_ID, CONFIG)
    manager.close()
    for path in (tmp_path / METADATA).iterdir():
        path.unlink()
    (tmp_path / METADATA).rmdir()
    with pytest.raises(DirectoryError, match="no metadata"):
        start(tmp_path)
    assert not (tmp_path / METADATA).exists()


def test_a_log_that_lost_its_segments_is_not_begun_anew_beside_partitions(tmp_path: Path) -> None:
    manager, log = start(tmp_path)
    loaded(log)
    log.become_leader()
    manager.create(TP, TOPIC_ID, CONFIG)
    manager.close()
    (tmp_path / METADATA / "00000000000000000000.log").unlink()
    with pytest.raises(DirectoryError, match="no metadata"):
        start(tmp_path)


def test_under_fsync_an_append_is_durable_after_a_flush(tmp_path: Path) -> None:
    offload = ManualOffload()
    _, log = start(tmp_path, fsync=True, offload=offload)
    loaded(log)
    log.become_leader()
    ticket = log.append(METADATA_SHARD, list(records(b"a")), log.leader_epoch)
    assert not ticket.is_durable
    offload.run_all()
    assert ticket.is_durable


def test_a_reserve_on_the_disk_is_kept_ahead_of_the_log(tmp_path: Path) -> None:
    disk = SmallDisk(1000)
    manager, log = start(tmp_path, filesystem=disk)
    log.become_leader()
    assert log.has_room()
    while disk.free_blocks:
        disk.take(str(tmp_path / f"ballast-{disk.free_blocks}"), 4096)
    asked = 0
    while log.has_room():
        append(log, bytes(1000))
        asked += 1000
    left = 0
    with pytest.raises(KafkaStorageError, match="No space left"):
        while True:
            append(log, bytes(1000))
            left += 1000
    assert asked > RESERVE_BYTES // 4
    assert left > RESERVE_BYTES // 4
    disk.remove(str(tmp_path / "ballast-1"))
    append(log, b"one more block")
    assert not log.has_room()
    for number in range(2, 100):
        disk.remove(str(tmp_path / f"ballast-{number}"))
    assert log.has_room()
    assert loaded(log)[-1] == b"one more block"
    manager.close()


def test_the_log_serves_its_own_shard_only(tmp_path: Path) -> None:
    _, log = start(tmp_path)
    with pytest.raises(ValueError, match="does not hold"):
        log.append(Shard("__consumer_offsets", 0), list(records(b"a")), 1)


@pytest.mark.parametrize("case", ["metadata", "older", "plain", "unclean", "upgrade-levels-3.9-iv0"])
def test_kafkas_metadata_logs_are_read_whole_and_carried_on(tmp_path: Path, case: str) -> None:
    """The voters that Kafka wrote are in our next snapshot, and the epoch goes on from Kafka's."""
    with tarfile.open(GOLDEN / "directories" / f"{case}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="fully_trusted")
    directory = tmp_path / "kafka-logs"
    _, log = start(directory)
    before = loaded(log)
    assert before
    newest = max(filter(None, (parse_snapshot_name(path.name) for path in (directory / METADATA).iterdir())))
    kafkas_header = next(split_batches((directory / METADATA / newest.file_name).read_bytes()))
    epoch = log.become_leader()
    log.snapshot(METADATA_SHARD, records(*before))
    ours = SnapshotId(log.next_offset, epoch)
    our_header = next(split_batches((directory / METADATA / ours.file_name).read_bytes()))
    assert [(r.key, r.value) for r in our_header.records()][1:] == [(r.key, r.value) for r in kafkas_header.records()][
        1:
    ]
    assert loaded(log) == before


def test_of_two_directories_the_one_with_the_log_is_taken(tmp_path: Path) -> None:
    with tarfile.open(GOLDEN / "directories" / "multi-dir.tar.gz") as archive:
        archive.extractall(tmp_path, filter="fully_trusted")
    paths = ",".join(str(tmp_path / name) for name in ("kafka-logs-2", "kafka-logs-1"))
    manager = make_manager(tmp_path, properties={"log.dirs": paths})
    manager.open()
    found = find_metadata_directory(manager.directories, LocalFileSystem())
    assert (Path(found.path) / METADATA).is_dir()
    (tmp_path / "kafka-logs-1" / METADATA).mkdir(exist_ok=True)
    (tmp_path / "kafka-logs-2" / METADATA).mkdir(exist_ok=True)
    with pytest.raises(DirectoryError, match="both hold"):
        find_metadata_directory(manager.directories, LocalFileSystem())
    assert TopicPartition(METADATA_TOPIC, 0) not in manager.partitions()


@pytest.mark.parametrize(
    ("name", "snapshot"),
    [
        (FIRST_SNAPSHOT, SnapshotId(0, 0)),
        ("00000000000000000352-0000000003.checkpoint", SnapshotId(352, 3)),
        ("00000000000000000352-0000000003.checkpoint.deleted", None),
        ("00000000000000000352-3.checkpoint", None),
        ("leader-epoch-checkpoint", None),
        ("bootstrap.checkpoint", None),
    ],
)
def test_snapshots_are_known_by_their_names(name: str, snapshot: SnapshotId | None) -> None:
    assert parse_snapshot_name(name) == snapshot
