"""One run of `ottla consume` without a group: from somewhere until something, and where it was when it is stopped.

`consume` reads the command line, `shared_reading` reads in groups.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.cli.formats import Writer
from ottla.cli.options import cluster_settings
from ottla.cli.output import DONE, count_text, no_topic, say
from ottla.cli.progress import Progress, no_progress, progress_bar
from ottla.cli.shared_reading import where_it_was
from ottla.client.consumer import Consumer
from ottla.client.consumer_record import ConsumerBatch
from ottla.client.fetcher import FetchSettings
from ottla.errors import UnknownTopicOrPartition
from ottla.model import IsolationLevel, TopicPartition
from ottla.records.record import Record

LOOK_AGAIN_MS: Final = 100
"""A bounded read looks so often whether what is left before the end are no records but markers of transactions."""

LONG_READ_RECORDS: Final = 100_000
"""From so many records on, a person gets a progress bar."""


@dataclass(frozen=True, slots=True)
class Range:
    """From where to where. `start` is a word, an offset or a count from the end; times are milliseconds."""

    start: str
    start_ms: int | None
    until_end: bool
    until_ms: int | None
    count: int | None

    @property
    def is_bounded(self) -> bool:
        return self.until_end or self.until_ms is not None


def lone_consumer(bootstrap: str, *, is_committed: bool) -> Consumer:
    """Return a consumer without a group that begins nowhere by itself."""
    isolation = IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED
    settings = FetchSettings(isolation_level=isolation)
    return Consumer(bootstrap, settings=settings, auto_offset_reset="none", cluster=cluster_settings())


class Reading:
    """One run of the command."""

    def __init__(self, consumer: Consumer, wanted: Range, write: Writer, *, is_quiet: bool) -> None:
        self._consumer = consumer
        self._range = wanted
        self._write = write
        self._is_quiet = is_quiet
        self._count = 0
        self._stops: dict[TopicPartition, int] = {}
        self._progress: Progress = no_progress()

    async def run(self, topics: Sequence[str], partitions: Sequence[int]) -> int:
        started = time.monotonic()
        try:
            await self._consumer.start()
            assigned = await self._assign(topics, partitions)
            starts = await self._seek(assigned)
            await self._find_stops(assigned, starts)
            if self._stops or not self._range.is_bounded:
                await self._read()
            if not self._is_quiet:
                seconds = time.monotonic() - started
                rate = self._count / max(seconds, 1e-9)
                say(f"{count_text(self._count, 'record')} in {seconds:.2f} s ({rate:,.0f}/s)")
            return DONE
        except asyncio.CancelledError:
            await self._say_where()
            raise
        finally:
            self._progress.close()
            await self._consumer.close()

    async def _assign(self, topics: Sequence[str], partitions: Sequence[int]) -> Sequence[TopicPartition]:
        wanted: list[TopicPartition] = []
        for topic in dict.fromkeys(topics):
            try:
                all_of_it = await self._consumer.partitions_of(topic)
            except UnknownTopicOrPartition:
                raise no_topic(topic) from None
            wanted += [TopicPartition(topic, partition) for partition in partitions] if partitions else all_of_it
        await self._consumer.assign(wanted)
        return wanted

    async def _seek(self, assigned: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Go to where reading starts; returns the offsets."""
        start = self._range.start
        beginnings = await self._consumer.beginning_offsets(assigned)
        ends = await self._consumer.end_offsets(assigned)
        if self._range.start_ms is not None:
            found = await self._consumer.offsets_for_times(dict.fromkeys(assigned, self._range.start_ms))
            starts = {tp: answer.offset if answer is not None else ends[tp] for tp, answer in found.items()}
        elif start.startswith("-"):
            starts = {tp: max(beginnings[tp], ends[tp] - int(start[1:])) for tp in assigned}
        elif start.isdecimal():
            starts = {tp: max(beginnings[tp], min(int(start), ends[tp])) for tp in assigned}
            for tp, offset in starts.items():
                if offset != int(start) and not self._is_quiet:
                    say(f"{tp} has {beginnings[tp]} to {ends[tp]}: reading begins at {offset}")
        else:
            starts = dict(beginnings if start == "start" else ends)
        for tp, offset in starts.items():
            self._consumer.seek(tp, offset)
        return starts

    async def _find_stops(self, assigned: Sequence[TopicPartition], starts: Mapping[TopicPartition, int]) -> None:
        """Find where each partition ends, where that is wanted; partitions with nothing to read are left alone."""
        if not self._range.is_bounded:
            return
        stops = dict(await self._consumer.end_offsets(assigned))
        if self._range.until_ms is not None:
            found = await self._consumer.offsets_for_times(dict.fromkeys(assigned, self._range.until_ms))
            stops.update({tp: answer.offset for tp, answer in found.items() if answer is not None})
        self._stops = {tp: stop for tp, stop in stops.items() if stop > starts[tp]}
        for tp in assigned:
            if tp not in self._stops:
                self._consumer.pause(tp)
        total = sum(stop - starts[tp] for tp, stop in self._stops.items())
        if total >= LONG_READ_RECORDS and not self._is_quiet and sys.stderr.isatty() and not sys.stdout.isatty():
            self._progress = progress_bar(total)

    async def _read(self) -> None:
        out = sys.stdout.buffer
        is_live = not self._range.is_bounded or sys.stdout.isatty()
        while not self._is_finished():
            batch = await self._consumer.next_batch(LOOK_AGAIN_MS if self._range.is_bounded else None)
            if batch is None:
                self._drop_reached_stops()
                continue
            records = self._cut(batch)
            if records:
                out.write(self._write(batch.partition, records))
                if is_live:
                    out.flush()
                self._count += len(records)
                self._progress.advance(len(records))
        out.flush()

    def _is_finished(self) -> bool:
        if self._range.count is not None and self._count >= self._range.count:
            return True
        return self._range.is_bounded and not self._stops

    def _cut(self, batch: ConsumerBatch) -> Sequence[Record]:
        """Leave out what lies behind the partition's stop or the count."""
        records = batch.records
        stop = self._stops.get(batch.partition)
        if stop is not None and batch.next_offset >= stop:
            records = [record for record in records if record.offset < stop]
            del self._stops[batch.partition]
            self._consumer.pause(batch.partition)
        if self._range.count is not None:
            records = records[: self._range.count - self._count]
        return records

    def _drop_reached_stops(self) -> None:
        """Stop where no record stands any more before the end."""
        for tp, stop in list(self._stops.items()):
            if (self._consumer.known_position(tp) or 0) >= stop:
                del self._stops[tp]
                self._consumer.pause(tp)

    async def _say_where(self) -> None:
        """Ctrl-C: say where each partition would go on."""
        places = {tp: self._consumer.known_position(tp) for tp in self._consumer.assignment}
        say("\n" + where_it_was(self._count, places))
