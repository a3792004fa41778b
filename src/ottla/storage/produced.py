"""The producer side of one append: what a batch means for its producer, before the write and after it."""

from __future__ import annotations

from ottla.model import AppendOrigin
from ottla.records.batch import RecordBatch
from ottla.records.control import EndTransactionMarker, marker_of
from ottla.storage.producer_state import BatchFacts, ProducedBatch, ProducerStates
from ottla.storage.segment import Segment


class ProducedAppend:
    """The producer side of one append: checked before the write, learned after it."""

    __slots__ = ("_batch", "_facts", "_is_control", "_marker")

    def __init__(self, facts: BatchFacts, batch: bytearray | memoryview, *, is_control: bool) -> None:
        self._facts = facts
        self._batch = batch
        self._is_control = is_control
        self._marker: EndTransactionMarker | None = None

    def check(self, producers: ProducerStates, origin: AppendOrigin, transaction_version: int) -> ProducedBatch | None:
        if not self._is_control:
            return producers.check(self._facts, origin)
        self._marker = marker_of(RecordBatch(self._batch))
        if self._marker is not None:
            producers.check_marker(
                self._facts.producer_id, self._facts.producer_epoch, self._marker, transaction_version
            )
        return None

    def note_refused(self, producers: ProducerStates) -> None:
        """The write failed."""
        if not self._is_control:
            producers.note_refused(self._facts)

    def learn(self, producers: ProducerStates, segment: Segment) -> None:
        learn_batch(producers, segment, self._facts, self._marker, is_control=self._is_control)


def learn_batch(
    producers: ProducerStates,
    segment: Segment | None,
    facts: BatchFacts,
    marker: EndTransactionMarker | None,
    *,
    is_control: bool,
) -> None:
    """Take an appended batch into the producers, and the transaction that it aborts into the segment's index."""
    if not is_control:
        producers.update(facts)
        return
    if marker is None:
        return
    completed = producers.end_txn(facts, marker)
    if completed is not None:
        aborted = producers.complete(completed)
        if aborted is not None and segment is not None:
            segment.txn_index.append(aborted)
