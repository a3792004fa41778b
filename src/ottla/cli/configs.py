"""`ottla configs`: get, set and unset settings of topics, brokers, groups and loggers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import click

from ottla.cli.options import bootstrap_option, cluster_settings, examples, json_option, parse_settings
from ottla.cli.output import DONE, Refused, describe_error, print_json, print_table, report_changes, run
from ottla.client.admin import Admin
from ottla.client.configs import ConfigEntry, ConfigResource, ConfigSource, ResourceType
from ottla.errors import KafkaError

ALL_BROKERS: Final = "default"
"""How a person names the defaults of all brokers."""

_OWN_SOURCES: Final = (
    ConfigSource.TOPIC,
    ConfigSource.GROUP,
    ConfigSource.BROKER,
    ConfigSource.BROKER_LOGGER,
    ConfigSource.CLUSTER,
)
"""Values that were set at run time and can be unset."""

_KIND: Final = click.Choice(["topic", "broker", "group", "logger"])


@click.group()
def configs() -> None:
    """Get, set and unset settings of topics, brokers and groups.

    A resource is `topic NAME`, `group NAME`, `broker NODE_ID`, or `broker default` for what holds for all brokers; and
    `logger NODE_ID` for how much a broker's loggers say.
    """


def told(resource: ConfigResource) -> str:
    """Name a resource as a person does."""
    kind = "logger" if resource.type is ResourceType.BROKER_LOGGER else resource.type.name.lower()
    return f"{kind} {resource.name or ALL_BROKERS}"


def resource_of(kind: str, name: str) -> ConfigResource:
    """Return the resource that a person named. Raises `click.BadParameter`."""
    if kind == "topic":
        return ConfigResource.topic(name)
    if kind == "group":
        return ConfigResource.group(name)
    if kind == "logger":
        if not name.isdecimal():
            raise click.BadParameter(f"{name!r} is no node id; a number is expected")
        return ConfigResource.logger(int(name))
    if name == ALL_BROKERS:
        return ConfigResource.broker(None)
    if not name.isdecimal():
        raise click.BadParameter(f"{name!r} is no node id; a number or {ALL_BROKERS!r} is expected")
    return ConfigResource.broker(int(name))


@configs.command(
    epilog=examples(
        "ottla configs get topic orders",
        "ottla configs get broker 1 log.retention.ms message.max.bytes",
        "ottla configs get broker default --all --json",
    )
)
@click.argument("kind", type=_KIND)
@click.argument("name")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("-a", "--all", "show_all", is_flag=True, help="Also settings that have their default.")
@json_option
@bootstrap_option
def get(kind: str, name: str, keys: tuple[str, ...], show_all: bool, as_json: bool, bootstrap: str) -> None:
    """Show the settings of a resource: those that were made, with --all every one, or the KEYs named."""
    resource = resource_of(kind, name)

    async def work() -> int:
        async with Admin(bootstrap, cluster=cluster_settings()) as admin:
            entries = await describe(admin, resource, keys or None)
        missing = [key for key in keys if key not in entries]
        shown = [entry for entry in entries.values() if show_all or keys or not entry.is_default]
        if as_json:
            print_json([_entry_json(entry) for entry in shown])
        else:
            print_table(
                ["setting", "value", "from"],
                [(entry.name, _value_text(entry), entry.source.name.lower()) for entry in shown],
            )
        if missing:
            raise Refused(f"{kind} {name} has no setting {missing[0]!r}")
        return DONE

    run(work())


def _entry_json(entry: ConfigEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name.lower(),
        "is_read_only": entry.is_read_only,
        "is_sensitive": entry.is_sensitive,
    }


def _value_text(entry: ConfigEntry) -> str | None:
    return "(hidden)" if entry.is_sensitive else entry.value


@configs.command(
    "set",
    epilog=examples(
        "ottla configs set topic orders retention.ms=3600000 max.message.bytes=2000000",
        "ottla configs set broker default log.retention.ms=86400000",
    ),
)
@click.argument("kind", type=_KIND)
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
@json_option
@bootstrap_option
def set_(kind: str, name: str, settings: tuple[str, ...], as_json: bool, bootstrap: str) -> None:
    """Set settings; others stay as they are."""
    _alter(bootstrap, resource_of(kind, name), parse_settings(settings), as_json=as_json)


@configs.command(epilog=examples("ottla configs unset topic orders retention.ms"))
@click.argument("kind", type=_KIND)
@click.argument("name")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@json_option
@bootstrap_option
def unset(kind: str, name: str, keys: tuple[str, ...], as_json: bool, bootstrap: str) -> None:
    """Take settings back to their defaults."""
    _alter(bootstrap, resource_of(kind, name), dict.fromkeys(keys), as_json=as_json)


@configs.command(epilog=examples("ottla configs explain retention.ms", "ottla configs explain 'log.cleaner.*' --json"))
@click.argument("patterns", nargs=-1, required=True, metavar="KEY...")
@json_option
def explain(patterns: tuple[str, ...], as_json: bool) -> None:
    """Say what settings mean: type, default, where they may be changed. KEYs may have * in them; asks no cluster."""

    async def work() -> int:
        from ottla.cli.explained import explained

        rows = [row for pattern in patterns for row in explained(pattern)]
        if as_json:
            print_json([row._asdict() for row in rows])
        else:
            for row in rows:
                print(f"{row.name} ({row.scope}; {row.facts})\n    {row.documentation}")
        unknown = [pattern for pattern in patterns if not any(explained(pattern))]
        if unknown:
            raise Refused(f"no setting is called {unknown[0]!r}; try: ottla configs explain '*{unknown[0]}*'")
        return DONE

    run(work())


def _alter(bootstrap: str, resource: ConfigResource, changes: Mapping[str, str | None], *, as_json: bool) -> None:
    async def work() -> int:
        async with Admin(bootstrap, cluster=cluster_settings()) as admin:
            await check_are_set(admin, resource, [key for key, value in changes.items() if value is None])
            results = await admin.alter_configs({resource: changes})
        return report_changes({told(row): result for row, result in results.items()}, "altered", as_json=as_json)

    run(work())


async def describe(
    admin: Admin, resource: ConfigResource, keys: Sequence[str] | None = None
) -> Mapping[str, ConfigEntry]:
    """Return settings by name. Raises `Refused` with what the cluster answered, or that it did not."""
    answer = (await admin.describe_configs([resource], keys)).get(resource)
    if answer is None:
        raise Refused(f"the cluster says nothing about {told(resource)}")
    if isinstance(answer, KafkaError):
        raise Refused(f"{told(resource)}: {describe_error(answer)}")
    return answer


async def check_are_set(admin: Admin, resource: ConfigResource, keys: Sequence[str]) -> None:
    """Refuse to unset what is not set, which is a misspelling more often than not (KAFKA-4480)."""
    if not keys:
        return
    entries = await describe(admin, resource)
    for key in keys:
        if key not in entries or not any(synonym[2] in _OWN_SOURCES for synonym in _with_fallbacks(entries[key])):
            raise Refused(f"{told(resource)} has no setting {key!r} of its own")


def _with_fallbacks(entry: ConfigEntry) -> Sequence[tuple[str, str | None, ConfigSource]]:
    return ((entry.name, entry.value, entry.source), *entry.synonyms)
