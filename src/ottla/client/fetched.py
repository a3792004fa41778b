"""What one fetch brought of one partition, opened batch by batch when the application gets there.

Decides which records the application sees: none below the position, no control records, under READ_COMMITTED none of an
aborted transaction. The batches stay bytes until they are asked for; each is then decoded in one call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ottla.client.subscription import PartitionState
from ottla.errors import CorruptMessage
from ottla.model import TopicPartition
from ottla.records.batch import RecordBatch
from ottla.records.control import ControlType, control_type_of
from ottla.records.legacy import LegacyBatch
from ottla.records.record import Record


class Aborted:
    """Which producers' records are void at the offset that has been reached (KIP-98).

    Fed with the answer's list, in order of offsets. A producer is void from its transaction's first offset to its abort
    marker.
    """

    __slots__ = ("_ahead", "_void")

    def __init__(self, transactions: Sequence[tuple[int, int]]) -> None:
        """Takes pairs of first offset and producer id."""
        self._ahead = deque(sorted(transactions))
        self._void: set[int] = set()

    def is_void(self, batch: RecordBatch) -> bool:
        """True for a batch of an aborted transaction. Batches must be shown in order, control batches too."""
        if not self._ahead and not self._void:
            return False
        last_offset = batch.last_offset
        while self._ahead and self._ahead[0][0] <= last_offset:
            self._void.add(self._ahead.popleft()[1])
        if batch.is_control:
            if control_type_of(batch.decode()[0]) is ControlType.ABORT:
                self._void.discard(batch.producer_id)
            return False
        return batch.is_transactional and batch.producer_id in self._void


class FetchedPartition:
    """The batches of one partition in one answer. `next_offset` is where the application goes on after what it took."""

    __slots__ = ("_aborted", "_batches", "_check_crcs", "_index", "leader_epoch", "next_offset", "seek_count", "state")

    def __init__(
        self,
        state: PartitionState,
        batches: Sequence[RecordBatch | LegacyBatch],
        *,
        aborted: Aborted | None,
        check_crcs: bool,
    ) -> None:
        self.state = state
        self.seek_count = state.seek_count
        self.next_offset = state.fetch_offset
        self.leader_epoch = -1
        self._batches = batches
        self._index = 0
        self._aborted = aborted
        self._check_crcs = check_crcs

    @property
    def partition(self) -> TopicPartition:
        return self.state.partition

    @property
    def is_outdated(self) -> bool:
        """True after a seek, or when the partition is no longer assigned."""
        return self.seek_count != self.state.seek_count

    def next_records(self) -> list[Record]:
        """Return the next batch's visible records, an empty list when there is no more; `next_offset` moves past them.

        Raises `CorruptMessage` and the like for a damaged batch; the position stays before it.
        """
        while self._index < len(self._batches):
            batch = self._batches[self._index]
            if self._check_crcs and not batch.is_crc_valid():
                raise CorruptMessage(
                    f"{self.partition}: the batch at offset {batch.base_offset} fails its checksum; "
                    f"seek to {batch.next_offset} to go past it"
                )
            first_wanted = self.next_offset
            records = self._visible(batch)
            self._take(batch)
            if records and records[0].offset < first_wanted:
                records = [record for record in records if record.offset >= first_wanted]
            if records:
                return records
        return []

    def _visible(self, batch: RecordBatch | LegacyBatch) -> list[Record]:
        if isinstance(batch, LegacyBatch):
            return list(batch.records())
        if (self._aborted is not None and self._aborted.is_void(batch)) or batch.is_control:
            return []
        return batch.decode()

    def _take(self, batch: RecordBatch | LegacyBatch) -> None:
        self._index += 1
        self.next_offset = max(self.next_offset, batch.next_offset)
        if isinstance(batch, RecordBatch):
            self.leader_epoch = batch.partition_leader_epoch
        self.state.buffered_bytes -= batch.size_in_bytes
