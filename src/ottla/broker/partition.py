"""`Partition`: one log with what its leader knows about it.

Decides which leader epoch a client may speak of, what may be appended and how far a consumer may read. Where the bytes
are, which offsets they get and whether a producer repeats itself is the engine's business; waiting is `fetching`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.config.log_config import LogConfig
from ottla.engine import (
    AbortedTransaction,
    EpochEndOffset,
    FileSpan,
    LogOffsets,
    ReadLimit,
    RecordLog,
    Ticket,
    TimestampOffset,
)
from ottla.errors import FencedLeaderEpoch, KafkaError, OffsetOutOfRange, PolicyViolation, UnknownLeaderEpoch
from ottla.model import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_LEADER_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP_MS,
    AppendOrigin,
    IsolationLevel,
    TopicId,
    TopicPartition,
)
from ottla.records.validation import ProduceRules, ValidatedBatch, validate_produced

NO_OFFSETS = LogOffsets(NO_OFFSET, NO_OFFSET, NO_OFFSET, NO_OFFSET)
NO_LEADER = -1
HIGH_WATERMARK = -1
"""Asks DeleteRecords for everything that consumers can see."""
_UNCOMMITTED: Final = IsolationLevel.READ_UNCOMMITTED
NOT_FOUND = TimestampOffset(NO_TIMESTAMP_MS, NO_OFFSET, NO_LEADER_EPOCH)


class PartitionRead:
    """What a fetch found in one partition: spans to send, or why there are none.

    `available_bytes` and `is_behind` are `engine.ReadResult`'s. `aborted_transactions` is None unless the reader asked
    for committed records only. Whoever has a `PartitionRead` either sends its spans, which releases them, or calls
    `release`.
    """

    __slots__ = (
        "aborted_transactions",
        "available_bytes",
        "diverging_epoch",
        "error",
        "is_behind",
        "is_unknown",
        "leader_epoch",
        "leader_id",
        "offsets",
        "size_bytes",
        "spans",
    )

    def __init__(self, offsets: LogOffsets, error: KafkaError | None = None) -> None:
        self.offsets = offsets
        self.error = error
        self.spans: Sequence[bytes | memoryview | FileSpan] = ()
        self.size_bytes = 0
        self.available_bytes = 0
        self.is_behind = False
        self.aborted_transactions: Sequence[AbortedTransaction] | None = None
        self.diverging_epoch: EpochEndOffset | None = None
        self.is_unknown = False
        """True when there is no such partition."""
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_LEADER_EPOCH
        """Who leads, for readers who believed something else."""

    def release(self) -> None:
        """Give leased spans back unsent."""
        for span in self.spans:
            if not isinstance(span, (bytes, memoryview)):
                span.release()
        self.spans = ()


def unknown_read(error: KafkaError) -> PartitionRead:
    """What a reader finds where there is nothing to read from."""
    read = PartitionRead(NO_OFFSETS, error)
    read.is_unknown = True
    read.aborted_transactions = ()
    return read


class Partition:
    """One partition that this broker leads."""

    __slots__ = ("_log", "config", "is_epoch_written", "leader_epoch", "rules", "topic_id", "topic_partition")

    def __init__(
        self, topic_partition: TopicPartition, topic_id: TopicId, log: RecordLog, config: LogConfig, leader_epoch: int
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.is_epoch_written = False
        """False until the metadata log has this epoch for sure: a start raises it in memory only."""
        self._log = log
        self.config = config
        self.rules = ProduceRules.from_config(config)

    def configure(self, config: LogConfig) -> None:
        """Use these settings from now on, here and in the log."""
        self.config = config
        self.rules = ProduceRules.from_config(config)
        self._log.configure(self.topic_partition, config)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Raise `FencedLeaderEpoch` or `UnknownLeaderEpoch` where a client believes in another epoch (KIP-320)."""
        if current_leader_epoch == NO_LEADER_EPOCH or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch
        raise UnknownLeaderEpoch

    def append(
        self,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        *,
        is_zstd_allowed: bool = True,
    ) -> Ticket:
        """Validate one batch and append it. `records` is read and stamped in place and not kept.

        Raises what makes the batch unacceptable; `RecordValidationFailed` where single records are to blame.
        """
        batch = validate_produced(records, self.rules, now_ms, is_zstd_allowed=is_zstd_allowed)
        return self._log.begin_append(
            self.topic_partition,
            batch.buffer,
            self.leader_epoch,
            origin,
            int(batch.log_append_time_ms),
        )

    def append_together(
        self, several: Sequence[memoryview], now_ms: int, *, is_zstd_allowed: bool = True
    ) -> Sequence[Ticket]:
        """Validate batches and append the first ones together; returns the tickets of those that were appended.

        None of the others was, and none is when it raises: `append` tells what is wrong, or does what is left. It
        looks at them anew, so this is not for topics that set the time of appending, which changes a batch for good.
        """
        valid: list[ValidatedBatch] = []
        for records in several:
            try:
                valid.append(validate_produced(records, self.rules, now_ms, is_zstd_allowed=is_zstd_allowed))
            except KafkaError:
                break
        return self._log.begin_appends(self.topic_partition, valid, self.leader_epoch)

    def offsets(self) -> LogOffsets:
        return self._log.offsets(self.topic_partition)

    def read(
        self, offset: int, max_bytes: int, isolation: IsolationLevel, *, at_least_one_batch: bool
    ) -> PartitionRead:
        """Read whole batches from the one that holds `offset`, as far as `isolation` allows.

        Raises `OffsetOutOfRange`, `KafkaStorageError`.
        """
        offsets = self._log.offsets(self.topic_partition)
        read = PartitionRead(offsets)
        is_committed_only = isolation is not _UNCOMMITTED
        end = offsets.last_stable_offset if is_committed_only else offsets.high_watermark
        result = self._log.read(self.topic_partition, offset, ReadLimit(max_bytes, end, at_least_one_batch))
        read.spans = result.spans
        read.size_bytes = result.size_bytes
        read.available_bytes = result.available_bytes
        read.is_behind = result.is_behind
        if is_committed_only:
            read.aborted_transactions = result.aborted_transactions
        return read

    def find_divergence(self, last_fetched_epoch: int, offset: int) -> EpochEndOffset | None:
        """Where this log parted from that of a reader who fetched `last_fetched_epoch` last; None when it did not.

        Raises `OffsetOutOfRange` when that cannot be told (KIP-595).
        """
        known = self.end_offset_for_epoch(last_fetched_epoch)
        if known.end_offset == NO_OFFSET or known.leader_epoch == NO_LEADER_EPOCH:
            raise OffsetOutOfRange(f"{self.topic_partition} does not know where epoch {last_fetched_epoch} ends")
        if offset < self.offsets().log_start_offset:
            raise OffsetOutOfRange
        if known.leader_epoch < last_fetched_epoch or known.end_offset < offset:
            return known
        return None

    def delete_records(self, before_offset: int) -> int:
        """Let records below an offset go, below the high watermark for -1; returns the log's new start.

        Raises `PolicyViolation` for a topic that is only compacted, `OffsetOutOfRange` above the high watermark.
        """
        if self.config.cleanup_policy == {"compact"}:
            raise PolicyViolation("records of a compacted topic are not deleted by offset")
        if before_offset == HIGH_WATERMARK:
            before_offset = self.offsets().high_watermark
        return self._log.delete_records(self.topic_partition, before_offset)

    def offset_for_timestamp(self, timestamp_ms: int, isolation: IsolationLevel | None) -> TimestampOffset:
        """Answer ListOffsets for a time or a special timestamp of `model`; `NOT_FOUND` when there is no such record.

        `isolation` limits what a consumer sees; None is for those who see the whole log.
        """
        offsets = self.offsets()
        if isolation is None:
            end = offsets.log_end_offset
        else:
            end = offsets.high_watermark if isolation == IsolationLevel.READ_UNCOMMITTED else offsets.last_stable_offset
        if timestamp_ms == LATEST_TIMESTAMP:
            return TimestampOffset(NO_TIMESTAMP_MS, end, self.leader_epoch)
        if timestamp_ms in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
            return NOT_FOUND  # no tiers here
        found = self._log.offset_for_timestamp(self.topic_partition, timestamp_ms)
        if found is None:
            return NOT_FOUND
        if timestamp_ms in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            if self._log.latest_leader_epoch(self.topic_partition) is None:
                return found._replace(leader_epoch=self.leader_epoch)
            return found
        return found if found.offset < end else NOT_FOUND

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """The largest epoch not above the asked one and where it ends (KIP-279); -1, -1 when there is none.

        A leader's epoch is written at its first append. Until then it begins and ends where the log ends, which is what
        Kafka, who writes it at once, answers.
        """
        recorded = self._log.latest_leader_epoch(self.topic_partition)
        if recorded == self.leader_epoch or not NO_LEADER_EPOCH != leader_epoch <= self.leader_epoch:
            return self._log.end_offset_for_epoch(self.topic_partition, leader_epoch)
        if recorded is None or leader_epoch == self.leader_epoch:
            return EpochEndOffset(leader_epoch, self.offsets().log_end_offset)
        return self._log.end_offset_for_epoch(self.topic_partition, min(leader_epoch, recorded))
