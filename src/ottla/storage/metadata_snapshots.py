"""Snapshots of the metadata log: `<end offset>-<epoch>.checkpoint`, a whole state in record batches of its own.

A snapshot begins with a control batch (header, and the quorum's voters where the log has them), goes on with the
records, and ends with a footer, without which it is not whole. Its offsets count from 0 and mean nothing. Files have
mode 0400, as Kafka makes them. When a snapshot is taken, and what its records mean, is decided elsewhere.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from ottla.engine import StateRecord
from ottla.errors import KafkaError, KafkaStorageError
from ottla.records.batch import RecordBatch, split_batches
from ottla.records.builder import BatchBuilder
from ottla.records.record import Record
from ottla.storage.files import FileSystem

LEADER_CHANGE: Final = 2
SNAPSHOT_HEADER: Final = 3
SNAPSHOT_FOOTER: Final = 4
KRAFT_VERSION: Final = 5
KRAFT_VOTERS: Final = 6

_SUFFIX: Final = ".checkpoint"
_UNFINISHED_SUFFIX: Final = ".checkpoint.tmp"
_OFFSET_DIGITS: Final = 20
_EPOCH_DIGITS: Final = 10
_BATCH_BYTES: Final = 1 << 20
_CONTROL_KEY: Final = struct.Struct(">hh")


class ControlBodies(NamedTuple):
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
        return f"{self.end_offset:0{_OFFSET_DIGITS}d}-{self.epoch:0{_EPOCH_DIGITS}d}{_SUFFIX}"


def parse_snapshot_name(file_name: str) -> SnapshotId | None:
    """Return which snapshot a file is, None when it is none."""
    stem = file_name.removesuffix(_SUFFIX)
    offset, _, epoch = stem.partition("-")
    is_named_so = len(offset) == _OFFSET_DIGITS and len(epoch) == _EPOCH_DIGITS and (offset + epoch).isdecimal()
    return SnapshotId(int(offset), int(epoch)) if is_named_so and stem != file_name else None


class MetadataSnapshots:
    """The snapshots in one directory, oldest first. `voters` are the voter records that go into the next one."""

    __slots__ = ("_control", "_filesystem", "_path", "voters")

    def __init__(self, filesystem: FileSystem, path: str, control: ControlBodies) -> None:
        self._filesystem = filesystem
        self._path = path
        self._control = control
        self.voters: dict[int, bytes] = {}

    def find_all(self) -> list[SnapshotId]:
        return sorted(snapshot for name in self._names() if (snapshot := parse_snapshot_name(name)) is not None)

    def remove_unfinished(self) -> None:
        """Remove what was being written when the process ended."""
        for name in self._names():
            if name.endswith(_UNFINISHED_SUFFIX):
                self._filesystem.remove(f"{self._path}/{name}")

    def remove(self, snapshot: SnapshotId) -> None:
        self._filesystem.remove(f"{self._path}/{snapshot.file_name}")

    def size(self, snapshot: SnapshotId) -> int:
        """Return its bytes."""
        return self._filesystem.size(f"{self._path}/{snapshot.file_name}")

    def modified_ms(self, snapshot: SnapshotId) -> int:
        """Return when it was written, in ms since 1970."""
        return self._filesystem.modified_ms(f"{self._path}/{snapshot.file_name}")

    def read(self, snapshot: SnapshotId) -> list[RecordBatch]:
        """Return a snapshot's batches. Raises `KafkaStorageError` when it is damaged or not whole."""
        path = f"{self._path}/{snapshot.file_name}"
        batches = check_batches(self._filesystem.read(path), path)
        if not batches or control_types(batches[-1]) != [SNAPSHOT_FOOTER]:
            raise KafkaStorageError(f"{path} has no footer, so it is not whole")
        return batches

    def write(self, snapshot: SnapshotId, records: Iterator[StateRecord], *, contained_ms: int, now_ms: int) -> None:
        """Write a snapshot; durable on return. `contained_ms` is the time of its last record. Raises `OSError`."""
        header = [(SNAPSHOT_HEADER, self._control.snapshot_header(contained_ms)), *sorted(self.voters.items())]
        data = bytearray(control_batch(header, now_ms, 0, snapshot.epoch))
        offset = len(header)
        for builder in _record_batches(records, now_ms, offset, snapshot.epoch):
            data += builder.build()
            offset += builder.count
        data += control_batch([(SNAPSHOT_FOOTER, self._control.snapshot_footer)], now_ms, offset, snapshot.epoch)
        path = f"{self._path}/{snapshot.file_name}"
        self._filesystem.replace(path, bytes(data))
        self._filesystem.make_read_only(path)

    def keep_voters(self, batch: RecordBatch) -> None:
        """Remember the voter records of a control batch, to carry them on."""
        for record in batch.records():
            control_type = _control_type(record)
            if control_type in (KRAFT_VERSION, KRAFT_VOTERS) and record.value is not None:
                self.voters[control_type] = record.value

    def _names(self) -> Sequence[str]:
        return self._filesystem.list(self._path) if self._filesystem.exists(self._path) else ()


def control_batch(bodies: Sequence[tuple[int, bytes]], now_ms: int, base_offset: int, epoch: int) -> bytes:
    """Return a control batch of (control record type, value)."""
    builder = BatchBuilder(is_control=True, base_offset=base_offset, leader_epoch=epoch)
    for control_type, body in bodies:
        builder.append(now_ms, _CONTROL_KEY.pack(0, control_type), body)
    return builder.build()


def control_types(batch: RecordBatch) -> list[int | None]:
    """Return the types of a control batch's records; empty for any other batch."""
    return [_control_type(record) for record in batch.records()] if batch.is_control else []


def check_batches(data: bytes, where: str) -> list[RecordBatch]:
    """Split bytes that must be whole, undamaged batches. Raises `KafkaStorageError`."""
    try:
        batches = list(split_batches(data))
    except KafkaError as error:
        raise KafkaStorageError(f"{where} is damaged: {error}") from error
    if sum(batch.size_in_bytes for batch in batches) != len(data):
        raise KafkaStorageError(f"{where} ends within a batch")
    for batch in batches:
        if not batch.is_crc_valid():
            raise KafkaStorageError(f"{where} is damaged: the batch at offset {batch.base_offset} fails its checksum")
    return batches


def _record_batches(
    records: Iterator[StateRecord], now_ms: int, base_offset: int, epoch: int
) -> Iterator[BatchBuilder]:
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=epoch)
    for record in records:
        if builder.size_in_bytes > _BATCH_BYTES:
            yield builder
            base_offset += builder.count
            builder = BatchBuilder(base_offset=base_offset, leader_epoch=epoch)
        builder.append(now_ms, record.key, record.value)
    if builder.count:
        yield builder


def _control_type(record: Record) -> int | None:
    return None if record.key is None else int(_CONTROL_KEY.unpack_from(record.key)[1])
