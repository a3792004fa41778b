"""`Cleaner`: which compacted log is rewritten when, one at a time, in the background.

A log is worth it when its dirty part is more than `min.cleanable.dirty.ratio` of what could be compacted, when its
oldest dirty record is older than `max.compaction.lag.ms`, or when tombstones have outlived their delete horizon; of
several the dirtiest comes first. Never touched are the active segment, what lies at or above the last stable offset or
the high watermark, and what is younger than `min.compaction.lag.ms`.

Bounds: `log.cleaner.dedupe.buffer.size` for memory, `log.cleaner.io.max.bytes.per.second` for what is read and written;
between two pieces of work others get the thread. How far each log is clean stands in `cleaner-offset-checkpoint`.

A log whose compaction fails is left alone until the next start, with one line that says why.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple, Protocol

from ottla.clock import Timers
from ottla.config.broker_config import BrokerConfig
from ottla.errors import KafkaError, KafkaStorageError
from ottla.model import TopicPartition
from ottla.storage.background import Background
from ottla.storage.checkpoints import CLEANER_OFFSETS
from ottla.storage.compaction import CleanedGroup, Compaction, CompactionPlan
from ottla.storage.directory import LogDirectory
from ottla.storage.host import LogHost
from ottla.storage.log import PartitionLog
from ottla.storage.segment import SWAP_SUFFIX, Segment
from ottla.storage.swap import announce_swap, complete_swap, put_originals_aside, withdraw
from ottla.storage.trash import Trash

_log = logging.getLogger(__name__)

PIECE_BYTES: Final = 4 << 20
"""How much is read before the thread is given back."""
_NEVER_MS: Final = 2**63 - 1
_RATE: Final = "log.cleaner.io.max.bytes.per.second"


class CompactedLogs(Protocol):
    """Where a cleaner finds its logs."""

    def find_opened(self, partition: TopicPartition) -> PartitionLog | None: ...

    def directory_of(self, partition: TopicPartition) -> LogDirectory: ...

    def compacted_logs(self) -> list[PartitionLog]:
        """Return the logs with `compact` in their `cleanup.policy` that have something to compact."""


class Candidate(NamedTuple):
    """A log that could be compacted, and how dirty it is (0 to 1)."""

    log: PartitionLog
    plan: CompactionPlan
    ratio: float
    is_due: bool
    """True when it must be, however clean it is."""


class _Pass:
    """What a pass over one log has done so far."""

    __slots__ = ("began", "compaction", "group", "is_over", "log", "partition", "size_before", "steps")

    def __init__(self, log: PartitionLog, compaction: Compaction, began: float) -> None:
        self.log = log
        self.partition = log.partition
        self.compaction = compaction
        self.steps: Iterator[CleanedGroup | None] = compaction.steps()
        self.group: CleanedGroup | None = None
        self.is_over = False
        self.began = began
        self.size_before = log.size_bytes


class Cleaner:
    """Compacts logs. All methods run on the owner's loop."""

    __slots__ = (
        "_background",
        "_bytes_per_second",
        "_clean_offsets",
        "_horizons",
        "_host",
        "_logs",
        "_memory_bytes",
        "_timers",
        "_trash",
        "_uncleanable",
        "is_running",
    )

    def __init__(
        self,
        logs: CompactedLogs,
        host: LogHost,
        background: Background,
        trash: Trash,
        timers: Timers,
        clean_offsets: dict[TopicPartition, int],
    ) -> None:
        """`clean_offsets` tell up to where each log was compacted before."""
        self._logs = logs
        self._host = host
        self._background = background
        self._trash = trash
        self._timers = timers
        self._clean_offsets = clean_offsets
        self._horizons: dict[TopicPartition, int] = {}
        """When the next tombstones or markers of a log may go."""
        self._uncleanable: set[TopicPartition] = set()
        self._memory_bytes = 0
        self._bytes_per_second = 0.0
        self.is_running = False

    def configure(self, settings: BrokerConfig) -> None:
        rate = settings.get(_RATE)
        assert isinstance(rate, float)
        self._memory_bytes = settings.integer("log.cleaner.dedupe.buffer.size")
        self._bytes_per_second = rate

    # ---- choosing

    def clean(self) -> None:
        """Begin with the dirtiest log that is worth it; nothing happens while one is being compacted."""
        if self.is_running or self._background.is_stopping:
            return
        candidates = [self.assess(log) for log in self._logs.compacted_logs() if self._is_free(log)]
        worthy = [one for one in candidates if one is not None and self._is_worthy(one)]
        if worthy:
            self._begin(max(worthy, key=lambda one: one.ratio))

    def _is_free(self, log: PartitionLog) -> bool:
        return (
            log.failure is None
            and not log.is_compacting
            and not log.is_moving
            and log.partition not in self._uncleanable
        )

    def _is_worthy(self, candidate: Candidate) -> bool:
        minimum = candidate.log.config.min_cleanable_dirty_ratio
        has_dirt = candidate.plan.end_offset > candidate.plan.first_dirty_offset
        return candidate.is_due or (has_dirt and candidate.ratio > minimum)

    def assess(self, log: PartitionLog) -> Candidate | None:
        """Say how dirty a log is; None when nothing of it may be compacted now."""
        now_ms = self._host.clock.wall_ms()
        cleanable = list(_cleanable(log, now_ms))
        if not cleanable:
            return None
        end = cleanable[-1].next_offset
        first_dirty = self._clean_offsets.get(log.partition, log.log_start_offset)
        if not cleanable[0].base_offset <= first_dirty <= log.log_end_offset:
            first_dirty = cleanable[0].base_offset
        dirty = [segment for segment in cleanable if segment.next_offset > first_dirty]
        total_bytes = sum(segment.size_bytes for segment in cleanable)
        ratio = sum(segment.size_bytes for segment in dirty) / total_bytes if total_bytes else 0.0
        is_due = bool(dirty) and total_bytes > 0 and _is_overdue(dirty[0], log, now_ms)
        is_due = is_due or self._horizons.get(log.partition, _NEVER_MS) <= now_ms
        return Candidate(log, CompactionPlan(min(first_dirty, end), end), ratio, is_due)

    # ---- one pass

    def _begin(self, candidate: Candidate) -> None:
        log = candidate.log
        try:
            compaction = Compaction(
                log, self._host.filesystem, candidate.plan, self._memory_bytes, self._host.clock.wall_ms()
            )
        except OSError as error:
            self._give_up(log.partition, error)
            return
        self.is_running = log.is_compacting = True
        self._go_on(_Pass(log, compaction, self._host.clock.monotonic()))

    def _go_on(self, current: _Pass) -> None:
        self._background.submit(partial(_work, current), partial(self._note_work, current))

    def _note_work(self, current: _Pass, error: BaseException | None) -> None:
        if error is not None or not self._is_wanted(current):
            self._end(current, error)
        elif current.group is not None:
            self._announce(current, current.group)
        elif current.is_over:
            self._end(current, None)
        else:
            self._after_pause(current)

    def _is_wanted(self, current: _Pass) -> bool:
        """False once the log is gone, failed, on its way elsewhere, or not to be compacted, or the broker stops."""
        log = self._logs.find_opened(current.partition)
        is_alive = log is current.log and log.failure is None and not self._background.is_stopping
        is_alive = is_alive and not current.log.is_moving
        return is_alive and current.log.config.is_compacted

    def _after_pause(self, current: _Pass) -> None:
        """Go on as fast as the allowed rate lets it."""
        done_bytes = current.compaction.bytes_read + current.compaction.bytes_written
        deadline = current.began + done_bytes / self._bytes_per_second
        if deadline <= self._host.clock.monotonic():
            self._go_on(current)
        else:
            self._timers.call_at(deadline, partial(self._resume, current))

    def _resume(self, current: _Pass) -> None:
        if self._is_wanted(current):
            self._go_on(current)
        else:
            self._end(current, None)

    # ---- the swap

    def _announce(self, current: _Pass, group: CleanedGroup) -> None:
        work = partial(announce_swap, self._host.filesystem, current.log.directory, group.segment.base_offset)
        self._background.submit(partial(current.log.names.change, work), partial(self._swap, current, group))

    def _swap(self, current: _Pass, group: CleanedGroup, error: BaseException | None) -> None:
        """Let readers see the new segment; its file is held open while names change."""
        if error is not None or self._logs.find_opened(current.partition) is not current.log:
            self._end(current, error)
            return
        log, new = current.log, group.segment
        originals = [segment for segment in log.segments if segment.base_offset in set(group.replaced)]
        new.take_names(SWAP_SUFFIX)
        new.file.move_to(self._host.open_files)
        new.file.lease()
        log.replace_segments(originals, [new])
        renamed: list[str] = []
        work = partial(self._rename, log.directory, group, renamed)
        self._background.submit(partial(log.names.change, work), partial(self._note_swap, current, group, renamed))

    def _rename(self, directory: str, group: CleanedGroup, renamed: list[str]) -> None:
        base_offset = group.segment.base_offset
        renamed += put_originals_aside(self._host.filesystem, directory, group.replaced, base_offset)
        complete_swap(self._host.filesystem, directory, base_offset)

    def _note_swap(self, current: _Pass, group: CleanedGroup, renamed: list[str], error: BaseException | None) -> None:
        current.group = None
        self._trash.add(renamed, current.log.config.file_delete_delay_ms)
        group.segment.file.release()
        if error is not None:
            if self._logs.find_opened(current.partition) is current.log:
                current.log.fail(_storage_error(current.partition, error))
            self._end(current, error)
            return
        group.segment.take_names()
        group.segment.unload_indexes()
        self._note_work(current, None)

    # ---- the end

    def _end(self, current: _Pass, error: BaseException | None) -> None:
        log, compaction = current.log, current.compaction
        compaction.release()
        log.is_compacting = False
        if error is None and current.is_over:
            self._note_clean(current)
            return
        if error is not None and self._logs.find_opened(current.partition) is log:
            self._give_up(current.partition, error)
        leftover = [segment.base_offset for segment in log.segments]
        work = partial(withdraw, self._host.filesystem, log.directory, leftover)
        self._background.submit(work, self._rest)

    def _note_clean(self, current: _Pass) -> None:
        partition, compaction = current.partition, current.compaction
        self._clean_offsets[partition] = compaction.cleaned_up_to
        self._horizons[partition] = compaction.next_horizon_ms
        _log.info(
            "%s: compacted up to %d, %d bytes are %d now, in %.1f s",
            partition,
            compaction.cleaned_up_to,
            current.size_before,
            current.log.size_bytes,
            self._host.clock.monotonic() - current.began,
        )
        directory = self._logs.directory_of(partition)
        offsets = {one: offset for one, offset in self._clean_offsets.items() if self._lies_in(directory, one)}
        self._background.submit(partial(directory.write_checkpoint, CLEANER_OFFSETS, offsets), self._rest)

    def _lies_in(self, directory: LogDirectory, partition: TopicPartition) -> bool:
        try:
            return self._logs.directory_of(partition) is directory
        except KafkaError:  # deleted since
            return False

    def _give_up(self, partition: TopicPartition, error: BaseException) -> None:
        self._uncleanable.add(partition)
        _log.error("%s is not compacted any more: %s", partition, error)

    def _rest(self, error: BaseException | None) -> None:
        self.is_running = False
        if error is not None:
            _log.warning("the end of a compaction is not on disk: %s", error)
        self.clean()

    def forget(self, partition: TopicPartition) -> None:
        """Take note that a partition is gone; another may come under its name."""
        self._clean_offsets.pop(partition, None)
        self._horizons.pop(partition, None)
        self._uncleanable.discard(partition)


def _work(current: _Pass) -> None:
    """Run steps until a piece is done, or a group is ready, or the pass is over. On a thread."""
    until = current.compaction.bytes_read + PIECE_BYTES
    while current.compaction.bytes_read < until:
        try:
            current.group = next(current.steps)
        except StopIteration:
            current.is_over = True
            return
        if current.group is not None:
            return


def _cleanable(log: PartitionLog, now_ms: int) -> Iterator[Segment]:
    """Yield the segments that may be compacted now, from the log's start."""
    limit = min(log.last_stable_offset, log.high_watermark)
    lag_ms = log.config.min_compaction_lag_ms
    for segment in log.segments[:-1]:
        if segment.next_offset > limit:
            return
        if lag_ms > 0:
            segment.load_timestamps()
            if segment.max_timestamp_ms > now_ms - lag_ms:
                return
        yield segment


def _is_overdue(segment: Segment, log: PartitionLog, now_ms: int) -> bool:
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms == _NEVER_MS:
        return False
    first = next(segment.batches_from(0), None)
    return first is not None and 0 <= first.max_timestamp_ms < now_ms - lag_ms


def _storage_error(partition: TopicPartition, error: BaseException) -> KafkaStorageError:
    return KafkaStorageError(f"{partition}: compacted segments could not take their places: {error}")
