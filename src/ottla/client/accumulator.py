"""Batches per partition on their way out: records in, batches that are due out, within a bound of memory.

A record is packed into its partition's open batch at once; what stays per record is a `Delivery`, two words that point
to the batch. A batch is due when it is full, has lingered, or somebody flushes; until it is taken it goes on filling.
Memory is reserved per batch, `batch_size` at a time, and given back when the batch is settled. Which due batch goes out
when, and what becomes of a failed one, is decided by `sender`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

from ottla.errors import KafkaError, MessageTooLarge
from ottla.model import NO_OFFSET, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP_MS, TopicPartition
from ottla.records.batch import ATTRIBUTES_AT, CRC_AT, HEADER_BYTES, PRODUCER_ID_AT
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.crc32c import crc32c
from ottla.records.record import Headers

RECORD_OVERHEAD_BYTES: Final = 21
"""What a record needs at most besides key, value and headers (Kafka's own bound)."""

HEADER_OVERHEAD_BYTES: Final = 10
"""What a record's header needs at most besides its key and value."""

SEQUENCE_LIMIT: Final = 2**31

_PRODUCER: Final = Struct(">qhi")
_CRC: Final = Struct(">I")


class RecordMetadata(NamedTuple):
    """Where a record went. `offset` is -1 when the broker did not say (acks=0, or known as a duplicate)."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Delivery:
    """One record on its way. Await it for its `RecordMetadata`; it raises what kept the record from being written."""

    __slots__ = ("_batch", "_index", "_timestamp_ms")

    def __init__(self, batch: ProducerBatch, index: int, timestamp_ms: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp_ms = timestamp_ms

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch = self._batch
        batch.is_watched = True
        if not batch.done.done():
            yield from asyncio.shield(batch.done).__await__()  # one who stops waiting does not stop the batch
        return self.result()

    @property
    def is_done(self) -> bool:
        return self._batch.done.done()

    def result(self) -> RecordMetadata:
        """Return where the record went, or raise why it did not. Raises `InvalidStateError` before `is_done`."""
        batch = self._batch
        batch.is_watched = True
        base_offset = batch.done.result()
        topic, partition = batch.queue.partition
        offset = base_offset + self._index if base_offset >= 0 else NO_OFFSET
        append_time_ms = batch.log_append_time_ms
        return RecordMetadata(topic, partition, offset, self._timestamp_ms if append_time_ms < 0 else append_time_ms)


class ProducerBatch:
    """A batch from its first record to its settlement. `done` gives its base offset."""

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
        "queue",
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

    def close_open(self) -> None:
        """No more records for the open batch."""
        if self.open is not None:
            self.waiting.append(self.open)
            self.open = None
            self.is_due = False


class AccumulatorSettings(NamedTuple):
    """How batches form; units are bytes and milliseconds."""

    batch_size: int
    linger_ms: float
    buffer_memory: int
    max_request_size: int
    delivery_timeout_ms: int
    codec: Codec
    level: int | None


class Accumulator:
    """All open and waiting batches of a producer.

    `on_due` is called when a partition has something to send that had nothing before.
    """

    def __init__(self, settings: AccumulatorSettings, on_due: Callable[[], None]) -> None:
        self._settings = settings
        self._on_due = on_due
        self._free_bytes = settings.buffer_memory
        self._lingering: deque[tuple[float, ProducerBatch]] = deque()
        self._linger_timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._blocked: deque[asyncio.Future[None]] = deque()
        self._unsettled: dict[ProducerBatch, None] = {}
        self._refusal: KafkaError | None = None
        self.delivered_count = 0
        self.failed_count = 0
        self.due: dict[PartitionQueue, None] = {}
        """Partitions with a batch to send, in the order in which they got one."""

    @property
    def unsettled(self) -> Sequence[ProducerBatch]:
        """Every batch that is open, waiting or in flight, oldest first."""
        return list(self._unsettled)

    @property
    def earliest_deadline(self) -> float | None:
        """When the oldest batch has to be settled, on the loop's clock."""
        return next(iter(self._unsettled)).deadline if self._unsettled else None

    @property
    def free_bytes(self) -> int:
        return self._free_bytes

    def refuse(self, error: KafkaError) -> None:
        """Take no more batches: raise this instead, also to those who wait for room."""
        self._refusal = error
        self._wake_blocked()

    def append(
        self, queue: PartitionQueue, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Delivery | None:
        """Pack a record; None when a new batch is needed and there is no memory for one.

        Raises `MessageTooLarge` for a record that no request could carry.
        """
        size_bytes = RECORD_OVERHEAD_BYTES
        if key is not None:
            size_bytes += len(key)
        if value is not None:
            size_bytes += len(value)
        if headers:
            size_bytes += _size_of_headers(headers)
        batch = queue.open
        if batch is None or batch.size_bytes + size_bytes > self._settings.batch_size:
            batch = self._next_batch(queue, size_bytes)
            if batch is None:
                return None
        index = batch.builder.append(timestamp_ms, key, value, headers)
        batch.count = index + 1
        batch.size_bytes += size_bytes
        return Delivery(batch, index, timestamp_ms)

    def _next_batch(self, queue: PartitionQueue, record_bytes: int) -> ProducerBatch | None:
        settings = self._settings
        if self._refusal is not None:
            raise self._refusal
        if HEADER_BYTES + record_bytes > settings.max_request_size:
            raise MessageTooLarge(
                f"{queue.partition}: a record of about {record_bytes} bytes exceeds max.request.size, "
                f"{settings.max_request_size} bytes"
            )
        if queue.open is not None:
            queue.close_open()
            self._mark_due(queue)
        reserved_bytes = max(settings.batch_size, HEADER_BYTES + record_bytes)
        if reserved_bytes > self._free_bytes and self._free_bytes < settings.buffer_memory:
            self.flush()  # what is open gives its memory back sooner
            return None
        self._free_bytes -= reserved_bytes
        now = asyncio.get_running_loop().time()
        builder = BatchBuilder(codec=settings.codec, level=settings.level)
        batch = ProducerBatch(queue, builder, reserved_bytes, now + settings.delivery_timeout_ms / 1000)
        queue.open = batch
        self._unsettled[batch] = None
        self._linger(now, batch)
        return batch

    async def room(self) -> None:
        """Wait until some batch was settled."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._blocked.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._blocked:
                self._blocked.remove(waiter)

    def flush(self) -> None:
        """Make everything due."""
        for batch in self._unsettled:
            queue = batch.queue
            if queue.open is batch:
                queue.is_due = True
                self._mark_due(queue)

    def settle(self, batch: ProducerBatch, result: int | KafkaError) -> None:
        """End a batch with its base offset or an error, and give its memory back."""
        self._unsettled.pop(batch, None)
        self._free_bytes += batch.reserved_bytes
        batch.reserved_bytes = 0
        if isinstance(result, KafkaError):
            self.failed_count += batch.count
            batch.done.set_exception(result)
            batch.done.exception()  # it reaches whoever awaits the record, or the next flush
        else:
            self.delivered_count += batch.count
            batch.done.set_result(result)
        self._wake_blocked()

    def _wake_blocked(self) -> None:
        while self._blocked:
            waiter = self._blocked.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def mark_due(self, queue: PartitionQueue) -> None:
        """A queue has something to send again."""
        self._mark_due(queue)

    # ---- linger: batches age in the order in which they were opened

    def _linger(self, now: float, batch: ProducerBatch) -> None:
        self._lingering.append((now + self._settings.linger_ms / 1000, batch))
        if self._linger_timer is None:
            self._start_timer()

    def _start_timer(self) -> None:
        loop = asyncio.get_running_loop()
        if self._settings.linger_ms <= 0:
            self._linger_timer = loop.call_soon(self._end_linger)
        else:
            self._linger_timer = loop.call_at(self._lingering[0][0], self._end_linger)

    def _end_linger(self) -> None:
        self._linger_timer = None
        now = asyncio.get_running_loop().time() + 0.0005  # timers run up to their resolution early
        lingering = self._lingering
        while lingering and (lingering[0][0] <= now or lingering[0][1].queue.open is not lingering[0][1]):
            batch = lingering.popleft()[1]
            if batch.queue.open is batch:
                batch.queue.is_due = True
                self._mark_due(batch.queue)
        if lingering:
            self._start_timer()

    def _mark_due(self, queue: PartitionQueue) -> None:
        self.due[queue] = None
        self._on_due()

    def close(self) -> None:
        if self._linger_timer is not None:
            self._linger_timer.cancel()


def _size_of_headers(headers: Headers) -> int:
    return sum(
        HEADER_OVERHEAD_BYTES + len(key.encode()) + (len(value) if value is not None else 0) for key, value in headers
    )
