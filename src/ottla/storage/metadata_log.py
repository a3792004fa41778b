"""`__cluster_metadata-0`: the cluster's metadata as a KRaft log with snapshots, in Kafka's files.

The log itself is a `PartitionLog` like any other; here is what makes it KRaft's: `quorum-state`, leader-change records
and snapshots. Serves the state store's shard (`__cluster_metadata`, 0). What records mean is the broker's business:
they come and go as bytes, control bodies too.

Invariants:

1. An epoch is stored in `quorum-state` before anything is appended in it, so no epoch is used twice.
2. The first batch of every epoch is a leader-change control batch; the first of all names the voters, too.
3. A snapshot appears whole or not at all, and only after the log up to it is synced.
4. The newest snapshot stays, and the log from its end on. Records before it are not read again. Older snapshots go by
   age and size (`metadata.max.retention.*`), and whole segments with them that lie before the oldest that stays.
5. After an unclean stop only what was never acknowledged is cut: what lies above `metadata_recovery_point`, or, where
   that is not known (Kafka wrote last), a torn last write. Any other damage is refused. Other partitions lose records
   by it; here whole topics would be gone, and their files stray.
6. `check` and `load` change nothing: what they refuse stays as it is.
7. What was found about the quorum's voters is carried byte for byte into the snapshots that we write.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ottla.clock import Clock
from ottla.config.log_config import LogConfig
from ottla.engine import Shard, StateBatch, StateRecord, Ticket
from ottla.errors import KafkaStorageError
from ottla.model import METADATA_TOPIC, AppendOrigin, TopicPartition
from ottla.records.batch import RecordBatch
from ottla.records.builder import BatchBuilder
from ottla.storage.directory import DirectoryError, LogDirectory
from ottla.storage.files import FileSystem
from ottla.storage.log import PartitionLog
from ottla.storage.manager import LogManager
from ottla.storage.metadata_recovery_point import MetadataRecoveryPoint, RecoveryPoint
from ottla.storage.metadata_segments import Damage, MetadataSegments
from ottla.storage.metadata_snapshots import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    ControlBodies,
    MetadataSnapshots,
    SnapshotId,
    control_batch,
)
from ottla.storage.quorum_state import FILE_NAME, QuorumState, read_quorum_state, write_quorum_state
from ottla.storage.segment import Segment

_log = logging.getLogger(__name__)

METADATA_SHARD: Final = Shard(METADATA_TOPIC, 0)
METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)
RESERVE_BYTES: Final = 64 * 1024
"""Room for some hundreds of deletions."""


def metadata_log_config(
    *, segment_bytes: int, segment_ms: int, retention_bytes: int = -1, retention_ms: int = -1
) -> LogConfig:
    """Settings of the metadata log. Its retention is for snapshots, and for the log only behind them; -1: no limit."""
    return LogConfig(
        segment_bytes=segment_bytes,
        segment_ms=segment_ms,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        max_message_bytes=2**31 - 1,
    )


def find_metadata_directory(
    directories: Sequence[LogDirectory], filesystem: FileSystem, wanted: str | None = None
) -> LogDirectory:
    """Return the directory that has the metadata, or shall have it: the one of path `wanted`, else the first.

    Raises `DirectoryError` when several have it, or another than the wanted one.
    """
    having = [found for found in directories if filesystem.exists(found.partition_path(METADATA_PARTITION))]
    if len(having) > 1:
        paths = " and ".join(directory.path for directory in having)
        raise DirectoryError(f"{paths} both hold a metadata log; only one can be right")
    if having and wanted not in (None, having[0].path):
        raise DirectoryError(f"{having[0].path} holds the metadata log; metadata.log.dir is {wanted}")
    return having[0] if having else next((one for one in directories if one.path == wanted), directories[0])


class MetadataLog:
    """The local state store of the metadata shard.

    `format` it when it is new, `check`, `load`, `open`, `become_leader`, append.
    """

    __slots__ = (
        "_clock",
        "_control",
        "_damage",
        "_filesystem",
        "_is_checked",
        "_last_timestamp_ms",
        "_leader_epoch",
        "_loaded_end",
        "_manager",
        "_node_id",
        "_opened",
        "_path",
        "_recovery_point",
        "_reserved_bytes",
        "_reserved_in",
        "_segments",
        "_snapshots",
        "directory",
        "record_bytes_since_snapshot",
    )

    def __init__(
        self,
        manager: LogManager,
        directory: LogDirectory,
        filesystem: FileSystem,
        clock: Clock,
        *,
        node_id: int,
        control: ControlBodies,
    ) -> None:
        """`control` is what control records say in this run. The manager must have loaded its directories."""
        self._manager = manager
        self.directory = directory
        self._filesystem = filesystem
        self._clock = clock
        self._node_id = node_id
        self._control = control
        self._path = directory.partition_path(METADATA_PARTITION)
        self._snapshots = MetadataSnapshots(filesystem, self._path, control)
        self._recovery_point = MetadataRecoveryPoint(filesystem, self._path)
        self._segments = MetadataSegments(filesystem, self._path)
        self._damage: Damage | None = None
        """Where the log ends that `open` will make of the files, if that is before their end."""
        self._is_checked = False
        self._loaded_end: int | None = None
        """Offset behind the last record that was loaded."""
        self._opened: PartitionLog | None = None
        self._last_timestamp_ms = -1
        self._leader_epoch = 0
        self._reserved_in: Segment | None = None
        """The segment for whose growth there is a reserve on the disk, up to `_reserved_bytes`."""
        self._reserved_bytes = 0
        self.record_bytes_since_snapshot = 0

    @property
    def leader_epoch(self) -> int:
        """The epoch of this run's appends; before `become_leader` that of the last record that was loaded, or 0."""
        return self._leader_epoch

    @property
    def next_offset(self) -> int:
        """The offset that the next appended record gets."""
        return self._log.log_end_offset

    @property
    def high_watermark(self) -> int:
        """The offset below which records are durable."""
        return self._log.high_watermark

    @property
    def kraft_version(self) -> bytes | None:
        """Body of the log's newest kraft.version record, None where none was ever written."""
        return self._snapshots.voters.get(KRAFT_VERSION)

    @property
    def voters(self) -> bytes | None:
        """Body of the log's newest record of the quorum's voters, None where none was ever written."""
        return self._snapshots.voters.get(KRAFT_VOTERS)

    @property
    def is_formatted(self) -> bool:
        """False for a directory in which no metadata was ever kept. Records alone will do: some write nothing else."""
        return (
            bool(self._snapshots.find_all())
            or self._filesystem.exists(self._quorum_state_path)
            or self._segments.size_bytes > 0
        )

    @property
    def _log(self) -> PartitionLog:
        assert self._opened is not None, "the metadata log is not open"
        return self._opened

    @property
    def _quorum_state_path(self) -> str:
        return f"{self._path}/{FILE_NAME}"

    # -- format and start -----------------------------------------------------------------------------------------

    def format(self, records: Iterator[StateRecord], *, kraft_version: bytes, voters: bytes) -> None:
        """Begin a new directory with a snapshot at offset 0, as Kafka's format does.

        Raises `DirectoryError` where partitions are there already, `OSError`.
        """
        self._check_no_partitions()
        self._snapshots.voters = {KRAFT_VERSION: kraft_version, KRAFT_VOTERS: voters}
        self._filesystem.make_directory(self._path)
        now_ms = self._clock.wall_ms()
        self._snapshots.write(SnapshotId(0, 0), records, contained_ms=now_ms, now_ms=now_ms)

    def check(self) -> None:
        """Find out whether the log can be opened and loaded. Nothing is changed.

        Raises `KafkaStorageError` where it is damaged, `DirectoryError` where it is gone and partitions are there,
        `CorruptQuorumState`.
        """
        read_quorum_state(self._filesystem, self._quorum_state_path)
        if not self.directory.was_clean:
            self._check_damage()
        if not self._snapshots.find_all() and not self._segments.size_bytes:
            self._check_no_partitions()
        self._is_checked = True

    def open(self, config: LogConfig) -> None:
        """Open the log, making an empty one where there is none.

        Raises as `check` does.
        """
        if not self._is_checked:
            self.check()
        self._snapshots.remove_unfinished()
        snapshots = self._snapshots.find_all()
        start = snapshots[-1].end_offset if snapshots else 0
        self._opened = self._manager.open_metadata_log(self.directory, config, start)
        self._damage = None  # it was cut off
        if self._loaded_end not in (None, self.next_offset):
            raise KafkaStorageError(
                f"{self._path} ends at offset {self.next_offset}, and what was loaded at {self._loaded_end}"
            )
        if self.next_offset == 0:
            self._check_no_partitions()

    def become_leader(self) -> int:
        """Begin a new epoch, which is returned: remember it, then append its leader-change record.

        Everything must have been loaded. Raises `CorruptQuorumState`, `KafkaStorageError`, `OSError`.
        """
        known = read_quorum_state(self._filesystem, self._quorum_state_path)
        state = QuorumState(data_version=1 if self._snapshots.voters else 0) if known is None else known
        self._leader_epoch = max(state.leader_epoch, self._log.epochs.latest_epoch, self._leader_epoch) + 1
        elected = state.elected(self._node_id, self._leader_epoch)
        write_quorum_state(self._filesystem, self._quorum_state_path, elected)
        self._recovery_point.begin(self.next_offset, self._leader_epoch)
        self._log.on_synced = self._recovery_point.advance
        bodies = [(LEADER_CHANGE, self._control.leader_change)]
        if self.next_offset == 0:
            bodies += sorted(self._snapshots.voters.items())
        self._append(control_batch(bodies, self._clock.wall_ms(), 0, self._leader_epoch))
        return self._leader_epoch

    def _check_no_partitions(self) -> None:
        """A deleted metadata log is not begun anew while partitions are there: their topics would be forgotten."""
        count = self._manager.count_logs_of_topics()
        if count:
            raise DirectoryError(
                f"{self._path} holds no metadata, although there are {count} partitions; "
                "restore it, or move the partitions away"
            )

    def _check_damage(self) -> None:
        """Look for damage that the repair of a torn log must not take for its end. Raises `KafkaStorageError`."""
        point = self._find_recovery_point()
        snapshots = self._snapshots.find_all()
        good = self._segments.find_good_part()
        end = max(good.end_offset, snapshots[-1].end_offset if snapshots else 0)
        found: str | None = None
        if good.damage is not None:
            found = f"{self._segments.path(good.damage.base_offset)} is damaged at byte {good.damage.position}"
            if point is None and good.damage.is_inside:
                raise KafkaStorageError(f"{found}, before its end")
        if point is not None and end < point.offset:
            raise KafkaStorageError(
                f"{found or self._path + ' is short'}: it has records up to offset {end}, and those up to "
                f"{point.offset} were on disk; restore them"
            )
        if found is not None:
            _log.warning("%s: offset %d and what follows goes, of which nothing was acknowledged", found, end)
        self._damage = good.damage

    def _find_recovery_point(self) -> RecoveryPoint | None:
        """Return up to where the log was on disk, None where another broker has written since that was noted."""
        point = self._recovery_point.read()
        state = read_quorum_state(self._filesystem, self._quorum_state_path)
        return point if point is not None and state is not None and state.leader_epoch == point.leader_epoch else None

    # -- the state store ------------------------------------------------------------------------------------------

    def load(self, shard: Shard) -> Iterator[StateBatch]:
        """Yield the newest snapshot and everything after it, from the files: the log need not be open.

        Raises `KafkaStorageError` for a missing or bad part.
        """
        _check_shard(shard)
        snapshots = self._snapshots.find_all()
        start = 0
        if snapshots:
            start = snapshots[-1].end_offset
            yield from self._state_batches(self._snapshots.read(snapshots[-1]))
        first = next(iter(self._segments.base_offsets()), start)
        if start < first:
            raise KafkaStorageError(f"{self._path}: the log starts at offset {first}, and what was before is gone")
        yield from self._load_log(start)

    def _load_log(self, offset: int) -> Iterator[StateBatch]:
        self.record_bytes_since_snapshot = 0
        self._loaded_end = offset
        for batches in self._segments.read(offset, self._damage):
            self.record_bytes_since_snapshot += sum(batch.size_in_bytes for batch in batches)
            self._last_timestamp_ms = batches[-1].max_timestamp
            self._leader_epoch = max(self._leader_epoch, batches[-1].partition_leader_epoch)
            self._loaded_end = batches[-1].next_offset
            yield from self._state_batches(batches)

    def _state_batches(self, batches: Iterable[RecordBatch]) -> Iterator[StateBatch]:
        for batch in batches:
            if batch.is_control:
                self._snapshots.keep_voters(batch)
            else:
                records = [StateRecord(record.key, record.value) for record in batch.records()]
                yield StateBatch(batch.base_offset, batch.max_timestamp, records)

    def append(self, shard: Shard, records: Sequence[StateRecord], epoch: int) -> Ticket:
        _check_shard(shard)
        builder = BatchBuilder()
        now_ms = self._clock.wall_ms()
        for record in records:
            builder.append(now_ms, record.key, record.value)
        return self._append(builder.build())

    def _append(self, batch: bytes) -> Ticket:
        self.record_bytes_since_snapshot += len(batch)
        self._last_timestamp_ms = self._clock.wall_ms()
        ticket = self._log.append(bytearray(batch), self._leader_epoch, AppendOrigin.RAFT_LEADER)
        if self._reserved_in is not None:
            self.has_room()
        return ticket

    def has_room(self) -> bool:
        """Keep a reserve on the disk for the log's next records; False when there is no room to keep it filled.

        A topic can be deleted by it when the disk is full, which needs a record. Where files cannot have a reserve, and
        before this is called, there is none.
        """
        active = self._log.active
        if self._reserved_in is active and self._reserved_bytes - active.size_bytes >= RESERVE_BYTES // 2:
            return True
        reserved_bytes = active.size_bytes + RESERVE_BYTES
        try:
            active.file.get().preallocate(reserved_bytes)
        except OSError:
            return False
        self._reserved_in, self._reserved_bytes = active, reserved_bytes
        return True

    def snapshot(self, shard: Shard, records: Iterator[StateRecord]) -> None:
        """Store the state as of the log's end. Raises `OSError`; when the log cannot be synced, it takes no more."""
        _check_shard(shard)
        self._sync_log()
        self._snapshots.write(
            SnapshotId(self.next_offset, self._leader_epoch),
            records,
            contained_ms=self._last_timestamp_ms,
            now_ms=self._clock.wall_ms(),
        )
        self.record_bytes_since_snapshot = 0
        try:
            self._remove_old()
        except OSError as error:
            _log.warning("old metadata cannot be removed: %s", error)

    def _sync_log(self) -> None:
        try:
            for segment in self._log.segments[-2:]:  # older ones were synced since they were rolled
                segment.file.get().sync()
        except OSError as error:  # the next sync would say that all is well
            self._log.fail_flush(error)
            raise

    def _remove_old(self) -> None:
        """Remove snapshots by age and size, oldest first, and the segments before those that stay, as Kafka does."""
        snapshots = self._snapshots.find_all()
        size_bytes = self._log.size_bytes + sum(map(self._snapshots.size, snapshots))
        config, now_ms = self._log.config, self._clock.wall_ms()
        while len(snapshots) > 1:
            is_too_much = 0 <= config.retention_bytes < size_bytes
            is_too_old = 0 <= config.retention_ms < now_ms - self._snapshots.modified_ms(snapshots[0])
            if not is_too_much and not is_too_old:
                break
            oldest = snapshots.pop(0)
            size_bytes -= self._snapshots.size(oldest)
            self._snapshots.remove(oldest)
            size_bytes -= self._remove_segments_before(snapshots[0].end_offset)

    def _remove_segments_before(self, offset: int) -> int:
        """Remove the segments that lie wholly below an offset; returns their bytes."""
        segments = self._log.segments
        count = sum(following.base_offset <= offset for following in segments[1:])
        taken = self._log.take_oldest(count) if count else []
        for segment in taken:
            for path in reversed(segment.all_paths()):  # the log last: without it the others would lie there for good
                self._filesystem.remove(path)
        return sum(segment.size_bytes for segment in taken)


def _check_shard(shard: Shard) -> None:
    if shard != METADATA_SHARD:
        raise ValueError(f"the metadata log does not hold {shard}")
