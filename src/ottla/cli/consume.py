"""`ottla consume`: records of topics to standard output, from somewhere until something."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import click

from ottla.cli.formats import Writer, format_writer, value_writer, write_json
from ottla.cli.options import bootstrap_option, cluster_settings, examples, parse_time
from ottla.cli.output import DONE, Refused, count_text, run, say
from ottla.cli.progress import Progress, no_progress, progress_bar
from ottla.cli.shared_reading import SharedReading, where_it_was
from ottla.client.consumer import Consumer, ConsumerBatch
from ottla.client.fetcher import FetchSettings
from ottla.client.membership import GroupSettings
from ottla.clock import SystemClock
from ottla.errors import UnknownTopicOrPartition
from ottla.model import IsolationLevel, TopicPartition
from ottla.records.record import Record

LOOK_AGAIN_MS: Final = 100
"""A bounded read looks so often whether what is left before the end are no records but markers of transactions."""

LONG_READ_RECORDS: Final = 100_000
"""From so many records on, a person gets a progress bar."""

DEFAULT_POSITIONS: Final = {"start": "earliest", "end": "latest"}
"""Where a group begins that has not committed yet, in Kafka's words."""


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


@click.command(
    epilog=examples(
        "ottla consume orders --until end",
        "ottla consume orders --from -10 --until end --keys",
        "ottla consume orders payments --from @-1h --until end --json",
        "ottla consume orders --group billing --count 10",
        r"ottla consume orders --partition 0 --from 0 --until end --format '%t-%p %o %D %k: %s\n'",
    )
)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "-p",
    "--partition",
    "partitions",
    type=click.IntRange(min=0),
    metavar="N",
    multiple=True,
    help="Only this partition.",
)
@click.option(
    "-f",
    "--from",
    "start",
    default="start",
    show_default=True,
    metavar="WHERE",
    help="start, end, an offset, -N for the last N of each partition, or @TIME (@-1h, @2026-05-04T12:00).",
)
@click.option(
    "-u", "--until", metavar="WHERE", help="end (as of now) or @TIME; else records are followed as they come."
)
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after so many records.")
@click.option("--format", "template", metavar="FORMAT", help=r"As in '%t-%p %o %k: %s\n'; see below.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object a line.")
@click.option("-k", "--keys", "with_keys", is_flag=True, help="The key and a tab before the value.")
@click.option("-H", "--headers", "with_headers", is_flag=True, help="The headers and a tab before it all.")
@click.option("-x", "--hex", "is_hex", is_flag=True, help="Keys and values in hexadecimal.")
@click.option("--null", default="NULL", show_default=True, metavar="TEXT", help="What stands for a null key or value.")
@click.option("--committed", is_flag=True, help="Leave out records of open and aborted transactions.")
@click.option("-g", "--group", metavar="GROUP", help="Read as a member of this group, and commit what is read.")
@click.option(
    "--protocol",
    type=click.Choice(["classic", "consumer"]),
    default="classic",
    show_default=True,
    help="The protocol of the group.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing and show no progress.")
@bootstrap_option
def consume(
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    start: str,
    until: str | None,
    count: int | None,
    template: str | None,
    is_json: bool,
    with_keys: bool,
    with_headers: bool,
    is_hex: bool,
    null: str,
    committed: bool,
    group: str | None,
    protocol: str,
    quiet: bool,
    bootstrap: str,
) -> None:
    """Read records of TOPICs, from somewhere until something; nothing is committed unless a group is given.

    A group goes on where it has got; where it has not been yet it begins at --from, which is start or end.

    \b
    Formats: %t topic  %p partition  %o offset  %T timestamp in ms  %D timestamp
             %k key  %K its size  %s value  %S its size  %h headers  %% percent
             \\n newline  \\t tab  \\0 zero byte  \\xHH any byte  \\\\ backslash
    """
    if sum((template is not None, is_json, with_keys or with_headers)) > 1:
        raise click.UsageError("--format, --json and --keys/--headers exclude each other")
    wanted = _range(start, until, count)
    write = _writer(template, null.encode(), is_json=is_json, is_hex=is_hex, keys=with_keys, headers=with_headers)
    isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    if group is not None:
        if partitions or until is not None or start not in DEFAULT_POSITIONS:
            raise click.UsageError("with --group there is no --partition or --until, and --from is start or end")
        member = Consumer(
            bootstrap,
            settings=FetchSettings(isolation_level=isolation),
            auto_offset_reset=DEFAULT_POSITIONS[start],
            group=GroupSettings(group_id=group, group_protocol=protocol, enable_auto_commit=False),
            cluster=cluster_settings(),
        )
        run(SharedReading(member, write, count, is_quiet=quiet).run(topics))
    consumer = Consumer(
        bootstrap,
        settings=FetchSettings(isolation_level=isolation),
        auto_offset_reset="none",
        cluster=cluster_settings(),
    )
    run(Reading(consumer, wanted, write, is_quiet=quiet).run(topics, partitions))


def _range(start: str, until: str | None, count: int | None) -> Range:
    now_ms = SystemClock().wall_ms()
    start_ms = parse_time(start[1:], now_ms) if start.startswith("@") else None
    if start_ms is None and start not in ("start", "end") and not start.removeprefix("-").isdecimal():
        raise click.BadParameter(f"{start!r} is none of start, end, OFFSET, -N, @TIME", param_hint="--from")
    if until is not None and until != "end" and not until.startswith("@"):
        raise click.BadParameter(f"{until!r} is neither end nor @TIME", param_hint="--until")
    until_ms = parse_time(until[1:], now_ms) if until is not None and until != "end" else None
    return Range(start, start_ms, until == "end", until_ms, count)


def _writer(template: str | None, null: bytes, *, is_json: bool, is_hex: bool, keys: bool, headers: bool) -> Writer:
    if is_json:
        return write_json
    if template is None:
        return value_writer(null=null, is_hex=is_hex, with_key=keys, with_headers=headers)
    try:
        return format_writer(template, null=null, is_hex=is_hex)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--format") from None


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
                raise Refused(f"topic {topic!r} does not exist; `ottla topics list` shows what does") from None
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
