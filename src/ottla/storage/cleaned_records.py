"""What of a log stays when it is compacted: the rules for records, batches and transactions.

Pure decisions, Kafka's own:

* A record stays when its key has no newer one in the part that was read into the offset map, or lies behind that part.
* A record without a value stays until its batch's delete horizon, which `records.filter` sets at its first pass.
* Records of aborted transactions go. A marker stays while there may be records of its transaction, and after that until
  its own delete horizon (KIP-534).
* The newest batch of each producer stays, if only as a header, since it says where the producer's sequence was.
* Records without a key, which came while the topic was not compacted, go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.errors import InvalidRecord
from ottla.records.batch import RecordBatch
from ottla.records.control import ControlType, marker_of
from ottla.records.filter import BatchRetention
from ottla.records.legacy import LegacyBatch
from ottla.records.record import Record
from ottla.storage.offset_map import OffsetMap
from ottla.storage.producer_state import ProducerStates
from ottla.storage.txn_index import AbortedTxn, TransactionIndex

_NEVER_MS: Final = 2**63 - 1


class LastRecord(NamedTuple):
    """Where a producer's newest data batch ends (None when only markers are known), and its epoch."""

    last_data_offset: int | None
    producer_epoch: int


def last_records(producers: ProducerStates) -> dict[int, LastRecord]:
    """Return the newest batch of every producer that a log knows."""
    return {
        state.producer_id: LastRecord(state.batches[-1].last_offset if state.batches else None, state.producer_epoch)
        for state in producers
    }


class CleanedTransactions:
    """The transactions that a pass over a log in the order of its offsets meets."""

    __slots__ = ("_aborted", "_committed", "_observed", "_upcoming", "index")

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        """`aborted` are those that have records in the range of the pass; their markers may lie behind it."""
        self.index: TransactionIndex | None = None
        """Takes the aborted transactions of which something is left."""
        self._upcoming = deque(sorted(set(aborted), key=lambda txn: txn.first_offset))
        self._aborted: dict[int, AbortedTxn] = {}
        """By producer id, those whose markers are still to come."""
        self._observed: set[int] = set()
        """Producers of these of which a batch was met."""
        self._committed: set[int] = set()

    def meet_batch(self, batch: RecordBatch) -> bool:
        """Note a data batch; True when its records belong to an aborted transaction."""
        self._begin_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._observed.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def meet_control_batch(self, batch: RecordBatch) -> bool:
        """Note a control batch; True when nothing is left of the transaction that it ends."""
        self._begin_up_to(batch.last_offset)
        try:
            marker = marker_of(batch)
        except InvalidRecord:
            return False
        if marker is None:
            return True  # its record went in an earlier pass
        producer_id = batch.producer_id
        if marker.type is not ControlType.ABORT:
            is_empty = producer_id not in self._committed
            self._committed.discard(producer_id)
            return is_empty
        aborted = self._aborted.pop(producer_id, None)
        if aborted is None or producer_id not in self._observed:
            return True
        self._observed.discard(producer_id)
        if self.index is not None:
            self.index.append(aborted)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._upcoming and self._upcoming[0].first_offset <= offset:
            txn = self._upcoming.popleft()
            self._aborted.setdefault(txn.producer_id, txn)


class CompactionFilter:
    """The `records.filter.RetentionFilter` of one pass."""

    __slots__ = (
        "_discards",
        "_last_records",
        "_now_ms",
        "_offsets",
        "_transactions",
        "keeps_legacy_tombstones",
        "next_horizon_ms",
    )

    def __init__(
        self, offsets: OffsetMap, transactions: CleanedTransactions, producers: Mapping[int, LastRecord], now_ms: int
    ) -> None:
        self.keeps_legacy_tombstones = True
        """Whether tombstones of magic 0 and 1, which have no horizon, stay in the segment that is being read."""
        self.next_horizon_ms = _NEVER_MS
        """The earliest horizon, not passed yet, among the batches that stay."""
        self._offsets = offsets
        self._transactions = transactions
        self._last_records = producers
        self._now_ms = now_ms
        self._discards = False

    def check_batch(self, batch: RecordBatch | LegacyBatch) -> tuple[BatchRetention, bool]:
        if isinstance(batch, LegacyBatch):
            self._discards = False
            return BatchRetention.DELETE_EMPTY, False
        horizon_ms = batch.delete_horizon_ms
        if batch.is_control:
            is_empty = self._transactions.meet_control_batch(batch)
            self._discards = is_empty and horizon_ms is not None and horizon_ms <= self._now_ms
        else:
            is_empty = False
            self._discards = self._transactions.meet_batch(batch)
        if batch.has_producer_id and self._is_producers_last(batch):
            return BatchRetention.RETAIN_EMPTY, is_empty
        return BatchRetention.DELETE if self._discards else BatchRetention.DELETE_EMPTY, is_empty

    def note_kept(self, batch: RecordBatch) -> None:
        """Take note of a batch as it stays, with the horizon that it may have got."""
        horizon_ms = batch.delete_horizon_ms
        if horizon_ms is not None and self._now_ms <= horizon_ms < self.next_horizon_ms:
            self.next_horizon_ms = horizon_ms

    def should_retain(self, batch: RecordBatch | LegacyBatch, record: Record) -> bool:
        if self._discards:
            return False
        if isinstance(batch, RecordBatch) and batch.is_control:
            return True
        if record.offset > self._offsets.latest_offset:
            return True
        if record.key is None or record.offset < self._offsets.get(record.key):
            return False
        return record.value is not None or self._keeps_tombstones_of(batch)

    def _keeps_tombstones_of(self, batch: RecordBatch | LegacyBatch) -> bool:
        if isinstance(batch, LegacyBatch):
            return self.keeps_legacy_tombstones
        horizon_ms = batch.delete_horizon_ms
        return horizon_ms is None or self._now_ms < horizon_ms

    def _is_producers_last(self, batch: RecordBatch) -> bool:
        last = self._last_records.get(batch.producer_id)
        if last is None:
            return False
        if last.last_data_offset is not None:
            return batch.last_offset == last.last_data_offset
        return batch.is_control and batch.producer_epoch == last.producer_epoch
