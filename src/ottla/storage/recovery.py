"""`load_log`: from the files of one partition to a `PartitionLog`, after a clean stop or any other.

Invariants of a partition's directory, which the code that writes keeps and this module restores:

1. Segments are named after their base offset, and their offsets do not overlap. The last one is active.
2. After a clean stop (`.kafka_cleanshutdown`) every byte of every `.log` belongs to a whole batch; nothing is checked.
   Where the newest one has a torn end all the same, as a copy that was cut short may, nothing is appended behind that.
3. Otherwise that holds below the recovery point only. From its segment on, batches are checked in order, and the first
   bad one and all behind it go, later segments included: they were never acknowledged as durable.
4. An index may be missing, short, damaged or another segment's at any time: it says nothing that the log does not say.
   A transaction index as well, except that one that is gone alone, and altogether, does not show.
5. A producer snapshot named N holds the producers as of offset N. The newest good one at or below the point where
   reading begins is taken, and the batches from there are replayed.
6. `leader-epoch-checkpoint` may be ahead of the log (it is cut) or, after a crash, behind it (epochs are learnt from
   the batches that are checked). Where it is gone or damaged, all batches tell.
7. The log starts at the later of the first segment's base offset and its `log-start-offset-checkpoint`.
8. `.deleted` files are out of use; `.cleaned` and `.tmp` files were not finished, and their originals are there.
9. Where a flush had failed, what was not on disk before it is written anew first (`failed_flush`).
10. A `.log.swap` is whole and on disk, and holds all that stays of the segments whose base offsets lie between its own
    and its end; its index files end in `.swap` or have their names already. The swap is completed, the log file last.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final, NamedTuple

from ottla.config.log_config import LogConfig
from ottla.errors import CorruptMessage, InvalidRecord, KafkaError, KafkaStorageError
from ottla.model import TopicPartition
from ottla.records.batch import HEADER_BYTES, RecordBatch
from ottla.records.control import marker_of
from ottla.records.legacy import LegacyBatch
from ottla.storage.checkpoints import CorruptCheckpoint
from ottla.storage.failed_flush import MARK, mark_failed_flush, write_anew
from ottla.storage.host import LogHost
from ottla.storage.index import CorruptIndex
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log import PartitionLog
from ottla.storage.open_files import OpenFiles
from ottla.storage.produced import learn_batch
from ottla.storage.producer_state import BatchFacts, CorruptSnapshot, ProducerStates, decode_snapshot
from ottla.storage.segment import (
    CURRENT_MAGIC,
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
from ottla.storage.swap import finish_swaps

_log = logging.getLogger(__name__)

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
_INDEX_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
_NEVER_MS: Final = 2**63 - 1
_NEVER: Final = 2**63 - 1


class LoadPoint(NamedTuple):
    """What the checkpoints of a log directory say about one partition."""

    is_clean: bool
    recovery_point: int
    log_start_offset: int


class OffsetBounds(NamedTuple):
    """Offsets of batches below `trusted` are believed; behind it they rise, up to the `following` segment's base."""

    trusted: int
    following: int


_ANY_OFFSETS: Final = OffsetBounds(_NEVER, _NEVER)


def load_log(
    host: LogHost,
    partition: TopicPartition,
    directory: str,
    config: LogConfig,
    point: LoadPoint,
    producer_expiration_ms: int,
    open_files: OpenFiles | None = None,
) -> PartitionLog:
    """Open a partition's directory, which may be empty. Raises `KafkaStorageError`.

    On a thread of its own a log needs `open_files` of its own, until `PartitionLog.share_files`.
    """
    try:
        loader = _Loader(host, open_files or host.open_files, partition, directory, config, producer_expiration_ms)
        return loader.load(point)
    except (OSError, KafkaError) as error:
        raise KafkaStorageError(f"{partition} in {directory} cannot be opened: {error}") from error


def truncate_log(host: LogHost, log: PartitionLog, offset: int) -> None:
    """Cut off what stands at and above `offset`, and what is known of producers there. Raises `KafkaStorageError`."""
    expiration_ms = log.producers.expiration_ms
    try:
        log.truncate_to(offset)
        _Loader(host, host.open_files, log.partition, log.directory, log.config, expiration_ms).reload_producers(log)
    except OSError as error:
        raise KafkaStorageError(f"{log.partition} cannot be truncated: {error}") from error


class _Loader:
    """The steps of one load, and what they have found so far."""

    __slots__ = (
        "_config",
        "_cut_bytes",
        "_damaged_txn_indexes",
        "_directory",
        "_epochs",
        "_host",
        "_names",
        "_open_files",
        "_partition",
        "_producers",
        "_segments",
    )

    def __init__(
        self,
        host: LogHost,
        open_files: OpenFiles,
        partition: TopicPartition,
        directory: str,
        config: LogConfig,
        producer_expiration_ms: int,
    ) -> None:
        self._host = host
        self._open_files = open_files
        self._cut_bytes = 0
        self._damaged_txn_indexes: list[Segment] = []
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
        self._make_missing_indexes(self._segments[:first_checked])
        self._load_producers(self._producers, first_checked)
        for segment in self._damaged_txn_indexes:
            if self._segments.index(segment) < first_checked:
                self._rebuild_txn_index(segment)
        self._check_from(first_checked, point.recovery_point)
        is_begun_here = not self._segments or self._segments[-1].next_offset < point.log_start_offset
        if is_begun_here:
            self._start_at(point.log_start_offset)
        log_end_offset = _rise_above_index(self._segments[-1])
        if log_end_offset < point.recovery_point:
            _log.error(
                "%s ends at %d, and records up to %d were on disk: what is missing was lost",
                self._partition,
                log_end_offset,
                point.recovery_point,
            )
        log_start_offset = max(point.log_start_offset, self._segments[0].base_offset)
        self._epochs.truncate_from_end(log_end_offset)
        self._remove_stray_snapshots(log_end_offset)
        log = PartitionLog(
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
        log.cut_bytes = self._cut_bytes
        if is_begun_here:
            log.unsynced.add_made((), self._name_directories())
        return log

    def _find_segments(self) -> None:
        """Take stock of the directory: segments with their sizes, and the newest one's end."""
        self._names.update(finish_swaps(self._host.filesystem, self._directory))
        bases = sorted(int(name.removesuffix(LOG_SUFFIX)) for name in self._names if _is_segment(name))
        if MARK in self._names:
            paths = [
                (base_offset, f"{self._directory}/{format_offset(base_offset)}{LOG_SUFFIX}") for base_offset in bases
            ]
            write_anew(self._host.filesystem, self._directory, paths)
        for base_offset in bases:
            segment = self._new_segment(base_offset)
            segment.attach(self._host.filesystem.size(segment.file.path))
            if f"{format_offset(base_offset)}{TXN_INDEX_SUFFIX}" in self._names:
                self._load_txn_index(segment)
            self._segments.append(segment)
        for segment, following in zip(self._segments, self._segments[1:], strict=False):
            segment.next_offset = following.base_offset
            if any(aborted.last_offset >= segment.next_offset for aborted in segment.txn_index):
                self._remake_txn_index(segment, "is another segment's")

    def _make_missing_indexes(self, segments: list[Segment]) -> None:
        """Index good segments anew whose index files are gone. Those that may be damaged get theirs when checked."""
        for segment in segments:
            names = {f"{format_offset(segment.base_offset)}{suffix}" for suffix in _INDEX_SUFFIXES}
            if not names <= self._names:
                if not len(segment.txn_index):  # who took the others may have taken this one, too
                    self._damaged_txn_indexes.append(segment)
                segment.load_indexes()
                self._sync_indexes(segment)

    def _new_segment(self, base_offset: int) -> Segment:
        host = self._host
        segment = Segment(host.filesystem, self._open_files, self._directory, base_offset, self._config)
        segment.created_ms = host.clock.wall_ms()
        return segment

    def _load_txn_index(self, segment: Segment) -> None:
        try:
            segment.txn_index.load()
        except CorruptIndex as error:
            _log.warning("%s; it is made again", error)
            self._damaged_txn_indexes.append(segment)
        else:
            if segment.txn_index.is_short:
                self._remake_txn_index(segment, "is cut")

    def _remake_txn_index(self, segment: Segment, problem: str) -> None:
        _log.warning("%s %s; it is made again", segment.txn_index.path, problem)
        self._damaged_txn_indexes.append(segment)

    def _rebuild_txn_index(self, segment: Segment) -> None:
        """Find a segment's aborted transactions again, from the producers as of its beginning."""
        segment.txn_index.clear()
        producers = ProducerStates(_NEVER_MS)
        slot = self._segments.index(segment)
        self._load_producers(producers, slot)
        self._replay(producers, segment, segment.base_offset, segment)

    def _find_end(self, segment: Segment) -> None:
        """Find the next offset of the newest segment: from its last index entry, or from the beginning.

        Raises `KafkaStorageError` where no batch can stand.
        """
        try:
            segment.load_indexes()
            entry = segment.offset_index.lookup(segment.offset_index.last_offset)
            end = entry.position
            for span in segment.batches_from(end):
                segment.next_offset = max(segment.next_offset, span.last_offset + 1)
                end = span.position + span.size_bytes
            if end < segment.size_bytes:
                self._note_torn_end(segment, end)
            first = next(segment.batches_from(0), None)
        except KafkaStorageError as error:
            raise KafkaStorageError(f"{segment.path}{LOG_SUFFIX}: {error}") from error
        if first is not None:
            segment.rolling_timestamp_ms = first.max_timestamp_ms

    def _note_torn_end(self, segment: Segment, end: int) -> None:
        _log.error(
            "%s%s, byte %d: no whole batch follows, though the stop was clean; %d bytes go with the next append",
            segment.path,
            LOG_SUFFIX,
            end,
            segment.size_bytes - end,
        )
        segment.size_bytes = end
        segment.has_torn_end = segment.is_full = True

    def _load_epochs(self) -> None:
        try:
            self._epochs.load()
        except CorruptCheckpoint as error:
            _log.warning("%s; it is made again from the log", error)
        else:
            if self._epochs.entries or not any(segment.size_bytes for segment in self._segments):
                return
        try:
            for segment in self._segments:
                self._replay_epochs(segment)
        except KafkaError as error:
            _log.warning("%s: leader epochs are known up to where %s", self._partition, error)
        self._epochs.store()

    def _replay_epochs(self, segment: Segment) -> None:
        file = segment.file.get()
        for span in segment.batches_from(0):
            if span.magic >= CURRENT_MAGIC:
                batch = RecordBatch(file.pread(HEADER_BYTES, span.position))
                if batch.partition_leader_epoch > self._epochs.latest_epoch:
                    self._epochs.replay(batch.partition_leader_epoch, batch.base_offset)

    def _first_from(self, recovery_point: int) -> int:
        """Return the slot of the first segment that may hold unchecked batches."""
        slot = 0
        while slot + 1 < len(self._segments) and self._segments[slot + 1].base_offset <= recovery_point:
            slot += 1
        return slot

    def _load_producers(self, producers: ProducerStates, slot: int) -> None:
        """Bring the producers up to the segment at `slot`: the newest good snapshot, then the batches behind it."""
        segments = self._segments[:slot]
        end = segments[-1].next_offset if segments else 0
        from_offset = self._load_snapshot(producers, end)
        for segment in segments:
            if segment.next_offset > from_offset:
                self._replay(producers, segment, from_offset, None)

    def _load_snapshot(self, producers: ProducerStates, end: int) -> int:
        """Load the newest good snapshot at or below `end`; returns its offset. Bad ones are removed."""
        offsets = sorted(int(name.removesuffix(SNAPSHOT_SUFFIX)) for name in self._names if _is_snapshot(name))
        for offset in reversed(offsets):
            path = f"{self._directory}/{format_offset(offset)}{SNAPSHOT_SUFFIX}"
            if offset > end:
                continue
            try:
                states = decode_snapshot(self._host.filesystem.read(path))
            except CorruptSnapshot as error:
                _log.warning("%s is left out: %s", path, error)
                self._host.filesystem.remove(path)
                self._names.discard(f"{format_offset(offset)}{SNAPSHOT_SUFFIX}")
                continue
            producers.load(states, self._host.clock.wall_ms())
            return offset
        return 0

    def reload_producers(self, log: PartitionLog) -> None:
        """Learn the producers anew of a log that was shortened."""
        self._names.update(self._host.filesystem.list(self._directory))
        self._segments = list(log.segments)
        self._remove_stray_snapshots(log.log_end_offset)
        log.producers.clear()
        self._load_producers(log.producers, len(self._segments))
        log.producers.note_high_watermark(log.high_watermark)

    def _remove_stray_snapshots(self, log_end_offset: int) -> None:
        """Remove snapshots of what the log has lost, and those that stops within a segment left, but for the newest."""
        offsets = sorted(int(name.removesuffix(SNAPSHOT_SUFFIX)) for name in self._names if _is_snapshot(name))
        newest = max((offset for offset in offsets if offset <= log_end_offset), default=0)
        kept = {newest, *(segment.base_offset for segment in self._segments)}
        for offset in offsets:
            if offset > log_end_offset or offset not in kept:
                name = f"{format_offset(offset)}{SNAPSHOT_SUFFIX}"
                self._host.filesystem.remove(f"{self._directory}/{name}")
                self._names.discard(name)

    def _replay(self, producers: ProducerStates, segment: Segment, from_offset: int, indexed: Segment | None) -> None:
        """Learn producers from a segment that is known to be good; `indexed` gets its aborted transactions."""
        file = segment.file.get()
        for span in segment.batches_from(segment.position_of(from_offset)):
            if span.magic >= CURRENT_MAGIC:
                _learn(producers, indexed, RecordBatch(file.pread(span.size_bytes, span.position)))

    def _check_from(self, slot: int, recovery_point: int) -> None:
        """Check the segments from `slot`; behind the first bad batch nothing stays."""
        checked = self._segments[slot:]
        known_epochs = self._epochs.entries
        for place, segment in enumerate(checked):
            following = checked[place + 1].base_offset if place + 1 < len(checked) else _NEVER
            trusted = OffsetBounds(recovery_point, following)
            removed = recover_segment(segment, self._producers, self._epochs, trusted)
            if removed:
                dropped = self._segments[slot + place + 1 :]
                self._cut_bytes = removed + sum(later.size_bytes for later in dropped)
                _log.warning(
                    "%s: %d bytes cut off, the log ends at %d now",
                    self._partition,
                    self._cut_bytes,
                    segment.next_offset,
                )
                self._remove(dropped)
                del self._segments[slot + place + 1 :]
                break
        if checked:
            is_on_disk = not self._cut_bytes and self._segments[-1].next_offset <= recovery_point
            self._sync(self._segments[slot:], is_on_disk=is_on_disk)
            if not is_on_disk or self._epochs.entries != known_epochs:
                self._epochs.store()

    def _sync(self, checked: list[Segment], *, is_on_disk: bool) -> None:
        """Bring to disk what counts as durable from now on: a killed process may have left it in memory only.

        All is there already where the log ends below its recovery point, but for what was made anew.
        """
        if is_on_disk and not any(len(segment.txn_index) for segment in checked):
            return
        try:
            for segment in checked:
                segment.file.get().sync()
        except OSError:
            mark_failed_flush(self._host.filesystem, self._directory, checked[0].base_offset)
            raise
        for segment in checked:
            segment.txn_index.sync()
            self._sync_indexes(segment)
        for path in self._name_directories():
            self._host.filesystem.sync_directory(path)

    def _sync_indexes(self, segment: Segment) -> None:
        """Bring indexes to disk that were made anew: the next start takes them for good, as it does the log."""
        for path in segment.take_unsynced_indexes():
            self._host.filesystem.sync_file(path)

    def _name_directories(self) -> list[str]:
        """Return the directories without whose names a log's files cannot be found."""
        return [self._directory, self._directory.rpartition("/")[0]]

    def _start_at(self, offset: int) -> None:
        """Begin an empty log, in place of one that ends before its start."""
        self._remove(self._segments)
        self._producers.clear()
        segment = self._new_segment(offset)
        segment.create(self._config)
        self._segments = [segment]

    def _remove(self, segments: list[Segment]) -> None:
        for segment in segments:
            segment.retire()
            for path in segment.paths():
                self._host.filesystem.remove(path)


def _rise_above_index(segment: Segment) -> int:
    """Return the newest segment's end, raised where damage let offsets go back: its index takes rising ones only."""
    if len(segment.offset_index):
        segment.next_offset = max(segment.next_offset, segment.offset_index.last_offset + 1)
    return segment.next_offset


def recover_segment(
    segment: Segment, producers: ProducerStates, epochs: LeaderEpochs, bounds: OffsetBounds = _ANY_OFFSETS
) -> int:
    """Check every batch of a segment, index it anew, and cut it off at the first bad one.

    Learns producers, transactions and leader epochs on the way. Returns how many bytes were cut off.
    """
    size_bytes = segment.size_bytes
    file = segment.file.get()
    segment.start_over()
    segment.txn_index.clear()
    try:
        for span in walk_batches(file, 0, size_bytes):
            _check_order(segment, span, bounds)
            batch = _check_batch(segment, span, file.pread(span.size_bytes, span.position))
            if batch is not None:
                if batch.partition_leader_epoch > epochs.latest_epoch:
                    epochs.replay(batch.partition_leader_epoch, batch.base_offset)
                _learn(producers, segment, batch)
            segment.note_batch(span.size_bytes, span.last_offset, span.max_timestamp_ms, beyond_limit=True)
    except (KafkaError, ValueError) as error:
        _log.warning("%s%s: %s", segment.path, LOG_SUFFIX, error)
    with suppress(ValueError):  # offsets that went back, which Kafka lets pass, too; it ends its start here
        segment.end_time_index()
    segment.forget_tail()
    segment.store_indexes()
    removed = size_bytes - segment.size_bytes
    if removed:
        file.truncate(segment.size_bytes)
    return removed


def _check_order(segment: Segment, span: BatchSpan, bounds: OffsetBounds) -> None:
    """Raise `InvalidRecord` for a batch that does not follow the one before it, in what may not have been on disk.

    Readers of such a batch would go on where they had been, for ever.
    """
    if segment.next_offset < bounds.trusted:
        return
    if span.base_offset < segment.next_offset:
        raise InvalidRecord(
            f"the batch at position {span.position} begins at {span.base_offset}, and {segment.next_offset} comes next"
        )
    if span.last_offset >= bounds.following:
        raise InvalidRecord(f"the batch at position {span.position} reaches into segment {bounds.following}")


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
    return name.endswith(LOG_SUFFIX) and _is_offset(name.removesuffix(LOG_SUFFIX))


def _is_snapshot(name: str) -> bool:
    return name.endswith(SNAPSHOT_SUFFIX) and _is_offset(name.removesuffix(SNAPSHOT_SUFFIX))


def _is_offset(stem: str) -> bool:
    """Say whether a file is named after an offset; a file of any other name is somebody else's."""
    return stem.isascii() and stem.isdecimal() and int(stem) <= _NEVER
