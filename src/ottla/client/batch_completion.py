"""What becomes of a batch that was sent, or that waited too long: written, sent again, shared out to two, or given up.

Decides as Kafka's producer does (`Sender.completeBatch`, `canRetry`, `failBatch`). Batches of one partition that fail
are lined up for their next attempt only when nothing of it is in flight any more, in their old order and with sequence
numbers that fit; after one that had to be given up, and when the broker has another idea of the sequence, the partition
goes on under a new producer epoch (KIP-360). Which batch goes out when is decided by `sender`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from ottla.client.accumulator import Accumulator
from ottla.client.cluster import Cluster
from ottla.client.errors import DeliveryExpired, about_partition
from ottla.client.producer_batch import PartitionQueue, ProducerBatch
from ottla.client.retry import Reaction, reaction_to
from ottla.client.sequencing import Sequencing
from ottla.errors import InvalidProducerEpoch, KafkaError, OutOfOrderSequenceNumber, UnknownProducerId
from ottla.model import NO_SEQUENCE

MAX_FENCED_ATTEMPTS: Final = 3
"""So often a batch is tried under another producer epoch when the broker calls its epoch outdated."""


class BatchCompletion:
    """Ends or lines up again the batches of one producer.

    `refresh` has the metadata renewed; `on_unseen` gets the error of a batch of which nobody awaits a record.
    """

    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        sequencing: Sequencing,
        *,
        refresh: Callable[[], None],
        on_unseen: Callable[[KafkaError], None],
    ) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        self._sequencing = sequencing
        self._refresh = refresh
        self._on_unseen = on_unseen

    # ---- batches that were in flight

    def succeed(self, batch: ProducerBatch, base_offset: int) -> None:
        """The batch is written; `base_offset` is -1 where the broker did not say where."""
        batch.queue.in_flight.remove(batch)
        if not batch.done.done():  # it may have been given up while the answer was under way
            self._settle(batch, base_offset)
        self._maybe_drained(batch.queue)

    def fail(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        *,
        record_errors: Mapping[int, KafkaError] | None = None,
        has_moved: bool = False,
    ) -> None:
        """Have a batch sent again, or give it up. `has_moved`: the new leader is known, so that there is no pause."""
        queue = batch.queue
        queue.in_flight.remove(batch)
        queue.is_draining = True
        batch.attempts += 1
        now = asyncio.get_running_loop().time()
        if reaction_to(error) is Reaction.REFRESH and not has_moved:
            self._refresh()
        if batch.done.done():
            queue.is_spoilt = queue.is_spoilt or batch.base_sequence != NO_SEQUENCE
        elif self._is_worth_another_attempt(batch, error) and now < batch.deadline:
            delay = 0.0 if has_moved else self._cluster.retry_delay_seconds(batch.attempts)
            queue.retry_at = max(queue.retry_at, now + delay)
            queue.failed.append(batch)
        else:
            queue.is_spoilt = queue.is_spoilt or batch.base_sequence != NO_SEQUENCE
            self._settle(batch, about_partition(queue.partition, error), record_errors)
        self._maybe_drained(queue)

    def split(self, batch: ProducerBatch) -> None:
        """Send a batch that is too large for the broker as two, with the sequence numbers that it had."""
        queue = batch.queue
        queue.in_flight.remove(batch)
        queue.is_draining = True
        queue.failed += self._accumulator.replace(batch)
        self._maybe_drained(queue)

    def _is_worth_another_attempt(self, batch: ProducerBatch, error: KafkaError) -> bool:
        """Decide as Kafka's producer does; notes when the broker's idea of the sequence is another one than ours."""
        queue = batch.queue
        if isinstance(error, OutOfOrderSequenceNumber) and batch.base_sequence != NO_SEQUENCE:
            if not queue.has_sent_before(batch):  # else it is only that one which is missing
                queue.is_spoilt = True
            return True
        if isinstance(error, UnknownProducerId | InvalidProducerEpoch):
            queue.is_spoilt = True
            return isinstance(error, UnknownProducerId) or batch.attempts <= MAX_FENCED_ATTEMPTS
        return reaction_to(error) is not Reaction.GIVE_UP

    def _maybe_drained(self, queue: PartitionQueue) -> None:
        """With nothing in flight any more, line up what failed, in its old order and with sequences that fit."""
        if not queue.is_draining or queue.in_flight:
            return
        queue.is_draining = False
        queue.line_up_failed()
        if queue.is_spoilt:
            self._sequencing.renew_epoch(queue)
        if queue.has_due:
            self._accumulator.mark_due(queue)

    # ---- batches wherever they are

    def expire(self) -> None:
        """Give up batches that waited longer than delivery.timeout.ms.

        Those in flight keep their place until the broker has answered, so that the sequence goes on as it must.
        """
        now = asyncio.get_running_loop().time()
        for batch in self._accumulator.unsettled:
            if batch.deadline > now:
                break
            queue = batch.queue
            if batch not in queue.in_flight:
                queue.remove(batch)
                queue.is_spoilt = queue.is_spoilt or batch.base_sequence != NO_SEQUENCE
                if queue.is_spoilt and not queue.in_flight:
                    self._sequencing.renew_epoch(queue)
            self._settle(batch, DeliveryExpired(f"{queue.partition}: not delivered within delivery.timeout.ms"))

    def give_up_all(self, error: KafkaError) -> None:
        """End the producer: no batch can be sent any more, and none is taken."""
        self._accumulator.refuse(error)
        for batch in self._accumulator.unsettled:
            self._settle(batch, error)
        self._accumulator.due.clear()

    def close(self) -> None:
        """What is not settled fails."""
        for batch in self._accumulator.unsettled:
            self._settle(batch, DeliveryExpired(f"{batch.queue.partition}: the producer was closed before delivery"))

    def _settle(
        self,
        batch: ProducerBatch,
        result: int | KafkaError,
        record_errors: Mapping[int, KafkaError] | None = None,
    ) -> None:
        self._accumulator.settle(batch, result, record_errors)
        if isinstance(result, KafkaError) and not batch.is_watched:
            self._on_unseen(next(iter(record_errors.values())) if record_errors else result)
