"""What one fetch brought of one partition, opened batch by batch when the application gets there.

Which records the application sees is `records.reading`'s to decide; here stands what is the client's own: whether a
seek has outdated them, and how many bytes wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.client.subscription import PartitionState
from ottla.errors import KafkaError
from ottla.model import TopicPartition
from ottla.records.batch import RecordBatch
from ottla.records.legacy import LegacyBatch
from ottla.records.reading import Aborted, Problem, RecordReader
from ottla.records.record import Record


class FetchedPartition:
    """The batches of one partition in one answer. `next_offset` is where the application goes on after what it took."""

    __slots__ = ("_batches", "_reader", "seek_count", "state")

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
        self._batches = batches
        self._reader = RecordReader(batches, state.fetch_offset, aborted=aborted, check_crcs=check_crcs)

    @property
    def partition(self) -> TopicPartition:
        return self.state.partition

    @property
    def next_offset(self) -> int:
        return self._reader.next_fetch_offset

    @property
    def leader_epoch(self) -> int:
        """Of the last batch that was passed, -1 before the first."""
        return self._reader.leader_epoch

    @property
    def is_outdated(self) -> bool:
        """True after a seek, or when the partition is no longer assigned."""
        return self.seek_count != self.state.seek_count

    def next_records(self) -> list[Record]:
        """Return the next batch's visible records, an empty list when there is no more; `next_offset` moves past them.

        Raises `CorruptMessage` and the like for a damaged batch; the position stays before it.
        """
        passed = self._reader.batches_passed
        records = self._reader.next_records()
        for batch in self._batches[passed : self._reader.batches_passed]:
            self.state.buffered_bytes -= batch.size_in_bytes
        if self._reader.problem is not None:
            raise describe_problem(self.partition, self._reader.problem)
        return records


def describe_problem(partition: TopicPartition, problem: Problem) -> KafkaError:
    """Return the error that the application gets: which partition, what is wrong, and how to go past it."""
    where = f"the batch at offset {problem.base_offset}: " if problem.base_offset >= 0 else ""
    text = f"{partition}: {where}{problem.error}"
    if problem.next_offset >= 0:
        text += f"; seek to {problem.next_offset} to go past it"
    return type(problem.error)(text)
