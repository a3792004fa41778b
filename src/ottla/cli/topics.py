"""`ottla topics`: create, list, describe, alter, grow, delete, offsets."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ottla.cli.configs import check_are_set
from ottla.cli.options import (
    MOST_PARTITIONS,
    MOST_REPLICAS,
    bootstrap_option,
    cluster_settings,
    examples,
    format_time,
    json_option,
    parse_settings,
    parse_time,
)
from ottla.cli.output import (
    DONE,
    count_text,
    failed_rows,
    print_json,
    print_line,
    print_table,
    report_changes,
    run,
    say,
)
from ottla.client.admin import BROKER_DEFAULT, Admin, CreatedTopic, NewTopic
from ottla.client.configs import ConfigEntry, ConfigResource, ConfigSource
from ottla.client.offsets import OffsetAndTimestamp
from ottla.client.topology import TopicInfo
from ottla.clock import SystemClock
from ottla.errors import KafkaError, TopicAlreadyExists, UnsupportedVersion
from ottla.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_OFFSET, TopicPartition, format_uuid


@click.group()
def topics() -> None:
    """Create, list, describe, alter, grow and delete topics."""


def _admin(bootstrap: str) -> Admin:
    return Admin(bootstrap, cluster=cluster_settings())


# ---- create


@topics.command(
    epilog=examples(
        "ottla topics create orders --partitions 3 --config retention.ms=86400000",
        "ottla topics create payments refunds --if-not-exists",
    )
)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(1, MOST_PARTITIONS),
    metavar="N",
    help="Partitions; else the cluster's default.",
)
@click.option(
    "-r",
    "--replication-factor",
    type=click.IntRange(1, MOST_REPLICAS),
    metavar="N",
    help="Copies; else the cluster's default.",
)
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A setting of the topic.")
@click.option("--if-not-exists", is_flag=True, help="A topic that is there already is fine.")
@click.option("--validate-only", is_flag=True, help="Only say whether it would work.")
@json_option
@bootstrap_option
def create(
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
    as_json: bool,
    bootstrap: str,
) -> None:
    """Create topics."""
    settings = parse_settings(configs)
    wanted = [
        NewTopic(name, partitions or BROKER_DEFAULT, replication_factor or BROKER_DEFAULT, settings) for name in names
    ]

    async def work() -> int:
        async with _admin(bootstrap) as admin:
            results = await admin.create_topics(wanted, validate_only=validate_only)
        if if_not_exists:
            for name in [name for name, row in results.items() if isinstance(row, TopicAlreadyExists)]:
                say(f"{name} exists already")
                del results[name]
        if as_json:
            print_json([_created_json(name, row) for name, row in results.items()])
        else:
            for row in results.values():
                if isinstance(row, CreatedTopic):
                    print_line(_created_line(row, validate_only=validate_only))
        return failed_rows(results.items())

    run(work())


def _created_json(name: str, topic: CreatedTopic | KafkaError) -> dict[str, object]:
    if isinstance(topic, KafkaError):
        return {"topic": name, "topic_id": None, "partitions": None, "replication_factor": None, "error": topic.name}
    return {
        "topic": name,
        "topic_id": format_uuid(topic.topic_id),
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "error": None,
    }


def _created_line(topic: CreatedTopic, *, validate_only: bool) -> str:
    counts = ""
    if topic.partitions >= 0:
        copies = count_text(topic.replication_factor, "copy", "copies")
        counts = f" ({count_text(topic.partitions, 'partition')}, {copies})"
    return f"{topic.name}{counts} {'can be created' if validate_only else 'created'}"


# ---- list and describe


@topics.command("list", epilog=examples("ottla topics list", "ottla topics list --internal --json"))
@click.option("--internal", is_flag=True, help="Also the cluster's own topics.")
@json_option
@bootstrap_option
def list_topics(internal: bool, as_json: bool, bootstrap: str) -> None:
    """List topics."""

    async def work() -> int:
        async with _admin(bootstrap) as admin:
            found = await admin.list_topics(include_internal=internal)
        if as_json:
            print_json([_topic_json(topic) for topic in found])
        else:
            print_table(
                ["topic", "partitions", "replication"],
                [(topic.name, len(topic.partitions), _replication(topic)) for topic in found],
            )
        return DONE

    run(work())


@topics.command(epilog=examples("ottla topics describe orders", "ottla topics describe orders payments --json"))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@json_option
@bootstrap_option
def describe(names: tuple[str, ...], as_json: bool, bootstrap: str) -> None:
    """Show partitions, leaders, offsets and settings of topics."""

    async def work() -> int:
        async with _admin(bootstrap) as admin:
            found = await admin.describe_topics(names)
            known = [topic for topic in found.values() if isinstance(topic, TopicInfo)]
            settings = await _own_settings(admin, known)
            offsets = await _offsets(admin, known, (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP))
        if as_json:
            print_json([_described_json(topic, settings.get(topic.name, {}), offsets) for topic in known])
        else:
            for topic in known:
                _print_described(topic, settings.get(topic.name, {}), offsets)
        return failed_rows(found.items())

    run(work())


async def _own_settings(admin: Admin, known: Sequence[TopicInfo]) -> dict[str, dict[str, ConfigEntry]]:
    """Return the settings that were made on the topics themselves."""
    try:
        answers = await admin.describe_configs([ConfigResource.topic(topic.name) for topic in known]) if known else {}
    except UnsupportedVersion:
        return {}  # a cluster that does not tell; the rest of the answer stands
    return {
        resource.name: {name: entry for name, entry in answer.items() if entry.source is ConfigSource.TOPIC}
        for resource, answer in answers.items()
        if not isinstance(answer, KafkaError)
    }


Offsets = dict[tuple[TopicPartition, int], "int | None"]
"""By partition and asked timestamp; None where the cluster gave none."""


async def _offsets(admin: Admin, known: Sequence[TopicInfo], timestamps_ms: Sequence[int]) -> Offsets:
    found: Offsets = {}
    partitions = [TopicPartition(topic.name, row.partition) for topic in known for row in topic.partitions]
    for timestamp_ms in timestamps_ms:
        answers = await admin.list_offsets(dict.fromkeys(partitions, timestamp_ms))
        for partition, answer in answers.items():
            offset = answer.offset if isinstance(answer, OffsetAndTimestamp) else NO_OFFSET
            found[partition, timestamp_ms] = offset if offset >= 0 else None
    return found


def _described_json(topic: TopicInfo, settings: dict[str, ConfigEntry], offsets: Offsets) -> dict[str, object]:
    described = _topic_json(topic)
    described["configs"] = {name: entry.value for name, entry in settings.items()}
    described["partitions"] = [
        {
            "partition": row.partition,
            "leader": row.leader if row.leader >= 0 else None,
            "leader_epoch": row.leader_epoch,
            "replicas": list(row.replicas),
            "isr": list(row.isr),
            "offline_replicas": list(row.offline_replicas),
            "beginning_offset": offsets.get((TopicPartition(topic.name, row.partition), EARLIEST_TIMESTAMP)),
            "end_offset": offsets.get((TopicPartition(topic.name, row.partition), LATEST_TIMESTAMP)),
        }
        for row in topic.partitions
    ]
    return described


def _topic_json(topic: TopicInfo) -> dict[str, object]:
    return {
        "topic": topic.name,
        "topic_id": format_uuid(topic.topic_id),
        "is_internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replication_factor": _replication(topic),
    }


def _print_described(topic: TopicInfo, settings: dict[str, ConfigEntry], offsets: Offsets) -> None:
    print_line(f"{topic.name}  id {format_uuid(topic.topic_id)}  {count_text(len(topic.partitions), 'partition')}")
    for name, entry in settings.items():
        print_line(f"  {name}={entry.value if entry.value is not None else '(hidden)'}")
    print_table(
        ["partition", "leader", "epoch", "replicas", "in sync", "beginning", "end"],
        [
            (
                row.partition,
                row.leader if row.leader >= 0 else None,
                row.leader_epoch,
                ",".join(map(str, row.replicas)),
                ",".join(map(str, row.isr)),
                offsets.get((TopicPartition(topic.name, row.partition), EARLIEST_TIMESTAMP)),
                offsets.get((TopicPartition(topic.name, row.partition), LATEST_TIMESTAMP)),
            )
            for row in topic.partitions
        ],
    )


def _replication(topic: TopicInfo) -> int:
    return max((len(row.replicas) for row in topic.partitions), default=0)


# ---- alter, grow, delete


@topics.command(
    epilog=examples(
        "ottla topics alter orders --config retention.ms=3600000 --config cleanup.policy=delete",
        "ottla topics alter orders --unset retention.ms",
    )
)
@click.argument("name")
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="Set a setting.")
@click.option("-u", "--unset", multiple=True, metavar="KEY", help="Go back to the default.")
@json_option
@bootstrap_option
def alter(name: str, configs: tuple[str, ...], unset: tuple[str, ...], as_json: bool, bootstrap: str) -> None:
    """Change settings of a topic."""
    changes: dict[str, str | None] = {**parse_settings(configs), **dict.fromkeys(unset)}
    if not changes:
        raise click.UsageError("nothing to change; give -c KEY=VALUE or -u KEY")

    async def work() -> int:
        async with _admin(bootstrap) as admin:
            resource = ConfigResource.topic(name)
            await check_are_set(admin, resource, unset)
            results = await admin.alter_configs({resource: changes})
        return report_changes({row.name: result for row, result in results.items()}, "altered", as_json=as_json)

    run(work())


@topics.command(epilog=examples("ottla topics grow orders 6"))
@click.argument("name")
@click.argument("partitions", type=click.IntRange(1, MOST_PARTITIONS))
@json_option
@bootstrap_option
def grow(name: str, partitions: int, as_json: bool, bootstrap: str) -> None:
    """Raise the number of partitions of NAME to PARTITIONS."""

    async def work() -> int:
        async with _admin(bootstrap) as admin:
            results = await admin.grow_topics({name: partitions})
        return report_changes(results, f"has {partitions} partitions", as_json=as_json)

    run(work())


@topics.command(epilog=examples("ottla topics delete refunds"))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@json_option
@bootstrap_option
def delete(names: tuple[str, ...], as_json: bool, bootstrap: str) -> None:
    """Delete topics and all their records."""

    async def work() -> int:
        async with _admin(bootstrap) as admin:
            results = await admin.delete_topics(names)
        return report_changes(results, "deleted", as_json=as_json)

    run(work())


# ---- offsets


@topics.command(epilog=examples("ottla topics offsets orders", "ottla topics offsets orders --at -1h --json"))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--at", "at", metavar="TIME", help="Also the first offset at or after a time.")
@json_option
@bootstrap_option
def offsets(names: tuple[str, ...], at: str | None, as_json: bool, bootstrap: str) -> None:
    """Show the first and the next offset of every partition."""
    at_ms = None if at is None else parse_time(at, SystemClock().wall_ms())
    asked = (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP) if at_ms is None else (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, at_ms)

    async def work() -> int:
        async with _admin(bootstrap) as admin:
            found = await admin.describe_topics(names)
            known = [topic for topic in found.values() if isinstance(topic, TopicInfo)]
            told = await _offsets(admin, known, asked)
        rows = [
            (partition.topic, partition.partition, *(told.get((partition, timestamp)) for timestamp in asked))
            for topic in known
            for partition in (TopicPartition(topic.name, row.partition) for row in topic.partitions)
        ]
        columns = ["topic", "partition", "beginning", "end", *([] if at_ms is None else [f"at {format_time(at_ms)}"])]
        if as_json:
            keys = ["topic", "partition", "beginning_offset", "end_offset", "offset_at_time"]
            print_json([dict(zip(keys, row, strict=False)) for row in rows])
        elif rows:
            print_table(columns, rows)
        return failed_rows(found.items())

    run(work())
