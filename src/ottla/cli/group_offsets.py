"""`ottla groups reset` and `forget`: what a group has committed, changed while nobody is in it.

An offset that the log does not have becomes the nearest that it has, as with Kafka's tool, and that is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import click

from ottla.cli.options import bootstrap_option, cluster_settings, examples, json_option, parse_time
from ottla.cli.output import Refused, count_text, failed_rows, print_json, print_table, report_changes, run, say
from ottla.client.admin import Admin
from ottla.client.committed import OffsetAndMetadata
from ottla.client.groups import GroupDescription, PartitionLag
from ottla.client.offsets import OffsetAndTimestamp
from ottla.clock import SystemClock
from ottla.errors import GroupIdNotFound, KafkaError
from ottla.model import TopicPartition

EMPTY: Final = "Empty"

topic_option = click.option(
    "-t", "--topic", "topics", multiple=True, help="Only this topic, also one that the group does not know."
)
partition_option = click.option(
    "-p", "--partition", "partitions", type=click.IntRange(min=0), multiple=True, help="Only this partition."
)
dry_run_option = click.option("-n", "--dry-run", is_flag=True, help="Only say what would be done.")


# ---- where to


@dataclass(frozen=True, slots=True)
class Where:
    """Where a group shall go: a word, an offset, so far from where it is, or a time."""

    text: str
    timestamp_ms: int | None = None

    @classmethod
    def parse(cls, text: str) -> Where:
        """Raises `click.BadParameter`."""
        if text.startswith("@"):
            return cls(text, parse_time(text[1:], SystemClock().wall_ms()))
        number = text[1:] if text[:1] in ("+", "-") else text
        if text not in ("start", "end") and not number.isdecimal():
            raise click.BadParameter(f"{text!r} is none of start, end, OFFSET, +N, -N, @TIME", param_hint="--to")
        return cls(text)

    def in_partition(self, row: PartitionLag, at_time: int | None) -> Change:
        """Return what that means for one partition; `at_time` is the offset for the time, where there is one.

        Raises `Refused` where it goes by the group's place and the group has none.
        """
        beginning, end = row.beginning or 0, row.high_watermark or 0
        if self.text in ("start", "end"):
            return Change(row, beginning if self.text == "start" else end)
        if self.timestamp_ms is not None:
            return _nearest(row, end, "has no record that late") if at_time is None else _nearest(row, at_time)
        if self.text[0] not in "+-":
            return _nearest(row, int(self.text))
        if row.committed is None:
            raise Refused(f"the group has no offset in {row.partition} to go on or back from; say an offset")
        return _nearest(row, row.committed + int(self.text))


class Change(NamedTuple):
    """Where a group goes in a partition, with a remark where that is not quite what was asked."""

    row: PartitionLag
    offset: int
    remark: str | None = None


def _nearest(row: PartitionLag, offset: int, remark: str | None = None) -> Change:
    """Go to the nearest offset that the log has."""
    beginning, end = row.beginning or 0, row.high_watermark or 0
    if offset < beginning:
        return Change(row, beginning, f"begins at {beginning}, and {offset} is before that")
    if offset > end:
        return Change(row, end, f"ends at {end}, and {offset} is behind that")
    return Change(row, offset, remark)


# ---- reset


@click.command(
    epilog=examples(
        "ottla groups reset billing --to start --dry-run",
        "ottla groups reset billing --to -100",
        "ottla groups reset billing --to @-2h --topic orders --partition 0 --json",
    )
)
@click.argument("name", metavar="GROUP")
@click.option(
    "--to",
    "where",
    required=True,
    metavar="WHERE",
    help="start, end, an offset, +N or -N from where the group is, or @TIME (@-1h, @2026-05-04T12:00).",
)
@topic_option
@partition_option
@dry_run_option
@json_option
@bootstrap_option
def reset(
    name: str,
    where: str,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    dry_run: bool,
    as_json: bool,
    bootstrap: str,
) -> None:
    """Set a group's offsets. Nobody may be in the group.

    Where a log does not have the offset, the nearest one that it has is taken, and a line says so.
    """
    to = Where.parse(where)

    async def work() -> int:
        async with Admin(bootstrap, cluster=cluster_settings()) as admin:
            await _check_is_idle(admin, name)
            rows = await _rows_of(admin, name, topics, partitions)
            times = await _offsets_at_time(admin, to.timestamp_ms, rows)
            changes = [to.in_partition(row, times.get(row.partition)) for row in rows]
            answers: Mapping[TopicPartition, KafkaError | None] = {}
            if not dry_run:
                offsets = {change.row.partition: OffsetAndMetadata(change.offset) for change in changes}
                answers = await admin.groups.commit(name, offsets)
        _print_changes(changes, answers, as_json=as_json)
        for change in changes:
            if change.remark is not None:
                say(f"{change.row.partition} {change.remark}: taken is {change.offset}")
        if dry_run:
            say("nothing was changed; leave out --dry-run to do it")
        return failed_rows((str(partition), error) for partition, error in answers.items())

    run(work())


async def _check_is_idle(admin: Admin, name: str) -> None:
    found = (await admin.groups.describe([name]))[name]
    if isinstance(found, KafkaError) and not isinstance(found, GroupIdNotFound):
        raise found
    if isinstance(found, GroupDescription) and found.state != EMPTY:
        raise Refused(
            f"group {name!r} is {found.state} with {count_text(len(found.members), 'member')}; stop them first"
        )


async def _rows_of(admin: Admin, name: str, topics: Sequence[str], partitions: Sequence[int]) -> Sequence[PartitionLag]:
    """Return what shall change: all that the group has committed, or the topics and partitions that are named.

    Raises `Refused` for a partition that is not there, and when nothing is left.
    """
    wanted: list[TopicPartition] = []
    for topic in topics:
        info = await admin.describe_topic(topic)
        wanted += [TopicPartition(topic, row.partition) for row in info.partitions]
    rows = [
        row
        for row in await admin.groups.lag(name, wanted)
        if row.high_watermark is not None and (not topics or row.partition.topic in topics)
    ]
    if not rows:
        raise Refused(f"group {name!r} has committed nothing; name a topic with --topic")
    missing = set(partitions) - {row.partition.partition for row in rows}
    if missing:
        raise Refused(
            f"there is no partition {min(missing)} in {' or '.join(sorted({r.partition.topic for r in rows}))}"
        )
    return [row for row in rows if not partitions or row.partition.partition in partitions]


async def _offsets_at_time(
    admin: Admin, timestamp_ms: int | None, rows: Sequence[PartitionLag]
) -> dict[TopicPartition, int]:
    if timestamp_ms is None:
        return {}
    answers = await admin.list_offsets(dict.fromkeys((row.partition for row in rows), timestamp_ms))
    return {
        partition: answer.offset
        for partition, answer in answers.items()
        if isinstance(answer, OffsetAndTimestamp) and answer.offset >= 0
    }


def _print_changes(
    changes: Sequence[Change], answers: Mapping[TopicPartition, KafkaError | None], *, as_json: bool
) -> None:
    if as_json:
        print_json(
            [
                {
                    "topic": row.partition.topic,
                    "partition": row.partition.partition,
                    "committed_offset": row.committed,
                    "new_offset": offset,
                    "error": None if (error := answers.get(row.partition)) is None else error.name,
                }
                for row, offset, _ in changes
            ]
        )
        return
    print_table(
        ["topic", "partition", "committed", "new"],
        [(row.partition.topic, row.partition.partition, row.committed, offset) for row, offset, _ in changes],
    )


# ---- forget


@click.command(
    epilog=examples(
        "ottla groups forget billing --topic orders --dry-run",
        "ottla groups forget billing --topic orders --json",
    )
)
@click.argument("name", metavar="GROUP")
@topic_option
@partition_option
@dry_run_option
@json_option
@bootstrap_option
def forget(
    name: str, topics: tuple[str, ...], partitions: tuple[int, ...], dry_run: bool, as_json: bool, bootstrap: str
) -> None:
    """Delete offsets that a group has committed, all or those of some topics; it begins anew there.

    Members may be in the group as long as none reads the topic.
    """

    async def work() -> int:
        async with Admin(bootstrap, cluster=cluster_settings()) as admin:
            committed = sorted(await admin.groups.committed(name))
            chosen = [
                one
                for one in committed
                if (not topics or one.topic in topics) and (not partitions or one.partition in partitions)
            ]
            if not chosen:
                raise Refused(f"group {name!r} has committed nothing {'there' if committed else 'yet'}")
            answers: Mapping[TopicPartition, KafkaError | None] = dict.fromkeys(chosen)
            if not dry_run:
                answers = await admin.groups.delete_offsets(name, chosen)
        told = {str(partition): error for partition, error in answers.items()}
        code = report_changes(told, "would be forgotten" if dry_run else "forgotten", as_json=as_json)
        if dry_run:
            say("nothing was changed; leave out --dry-run to do it")
        return code

    run(work())
