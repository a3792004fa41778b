"""`__cluster_metadata-0`: the cluster's metadata as a KRaft log with snapshots, in Kafka's files.

The log itself is an ordinary partition (`RecordLog` keeps it); here is what makes it KRaft's: `quorum-state`, control
records, and snapshots named `<end offset>-<epoch>.checkpoint`. Serves the state store's shard of that name.

Invariants:

1. An epoch is stored in `quorum-state` before anything is appended in it, so no epoch is used twice.
2. The first batch of every epoch is a leader-change control batch; the first of all names the voters, too.
3. A snapshot appears whole or not at all (it is written aside and renamed), and only after the log up to it is synced,
   so that the log never ends before its newest snapshot.
4. Records below the snapshot before the newest may go; the newest two snapshots stay.
5. What was found about the quorum's voters is carried byte for byte into the snapshots that we write.

What records mean is the broker's business: they come and go as bytes, control bodies too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.clock import Clock
from ottla.config.log_config import LogConfig
from ottla.engine import ReadLimit, RecordLog, Shard, StateBatch, StateRecord, Ticket
from ottla.errors import KafkaStorageError
from ottla.model import METADATA_TOPIC, METADATA_TOPIC_ID, AppendOrigin, TopicPartition
from ottla.records.batch import RecordBatch, split_batches
from ottla.records.builder import BatchBuilder
from ottla.records.record import Record
from ottla.storage.files import FileSystem
from ottla.storage.quorum_state import FILE_NAME, QuorumState, read_quorum_state, write_quorum_state

METADATA_SHARD: Final = Shard(METADATA_TOPIC, 0)
METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)

_SNAPSHOT_SUFFIX: Final = ".checkpoint"
_UNFINISHED_SUFFIX: Final = ".checkpoint.tmp"
_SNAPSHOT_BATCH_BYTES: Final = 1 << 20
_READ_BYTES: Final = 1 << 20
_SNAPSHOTS_KEPT: Final = 2

_CONTROL_KEY: Final = struct.Struct(">hh")
_LEADER_CHANGE: Final = 2
_SNAPSHOT_HEADER: Final = 3
_SNAPSHOT_FOOTER: Final = 4
_KRAFT_VERSION: Final = 5
_KRAFT_VOTERS: Final = 6


@dataclass(frozen=True, slots=True)
class ControlBodies:
    """The values of KRaft's control records, encoded by whoever knows their layout.

    `snapshot_header` takes the time of the last record that the snapshot contains, in ms.
    """

    leader_change: bytes
    snapshot_header: Callable[[int], bytes]
    snapshot_footer: bytes


class SnapshotId(NamedTuple):
    """Which snapshot: it holds all records below `end_offset`, the last of which was of `epoch`."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{_SNAPSHOT_SUFFIX}"


def parse_snapshot_name(file_name: str) -> SnapshotId | None:
    """Return which snapshot a file is, None when it is none."""
    stem, suffix = file_name[: -len(_SNAPSHOT_SUFFIX)], file_name[-len(_SNAPSHOT_SUFFIX) :]
    offset, dash, epoch = stem.partition("-")
    if suffix != _SNAPSHOT_SUFFIX or not dash or len(offset) != 20 or len(epoch) != 10:
        return None
    return SnapshotId(int(offset), int(epoch)) if offset.isdecimal() and epoch.isdecimal() else None


def metadata_log_config(*, segment_bytes: int, segment_ms: int) -> LogConfig:
    """Settings of the metadata log: it is never cleaned by age or size, only behind its snapshots."""
    return LogConfig(
        segment_bytes=segment_bytes,
        segment_ms=segment_ms,
        retention_ms=-1,
        retention_bytes=-1,
        max_message_bytes=2**31 - 1,
    )


class MetadataLog:
    """The local state store of the metadata shard: `format` when it is new, `open`, `load`, `become_leader`, append."""

    def __init__(
        self,
        log: RecordLog,
        filesystem: FileSystem,
        directory: str,
        clock: Clock,
        *,
        node_id: int,
        config: LogConfig,
        control: ControlBodies,
    ) -> None:
        """`directory` is the partition's own, `control` what control records say in this run."""
        self._log = log
        self._filesystem = filesystem
        self._directory = directory
        self._clock = clock
        self._node_id = node_id
        self._config = config
        self._control = control
        self._voter_records: dict[int, bytes] = {}
        self._last_timestamp_ms = -1
        self._leader_epoch = 0
        self.record_bytes_since_snapshot = 0

    @property
    def leader_epoch(self) -> int:
        """The epoch of this run's appends; 0 before `become_leader`."""
        return self._leader_epoch

    @property
    def next_offset(self) -> int:
        """The offset that the next appended record gets."""
        return self._log.offsets(METADATA_PARTITION).log_end_offset

    @property
    def is_formatted(self) -> bool:
        """False for a directory in which no metadata was ever kept."""
        return bool(self._snapshots()) or self._filesystem.exists(self._path(FILE_NAME))

    # -- format and start -----------------------------------------------------------------------------------------

    def format(self, records: Iterator[StateRecord], *, kraft_version: bytes, voters: bytes) -> None:
        """Begin a new directory with a snapshot at offset 0, as Kafka's format does. Raises `OSError`."""
        self._voter_records = {_KRAFT_VERSION: kraft_version, _KRAFT_VOTERS: voters}
        self._filesystem.make_directory(self._directory)
        self._write_snapshot(SnapshotId(0, 0), records, self._clock.wall_ms())

    def open(self) -> None:
        """Open the log, making an empty one where there is none, and remove what an unfinished snapshot left."""
        for name in self._file_names():
            if name.endswith(_UNFINISHED_SUFFIX):
                self._filesystem.remove(self._path(name))
        self._log.create(METADATA_PARTITION, METADATA_TOPIC_ID, self._config)

    def become_leader(self) -> int:
        """Begin a new epoch, which is returned: remember it, then append its leader-change record.

        Everything must have been loaded. Raises `CorruptQuorumState`, `KafkaStorageError`, `OSError`.
        """
        path = self._path(FILE_NAME)
        known = read_quorum_state(self._filesystem, path)
        state = QuorumState(data_version=1 if self._voter_records else 0) if known is None else known
        latest = self._log.latest_leader_epoch(METADATA_PARTITION) or 0
        self._leader_epoch = max(state.leader_epoch, latest) + 1
        write_quorum_state(self._filesystem, path, state.elected(self._node_id, self._leader_epoch))
        bodies = [(_LEADER_CHANGE, self._control.leader_change)]
        if self.next_offset == 0:
            bodies += sorted(self._voter_records.items())
        self._append(_control_batch(bodies, self._clock.wall_ms(), 0, self._leader_epoch).build())
        return self._leader_epoch

    # -- the state store ------------------------------------------------------------------------------------------

    def load(self, shard: Shard) -> Iterator[StateBatch]:
        """Yield the newest snapshot and everything after it. Raises `KafkaStorageError` when a part is missing."""
        _check_shard(shard)
        offsets = self._log.offsets(METADATA_PARTITION)
        snapshots = self._snapshots()
        start = 0
        if snapshots:
            newest = snapshots[-1]
            start = newest.end_offset
            yield from self._state_batches(self._read_snapshot(newest))
        if start < offsets.log_start_offset or start > offsets.log_end_offset:
            raise KafkaStorageError(
                f"{self._directory}: the log has offsets {offsets.log_start_offset} to {offsets.log_end_offset}, "
                f"and the newest snapshot ends at {start}"
            )
        yield from self._load_log(start, offsets.log_end_offset)

    def _load_log(self, start: int, end: int) -> Iterator[StateBatch]:
        self.record_bytes_since_snapshot = 0
        offset = start
        while offset < end:
            result = self._log.read(METADATA_PARTITION, offset, ReadLimit(_READ_BYTES, end, at_least_one_batch=True))
            data = b"".join(span if isinstance(span, bytes | memoryview) else span.read() for span in result.spans)
            for span in result.spans:
                if not isinstance(span, bytes | memoryview):
                    span.release()
            batches = list(split_batches(memoryview(data)))
            if not batches:
                raise KafkaStorageError(f"{self._directory}: nothing can be read at offset {offset}")
            self.record_bytes_since_snapshot += len(data)
            self._last_timestamp_ms = batches[-1].max_timestamp
            offset = batches[-1].next_offset
            yield from self._state_batches(batches)

    def _state_batches(self, batches: Iterable[RecordBatch]) -> Iterator[StateBatch]:
        for batch in batches:
            if batch.is_control:
                self._keep_voters(batch)
            else:
                records = [StateRecord(record.key, record.value) for record in batch.records()]
                yield StateBatch(batch.base_offset, batch.max_timestamp, records)

    def _keep_voters(self, batch: RecordBatch) -> None:
        for record in batch.records():
            control_type = _control_type(record)
            if control_type in (_KRAFT_VERSION, _KRAFT_VOTERS) and record.value is not None:
                self._voter_records[control_type] = record.value

    def append(self, shard: Shard, records: Sequence[StateRecord], epoch: int) -> Ticket:
        _check_shard(shard)
        builder = BatchBuilder()
        now_ms = self._clock.wall_ms()
        for record in records:
            builder.append(now_ms, record.key, record.value)
        return self._append(builder.build())

    def _append(self, batch: bytes | bytearray) -> Ticket:
        self.record_bytes_since_snapshot += len(batch)
        self._last_timestamp_ms = self._clock.wall_ms()
        return self._log.begin_append(
            METADATA_PARTITION,
            bytearray(batch),
            leader_epoch=self._leader_epoch,
            origin=AppendOrigin.RAFT_LEADER,
        )

    def snapshot(self, shard: Shard, records: Iterator[StateRecord]) -> None:
        """Store the state as of the log's end. Raises `OSError`."""
        _check_shard(shard)
        self._sync_log()
        self._write_snapshot(SnapshotId(self.next_offset, self._leader_epoch), records, self._last_timestamp_ms)
        self.record_bytes_since_snapshot = 0
        self._drop_old()

    # -- snapshots ------------------------------------------------------------------------------------------------

    def _snapshots(self) -> list[SnapshotId]:
        return sorted(snapshot for name in self._file_names() if (snapshot := parse_snapshot_name(name)) is not None)

    def _file_names(self) -> list[str]:
        return self._filesystem.list(self._directory) if self._filesystem.exists(self._directory) else []

    def _read_snapshot(self, snapshot: SnapshotId) -> list[RecordBatch]:
        path = self._path(snapshot.file_name)
        data = self._filesystem.read(path)
        batches = list(split_batches(memoryview(data)))
        read_bytes = sum(batch.size_in_bytes for batch in batches)
        if read_bytes != len(data) or not all(batch.is_crc_valid() for batch in batches):
            raise KafkaStorageError(f"{path} is damaged")
        if not batches or not _is_footer(batches[-1]):
            raise KafkaStorageError(f"{path} has no footer, so it is not whole")
        return batches

    def _write_snapshot(self, snapshot: SnapshotId, records: Iterator[StateRecord], contained_ms: int) -> None:
        now_ms, epoch = self._clock.wall_ms(), snapshot.epoch
        header = [(_SNAPSHOT_HEADER, self._control.snapshot_header(contained_ms)), *sorted(self._voter_records.items())]
        data = bytearray(_control_batch(header, now_ms, 0, epoch).build())
        offset = len(header)
        for builder in _record_batches(records, now_ms, offset, epoch):
            data += builder.build()
            offset += builder.count
        data += _control_batch([(_SNAPSHOT_FOOTER, self._control.snapshot_footer)], now_ms, offset, epoch).build()
        path = self._path(snapshot.file_name)
        self._filesystem.replace(path, bytes(data))
        self._filesystem.make_read_only(path)

    def _sync_log(self) -> None:
        """Make the log's last two segments durable: older ones were synced when they were rolled."""
        for name in sorted(name for name in self._file_names() if name.endswith(".log"))[-2:]:
            file = self._filesystem.open(self._path(name))
            try:
                file.sync()
            finally:
                file.close()

    def _drop_old(self) -> None:
        snapshots = self._snapshots()
        for snapshot in snapshots[:-_SNAPSHOTS_KEPT]:
            self._filesystem.remove(self._path(snapshot.file_name))
        oldest_kept = snapshots[-_SNAPSHOTS_KEPT:][0].end_offset
        offsets = self._log.offsets(METADATA_PARTITION)
        if offsets.log_start_offset < oldest_kept <= offsets.high_watermark:
            self._log.delete_records(METADATA_PARTITION, oldest_kept)

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"


def _check_shard(shard: Shard) -> None:
    if shard != METADATA_SHARD:
        raise ValueError(f"the metadata log does not hold {shard}")


def _control_batch(bodies: Sequence[tuple[int, bytes]], now_ms: int, base_offset: int, epoch: int) -> BatchBuilder:
    builder = BatchBuilder(is_control=True, base_offset=base_offset, leader_epoch=epoch)
    for control_type, body in bodies:
        builder.append(now_ms, _CONTROL_KEY.pack(0, control_type), body)
    return builder


def _record_batches(
    records: Iterator[StateRecord], now_ms: int, base_offset: int, epoch: int
) -> Iterator[BatchBuilder]:
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=epoch)
    for record in records:
        if builder.size_in_bytes > _SNAPSHOT_BATCH_BYTES:
            yield builder
            base_offset += builder.count
            builder = BatchBuilder(base_offset=base_offset, leader_epoch=epoch)
        builder.append(now_ms, record.key, record.value)
    if builder.count:
        yield builder


def _control_type(record: Record) -> int | None:
    return None if record.key is None else int(_CONTROL_KEY.unpack_from(record.key)[1])


def _is_footer(batch: RecordBatch) -> bool:
    return batch.is_control and [_control_type(record) for record in batch.records()][-1:] == [_SNAPSHOT_FOOTER]
