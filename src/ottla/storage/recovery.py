"""`load_log`: from the files of one partition to a `PartitionLog`, after a clean stop or any other.

Invariants of a partition's directory, which the code that writes keeps and this module restores:

1. Segments are named after their base offset, and their offsets do not overlap. The last one is active.
2. After a clean stop (`.kafka_cleanshutdown`) every byte of every `.log` belongs to a whole batch; nothing is checked.
3. Otherwise that holds below the recovery point only. From its segment on, batches are checked in order, and the first
   bad one and all behind it go, later segments included: they were never acknowledged as durable.
4. An index may be missing, short or damaged at any time: it says nothing that the log does not say.
5. A producer snapshot named N holds the producers as of offset N. The newest good one at or below the point where
   reading begins is taken, and the batches from there are replayed.
6. `leader-epoch-checkpoint` may be ahead of the log (it is cut) or, after a crash, behind it (epochs are learnt from
   the batches that are checked).
7. The log starts at the later of the first segment's base offset and its `log-start-offset-checkpoint`.
8. `.deleted`, `.cleaned` and `.tmp` files belong to work that was not finished or not needed any more.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from ottla.config.log_config import LogConfig
from ottla.errors import CorruptMessage, InvalidRecord, KafkaError, KafkaStorageError
from ottla.model import TopicPartition
from ottla.records.batch import HEADER_BYTES, RecordBatch
from ottla.records.control import marker_of
from ottla.records.legacy import LegacyBatch
from ottla.storage.checkpoints import CorruptCheckpoint
from ottla.storage.host import LogHost
from ottla.storage.index import CorruptIndex
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log import PartitionLog
from ottla.storage.produced import learn_batch
from ottla.storage.producer_state import BatchFacts, CorruptSnapshot, ProducerStates, decode_snapshot
from ottla.storage.segment import (
    CURRENT_MAGIC,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    BatchSpan,
    Segment,
    format_offset,
    walk_batches,
)

_log = logging.getLogger(__name__)

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
_INDEX_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
_LEFTOVER_SUFFIXES: Final = (DELETED_SUFFIX, ".cleaned", ".tmp")


class LoadPoint(NamedTuple):
    """What the checkpoints of a log directory say about one partition."""

    is_clean: bool
    recovery_point: int
    log_start_offset: int


def load_log(
    host: LogHost,
    partition: TopicPartition,
    directory: str,
    config: LogConfig,
    point: LoadPoint,
    producer_expiration_ms: int,
) -> PartitionLog:
    """Open a partition's directory, which may be empty. Raises `KafkaStorageError`."""
    try:
        return _Loader(host, partition, directory, config, producer_expiration_ms).load(point)
    except OSError as error:
        raise KafkaStorageError(f"{partition} in {directory} cannot be opened: {error}") from error


class _Loader:
    """The steps of one load, and what they have found so far."""

    __slots__ = ("_config", "_directory", "_epochs", "_host", "_names", "_partition", "_producers", "_segments")

    def __init__(
        self, host: LogHost, partition: TopicPartition, directory: str, config: LogConfig, producer_expiration_ms: int
    ) -> None:
        self._host = host
        self._partition = partition
        self._directory = directory
        self._config = config
        self._epochs = LeaderEpochs(host.filesystem, f"{directory}/{LEADER_EPOCHS}")
        self._producers = ProducerStates(producer_expiration_ms)
        self._names: set[str] = set()
        self._segments: list[Segment] = []

    def load(self, point: LoadPoint) -> PartitionLog:
        self._find_segments()
        self._load_epochs()
        first_checked = len(self._segments)
        if not point.is_clean:
            first_checked = self._first_from(point.recovery_point)
        elif self._segments:
            self._find_end(self._segments[-1])
        self._load_producers(first_checked)
        self._check_from(first_checked)
        if not self._segments or self._segments[-1].next_offset < point.log_start_offset:
            self._start_at(point.log_start_offset)
        log_end_offset = self._segments[-1].next_offset
        log_start_offset = max(point.log_start_offset, self._segments[0].base_offset)
        self._epochs.truncate_from_end(log_end_offset)
        return PartitionLog(
            self._host,
            self._partition,
            self._directory,
            self._config,
            segments=self._segments,
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            epochs=self._epochs,
            producers=self._producers,
        )

    def _find_segments(self) -> None:
        """Take stock of the directory: segments with their sizes, and the newest one's end."""
        for name in self._host.filesystem.list(self._directory):
            if name.endswith(_LEFTOVER_SUFFIXES):
                self._host.filesystem.remove(f"{self._directory}/{name}")
            else:
                self._names.add(name)
        bases = sorted(int(name.removesuffix(LOG_SUFFIX)) for name in self._names if _is_segment(name))
        for base_offset in bases:
            segment = self._new_segment(base_offset)
            segment.attach(self._host.filesystem.size(segment.file.path))
            if f"{format_offset(base_offset)}{TXN_INDEX_SUFFIX}" in self._names:
                self._load_txn_index(segment)
            if not {f"{format_offset(base_offset)}{suffix}" for suffix in _INDEX_SUFFIXES} <= self._names:
                segment.load_indexes()  # makes what is missing
            self._segments.append(segment)
        for segment, following in zip(self._segments, self._segments[1:], strict=False):
            segment.next_offset = following.base_offset

    def _new_segment(self, base_offset: int) -> Segment:
        host = self._host
        segment = Segment(host.filesystem, host.open_files, self._directory, base_offset, self._config)
        segment.created_ms = host.clock.wall_ms()
        return segment

    def _load_txn_index(self, segment: Segment) -> None:
        try:
            segment.txn_index.load()
        except CorruptIndex as error:
            raise KafkaStorageError(f"{self._partition}: {error}") from error

    def _find_end(self, segment: Segment) -> None:
        """Find the next offset of the newest segment: from its last index entry, or from the beginning."""
        segment.load_indexes()
        entry = segment.offset_index.lookup(segment.offset_index.last_offset)
        for span in segment.batches_from(entry.position):
            segment.next_offset = span.last_offset + 1
        first = next(segment.batches_from(0), None)
        if first is not None:
            segment.rolling_timestamp_ms = first.max_timestamp_ms

    def _load_epochs(self) -> None:
        try:
            self._epochs.load()
        except CorruptCheckpoint as error:
            raise KafkaStorageError(str(error)) from error

    def _first_from(self, recovery_point: int) -> int:
        """Return the slot of the first segment that may hold unchecked batches."""
        slot = 0
        while slot + 1 < len(self._segments) and self._segments[slot + 1].base_offset <= recovery_point:
            slot += 1
        return slot

    def _load_producers(self, slot: int) -> None:
        """Bring the producers up to the segment at `slot`: the newest good snapshot, then the batches behind it."""
        segments = self._segments[:slot]
        end = segments[-1].next_offset if segments else 0
        from_offset = self._load_snapshot(end)
        for segment in segments:
            if segment.next_offset > from_offset:
                self._replay(segment, from_offset)

    def _load_snapshot(self, end: int) -> int:
        """Load the newest good snapshot at or below `end`; returns its offset. Bad ones are removed."""
        offsets = sorted(int(name.removesuffix(SNAPSHOT_SUFFIX)) for name in self._names if _is_snapshot(name))
        for offset in reversed(offsets):
            path = f"{self._directory}/{format_offset(offset)}{SNAPSHOT_SUFFIX}"
            if offset > end:
                continue
            try:
                states = decode_snapshot(self._host.filesystem.read(path))
            except CorruptSnapshot:
                self._host.filesystem.remove(path)
                continue
            self._producers.load(states, self._host.clock.wall_ms())
            return offset
        return 0

    def _replay(self, segment: Segment, from_offset: int) -> None:
        """Learn producers from a segment that is known to be good. Its transaction index is there already."""
        file = segment.file.get()
        for span in segment.batches_from(segment.position_of(from_offset)):
            if span.magic >= CURRENT_MAGIC:
                _learn(self._producers, None, RecordBatch(file.pread(span.size_bytes, span.position)))

    def _check_from(self, slot: int) -> None:
        """Check the segments from `slot`; behind the first bad batch nothing stays."""
        checked = self._segments[slot:]
        for place, segment in enumerate(checked):
            removed = recover_segment(segment, self._producers, self._epochs)
            if removed:
                _log.warning(
                    "log cut", extra={"partition": str(self._partition), "bytes": removed, "end": segment.next_offset}
                )
                segment.file.get().sync()
                self._remove(self._segments[slot + place + 1 :])
                del self._segments[slot + place + 1 :]
                break
        if checked:
            self._segments[-1].file.get().sync()
            self._epochs.store()

    def _start_at(self, offset: int) -> None:
        """Begin an empty log, in place of one that ends before its start."""
        self._remove(self._segments)
        self._producers.clear()
        segment = self._new_segment(offset)
        segment.file.get()
        self._segments = [segment]

    def _remove(self, segments: list[Segment]) -> None:
        for segment in segments:
            segment.retire()
            for path in segment.paths():
                self._host.filesystem.remove(path)


def recover_segment(segment: Segment, producers: ProducerStates, epochs: LeaderEpochs) -> int:
    """Check every batch of a segment, index it anew, and cut it off at the first bad one.

    Learns producers, transactions and leader epochs on the way. Returns how many bytes were cut off.
    """
    size_bytes = segment.size_bytes
    file = segment.file.get()
    segment.start_over()
    segment.txn_index.clear()
    try:
        for span in walk_batches(file, 0, size_bytes):
            batch = _check_batch(segment, span, file.pread(span.size_bytes, span.position))
            if batch is not None:
                if batch.partition_leader_epoch > epochs.latest_epoch:
                    epochs.replay(batch.partition_leader_epoch, batch.base_offset)
                _learn(producers, segment, batch)
            segment.note_batch(span.size_bytes, span.last_offset, span.max_timestamp_ms)
    except (KafkaError, ValueError) as error:
        _log.warning("segment cut at a bad batch", extra={"segment": segment.path, "reason": str(error)})
    segment.time_index.maybe_append(segment.max_timestamp_ms, segment.offset_of_max_timestamp, use_last_slot=True)
    segment.forget_tail()
    segment.store_indexes()
    removed = size_bytes - segment.size_bytes
    if removed:
        file.truncate(segment.size_bytes)
    return removed


def _check_batch(segment: Segment, span: BatchSpan, data: bytes) -> RecordBatch | None:
    """Return the view of a v2 batch, None for an older one. Raises `CorruptMessage`, `InvalidRecord`."""
    if not segment.can_hold(span.last_offset):
        raise InvalidRecord(f"offset {span.last_offset} does not belong into segment {segment.base_offset}")
    if span.magic < CURRENT_MAGIC:
        if not LegacyBatch(data).is_crc_valid():
            raise CorruptMessage(f"the message at position {span.position} fails its checksum")
        return None
    if span.size_bytes < HEADER_BYTES:
        raise CorruptMessage(f"a batch of {span.size_bytes} bytes at position {span.position}")
    batch = RecordBatch(data)
    if not batch.is_crc_valid():
        raise CorruptMessage(f"the batch at position {span.position} fails its checksum")
    return batch


def _learn(producers: ProducerStates, segment: Segment | None, batch: RecordBatch) -> None:
    if not batch.has_producer_id:
        return
    facts = BatchFacts(
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.base_offset,
        batch.last_offset,
        batch.max_timestamp,
        batch.is_transactional,
    )
    marker = marker_of(batch) if batch.is_control else None
    learn_batch(producers, segment, facts, marker, is_control=batch.is_control)


def _is_segment(name: str) -> bool:
    return name.endswith(LOG_SUFFIX) and name.removesuffix(LOG_SUFFIX).isdigit()


def _is_snapshot(name: str) -> bool:
    return name.endswith(SNAPSHOT_SUFFIX) and name.removesuffix(SNAPSHOT_SUFFIX).isdigit()
