"""`JafkaTopicLog`: the only log of a partition whose topic is in Jafka's format, and the records of Kafka in it.

A record's offset is its number in the partition, counted from 0: each plain message is one record, a compressed one as
many as are in it. `jafka.positions` has a number every so many bytes and at each segment's end; what is in between is
counted. Only the first entry, where the log starts, cannot be found out anew: without the file the numbers begin at 0
with the oldest message that is there.

Records have a value and nothing else: no key, no headers, no time (-1), no leader epoch. What Kafka's producers send is
appended as plain messages; what has more than a value and a time is refused. Who asks for a time is told what was
flushed since.

After an unclean stop the last segment is checked, as Jafka does, and all that was not noted; the log is cut where it is
damaged. Of a log that Jafka's own server wrote, older segments are not cut: the records behind the damage are passed
over up to the next segment, and Jafka's clients are served the bytes.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from ottla.config.log_config import LogConfig
from ottla.engine import LogOffsets, ReadLimit, ReadResult, Ticket, TimestampOffset
from ottla.errors import (
    CorruptMessage,
    InvalidRecord,
    KafkaError,
    KafkaStorageError,
    OffsetOutOfRange,
)
from ottla.model import NO_LEADER_EPOCH, NO_TIMESTAMP_MS, TopicPartition
from ottla.records.batch import RecordBatch
from ottla.records.builder import BatchBuilder
from ottla.records.jafka import build_set, values_of
from ottla.records.jafka_reading import Walked, count_records, fill_batch
from ottla.storage.failed_flush import MARK, mark_failed_flush, write_anew
from ottla.storage.host import LogHost
from ottla.storage.jafka_log import JafkaLog, JafkaLogSettings
from ottla.storage.jafka_positions import Flushed
from ottla.storage.jafka_segment import JafkaSegment, find_starts, segment_path, walk_file

_log = logging.getLogger(__name__)

ENTRY_EVERY_BYTES: Final = 16 * 1024
READ_BYTES: Final = 1024 * 1024
"""What one read makes at most, whatever is asked, as each record costs time; it is what consumers ask by default."""
_EMPTY_READ: Final = ReadResult((), 0)


class JafkaTopicLog(JafkaLog):
    """One partition of a topic in Jafka's format."""

    def __init__(
        self,
        host: LogHost,
        partition: TopicPartition,
        directory: str,
        config: LogConfig,
        settings: JafkaLogSettings,
        *,
        is_clean: bool,
    ) -> None:
        """Open the log; without `is_clean` its last segment is checked. Raises as `JafkaLog`."""
        self.partition = partition
        self.cut_bytes = 0
        """What had to be cut off the end."""
        self._is_clean = is_clean
        self._is_foreign = False
        """True where nobody has counted the records yet."""
        self._pending: deque[Ticket] = deque()
        self._last_read: Flushed | None = None
        """Where a reader stopped, who will usually go on from there."""
        self._ends: deque[Flushed] = deque()
        """Ends of segments that are not noted yet."""
        if host.filesystem.exists(f"{directory}/{MARK}"):
            paths = [(start, segment_path(directory, start)) for start in find_starts(host.filesystem, directory)]
            write_anew(host.filesystem, directory, paths)
        super().__init__(host, directory, config, settings)

    # -- where it starts and ends ---------------------------------------------------------------------------------

    @property
    def start(self) -> int:
        return max(self._segments[0].start, self._positions[0].position)

    @property
    def log_start_offset(self) -> int:
        return self._positions[0].kafka_offset

    def offsets(self) -> LogOffsets:
        high_watermark = self.readable.kafka_offset
        return LogOffsets(self.log_start_offset, high_watermark, high_watermark, self.next_kafka_offset)

    def _find_end(self) -> Flushed:
        first, last = self._segments[0], self._segments[-1]
        self._is_foreign = not self._positions
        if self._is_foreign:
            self._positions.begin_at(Flushed(first.start, 0, self._host.filesystem.modified_ms(first.path)))
        if self._positions[0].position > last.end:
            raise KafkaStorageError(f"{last.path} ends at {last.end}, and the log starts behind it")
        if self._positions[0].position < first.start:
            self._positions.begin_at(self._find_start(first))
        self._positions.cut(last.end if self._is_clean else last.start)
        if self._is_to_be_synced:
            self._sync_names()
        known = self._positions.last
        for segment in list(self._segments):
            if segment.end > known.position and segment.start <= self.end:
                known = self._count_from(known, segment)
        return known

    @property
    def _is_to_be_synced(self) -> bool:
        """True where a log is opened after a crash: what is found is noted, and may not be on the disk yet."""
        return not self._is_clean and self._host.syncs_appends

    def _find_start(self, first: JafkaSegment) -> Flushed:
        """Return where a log starts whose oldest segments were removed by somebody else: Jafka's own server, say."""
        known = self._positions.reaching(first.start)
        if known is None:
            return self._positions.last._replace(position=first.start)
        count = sum(walked.records for walked in self._count(first, first.start, known.position))
        return Flushed(first.start, known.kafka_offset - count, known.time_ms)

    def _count_from(self, known: Flushed, segment: JafkaSegment) -> Flushed:
        """Count the records of a segment behind what is known, noting where they stand; returns its end."""
        time_ms = self._host.filesystem.modified_ms(segment.path)
        if self._is_to_be_synced:
            segment.file.get().sync()
        position, kafka_offset = known.position, known.kafka_offset
        with suppress(CorruptMessage, InvalidRecord):
            for walked in self._count(segment, position, segment.end):
                position, kafka_offset = segment.start + walked.end, kafka_offset + walked.records
                if position >= self._positions.last.position + ENTRY_EVERY_BYTES:
                    self._positions.append(Flushed(position, kafka_offset, time_ms))
        if position < segment.end:
            self._meet_damage(segment, position)
        reached = Flushed(segment.end, kafka_offset, time_ms)
        self._positions.append(reached)
        return reached

    def _meet_damage(self, segment: JafkaSegment, position: int) -> None:
        """Cut the log at what is no message, or pass it over, see above."""
        is_ours = not self._is_clean and not self._is_foreign
        if is_ours or segment is self._segments[-1]:
            self.cut_bytes = self.end - position
            _log.warning("%s: %d bytes from %d on are cut off", segment.path, self.cut_bytes, position)
            self._cut(position)
        else:
            _log.error("%s is damaged: its last %d bytes are passed over", segment.path, segment.end - position)

    def _count(self, segment: JafkaSegment, position: int, limit: int) -> Iterator[Walked]:
        """Count the records between two places of a segment, see `jafka_log.walk_file`."""
        return walk_file(segment.file.get, position - segment.start, limit - segment.start, count_records)

    # -- flushing -------------------------------------------------------------------------------------------------

    def _roll(self) -> None:
        self._ends.append(self._reached())
        super()._roll()

    def _take_flush(self, reached: Flushed) -> None:
        self.readable = reached
        while self._ends and self._ends[0].position <= reached.position:
            self._note(self._ends.popleft())
        if reached.position >= self._positions.last.position + ENTRY_EVERY_BYTES:
            self._note(reached)
        if self._host.on_advance is not None:
            self._host.on_advance(self.partition)
        while self._pending and self._pending[0].last_offset < reached.kafka_offset:
            self._pending.popleft().settle(None)

    def _note(self, reached: Flushed) -> None:
        try:
            self._positions.append(reached)
        except OSError as error:  # the next start counts what it does not know
            _log.warning("%s: a position cannot be noted: %s", self._directory, error)

    def fail_flush(self, error: BaseException) -> None:
        if self.failure is None:
            mark_failed_flush(self._host.filesystem, self._directory, self._synced_end)
        super().fail_flush(error)

    def fail(self, failure: KafkaStorageError) -> None:
        super().fail(failure)
        self._settle_pending(failure)

    def _settle_pending(self, error: KafkaError) -> None:
        while self._pending:
            self._pending.popleft().settle(error)

    # -- for Kafka's clients --------------------------------------------------------------------------------------

    def append_batch(self, batch: bytearray | memoryview) -> Ticket:
        """Append the values of a batch as plain messages, and have them flushed.

        Raises `UnsupportedForMessageFormat` for what they cannot say, `KafkaStorageError`.
        """
        values = values_of(RecordBatch(batch))
        base_offset = self.next_kafka_offset
        self.append(build_set(values), len(values), base_offset + len(values))
        is_durable = not self._host.syncs_appends
        last_offset = self.next_kafka_offset - 1
        start_offset = self.log_start_offset
        ticket = Ticket(self._host.offload, base_offset, last_offset, NO_TIMESTAMP_MS, start_offset, is_durable)
        if not is_durable:
            self._pending.append(ticket)
        self.flush()
        return ticket

    def read_records(self, offset: int, limit: ReadLimit) -> ReadResult:
        """Make a batch of the records from `offset` on, of `READ_BYTES` at most, see `engine.RecordLog.read`.

        Raises `OffsetOutOfRange`, `CorruptMessage`, `OSError`.
        """
        if not self.log_start_offset <= offset <= self.next_kafka_offset:
            known = f"[{self.log_start_offset}, {self.next_kafka_offset}]"
            raise OffsetOutOfRange(f"offset {offset} of {self.partition} is not in {known}")
        up_to = min(limit.up_to_offset, self.readable.kafka_offset)
        if offset >= up_to:
            return _EMPTY_READ
        batch = BatchBuilder(base_offset=offset)
        max_bytes = min(limit.max_bytes, READ_BYTES)

        def fill(data: bytes, kafka_offset: int) -> Walked:
            skipped, wanted = offset - kafka_offset, up_to - offset
            return fill_batch(batch, data, skipped, max_bytes, wanted, at_least_one=limit.at_least_one_batch)

        try:
            self._last_read = self._walk(offset, fill)
        except KafkaError:
            if not batch.count:  # else it is told to whoever begins with it
                raise
        if not batch.count:
            return _EMPTY_READ
        data = batch.build()
        return ReadResult((data,), len(data), is_behind=offset + batch.count < up_to)

    def find_since(self, time_ms: int) -> TimestampOffset | None:
        """Return the first record that may have been flushed at a time or later, and when it was at the latest.

        Times are noted with places, every so many bytes: a few older records may come along, and none is left out. What
        somebody else wrote is as old as the last change of its file.
        """
        segment = next((segment for segment in self._segments if self._age_of(segment) >= time_ms), None)
        if segment is None:
            return None
        before = self._positions.at_position(segment.start)
        reached = self.readable
        for entry in self._positions.behind(before.position):
            if entry.time_ms >= time_ms:
                reached = entry
                break
            before = entry
        if before.kafka_offset >= self.readable.kafka_offset:
            return None
        return TimestampOffset(reached.time_ms, before.kafka_offset, NO_LEADER_EPOCH)

    def _walk(self, offset: int, step: Callable[[bytes, int], Walked]) -> Flushed:
        """Walk messages until a step is over, from one on that does not stand behind a record; returns where that was.

        A step gets bytes and the number of the first record in them. Raises `CorruptMessage` and the like at damage
        that was not known when the log was opened.
        """
        place = self._positions.at_offset(offset)
        if self._last_read is not None and place.kafka_offset <= self._last_read.kafka_offset <= offset:
            place = self._last_read
        for segment in self._segments[self._index_of(place.position) :]:
            limit = min(segment.end, self.readable.position)
            damage: KafkaError = CorruptMessage(f"{segment.path} is cut")
            try:
                for reached, is_over in self._steps(segment, place, limit, step):
                    place = reached
                    if is_over:
                        return place
            except KafkaError as error:
                damage = error
            if place.position < limit:
                if self._positions.at_position(limit)[:2] != (limit, place.kafka_offset):
                    raise damage
                place = place._replace(position=limit)
        return place

    def _steps(
        self, segment: JafkaSegment, place: Flushed, limit: int, step: Callable[[bytes, int], Walked]
    ) -> Iterator[tuple[Flushed, bool]]:
        """Yield where each step in a segment came to, and whether it is over."""
        start = segment.start

        def next_step(data: bytes) -> Walked:
            return step(data, place.kafka_offset)

        for walked in walk_file(segment.file.get, place.position - start, limit - start, next_step):
            place = Flushed(start + walked.end, place.kafka_offset + walked.records, place.time_ms)
            yield place, walked.is_over

    # -- cutting --------------------------------------------------------------------------------------------------

    def delete_records(self, before_offset: int) -> int:
        """Let records below an offset go, all of a compressed set or none; returns the log's new start.

        Raises `OffsetOutOfRange` above the high watermark, `OSError`.
        """
        if not 0 <= before_offset <= self.readable.kafka_offset:
            raise OffsetOutOfRange(f"records of {self.partition} before {before_offset} cannot go")
        if before_offset > self.log_start_offset:
            self._positions.begin_at(self._place_of(before_offset))
            while len(self._segments) > 1 and self._segments[0].end <= self.start:
                self._remove(self._segments.pop(0))
                self._sync_names()
        return self.log_start_offset

    def truncate_to(self, offset: int) -> None:
        """Cut off the records from an offset on, all of a compressed set; appends that wait for a flush fail."""
        if offset >= self.next_kafka_offset:
            return
        self._settle_pending(KafkaStorageError(f"{self.partition} was truncated to {offset}"))
        place = self._place_of(max(offset, self.log_start_offset))
        self._cut(place.position)
        self._last_read = None
        self._synced_end = min(self._synced_end, place.position)
        self.next_kafka_offset = place.kafka_offset
        self.readable = self._flushing = min(self.readable, place)

    def _place_of(self, offset: int) -> Flushed:
        """Return where the message stands that holds a record, the end for the one that comes next."""
        if offset >= self.readable.kafka_offset:
            return self.readable
        return self._walk(offset, lambda data, kafka_offset: count_records(data, offset - kafka_offset))

    def _forget_before(self, position: int) -> None:
        """Have the log start at the end of the segment that goes."""
        found = self._positions.at_position(position)
        if found.position < position:  # it could not be noted
            count = sum(walked.records for walked in self._count(self._segments[0], found.position, position))
            found = Flushed(position, found.kafka_offset + count, found.time_ms)
        self._positions.begin_at(found)

    def close(self) -> None:
        if self.failure is None:
            self._note(self.readable)
        super().close()

    def discard(self, error: KafkaStorageError) -> None:
        super().discard(error)
        self._settle_pending(error)
