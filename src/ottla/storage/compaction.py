"""`Compaction`: one pass over one log, from the segments that it has to those that take their place.

Planned on the owner's loop from what the log knows, run in steps on a thread, which touches nothing of the log but
leased files. First the keys of the dirty part are read into the offset map, as far as that has room; then segments are
grouped so that each group makes one segment of ordinary size, and rewritten. What stays is `cleaned_records`'s
decision, how the new files take their place is `swap`'s; who compacts when is `cleaner`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ottla.errors import KafkaStorageError
from ottla.records.batch import CURRENT_MAGIC, MAGIC_AT, RecordBatch
from ottla.records.filter import filter_batches, outlines
from ottla.records.legacy import LegacyBatch, split_any, valid_bytes
from ottla.storage.cleaned_records import CleanedTransactions, CompactionFilter, last_records
from ottla.storage.files import File, FileSystem
from ottla.storage.index import MAX_RELATIVE_OFFSET
from ottla.storage.log import PartitionLog
from ottla.storage.offset_map import OffsetMap
from ottla.storage.open_files import OpenFiles, SegmentFile
from ottla.storage.segment import CLEANED_SUFFIX, LOG_OVERHEAD_BYTES, OFFSET_INDEX_SUFFIX, Segment

READ_BYTES: Final = 1 << 20
_LENGTH_AT: Final = 8
_ANY_SIZE: Final = 2**31 - 1


class Source(NamedTuple):
    """A segment that is read; its file is leased until `Compaction.release`."""

    base_offset: int
    next_offset: int
    size_bytes: int
    path: str
    segment_file: SegmentFile
    file: File


class CleanedGroup(NamedTuple):
    """A new segment, in `.cleaned` files that are synced, and the base offsets of those that it replaces."""

    segment: Segment
    replaced: list[int]


class CompactionPlan(NamedTuple):
    """What a pass is about: records in [first_dirty_offset, end_offset) are new since the last one."""

    first_dirty_offset: int
    end_offset: int


class Compaction:
    """One pass. `steps` runs on a thread; everything else on the loop."""

    __slots__ = (
        "_aborted",
        "_config",
        "_directory",
        "_filesystem",
        "_now_ms",
        "_plan",
        "_producers",
        "_sources",
        "bytes_read",
        "bytes_written",
        "cleaned_up_to",
        "next_horizon_ms",
        "offsets",
    )

    def __init__(
        self, log: PartitionLog, filesystem: FileSystem, plan: CompactionPlan, memory_bytes: int, now_ms: int
    ) -> None:
        """Lease what will be read. Raises `OSError`."""
        self._directory = log.directory
        self._config = log.config
        self._filesystem = filesystem
        self._plan = plan
        self._now_ms = now_ms
        self._producers = last_records(log.producers)
        self._aborted = [txn for segment in log.segments for txn in segment.txn_index]
        self._sources = [
            Source(
                segment.base_offset,
                segment.next_offset,
                segment.size_bytes,
                segment.path,
                segment.file,
                segment.file.lease(),
            )
            for segment in log.segments
            if segment.next_offset <= plan.end_offset and segment is not log.active
        ]
        self.offsets = OffsetMap(memory_bytes)
        self.offsets.latest_offset = plan.first_dirty_offset - 1  # what lies before has met all newer keys
        self.cleaned_up_to = plan.first_dirty_offset
        self.next_horizon_ms = 2**63 - 1
        self.bytes_read = 0
        self.bytes_written = 0

    def release(self) -> None:
        for source in self._sources:
            source.segment_file.release()

    def steps(self) -> Iterator[CleanedGroup | None]:
        """Do the work, yielding after each piece, with a group when it is ready to be swapped in.

        Raises `OSError`, `KafkaStorageError` for a damaged batch.
        """
        yield from self._read_keys()
        self.cleaned_up_to = max(int(self.offsets.latest_offset) + 1, self._plan.first_dirty_offset)
        aborted = (txn for txn in self._aborted if txn.first_offset < self.cleaned_up_to)
        transactions = CleanedTransactions(aborted)
        retention = CompactionFilter(self.offsets, transactions, self._producers, self._now_ms)
        sources = [source for source in self._sources if source.base_offset < self.cleaned_up_to]
        for group in self._groups(sources):
            yield from self._rewrite(group, retention, transactions)
        self.next_horizon_ms = retention.next_horizon_ms

    # ---- reading keys

    def _read_keys(self) -> Iterator[None]:
        """Fill the map from the dirty part, as far as it has room; at least one key goes in."""
        start = self._plan.first_dirty_offset
        aborted = [txn for txn in self._aborted if txn.last_offset >= start]
        transactions = CleanedTransactions(aborted)
        for source in self._sources:
            if source.next_offset <= start:
                continue
            for data in self._chunks(source):
                position = 0
                for batch in split_any(data):
                    if batch.last_offset >= start and not self._put_keys(batch, data, position, start, transactions):
                        return
                    position += int(batch.size_in_bytes)
                yield None
            self.offsets.reach(source.next_offset - 1)

    def _put_keys(
        self,
        batch: RecordBatch | LegacyBatch,
        data: bytes,
        position: int,
        start: int,
        transactions: CleanedTransactions,
    ) -> bool:
        """Put the keys of one batch into the map; False when it has no room for all of them."""
        is_data = True
        if isinstance(batch, RecordBatch):
            if batch.is_control:
                transactions.meet_control_batch(batch)
                is_data = False
            else:
                is_data = not transactions.meet_batch(batch)
        offsets = self.offsets
        if is_data:
            for record in outlines(batch, data, position):
                if record.key is not None and record.offset >= start:
                    if offsets.is_full:
                        return False
                    offsets.put(record.key, record.offset)
                    offsets.reach(record.offset)
        offsets.reach(batch.last_offset)
        return True

    # ---- rewriting

    def _groups(self, sources: Sequence[Source]) -> Iterator[list[Source]]:
        """Put neighbours together that fit one segment, in bytes, index entries and offsets."""
        group: list[Source] = []
        size_bytes = index_bytes = 0
        limit_bytes = self._config.internal_segment_bytes or self._config.segment_bytes
        for source in sources:
            source_index_bytes = self._index_bytes(source)
            if group and (
                size_bytes + source.size_bytes > limit_bytes
                or index_bytes + source_index_bytes > self._config.segment_index_bytes
                or source.next_offset - 1 - group[0].base_offset > MAX_RELATIVE_OFFSET
            ):
                yield group
                group, size_bytes, index_bytes = [], 0, 0
            group.append(source)
            size_bytes += source.size_bytes
            index_bytes += source_index_bytes
        if group:
            yield group

    def _index_bytes(self, source: Source) -> int:
        path = source.path + OFFSET_INDEX_SUFFIX
        return self._filesystem.size(path) * 2 if self._filesystem.exists(path) else 0

    def _rewrite(
        self, group: list[Source], retention: CompactionFilter, transactions: CleanedTransactions
    ) -> Iterator[CleanedGroup | None]:
        new = self._new_segment(group[0].base_offset)
        transactions.index = new.txn_index
        for source in group:
            modified_ms = self._filesystem.modified_ms(source.segment_file.path)
            retention.keeps_legacy_tombstones = modified_ms > self._now_ms - self._config.delete_retention_ms
            for data in self._chunks(source):
                self._filter(data, new, retention)
                yield None
        self._finish(new, group[-1].next_offset)
        yield CleanedGroup(new, [source.base_offset for source in group])

    def _new_segment(self, base_offset: int) -> Segment:
        """Make an empty segment in `.cleaned` files, in place of those that an earlier attempt left."""
        open_files = OpenFiles(self._filesystem, limit=2)
        config = self._config._replace(segment_index_bytes=_ANY_SIZE)  # which says when to roll, and nobody rolls here
        new = Segment(self._filesystem, open_files, self._directory, base_offset, config, CLEANED_SUFFIX)
        for path in new.paths():
            self._filesystem.remove(path + CLEANED_SUFFIX)
        new.start_over()
        return new

    def _filter(self, data: bytes, new: Segment, retention: CompactionFilter) -> None:
        config = self._config
        result = filter_batches(data, retention, now_ms=self._now_ms, delete_retention_ms=config.delete_retention_ms)
        for kept in result.output:
            batch = RecordBatch(kept) if kept[MAGIC_AT] == CURRENT_MAGIC else LegacyBatch(kept)
            new.append(kept, batch.last_offset, batch.max_timestamp)
            self.bytes_written += len(kept)
            if isinstance(batch, RecordBatch):
                retention.note_kept(batch)

    def _finish(self, new: Segment, next_offset: int) -> None:
        """Bring a new segment to disk."""
        file = new.file.get()
        new.become_inactive()
        file.sync()
        for path in new.paths()[1:]:
            if self._filesystem.exists(path + CLEANED_SUFFIX):
                self._filesystem.sync_file(path + CLEANED_SUFFIX)
        new.next_offset = next_offset

    def _chunks(self, source: Source) -> Iterator[bytes]:
        """Yield the batches of a segment, each checked, in pieces that may end with the beginning of another one.

        Raises `KafkaStorageError`.
        """
        position = 0
        while position < source.size_bytes:
            data = source.file.pread(min(READ_BYTES, source.size_bytes - position), position)
            end = valid_bytes(data)
            if not end:
                size_bytes = int.from_bytes(data[_LENGTH_AT:LOG_OVERHEAD_BYTES], "big") + LOG_OVERHEAD_BYTES
                data = source.file.pread(size_bytes, position)
                end = valid_bytes(data)
            if not end:
                raise KafkaStorageError(f"{source.segment_file.path} is damaged at position {position}")
            self._check(data, source, position)
            position += end
            self.bytes_read += end
            yield data

    def _check(self, data: bytes, source: Source, position: int) -> None:
        for batch in split_any(data):
            is_in_place = source.base_offset <= batch.last_offset < source.next_offset
            if not is_in_place or not batch.is_crc_valid():
                raise KafkaStorageError(
                    f"{source.segment_file.path}: the batch of offset {batch.base_offset}, behind position {position}, "
                    "is damaged"
                )
