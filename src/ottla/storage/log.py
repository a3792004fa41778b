"""`PartitionLog`: the ordered segments of one partition and their four offsets.

Decides where a batch goes (offset, segment, roll), what may be read, and when an append counts as durable. Bytes and
indexes are the segments', repeats and fencing are `producer_state`'s, opening and repairing is `recovery`'s, when a
flush runs is `flusher`'s.

Under `ottla.flush.policy=os` the high watermark moves with the append and nothing else happens. Under `fsync` an append
leaves a ticket behind and asks for a flush; when it has finished, first the high watermark moves, then the tickets are
settled. A flush that failed ends the log's writing life: what the kernel dropped then cannot be written again.
"""

from __future__ import annotations

import logging
import struct
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ottla.config.log_config import LogConfig
from ottla.engine import (
    AbortedTransaction,
    EpochEndOffset,
    LogOffsets,
    ReadLimit,
    ReadResult,
    Ticket,
)
from ottla.errors import KafkaError, KafkaStorageError, OffsetOutOfRange, RecordListTooLarge
from ottla.model import (
    NO_OFFSET,
    NO_TIMESTAMP_MS,
    AppendOrigin,
    TopicPartition,
)
from ottla.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT
from ottla.records.crc32c import crc32c
from ottla.records.validation import ValidatedBatch
from ottla.storage.directory_names import DirectoryNames
from ottla.storage.failed_flush import mark_failed_flush
from ottla.storage.flush_work import FlushWork
from ottla.storage.host import LogHost
from ottla.storage.index import MAX_RELATIVE_OFFSET
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.open_files import OpenFiles, SegmentFile
from ottla.storage.produced import ProducedAppend
from ottla.storage.producer_state import BatchFacts, ProducedBatch, ProducerStates, encode_snapshot, follows
from ottla.storage.segment import LOG_SUFFIX, SNAPSHOT_SUFFIX, Segment, SegmentSlice, format_offset
from ottla.storage.segment_list import SegmentList
from ottla.storage.span import SegmentSpan
from ottla.storage.unsynced import Unsynced

_log = logging.getLogger(__name__)

SPAN_FROM_BYTES: Final = 32 * 1024
"""Below it one read and one gathered write are cheaper than sendfile."""

_APPEND_FACTS: Final = struct.Struct(">8xi9xhi8xqqhi")
"""Batch length, attributes, last offset delta, max timestamp, producer id, producer epoch, base sequence."""
_STAMP: Final = struct.Struct(">qii")
"""Base offset, batch length, leader epoch: the front of a header, outside the checksum."""

_LENGTH_END: Final = 12
"""A batch's length counts from here on."""

_EMPTY_READ: Final = ReadResult((), 0)
_NEVER_MS: Final = 2**63 - 1


class PartitionLog:
    """One partition's log. Made by `recovery.load_log`."""

    __slots__ = (
        "_flush_messages",
        "_flushing",
        "_host",
        "_max_offset",
        "_pending",
        "_refused_at",
        "_roll_after_ms",
        "_segment_bytes",
        "_segments",
        "active",
        "config",
        "cut_bytes",
        "directory",
        "epochs",
        "failure",
        "flush_asked",
        "flush_state",
        "flushed_offset",
        "high_watermark",
        "is_compacting",
        "is_moving",
        "log_end_offset",
        "log_start_offset",
        "names",
        "on_synced",
        "partition",
        "producers",
        "unsynced",
    )

    def __init__(
        self,
        host: LogHost,
        partition: TopicPartition,
        directory: str,
        config: LogConfig,
        *,
        segments: list[Segment],
        log_start_offset: int,
        log_end_offset: int,
        epochs: LeaderEpochs,
        producers: ProducerStates,
    ) -> None:
        self.partition = partition
        self.directory = directory
        self.names = DirectoryNames()
        """Through which threads rename the log's files."""
        self.config = config
        self.epochs = epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = log_end_offset
        producers.note_high_watermark(log_end_offset)
        self.flushed_offset = log_end_offset
        self.failure: KafkaStorageError | None = None
        self.flush_state = 0
        self.flush_asked = host.clock.monotonic()
        """When `flush.ms` was last looked at and had this log flushed, in seconds."""
        self.cut_bytes = 0
        """What recovery had to cut off the end."""
        self.is_compacting = False
        """True while segments are being rewritten, so that nobody else takes them away."""
        self.on_synced: Callable[[int], None] | None = None
        """Told by the thread of each flush, before anybody else, up to where all is on disk. May raise `OSError`."""
        self.is_moving = False
        """True while the log is being copied to another directory, so that nobody rewrites segments."""
        self.unsynced = Unsynced()
        """What the next flush has to sync besides the active segment."""
        self._host = host
        self._segments = SegmentList(segments)
        self._pending: deque[Ticket] = deque()
        self._flushing: FlushWork | None = None
        self._refused_at = NO_OFFSET
        self.active = segments[-1]
        self._segment_bytes = 0
        self._flush_messages = 0
        self._roll_after_ms = _NEVER_MS
        self._max_offset = 0
        self._note_roll_limits()

    # ---- offsets

    @property
    def segments(self) -> Sequence[Segment]:
        return self._segments.all

    @property
    def last_stable_offset(self) -> int:
        if self.producers.has_transactions:
            first_unstable_offset = self.producers.first_unstable_offset
            if first_unstable_offset is not None and first_unstable_offset < self.high_watermark:
                return max(first_unstable_offset, self.log_start_offset)
        return self.high_watermark

    @property
    def is_start_within_segment(self) -> bool:
        """True when only a checkpoint can tell where the log starts."""
        return self.log_start_offset > self._segments.all[0].base_offset

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    def offsets(self) -> LogOffsets:
        return LogOffsets(self.log_start_offset, self.high_watermark, self.last_stable_offset, self.log_end_offset)

    # ---- appending

    def append(
        self,
        batch: bytearray | memoryview,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        log_append_time_ms: int = NO_TIMESTAMP_MS,
        transaction_version: int = 0,
    ) -> Ticket:
        """Append one batch, see `engine.RecordLog.begin_append`.

        `transaction_version` tells how far a marker's epoch must lie above its transaction's (KIP-890).
        """
        if self.failure is not None:
            raise self.failure.with_traceback(None)  # not with all those it was raised with before
        length, attributes, offset_delta, max_timestamp_ms, producer_id, producer_epoch, base_sequence = (
            _APPEND_FACTS.unpack_from(batch)
        )
        base_offset: int = self.log_end_offset
        last_offset: int = base_offset + offset_delta
        produced: ProducedAppend | None = None
        if producer_id >= 0:
            is_transactional = attributes & TRANSACTIONAL_BIT != 0
            facts = BatchFacts(
                producer_id, producer_epoch, base_sequence, base_offset, last_offset, max_timestamp_ms, is_transactional
            )
            produced = ProducedAppend(facts, batch, is_control=attributes & CONTROL_BIT != 0)
            duplicate = produced.check(self.producers, origin, transaction_version)
            if duplicate is not None:
                return self._answer_duplicate(duplicate)
        active = self.active
        size_bytes = len(batch)
        if (
            active.size_bytes + size_bytes > self._segment_bytes
            or max_timestamp_ms > self._roll_after_ms
            or last_offset > self._max_offset
            or active.is_full
        ):
            try:
                active = self._roll_for(size_bytes, max_timestamp_ms, last_offset)
            except KafkaStorageError:
                self._note_refused(produced)
                raise
        if leader_epoch != self.epochs.latest_epoch and leader_epoch >= 0:
            self._enter_epoch(leader_epoch, base_offset)
        _STAMP.pack_into(batch, 0, base_offset, length, leader_epoch)
        try:
            active.append(batch, last_offset, max_timestamp_ms)
        except OSError as error:
            _STAMP.pack_into(batch, 0, 0, length, leader_epoch)  # as it came, for whoever asks what is wrong with it
            self._note_refused(produced)
            raise self._undo_append(error) from error
        self.log_end_offset = last_offset + 1
        if active.size_bytes == size_bytes:
            self._note_roll_limits()
        if produced is not None:
            self._learn(produced)
        return self._settle_append(base_offset, last_offset, log_append_time_ms)

    def append_together(self, batches: Sequence[ValidatedBatch], leader_epoch: int) -> Sequence[Ticket]:
        """Append the first of some batches with one write, see `engine.RecordLog.begin_appends`.

        Those go together that change nothing but the end of the log and what is known of one producer. What else there
        is, new segments, epochs, repeats and transactions, is `append`'s.
        """
        if self.failure is not None:
            raise self.failure.with_traceback(None)  # not with all those it was raised with before
        facts = self._facts_together(batches)
        active = self.active
        if not facts or leader_epoch != self.epochs.latest_epoch:
            return ()
        if active.is_full or not active.has_index_room(len(facts)):
            return ()
        written: list[memoryview | bytearray] = []
        for at in range(len(facts)):
            buffer = batches[at].buffer
            _STAMP.pack_into(buffer, 0, facts[at].base_offset, len(buffer) - _LENGTH_END, leader_epoch)
            written.append(buffer)
        try:
            active.append_all(written, facts)
        except OSError as error:
            for part in written:
                _STAMP.pack_into(part, 0, 0, len(part) - _LENGTH_END, leader_epoch)
            raise self._undo_append(error) from error
        return self._settle_together(facts, batches)

    def _facts_together(self, batches: Sequence[ValidatedBatch]) -> list[BatchFacts]:
        """Return what there is to know of the first batches, as far as they may go together."""
        facts: list[BatchFacts] = []
        end_offset, end_bytes = self.log_end_offset, self.active.size_bytes
        if not end_bytes:
            return facts
        for batch in batches:
            max_timestamp_ms = int(batch.max_timestamp_ms)
            last_offset = end_offset + int(batch.last_offset_delta)
            fact = BatchFacts(
                int(batch.producer_id),
                int(batch.producer_epoch),
                int(batch.base_sequence),
                end_offset,
                last_offset,
                max_timestamp_ms,
                False,
            )
            end_bytes += len(batch.buffer)
            if (
                end_bytes > self._segment_bytes
                or max_timestamp_ms > self._roll_after_ms
                or last_offset > self._max_offset
                or batch.is_transactional
                or batch.is_control
                or not (follows(fact, facts[-1]) if facts else self._is_news(fact))
            ):
                break
            facts.append(fact)
            end_offset = last_offset + 1
        return facts

    def _is_news(self, fact: BatchFacts) -> bool:
        """True when a producer may send this batch next, and has not done so before."""
        if fact.producer_id < 0:
            return True
        try:
            return self.producers.check(fact, AppendOrigin.CLIENT) is None
        except KafkaError:  # which `append` will tell
            return False

    def _settle_together(self, facts: list[BatchFacts], batches: Sequence[ValidatedBatch]) -> Sequence[Ticket]:
        host = self._host
        is_durable = not host.syncs_appends
        tickets: list[Ticket] = []
        for at in range(len(facts)):
            fact = facts[at]
            if fact.producer_id >= 0:
                self.producers.update(fact)
            tickets.append(
                Ticket(
                    host.offload,
                    fact.base_offset,
                    fact.last_offset,
                    int(batches[at].log_append_time_ms),
                    self.log_start_offset,
                    is_durable,
                )
            )
        self.log_end_offset = facts[-1].last_offset + 1
        if is_durable:
            self._advance_undurable()
        else:
            self._pending.extend(tickets)
            host.schedule_flush(self)
        return tickets

    def _advance_undurable(self) -> None:
        """Let readers have what is in the page cache, and ask for the flush that a topic's own setting wants."""
        if self._flush_messages <= self.log_end_offset - self.flushed_offset:
            self._host.schedule_flush(self)
        self._advance_high_watermark(self.log_end_offset)

    def _note_refused(self, produced: ProducedAppend | None) -> None:
        """Have the batches wait for this one that its producer sent behind it, where the disk did not take it."""
        if produced is not None:
            produced.note_refused(self.producers)

    def _learn(self, produced: ProducedAppend) -> None:
        try:
            produced.learn(self.producers, self.active)
        except OSError as error:  # the batch stands, and the next start makes the index anew
            self.fail(KafkaStorageError(f"{self.partition}: aborted transactions cannot be noted: {error.strerror}"))
            assert self.failure is not None
            raise self.failure from error

    def _settle_append(self, base_offset: int, last_offset: int, log_append_time_ms: int) -> Ticket:
        """Answer an append that is in the page cache; under `fsync` its end comes with a flush."""
        host = self._host
        is_durable = not host.syncs_appends
        ticket = Ticket(host.offload, base_offset, last_offset, log_append_time_ms, self.log_start_offset, is_durable)
        if is_durable:
            self._advance_undurable()
        else:
            self._pending.append(ticket)
            host.schedule_flush(self)
        return ticket

    def _answer_duplicate(self, duplicate: ProducedBatch) -> Ticket:
        """Answer a repeat with the offsets of the first copy; it may itself still wait for its flush."""
        is_durable = duplicate.last_offset < self.high_watermark
        ticket = Ticket(
            self._host.offload,
            duplicate.first_offset,
            duplicate.last_offset,
            duplicate.timestamp_ms,
            self.log_start_offset,
            is_durable,
            is_duplicate=True,
        )
        if not is_durable:
            self._pending.append(ticket)
            self._host.schedule_flush(self)
        return ticket

    def _undo_append(self, error: OSError) -> KafkaStorageError:
        """Cut off what a failed write may have left, so that the next append may try; else give the log up."""
        failure = KafkaStorageError(f"{self.partition}: append failed: {error.strerror}")
        if self.active.file.is_open:  # else it could not even be opened: nothing was written
            try:
                self.active.file.get().truncate(self.active.size_bytes)
            except OSError:
                self.fail(failure)
        if self._refused_at != self.log_end_offset:  # once, however often the producers try
            self._refused_at = self.log_end_offset
            _log.error("%s; the next append is tried again", failure)
        return failure

    def _enter_epoch(self, leader_epoch: int, base_offset: int) -> None:
        """Note a new leader epoch."""
        if self.epochs.replay(leader_epoch, base_offset):
            self._store_epochs()

    def _store_epochs(self) -> None:
        """Write the epochs: with the next flush, off the loop; at once where nothing is synced anyway.

        A flush that is under way may be writing the same file on its thread.
        """
        if self._host.syncs_appends or self._flushing is not None:
            self.unsynced.has_epoch = True
            self._host.schedule_flush(self)
            return
        try:
            self.epochs.store(durable=False)
            self.unsynced.note_written_epoch()
        except OSError as error:
            _log.warning("%s: the next flush tries to write the leader epochs again: %s", self.partition, error)
            self.unsynced.has_epoch = True

    def _advance_high_watermark(self, offset: int) -> None:
        self.high_watermark = offset
        if self.producers.has_transactions:
            self.producers.note_high_watermark(offset)
        if self._host.on_advance is not None:
            self._host.on_advance(self.partition)

    # ---- rolling

    def configure(self, config: LogConfig) -> None:
        self.config = config
        self.active.configure(config)
        self._note_roll_limits()

    def _note_roll_limits(self) -> None:
        """Work out once what the append path compares with: size, time and offset at which the segment is over."""
        active, config = self.active, self.config
        self._segment_bytes = config.internal_segment_bytes or config.segment_bytes
        self._flush_messages = config.flush_messages
        self._max_offset = active.base_offset + MAX_RELATIVE_OFFSET
        self._roll_after_ms = _NEVER_MS
        if active.size_bytes:
            self._roll_after_ms = active.roll_timestamp_ms + self._segment_life_ms()

    def _segment_life_ms(self) -> int:
        """Return how long this segment may be active: `segment.ms`, less a part of the jitter that is its own."""
        config = self.config
        life_ms = config.segment_ms
        if config.is_compacted:
            life_ms = min(life_ms, config.max_compaction_lag_ms)
        jitter_ms = min(config.segment_jitter_ms, life_ms)
        if jitter_ms:
            life_ms -= crc32c(self.active.path.encode()) % jitter_ms
        return life_ms

    def _roll_for(self, size_bytes: int, max_timestamp_ms: int, last_offset: int) -> Segment:
        """Roll when the batch does not fit. Raises `RecordListTooLarge` when it would fit no segment."""
        if size_bytes > self._segment_bytes:
            raise RecordListTooLarge(f"a batch of {size_bytes} bytes is larger than a segment ({self._segment_bytes})")
        active = self.active
        if active.size_bytes or active.is_full or last_offset > self._max_offset:
            self.roll()
        return self.active

    def roll(self) -> Segment:
        """Begin a new segment at the log end."""
        host, old = self._host, self.active
        try:
            if old.has_torn_end:
                old.trim()
            if old.base_offset == self.log_end_offset and not old.size_bytes:
                return old
            old.become_inactive()
            if self.config.preallocate:
                old.trim()
            self.store_snapshot()
            new = Segment(host.filesystem, host.open_files, self.directory, self.log_end_offset, self.config)
            new.created_ms = host.clock.wall_ms()
            new.create(self.config)
        except OSError as error:
            raise KafkaStorageError(f"{self.partition}: no new segment: {error.strerror}") from error
        self._segments.add(new)
        self.unsynced.add_rolled(old)
        self.active = new
        self._note_roll_limits()
        if host.syncs_appends:
            host.schedule_flush(self)
        return new

    def store_snapshot(self) -> None:
        """Write the producers as of the log end. A torn file is found by its checksum and rebuilt from the log."""
        self.producers.expire(self._host.clock.wall_ms())
        path = f"{self.directory}/{format_offset(self.log_end_offset)}{SNAPSHOT_SUFFIX}"
        self._host.filesystem.write(path, encode_snapshot(self.producers))

    # ---- moving

    def move_to(self, directory: str) -> None:
        """Go on in another directory, where all files stand as they are here; whoever reads keeps what was leased."""
        for segment in self._segments.all:
            old = segment.file
            segment.take_directory(directory)
            segment.file = SegmentFile(self._host.open_files, segment.path + LOG_SUFFIX)
            old.retire()
        self._take_directory(directory)
        self.unsynced.note_names()
        self.unsynced.note_written_epoch()

    def rename_to(self, directory: str) -> None:
        """Take note that the log's directory was renamed."""
        for segment in self._segments.all:
            segment.take_directory(directory)
        self._take_directory(directory)
        self.unsynced.note_names()
        self._host.schedule_flush(self)

    def _take_directory(self, directory: str) -> None:
        old, self.directory = self.directory, directory
        self.names.give_up()
        self.names = DirectoryNames()
        self.epochs.path = directory + self.epochs.path[len(old) :]
        self.unsynced.move(old, directory)

    # ---- flushing

    @property
    def flushing(self) -> FlushWork | None:
        """The flush that is under way."""
        return self._flushing

    @property
    def has_unflushed(self) -> bool:
        return self.flushed_offset < self.log_end_offset or bool(self.unsynced)

    def flush_rolled(self) -> None:
        """Ask for a flush when segments were rolled since the last one.

        Under `os` that is not done as they roll: some time later the kernel has written most of them by itself, and
        appends need not share the disk and the processor with a whole segment on its way out.
        """
        if self.unsynced.rolled and self.failure is None:
            self._host.schedule_flush(self)

    def flush_when_due(self) -> None:
        """Ask for a flush when `flush.ms` has passed since the last time."""
        now = self._host.clock.monotonic()
        if self.has_unflushed and self.failure is None and now - self.flush_asked >= self.config.flush_ms / 1000:
            self.flush_asked = now
            self._host.schedule_flush(self)

    def begin_flush(self) -> FlushWork:
        """Lease what a flush has to sync: everything that was appended before this call."""
        files = [segment.file for segment in self.unsynced.rolled]
        files.append(self.active.file)
        work = self._flushing = FlushWork(self._host.filesystem, self.log_end_offset, files)
        self.unsynced.hand_over(work, self.directory, self.names, self.epochs)
        if self.on_synced is not None:
            work.add_last(partial(self.on_synced, self.log_end_offset))
        return work

    def end_flush(self, work: FlushWork, error: BaseException | None) -> None:
        """Take note of a flush that ran: move the high watermark, then settle the tickets that it covers."""
        work.release()
        self._flushing = None
        if error is not None:
            self.fail_flush(error)
            return
        end_offset = work.end_offset
        if work.lacks_replacement:  # after a crash the epochs are learnt from the batches that are checked again
            self.unsynced.has_epoch = True
        else:
            self.flushed_offset = max(self.flushed_offset, end_offset)
        if not self._host.syncs_appends or self.failure is not None:
            return
        if end_offset > self.high_watermark:
            self._advance_high_watermark(end_offset)
        pending = self._pending
        while pending and pending[0].last_offset < end_offset:
            pending.popleft().settle(None)

    def fail_flush(self, error: BaseException) -> None:
        """Give the log up: what a failed fsync left unwritten, the kernel may have dropped."""
        if self.failure is None:
            mark_failed_flush(self._host.filesystem, self.directory, self.flushed_offset)
        self.fail(KafkaStorageError(f"{self.partition}: flush failed: {error}"))

    def fail(self, failure: KafkaStorageError) -> None:
        """Refuse appends from now on and fail those that wait. What is readable stays readable."""
        if self.failure is None:
            self.failure = failure
            _log.error("a log takes no more records: %s", failure)
        self.settle_pending(failure)

    def settle_pending(self, error: KafkaError) -> None:
        while self._pending:
            self._pending.popleft().settle(error)

    # ---- reading

    def read(self, offset: int, limit: ReadLimit) -> ReadResult:
        """Read from one segment, see `engine.RecordLog.read`."""
        if offset < self.log_start_offset or offset > self.log_end_offset:
            raise OffsetOutOfRange(
                f"offset {offset} of {self.partition} is not in [{self.log_start_offset}, {self.log_end_offset}]"
            )
        if offset >= limit.up_to_offset:
            return _EMPTY_READ
        if offset >= self.active.base_offset:
            return self._read_from(self.active, offset, limit) or _EMPTY_READ
        for segment in self._segments.holding(offset):
            result = self._read_from(segment, offset, limit)
            if result is not None:
                result.is_behind = segment.next_offset < limit.up_to_offset
                return result
        return _EMPTY_READ

    def _read_from(self, segment: Segment, offset: int, limit: ReadLimit) -> ReadResult | None:
        """Read from a segment; None when no batch of it is at or above `offset`."""
        found = segment.read(offset, limit)
        if found is None:
            return None
        if found.is_first_batch_cut or not found.size_bytes:
            return ReadResult((), 0, None if found.is_first_batch_cut else (), found.available_bytes)
        span = self._span(segment.file, found.position, found.size_bytes)
        aborted = self._aborted_in(segment, offset, found)
        return ReadResult((span,), found.size_bytes, aborted, found.available_bytes)

    def _span(self, file: SegmentFile, position: int, size_bytes: int) -> bytes | SegmentSpan:
        if size_bytes < SPAN_FROM_BYTES:
            return file.get().pread(size_bytes, position)
        return SegmentSpan(file, position, size_bytes)

    def keep_warm(self, segment: Segment) -> None:
        """Take note that the indexes of a segment are about to be loaded; those of another may go for it."""
        self._segments.keep_warm(segment)

    def _aborted_in(self, segment: Segment, offset: int, found: SegmentSlice) -> Sequence[AbortedTransaction]:
        """Return the aborted transactions that the bytes of a read may belong to."""
        if not self._segments.has_aborted:
            return ()
        bound = segment.upper_bound_offset(found.position + found.size_bytes)
        return self.aborted_transactions(offset, segment.next_offset if bound is None else bound)

    def aborted_transactions(self, first_offset: int, up_to_offset: int) -> Sequence[AbortedTransaction]:
        """Return the aborted transactions that touch [first_offset, up_to_offset), in the order of their markers."""
        return self._segments.aborted_transactions(first_offset, up_to_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # ---- cutting

    def delete_records(self, before_offset: int) -> int:
        """Raise the log start; returns the new one. Raises `OffsetOutOfRange` above the high watermark."""
        if before_offset < 0 or before_offset > self.high_watermark:
            raise OffsetOutOfRange(
                f"records of {self.partition} before {before_offset} cannot go: the high watermark is "
                f"{self.high_watermark}"
            )
        self._raise_start(before_offset)
        return self.log_start_offset

    def _raise_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            if self.epochs.cut_start(offset):
                self._store_epochs()

    def take_oldest(self, count: int) -> list[Segment]:
        """Take the oldest segments out of the log, which then starts at the first that stays; returns them.

        A log that loses all begins a new segment first. Their files keep their names: whoever takes them renames them.
        """
        if count == len(self._segments.all):
            self.roll()
        taken = self._segments.all[:count]
        self.replace_segments(taken, [])
        self._raise_start(self._segments.all[0].base_offset)
        return taken

    def replace_segments(self, old: Sequence[Segment], new: Sequence[Segment]) -> None:
        """Put compacted segments, or none, in the place of others. Neither may be the active one."""
        for segment in old:
            self.unsynced.forget(segment)
        self._segments.replace(old, new)

    def truncate_to(self, offset: int) -> None:
        """Cut off everything at and above `offset`; appends that wait for a flush fail.

        What producers did there is still known afterwards, see `recovery.truncate_log`.
        """
        if offset >= self.log_end_offset:
            return
        self.settle_pending(KafkaStorageError(f"{self.partition} was truncated to {offset}"))
        while len(self._segments.all) > 1 and self.active.base_offset >= offset:
            self._drop_active()
        self.active.truncate_to(offset)
        self.log_end_offset = self.active.next_offset = max(offset, self.active.base_offset)
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self.high_watermark = min(self.high_watermark, self.log_end_offset)
        self.flushed_offset = min(self.flushed_offset, self.log_end_offset)
        if self._flushing is not None:  # it says nothing of what comes in the place of what was cut off
            self._flushing.end_offset = min(self._flushing.end_offset, self.log_end_offset)
        self.epochs.truncate_from_end(self.log_end_offset)
        self._note_roll_limits()

    def _drop_active(self) -> None:
        dropped = self._segments.drop_active()
        self.active = self._segments.active
        self.unsynced.forget(dropped)
        for path in dropped.paths():
            self._host.filesystem.remove(path)

    # ---- closing

    def prepare_close(self) -> None:
        """Write the indexes, as no append will follow, and ask for a last flush. Raises `OSError`."""
        self.active.become_inactive()
        self.unsynced.add_indexes(self._take_unsynced_indexes())
        if self.has_unflushed:
            self._host.schedule_flush(self)

    def close(self) -> None:
        """Write indexes and the producer snapshot and close the files. The data must be flushed already.

        The indexes are synced: nothing tells the next start when one is short or gone. A snapshot that is, shows.
        Raises `OSError`.
        """
        if self.failure is None:
            self.active.become_inactive()
            if self.config.preallocate:
                self.active.trim()
            self.store_snapshot()
            for path in self._take_unsynced_indexes():
                self._host.filesystem.sync_file(path)
            if self.active.txn_index.sync():
                self._host.filesystem.sync_directory(self.directory)
        for segment in self._segments.all:
            segment.retire()

    def _take_unsynced_indexes(self) -> list[str]:
        return [path for segment in self._segments.all for path in segment.take_unsynced_indexes()]

    def discard(self, error: KafkaError) -> None:
        """End a log that is being deleted: close the files, each with its last reader, and fail what waits.

        No thread renames anything in its directory afterwards.
        """
        self.names.give_up()
        self.failure = KafkaStorageError(f"{self.partition} was deleted")
        self.settle_pending(error)
        self.retire()

    def share_files(self, open_files: OpenFiles) -> None:
        """Keep the segment files among these from now on. Nothing may be leased."""
        for segment in self._segments.all:
            segment.file.move_to(open_files)

    def retire(self) -> None:
        """Close the files, each with its last reader, and bring nothing to disk."""
        for segment in self._segments.all:
            segment.retire()
