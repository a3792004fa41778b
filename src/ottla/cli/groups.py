"""`ottla groups`: which groups there are, who is in them, and how far behind they are. Their offsets are changed by
`group_offsets`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import click

from ottla.cli.group_offsets import forget, reset
from ottla.cli.options import bootstrap_option, cluster_settings, examples, json_option
from ottla.cli.output import (
    DONE,
    UNKNOWN,
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
from ottla.client.groups import GroupDescription, MemberDescription, PartitionLag
from ottla.errors import GroupIdNotFound, KafkaError
from ottla.model import TopicPartition

STATES: Final = (
    "Empty",
    "Stable",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Dead",
)
TYPES: Final = ("classic", "consumer", "share", "streams")


def _admin(bootstrap: str) -> Admin:
    return Admin(bootstrap, cluster=cluster_settings())


@click.group()
def groups() -> None:
    """List and describe groups, show lag and members, set offsets back, delete."""


groups.add_command(reset)
groups.add_command(forget)


# ---- list


@groups.command("list", epilog=examples("ottla groups list", "ottla groups list --state empty --json"))
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    multiple=True,
    help="Only groups in this state.",
)
@click.option(
    "--type", "types", type=click.Choice(TYPES, case_sensitive=False), multiple=True, help="Only groups of this type."
)
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
    described["lag"] = _total_lag(rows)
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


def _total_lag(rows: Sequence[PartitionLag]) -> int | None:
    """Add up what is known. A group that has committed nothing has no lag, which is not a lag of 0."""
    known = [row.lag for row in rows if row.lag is not None]
    return sum(known) if known else None


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
    lag = _total_lag(rows)
    print_line(
        f"{group.group_id}  {group.group_type}  {group.state}  {count_text(len(group.members), 'member')}"
        f"  lag {UNKNOWN if lag is None else lag}"
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
