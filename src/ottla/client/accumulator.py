"""Batches per partition on their way out: records in, batches that are due out, within a bound of memory.

A record is packed into its partition's open batch at once. A batch is due when it is full, has lingered, or somebody
flushes; until it is taken it goes on filling. Memory is reserved per batch, `batch_size` at a time, and given back when
the batch is settled. Which due batch goes out when is decided by `sender`, what becomes of a failed one by
`batch_completion`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.client.producer_batch import Delivery, PartitionQueue, ProducerBatch, Written, most_bytes
from ottla.errors import KafkaError, MessageTooLarge
from ottla.model import TopicPartition
from ottla.records.batch import HEADER_BYTES
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.record import Headers

NOTHING_WRITTEN: Final = Written()


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
        self.written: dict[TopicPartition, Written] = {}
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
        size_bytes = most_bytes(key, value, headers)
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
            raise self._refusal.with_traceback(None)  # not with all those it was raised with before
        if HEADER_BYTES + record_bytes > settings.max_request_size:
            raise MessageTooLarge(
                f"{queue.partition}: a record of about {record_bytes} bytes exceeds max.request.size, "
                f"{settings.max_request_size} bytes"
            )
        if queue.open is not None:
            queue.close_open()
            self.mark_due(queue)
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
                self.mark_due(queue)

    def replace(self, batch: ProducerBatch) -> Sequence[ProducerBatch]:
        """Share a batch that is too large out to two, which are as old as it was, and return them."""
        parts = batch.split(self._settings.codec, self._settings.level)
        batch.reserved_bytes = 0
        older = list(self._unsettled)
        at = older.index(batch)
        self._unsettled = dict.fromkeys([*older[:at], *parts, *older[at + 1 :]])
        return parts

    def settle(
        self,
        batch: ProducerBatch,
        result: int | KafkaError,
        record_errors: Mapping[int, KafkaError] | None = None,
    ) -> None:
        """End a batch with its base offset or an error, and give its memory back.

        `record_errors` are those of single records by their place in the batch; the others have `result`.
        """
        batch.record_errors = record_errors
        self._unsettled.pop(batch, None)
        self._free_bytes += batch.reserved_bytes
        batch.reserved_bytes = 0
        if isinstance(result, KafkaError):
            self.failed_count += batch.count
            batch.done.set_exception(result)
            batch.done.exception()  # it reaches whoever awaits the record, or the next flush
        else:
            self.delivered_count += batch.count
            partition = batch.queue.partition
            self.written[partition] = self.written.get(partition, NOTHING_WRITTEN).and_batch(batch, result)
            batch.done.set_result(result)
        self._wake_blocked()

    def _wake_blocked(self) -> None:
        while self._blocked:
            waiter = self._blocked.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def mark_due(self, queue: PartitionQueue) -> None:
        """The partition has something to send."""
        self.due[queue] = None
        self._on_due()

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
                self.mark_due(batch.queue)
        if lingering:
            self._start_timer()

    def close(self) -> None:
        if self._linger_timer is not None:
            self._linger_timer.cancel()
