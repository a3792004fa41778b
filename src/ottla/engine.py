"""The engine seam: what the broker needs from whatever keeps its data.

Typing Protocols, and the values that pass through them: one leaf below `broker/` and `storage/`, imported by both and
naming neither. The local form is `storage/` (Kafka's files on one machine); a cluster engine may follow. One
conformance suite runs on every engine.

Rules that every engine keeps:

1. Only `begin_append` assigns offsets. Two calls for one partition, made in order, get increasing offsets in that
   order.
2. `begin_append` is synchronous and copies or writes what it needs before it returns: receive buffers are reused.
   Whoever waits with bytes in hand copies them first.
3. A ticket becomes durable, or fails, exactly once; its callbacks run on the thread that owns the engine (the event
   loop), never inside `begin_append`.
4. The high watermark never passes what would survive the loss that `ottla.flush.policy` guards against, never falls
   while the process lives, and moves before the tickets that it covers report durable.
5. `read` returns batches, untouched, the first of them whole and containing the asked offset, and never a byte at or
   above the limit that its isolation asks for. `max_bytes` may cut the last one, as Kafka's Fetch does; a first batch
   that would be cut is left out, unless `at_least_one_batch` asks for it whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, final

from ottla.config.log_config import LogConfig
from ottla.errors import KafkaError
from ottla.model import NO_PRODUCER_ID, AppendOrigin, TopicId, TopicPartition
from ottla.records.validation import ValidatedBatch


@final
class Ticket:
    """One append on its way to durability: its offsets are known, `is_durable` or `error` follow.

    `base_offset` and `last_offset` are those of the first copy when `is_duplicate`: an idempotent producer's batch was
    known already and nothing was written. `log_append_time_ms` is the time that the log stamped, or -1 when records
    keep their own.
    """

    __slots__ = (
        "_callbacks",
        "_offload",
        "base_offset",
        "error",
        "is_duplicate",
        "is_durable",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
    )

    def __init__(
        self,
        offload: Offload,
        base_offset: int,
        last_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        is_durable: bool,
        is_duplicate: bool = False,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.is_duplicate = is_duplicate
        self.is_durable = is_durable
        self.error: KafkaError | None = None
        """Why this append will never be durable."""
        self._callbacks: list[Callable[[], None]] | None = None
        self._offload = offload

    def on_done(self, callback: Callable[[], None]) -> None:
        """Call `callback` once on the owner's loop when durable or failed; soon, if it is so already."""
        if self.is_durable or self.error is not None:
            self._offload.call_soon(callback)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def settle(self, error: KafkaError | None = None) -> None:
        """Report the end: durable when there is no error. Called once, by the engine, on the owner's loop."""
        if error is None:
            self.is_durable = True
        else:
            self.error = error
        callbacks, self._callbacks = self._callbacks, None
        if callbacks is not None:
            for callback in callbacks:
                callback()


class FileSpan(Protocol):
    """A run of bytes in a segment file that a reader has leased.

    The file stays open until `release`, whatever retention does meanwhile.
    """

    @property
    def file_descriptor(self) -> int: ...

    @property
    def position(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def is_resident(self) -> bool:
        """False when reading it could block on the disk, so that a thread must warm it first."""

    def read(self) -> bytes:
        """Return the bytes (blocking when cold)."""

    def release(self) -> None: ...


class AbortedTransaction(NamedTuple):
    """What a read_committed consumer must skip (KIP-98)."""

    producer_id: int
    first_offset: int


@final
class ReadResult:
    """Whole batches from one partition, in offset order, as spans that together are `size_bytes` long.

    `available_bytes` is what would have been read without a limit of bytes, where that is more. `is_behind` tells that
    there is yet more, which it takes another read to get, as from another file. `aborted_transactions` is None where
    the first batch exceeds the limit, as Kafka does not look for them then.
    """

    __slots__ = ("aborted_transactions", "available_bytes", "is_behind", "size_bytes", "spans")

    def __init__(
        self,
        spans: Sequence[bytes | memoryview | FileSpan],
        size_bytes: int,
        aborted_transactions: Sequence[AbortedTransaction] | None = (),
        available_bytes: int = 0,
        is_behind: bool = False,
    ) -> None:
        self.spans = spans
        self.size_bytes = size_bytes
        self.aborted_transactions = aborted_transactions
        self.available_bytes = available_bytes
        self.is_behind = is_behind


@final
class LogOffsets:
    """The four offsets of a log."""

    __slots__ = ("high_watermark", "last_stable_offset", "log_end_offset", "log_start_offset")

    def __init__(
        self, log_start_offset: int, high_watermark: int, last_stable_offset: int, log_end_offset: int
    ) -> None:
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_end_offset = log_end_offset

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LogOffsets)
            and self.log_start_offset == other.log_start_offset
            and self.high_watermark == other.high_watermark
            and self.last_stable_offset == other.last_stable_offset
            and self.log_end_offset == other.log_end_offset
        )

    def __hash__(self) -> int:
        return hash((self.log_start_offset, self.high_watermark, self.last_stable_offset, self.log_end_offset))

    def __repr__(self) -> str:
        return (
            f"LogOffsets(log_start_offset={self.log_start_offset}, high_watermark={self.high_watermark},"
            f" last_stable_offset={self.last_stable_offset}, log_end_offset={self.log_end_offset})"
        )


class TimestampOffset(NamedTuple):
    """An answer of ListOffsets: -1 in all fields when there is none."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class EpochEndOffset(NamedTuple):
    """The largest known epoch not above the asked one, and the offset where it ends (KIP-279). -1, -1 when none."""

    leader_epoch: int
    end_offset: int


class ActiveProducer(NamedTuple):
    """What a log remembers of a producer that wrote to it; -1 where there is nothing to remember."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    txn_first_offset: int


class FutureLogFacts(NamedTuple):
    """A copy that is to become a partition's log, and by how many offsets it is behind."""

    partition: TopicPartition
    size_bytes: int
    offset_lag: int


class LogDirectoryFacts(NamedTuple):
    """A place where logs are kept: how large it is, how much of that is free (-1: unknown), and whose logs it has."""

    path: str
    total_bytes: int
    usable_bytes: int
    partitions: Sequence[TopicPartition]
    futures: Sequence[FutureLogFacts] = ()
    """What is moving to here."""
    is_cordoned: bool = False
    """True when no new logs are made here."""


@final
class ReadLimit:
    """Upper end of a read."""

    __slots__ = ("at_least_one_batch", "max_bytes", "up_to_offset")

    def __init__(self, max_bytes: int, up_to_offset: int, at_least_one_batch: bool) -> None:
        self.max_bytes = max_bytes
        self.up_to_offset = up_to_offset
        self.at_least_one_batch = at_least_one_batch


class RecordLog(Protocol):
    """All partitions' logs, by name. Raises `KafkaStorageError` where a log is damaged or its disk failed."""

    def create(self, partition: TopicPartition, topic_id: TopicId, config: LogConfig) -> None:
        """Make an empty log, or open the one that is there with the same topic id. Idempotent."""

    def delete(self, partition: TopicPartition) -> None:
        """Make the log unreachable now and remove its files later; open spans stay readable."""

    def keeping(self, config: LogConfig) -> RecordLog:
        """Return the log that keeps topics of `config.ottla_format`; for Kafka's format, itself."""

    def contains(self, partition: TopicPartition) -> bool: ...

    def partitions(self) -> Mapping[TopicPartition, TopicId]:
        """Every log that is there, with the id in its `partition.metadata`."""

    def configure(self, partition: TopicPartition, config: LogConfig) -> None:
        """Use these settings from the next append on."""

    def offsets(self, partition: TopicPartition) -> LogOffsets: ...

    def begin_append(
        self,
        partition: TopicPartition,
        batch: bytearray | memoryview,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        log_append_time_ms: int = -1,
    ) -> Ticket:
        """Append one validated, writable v2 batch; its base offset and leader epoch are stamped in place.

        Raises the producer-state errors (`OutOfOrderSequenceNumber`, `InvalidProducerEpoch`, ...), `RecordListTooLarge`
        when it is larger than a segment, `KafkaStorageError`.
        """

    def begin_appends(
        self, partition: TopicPartition, batches: Sequence[ValidatedBatch], leader_epoch: int
    ) -> Sequence[Ticket]:
        """Append as many of these batches, the first ones, as can go together; returns their tickets.

        All of them or, when it raises, none. Those that are left are for `begin_append`, as they are not of the plain
        kind. Raises `KafkaStorageError`.
        """

    def read(self, partition: TopicPartition, offset: int, limit: ReadLimit) -> ReadResult:
        """Read from the batch that holds `offset`.

        Raises `OffsetOutOfRange` below the log start or above the log end; empty at `up_to_offset` or beyond.
        """

    def aborted_transactions(
        self, partition: TopicPartition, first_offset: int, up_to_offset: int
    ) -> Sequence[AbortedTransaction]: ...

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> TimestampOffset | None:
        """First record at or after a time; the special timestamps of `model` are answered too."""

    def end_offset_for_epoch(self, partition: TopicPartition, leader_epoch: int) -> EpochEndOffset: ...

    def latest_leader_epoch(self, partition: TopicPartition) -> int | None:
        """The newest epoch in `leader-epoch-checkpoint`, None when nothing was ever appended."""

    def delete_records(self, partition: TopicPartition, before_offset: int) -> int:
        """Raise the log start; returns the new one. Raises `OffsetOutOfRange` above the high watermark."""

    def truncate_to(self, partition: TopicPartition, offset: int) -> None: ...

    def size_bytes(self, partition: TopicPartition) -> int: ...

    def producers(self, partition: TopicPartition) -> Sequence[ActiveProducer]:
        """The producers that the log remembers."""

    def describe_directories(self) -> Sequence[LogDirectoryFacts]:
        """Where logs are kept. Raises nothing: what cannot be found out is -1."""

    def keep_in(self, partition: TopicPartition, path: str) -> None:
        """Have a log move to another place, in the background; one that is not there yet will be made there.

        Raises `LogDirNotFound`, `InvalidReplicaAssignment` for a place that is cordoned, `InvalidTopicException` for a
        name too long to move, `KafkaStorageError`.
        """

    def on_moved(self, callback: Callable[[TopicPartition, bytes], None]) -> None:
        """Call `callback` when a log has moved, with the id of the place where it is from then on."""

    def on_advance(self, callback: Callable[[TopicPartition], None]) -> None:
        """Call `callback` on the owner's loop whenever a partition's high watermark or last stable offset moved."""


class Shard(NamedTuple):
    """One partition of a topic that holds the broker's own state."""

    topic: str
    partition: int


class StateRecord(NamedTuple):
    """One record of a state log: `value` None is a tombstone; `key` None where the log has no keys."""

    key: bytes | None
    value: bytes | None


class StateBatch(NamedTuple):
    """Stored records with where and when they stand, and the transaction that they are part of."""

    base_offset: int
    timestamp_ms: int
    records: Sequence[StateRecord]
    producer_id: int = NO_PRODUCER_ID
    """Whose transaction the records wait for the end of; `NO_PRODUCER_ID` where they count at once."""
    is_commit: bool | None = None
    """Set where this is the end of that transaction, and has no records."""


class StateStore(Protocol):
    """Serves every state machine of the broker: decide, append, replay."""

    def load(self, shard: Shard) -> Iterator[StateBatch]:
        """Yield all that is stored, newest snapshot first, in order. Of control records only ends of transactions."""

    def append(self, shard: Shard, records: Sequence[StateRecord], epoch: int) -> Ticket:
        """Append the records as one batch. Raises `KafkaStorageError`."""

    def snapshot(self, shard: Shard, records: Iterator[StateRecord]) -> None:
        """Store the whole state as of the log's end, so that earlier records may go."""


class BrokerEndpoint(NamedTuple):
    """A broker as Metadata shows it."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Membership(Protocol):
    """Who leads, who coordinates, who is there. Local: always this broker."""

    @property
    def node_id(self) -> int: ...

    def leader_for(self, partition: TopicPartition) -> int:
        """Node id of the partition's leader, -1 when there is none."""

    def owner(self, key: str) -> int:
        """Node id of the coordinator for a group or transactional id."""

    def brokers(self, listener_name: str) -> Sequence[BrokerEndpoint]: ...


class Syncable(Protocol):
    """An open file whose data can be brought to disk."""

    @property
    def sync_descriptor(self) -> int:
        """The descriptor by which the kernel may be asked to do it alone; -1 when only `sync` will do."""

    def sync(self) -> None:
        """Return when the data, and the size it needs, would survive a power cut. Raises `OSError`."""


Sync: TypeAlias = tuple[Syncable, Callable[[BaseException | None], None]]
"""A file to sync, and whom to tell on the loop with what that raised."""


class Offload(Protocol):
    """How an engine leaves the owner's loop to do what blocks (fsync, cold reads), and comes back.

    A server hands in threads; a test hands in one that runs when told.
    """

    def submit(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        """Run `work` off the loop, then `done` on the loop with what it raised."""

    def sync(self, syncs: Sequence[Sync]) -> None:
        """Sync open files off the loop, then tell each one's end."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run `callback` on the loop after the current callbacks."""
