"""`ottla groups`: which groups there are, who is in them, how far behind they are, and setting them back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import click

from ottla.cli.options import bootstrap_option, cluster_settings, examples, json_option, parse_time
from ottla.cli.output import (
    DONE,
    Refused,
    count_text,
    failed_rows,
    print_json,
    print_line,
    print_table,
    report_changes,
    run,
    say,
)
from ottla.client.admin import Admin
from ottla.client.committed import OffsetAndMetadata
from ottla.client.groups import GroupDescription, MemberDescription, PartitionLag
from ottla.client.offsets import OffsetAndTimestamp
from ottla.clock import SystemClock
from ottla.errors import GroupIdNotFound, KafkaError
from ottla.model import TopicPartition

EMPTY: Final = "Empty"


def _admin(bootstrap: str) -> Admin:
    return Admin(bootstrap, cluster=cluster_settings())


@click.group()
def groups() -> None:
    """List and describe groups, show lag and members, set offsets back, delete."""


# ---- list


@groups.command("list", epilog=examples("ottla groups list", "ottla groups list --state empty --json"))
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only groups in this state.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only groups of this type: classic, consumer.")
@json_option
@bootstrap_option
def list_groups(states: tuple[str, ...], types: tuple[str, ...], as_json: bool, bootstrap: str) -> None:
    """List groups."""

    async def work() -> int:
        async with _admin(bootstrap) as admin:
            found = await admin.groups.list_groups(states=states, types=types)
        if as_json:
            print_json(
                [
                    {
                        "group": one.group_id,
                        "type": one.group_type.lower() or None,
                        "protocol_type": one.protocol_type,
                        "state": one.state or None,
                    }
                    for one in found
                ]
            )
        else:
            print_table(
                ["group", "type", "protocol", "state"],
                [
                    (one.group_id, one.group_type.lower() or None, one.protocol_type or None, one.state or None)
                    for one in found
                ],
            )
        return DONE

    run(work())


# ---- describe


@groups.command(epilog=examples("ottla groups describe billing", "ottla groups describe billing --json"))
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@json_option
@bootstrap_option
def describe(names: tuple[str, ...], as_json: bool, bootstrap: str) -> None:
    """Show state, offsets and lag. A partition without a committed offset has no lag."""

    async def work() -> int:
        async with _admin(bootstrap) as admin:
            found = await admin.groups.describe(names)
            known = [group for group in found.values() if isinstance(group, GroupDescription)]
            rows = {group.group_id: await admin.groups.lag(group.group_id, _assigned(group)) for group in known}
        if as_json:
            print_json([_described_json(group, rows[group.group_id]) for group in known])
        else:
            for group in known:
                _print_described(group, rows[group.group_id])
        return failed_rows(found.items())

    run(work())


def _assigned(group: GroupDescription) -> list[TopicPartition]:
    return [partition for member in group.members for partition in member.assignment or ()]


def _owners(group: GroupDescription) -> Mapping[TopicPartition, MemberDescription]:
    return {partition: member for member in group.members for partition in member.assignment or ()}


def _described_json(group: GroupDescription, rows: Sequence[PartitionLag]) -> dict[str, object]:
    owners = _owners(group)
    described = _group_json(group)
    described["members"] = len(group.members)
    described["lag"] = sum(row.lag or 0 for row in rows)
    described["partitions"] = [
        {
            "topic": row.partition.topic,
            "partition": row.partition.partition,
            "committed_offset": row.committed,
            "beginning_offset": row.beginning,
            "high_watermark": row.high_watermark,
            "lag": row.lag,
            "metadata": row.metadata,
            "member_id": owner.member_id if (owner := owners.get(row.partition)) is not None else None,
        }
        for row in rows
    ]
    return described


def _group_json(group: GroupDescription) -> dict[str, object]:
    return {
        "group": group.group_id,
        "type": group.group_type,
        "protocol_type": group.protocol_type,
        "state": group.state,
        "assignor": group.assignor or None,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
    }


def _print_described(group: GroupDescription, rows: Sequence[PartitionLag]) -> None:
    owners = _owners(group)
    lag = sum(row.lag or 0 for row in rows)
    print_line(
        f"{group.group_id}  {group.group_type}  {group.state}  {count_text(len(group.members), 'member')}  lag {lag}"
    )
    print_table(
        ["topic", "partition", "committed", "beginning", "end", "lag", "member", "host"],
        [
            (
                row.partition.topic,
                row.partition.partition,
                row.committed,
                row.beginning,
                row.high_watermark,
                row.lag,
                owner.member_id if (owner := owners.get(row.partition)) is not None else None,
                owner.client_host if owner is not None else None,
            )
            for row in rows
        ],
    )


# ---- members


@groups.command(
    epilog=examples(
        "ottla groups members billing",
        "ottla groups members billing --json",
        "ottla groups members billing --remove-all --reason 'new assignor'",
    )
)
@click.argument("name", metavar="GROUP")
@click.option("--remove", "removed", multiple=True, metavar="MEMBER", help="Remove a member: group.instance.id, or id.")
@click.option("--remove-all", is_flag=True, help="Remove all members.")
@click.option("--reason", default="", metavar="TEXT", help="Why they are removed; the broker's log has it.")
@json_option
@bootstrap_option
def members(name: str, removed: tuple[str, ...], remove_all: bool, reason: str, as_json: bool, bootstrap: str) -> None:
    """Show who is in a group, and what each member reads; or remove members, and show who is left.

    What a removed member read goes to the others. A client that still runs joins anew: remove the members of those that
    are gone, such as static ones whose session is long.
    """

    async def work() -> int:
        async with _admin(bootstrap) as admin:
            group = await _get(admin, name)
            results: Mapping[str, KafkaError | None] = {}
            if removed or remove_all:
                leaving = group.members if remove_all else _find_members(group, removed)
                results = await admin.groups.remove_members(name, leaving, reason=reason)
                group = await _get(admin, name)
        for one, error in results.items():
            if error is None:
                say(f"{one} removed")
        if as_json:
            print_json({**_group_json(group), "members": [_member_json(member) for member in group.members]})
        else:
            _print_members(group)
        return failed_rows(results.items())

    run(work())


def _find_members(group: GroupDescription, names: Sequence[str]) -> list[MemberDescription]:
    """Return the members with these static names or ids. Raises `Refused` for a name that nobody has."""
    found = []
    for name in dict.fromkeys(names):
        member = next((one for one in group.members if name in (one.instance_id, one.member_id)), None)
        if member is None:
            raise Refused(f"group {group.group_id!r} has no member {name!r}; `ottla groups members` shows who is in it")
        found.append(member)
    return found


def _print_members(group: GroupDescription) -> None:
    print_table(
        ["member", "instance", "client", "host", "epoch", "assignment"],
        [
            (
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.member_epoch,
                None if member.assignment is None else " ".join(map(str, sorted(member.assignment))),
            )
            for member in group.members
        ],
    )


def _member_json(member: MemberDescription) -> dict[str, object]:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.client_host,
        "member_epoch": member.member_epoch,
        "protocol": "classic" if member.speaks_classic else "consumer",
        "assignment": _partitions_json(member.assignment),
        "target": _partitions_json(member.target),
    }


def _partitions_json(partitions: Sequence[TopicPartition] | None) -> list[dict[str, object]] | None:
    if partitions is None:
        return None
    return [{"topic": one.topic, "partition": one.partition} for one in sorted(partitions)]


async def _get(admin: Admin, name: str) -> GroupDescription:
    found = (await admin.groups.describe([name]))[name]
    if isinstance(found, GroupIdNotFound):
        raise Refused(f"group {name!r} does not exist; `ottla groups list` shows what does")
    if isinstance(found, KafkaError):
        raise found
    return found


# ---- reset


@groups.command(
    epilog=examples(
        "ottla groups reset billing --to start --dry-run",
        "ottla groups reset billing --to -100 --topic orders",
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
@click.option("-t", "--topic", "topics", multiple=True, help="Only this topic, also one that the group does not know.")
@click.option("-p", "--partition", "partitions", type=click.IntRange(min=0), multiple=True, help="Only this partition.")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be set.")
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
    """Set a group's offsets. Nobody may be in the group."""
    choose = _parse_where(where)

    async def work() -> int:
        async with _admin(bootstrap) as admin:
            await _check_is_idle(admin, name)
            rows = await _rows_to_reset(admin, name, topics, partitions)
            times = await _offsets_at_time(admin, where, rows)
            changes = {row.partition: choose(row, times.get(row.partition)) for row in rows}
            answers: Mapping[TopicPartition, KafkaError | None] = dict.fromkeys(changes)
            if not dry_run:
                offsets = {partition: OffsetAndMetadata(offset) for partition, offset in changes.items()}
                answers = await admin.groups.commit(name, offsets)
        _print_reset(rows, changes, answers, as_json=as_json)
        if dry_run:
            say("nothing was changed; leave out --dry-run to do it")
        return failed_rows((str(partition), error) for partition, error in answers.items())

    run(work())


Choose = Callable[[PartitionLag, "int | None"], int]
"""Takes a partition's offsets and the offset for the asked time; returns where to go."""


def _parse_where(where: str) -> Choose:
    if where == "start":
        return lambda row, _: row.beginning or 0
    if where == "end":
        return lambda row, _: row.high_watermark or 0
    if where.startswith("@"):
        parse_time(where[1:], SystemClock().wall_ms())
        return lambda row, at: _within(row, (row.high_watermark or 0) if at is None else at)
    number = where[1:] if where[:1] in ("+", "-") else where
    if not number.isdecimal():
        raise click.BadParameter(f"{where!r} is none of start, end, OFFSET, +N, -N, @TIME", param_hint="--to")
    if where[0] in "+-":
        return lambda row, _: _within(row, (row.committed if row.committed is not None else 0) + int(where))
    return lambda row, _: _within(row, int(number))


def _within(row: PartitionLag, offset: int) -> int:
    """Return the nearest offset that the log has."""
    return max(row.beginning or 0, min(offset, row.high_watermark or 0))


async def _check_is_idle(admin: Admin, name: str) -> None:
    found = (await admin.groups.describe([name]))[name]
    if isinstance(found, GroupDescription) and found.state != EMPTY:
        raise Refused(
            f"group {name!r} is {found.state} with {count_text(len(found.members), 'member')}; stop them first"
        )


async def _rows_to_reset(
    admin: Admin, name: str, topics: Sequence[str], partitions: Sequence[int]
) -> list[PartitionLag]:
    """Return what shall be set: all that the group has committed, or the topics that are named."""
    wanted: list[TopicPartition] = []
    for topic in topics:
        info = await admin.describe_topic(topic)
        wanted += [TopicPartition(topic, row.partition) for row in info.partitions]
    rows = [
        row
        for row in await admin.groups.lag(name, wanted)
        if row.high_watermark is not None
        and (not topics or row.partition.topic in topics)
        and (not partitions or row.partition.partition in partitions)
    ]
    if not rows:
        raise Refused(f"group {name!r} has no such offsets; name a topic with --topic")
    return rows


async def _offsets_at_time(admin: Admin, where: str, rows: Sequence[PartitionLag]) -> dict[TopicPartition, int]:
    if not where.startswith("@"):
        return {}
    timestamp_ms = parse_time(where[1:], SystemClock().wall_ms())
    answers = await admin.list_offsets(dict.fromkeys((row.partition for row in rows), timestamp_ms))
    return {
        partition: answer.offset
        for partition, answer in answers.items()
        if isinstance(answer, OffsetAndTimestamp) and answer.offset >= 0
    }


def _print_reset(
    rows: Sequence[PartitionLag],
    changes: Mapping[TopicPartition, int],
    answers: Mapping[TopicPartition, KafkaError | None],
    *,
    as_json: bool,
) -> None:
    if as_json:
        print_json(
            [
                {
                    "topic": row.partition.topic,
                    "partition": row.partition.partition,
                    "committed_offset": row.committed,
                    "new_offset": changes[row.partition],
                    "error": None if (error := answers.get(row.partition)) is None else error.name,
                }
                for row in rows
            ]
        )
        return
    print_table(
        ["topic", "partition", "committed", "new"],
        [(row.partition.topic, row.partition.partition, row.committed, changes[row.partition]) for row in rows],
    )


# ---- delete


@groups.command(epilog=examples("ottla groups delete billing"))
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@json_option
@bootstrap_option
def delete(names: tuple[str, ...], as_json: bool, bootstrap: str) -> None:
    """Delete groups that nobody is in, with their offsets."""

    async def work() -> int:
        async with _admin(bootstrap) as admin:
            results = await admin.groups.delete(names)
        return report_changes(results, "deleted", as_json=as_json)

    run(work())
