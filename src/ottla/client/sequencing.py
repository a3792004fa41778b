"""A producer's identity, and the sequence numbers under it: what lets a broker write every batch once (KIP-98).

One id for all partitions, with an epoch. A partition whose sequence has a gap, or of which the broker has another idea,
goes on under the next epoch from sequence 0 (KIP-360); others stay under theirs. After the last epoch comes another id.
"""

from __future__ import annotations

from typing import Final

from ottla.client.producer_batch import PartitionQueue, ProducerBatch
from ottla.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ottla.records.record import add_sequence

MAX_EPOCH: Final = 2**15 - 1


class Sequencing:
    """Stamps batches. Without idempotence it stamps nothing."""

    def __init__(self, *, is_idempotent: bool) -> None:
        self._is_idempotent = is_idempotent
        self._producer_id = NO_PRODUCER_ID
        self._producer_epoch = NO_PRODUCER_EPOCH

    @property
    def needs_id(self) -> bool:
        """True when a producer id has to be asked for before anything is sent."""
        return self._is_idempotent and self._producer_id == NO_PRODUCER_ID

    def identify(self, producer_id: int, producer_epoch: int) -> None:
        """Take over what the cluster gave out."""
        self._producer_id, self._producer_epoch = producer_id, producer_epoch

    def sealed(self, batch: ProducerBatch) -> bytes:
        """Return the batch's bytes with its place in the partition's sequence."""
        if not self._is_idempotent:
            return batch.data or batch.seal(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)
        if batch.data is not None and batch.base_sequence != NO_SEQUENCE:
            return batch.data
        queue = batch.queue
        if (queue.producer_id, queue.producer_epoch) != (self._producer_id, self._producer_epoch) and (
            queue.is_spoilt or queue.producer_id == NO_PRODUCER_ID
        ):
            queue.producer_id, queue.producer_epoch = self._producer_id, self._producer_epoch
            queue.next_sequence = 0
            queue.is_spoilt = False
        sequence = queue.next_sequence
        queue.next_sequence = add_sequence(sequence, batch.count)
        return batch.seal(queue.producer_id, queue.producer_epoch, sequence)

    def renew_epoch(self, queue: PartitionQueue) -> None:
        """Give the partition a new producer epoch; others take it over when they need one themselves."""
        for batch in queue.waiting:
            batch.base_sequence = NO_SEQUENCE
        if (queue.producer_id, queue.producer_epoch) != (self._producer_id, self._producer_epoch):
            return  # another partition has renewed it already
        if self._producer_epoch < MAX_EPOCH:
            self._producer_epoch += 1
        else:
            self._producer_id = NO_PRODUCER_ID
