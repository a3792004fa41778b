"""A batch on its way: its records' deliveries, its bytes, its place in the partition's queue.

What stays per record is a `Delivery`, two words that point to the batch. A batch may be shared out to two smaller ones
(`split`); the deliveries find their way. When a batch fails for the sake of single records, each delivery raises what
became of its own (KIP-467). Which batch is due is decided by `accumulator`, what becomes of a
failed one by `batch_completion`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from struct import Struct
from typing import Any, Final, NamedTuple

from ottla.errors import KafkaError
from ottla.model import NO_OFFSET, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP_MS, TopicPartition
from ottla.records.batch import ATTRIBUTES_AT, CRC_AT, HEADER_BYTES, PRODUCER_ID_AT, RecordBatch
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.crc32c import crc32c
from ottla.records.record import Headers, Record, add_sequence

RECORD_OVERHEAD_BYTES: Final = 21
"""What a record needs at most besides key, value and headers (Kafka's own bound)."""

HEADER_OVERHEAD_BYTES: Final = 10
"""What a record's header needs at most besides its key and value."""

_PRODUCER: Final = Struct(">qhi")
_CRC: Final = Struct(">I")


class RecordMetadata(NamedTuple):
    """Where a record went. `offset` is -1 when the broker did not say (acks=0, or known as a duplicate)."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Written(NamedTuple):
    """What a producer has written to a partition; the offsets are None where the broker did not say them (acks=0)."""

    records: int = 0
    size_bytes: int = 0
    """Of the batches as they were sent."""
    first_offset: int | None = None
    last_offset: int | None = None

    def and_batch(self, batch: ProducerBatch, base_offset: int) -> Written:
        """Return this with a batch more."""
        records = self.records + batch.count
        size_bytes = self.size_bytes + (0 if batch.data is None else len(batch.data))
        if base_offset < 0:
            return self._replace(records=records, size_bytes=size_bytes)
        last_offset = base_offset + batch.count - 1
        if self.first_offset is None or self.last_offset is None:
            return Written(records, size_bytes, base_offset, last_offset)
        return Written(records, size_bytes, min(self.first_offset, base_offset), max(self.last_offset, last_offset))


class Delivery:
    """One record on its way. Await it for its `RecordMetadata`; it raises what kept the record from being written."""

    __slots__ = ("_batch", "_index", "_timestamp_ms")

    def __init__(self, batch: ProducerBatch, index: int, timestamp_ms: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp_ms = timestamp_ms

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        while not (batch := self._find()[0]).done.done():
            batch.is_watched = True
            with suppress(KafkaError):  # the record may have an error of its own
                yield from asyncio.shield(batch.done).__await__()  # one who stops waiting does not stop the batch
        return self.result()

    @property
    def is_done(self) -> bool:
        return self._find()[0].done.done()

    def result(self) -> RecordMetadata:
        """Return where the record went, or raise why it did not. Raises `InvalidStateError` before `is_done`."""
        batch, index = self._find()
        batch.is_watched = True
        if batch.record_errors is not None and index in batch.record_errors:
            raise batch.record_errors[index]
        base_offset = batch.done.result()
        topic, partition = batch.queue.partition
        offset = base_offset + index if base_offset >= 0 else NO_OFFSET
        append_time_ms = batch.log_append_time_ms
        return RecordMetadata(topic, partition, offset, self._timestamp_ms if append_time_ms < 0 else append_time_ms)

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Have the event loop call this with the delivery soon after it is done, as a future's callbacks are.

        For those who are told of many records: it costs a fraction of a task that awaits one. An error that only a
        callback has seen is raised by the next flush as well.
        """
        batch = self._find()[0]

        def batch_is_done(_: asyncio.Future[int]) -> None:
            if batch.parts:
                self.add_done_callback(callback)
            else:
                callback(self)

        batch.done.add_done_callback(batch_is_done)

    def _find(self) -> tuple[ProducerBatch, int]:
        """Return the batch that the record is in now, and its place there."""
        batch, index = self._batch, self._index
        while batch.parts:
            first, second = batch.parts
            batch, index = (first, index) if index < first.count else (second, index - first.count)
        return batch, index


class ProducerBatch:
    """A batch from its first record to its settlement, or until it is shared out to `parts`.

    `done` gives its base offset, -1 where the `parts` have theirs. `rank` orders the batches of a partition by their
    first sending.
    """

    __slots__ = (
        "attempts",
        "base_sequence",
        "builder",
        "count",
        "data",
        "deadline",
        "done",
        "is_watched",
        "log_append_time_ms",
        "parts",
        "queue",
        "rank",
        "record_errors",
        "reserved_bytes",
        "size_bytes",
    )

    def __init__(self, queue: PartitionQueue, builder: BatchBuilder, reserved_bytes: int, deadline: float) -> None:
        self.queue = queue
        self.builder = builder
        self.reserved_bytes = reserved_bytes
        self.deadline = deadline
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.size_bytes = HEADER_BYTES
        self.count = 0
        self.attempts = 0
        self.base_sequence = NO_SEQUENCE
        self.log_append_time_ms = NO_TIMESTAMP_MS
        self.is_watched = False
        self.data: bytes | None = None
        self.rank: tuple[int, ...] = ()
        self.parts: tuple[ProducerBatch, ...] = ()
        self.record_errors: Mapping[int, KafkaError] | None = None

    def seal(self, producer_id: int, producer_epoch: int, base_sequence: int) -> bytes:
        """Return the batch's bytes under this producer identity; packs them the first time."""
        self.base_sequence = base_sequence
        if self.data is None:
            builder = self.builder
            builder.producer_id, builder.producer_epoch, builder.base_sequence = (
                producer_id,
                producer_epoch,
                base_sequence,
            )
            self.data = builder.build()
        else:
            self.data = restamped(self.data, producer_id, producer_epoch, base_sequence)
        return self.data

    def split(self, codec: Codec, level: int | None) -> tuple[ProducerBatch, ProducerBatch]:
        """Share the records of a sealed batch out to two of about half its size, which take over sequence and memory.

        Needs two records or more.
        """
        assert self.data is not None
        whole = RecordBatch(self.data)
        records = whole.decode()
        half_bytes = sum(most_bytes(record.key, record.value, record.headers) for record in records) // 2
        cut, size_bytes = 0, 0
        while cut < len(records) - 1 and (cut == 0 or size_bytes < half_bytes):
            record = records[cut]
            size_bytes += most_bytes(record.key, record.value, record.headers)
            cut += 1
        first = self._part(records[:cut], self.reserved_bytes // 2, codec, level)
        second = self._part(records[cut:], self.reserved_bytes - first.reserved_bytes, codec, level)
        first.rank, second.rank = (*self.rank, 0), (*self.rank, 1)
        if self.base_sequence != NO_SEQUENCE:
            first.seal(whole.producer_id, whole.producer_epoch, self.base_sequence)
            second.seal(whole.producer_id, whole.producer_epoch, add_sequence(self.base_sequence, cut))
        self.parts = (first, second)
        self.done.set_result(NO_OFFSET)
        return first, second

    def _part(self, records: Sequence[Record], reserved_bytes: int, codec: Codec, level: int | None) -> ProducerBatch:
        builder = BatchBuilder(codec=codec, level=level)
        part = ProducerBatch(self.queue, builder, reserved_bytes, self.deadline)
        for record in records:
            builder.append(record.timestamp, record.key, record.value, record.headers)
            part.size_bytes += most_bytes(record.key, record.value, record.headers)
        part.count = len(records)
        part.is_watched = self.is_watched
        return part


def restamped(data: bytes, producer_id: int, producer_epoch: int, base_sequence: int) -> bytes:
    """Return a copy of a batch that belongs to another producer identity."""
    copy = bytearray(data)
    _PRODUCER.pack_into(copy, PRODUCER_ID_AT, producer_id, producer_epoch, base_sequence)
    _CRC.pack_into(copy, CRC_AT, crc32c(memoryview(copy)[ATTRIBUTES_AT:]))
    return bytes(copy)


class PartitionQueue:
    """The batches of one partition, in order: `waiting` are full, `open` takes records, `in_flight` were sent.

    After a failure nothing more is sent until the broker has answered for all that is in flight (`is_draining`); then
    what failed goes out again in its old order, which keeps sequences without a gap.
    """

    __slots__ = (
        "failed",
        "in_flight",
        "is_draining",
        "is_due",
        "is_spoilt",
        "next_sequence",
        "open",
        "partition",
        "producer_epoch",
        "producer_id",
        "retry_at",
        "sent_count",
        "waiting",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.open: ProducerBatch | None = None
        self.waiting: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.failed: list[ProducerBatch] = []
        self.is_due = False
        """The open batch has lingered long enough, or is being flushed."""
        self.is_draining = False
        self.is_spoilt = False
        """A batch was given up, so that the sequence has a gap and needs a new producer epoch."""
        self.retry_at = 0.0
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.next_sequence = 0
        self.sent_count = 0

    @property
    def length(self) -> int:
        """Batches that have not been sent."""
        return len(self.waiting) + (self.open is not None)

    @property
    def has_due(self) -> bool:
        return bool(self.waiting) or (self.is_due and self.open is not None)

    def take_due(self) -> ProducerBatch | None:
        """Take the next batch that is due, None when there is none."""
        if self.waiting:
            return self.waiting.popleft()
        if self.is_due and self.open is not None:
            batch, self.open = self.open, None
            self.is_due = False
            return batch
        return None

    @property
    def next_size_bytes(self) -> int:
        """How large the next batch is as it stands now, 0 without one."""
        batch = self.waiting[0] if self.waiting else self.open
        return 0 if batch is None else batch.size_bytes

    def has_sent_before(self, batch: ProducerBatch) -> bool:
        """True when a batch that was first sent before this one is not settled yet."""
        return any(other.rank < batch.rank for other in (*self.in_flight, *self.failed))

    def line_up_failed(self) -> None:
        """Let what failed wait for its next attempt, before everything else and in its old order."""
        self.waiting.extendleft(sorted(self.failed, key=lambda batch: batch.rank, reverse=True))
        self.failed.clear()

    def remove(self, batch: ProducerBatch) -> None:
        """Take a batch out of wherever it waits."""
        if self.open is batch:
            self.open = None
            self.is_due = False
        elif batch in self.waiting:
            self.waiting.remove(batch)
        elif batch in self.failed:
            self.failed.remove(batch)

    def close_open(self) -> None:
        """No more records for the open batch."""
        if self.open is not None:
            self.waiting.append(self.open)
            self.open = None
            self.is_due = False


def most_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return what a record takes at most in a batch, before compression."""
    size_bytes = RECORD_OVERHEAD_BYTES
    if key is not None:
        size_bytes += len(key)
    if value is not None:
        size_bytes += len(value)
    for name, content in headers:
        size_bytes += HEADER_OVERHEAD_BYTES + len(name.encode()) + (len(content) if content is not None else 0)
    return size_bytes
