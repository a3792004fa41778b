"""Options that several commands share, and the little languages in which people give settings, headers and times."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from ottla.client.cluster import ClusterSettings

DEFAULT_BOOTSTRAP: Final = "localhost:9092"
CLIENT_ID: Final = "ottla-cli"
MOST_PARTITIONS: Final = 2**31 - 1
MOST_REPLICAS: Final = 2**15 - 1
LAST_MS: Final = 2**63 - 1
"""What the protocol has room for."""

MOST_SECONDS: Final = 10_000_000
MOST_MS: Final = MOST_SECONDS * 1000
MOST_PER_SECOND: Final = 1_000_000_000

F = TypeVar("F", bound=Callable[..., Any])

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_AGO: Final = re.compile(r"-(\d+)(ms|s|m|h|d|w)")


class Amount(click.FloatRange):
    """A number from 0 up, or from above 0; what Python calls a number and is none (`nan`) is refused."""

    name = "number"

    def __init__(self, most: float, *, above_zero: bool = False) -> None:
        super().__init__(min=0, max=most, min_open=above_zero)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Raises `click.BadParameter`."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is no number", param, ctx)
        return number


def bootstrap_option(command: F) -> F:
    """-b/--bootstrap, checked for its form."""
    return click.option(
        "-b",
        "--bootstrap",
        envvar="OTTLA_BOOTSTRAP",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        show_envvar=True,
        metavar="HOST:PORT[,...]",
        callback=_check_bootstrap,
        help="Where the cluster is.",
    )(command)


def examples(*lines: str) -> str:
    """Return the end of a command's help: command lines that work as they stand (the tests run them)."""
    return "\b\nExamples:\n" + "".join(f"  {line}\n" for line in lines)


def json_option(command: F) -> F:
    """--json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON in place of text.")(command)


def acks_option(command: F) -> F:
    """--acks."""
    return click.option(
        "--acks", type=click.Choice(["0", "1", "all"]), default="all", show_default=True, help="What is awaited."
    )(command)


def producer_options(command: F) -> F:
    """How batches are made and what is awaited: --compression, --acks, --linger-ms, --batch-size."""
    for option in reversed(_PRODUCER_OPTIONS):
        command = option(command)
    return command


_PRODUCER_OPTIONS: Final = (
    click.option(
        "-z",
        "--compression",
        type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
        default="none",
        show_default=True,
        help="How batches are compressed.",
    ),
    acks_option,
    click.option(
        "--linger-ms",
        type=Amount(MOST_MS),
        metavar="MS",
        default=5.0,
        show_default=True,
        help="Wait for more records.",
    ),
    click.option(
        "--batch-size",
        type=click.IntRange(min=1),
        default=65_536,
        show_default=True,
        metavar="BYTES",
        help="Size to fill.",
    ),
)


def _check_bootstrap(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    from ottla.client.topology import parse_bootstrap

    try:
        parse_bootstrap(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value


def cluster_settings(*, allow_auto_create_topics: bool = False, patience_ms: int = 5_000) -> ClusterSettings:
    """How commands deal with clusters: a person waits, so calls give up after seconds, not after a minute."""
    from ottla.client.cluster import ClusterSettings
    from ottla.client.connection import ConnectionSettings

    return ClusterSettings(
        connection=ConnectionSettings(client_id=CLIENT_ID, connect_timeout_ms=patience_ms),
        api_timeout_ms=patience_ms,
        allow_auto_create_topics=allow_auto_create_topics,
    )


def parse_settings(pairs: Iterable[str]) -> dict[str, str]:
    """Return KEY=VALUE pairs as a dict. Raises `click.BadParameter`."""
    settings: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{pair!r} is no KEY=VALUE")
        settings[key.strip()] = value
    return settings


def parse_headers(pairs: Iterable[str]) -> tuple[tuple[str, bytes | None], ...]:
    """Return NAME=VALUE pairs as headers; a NAME alone has no value. Raises `click.BadParameter`."""
    headers: list[tuple[str, bytes | None]] = []
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name:
            raise click.BadParameter(f"{pair!r} is no NAME=VALUE")
        headers.append((name, value.encode("utf-8", "surrogateescape") if equals else None))
    return tuple(headers)


def parse_time(text: str, now_ms: int) -> int:
    """Return milliseconds since 1970 for a time as people give it.

    An ISO 8601 date or time (UTC unless it says otherwise), milliseconds since 1970, or so long ago: -90s, -2h, -1d.
    Raises `click.BadParameter`.
    """
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(now_ms - int(ago[1]) * _UNITS_MS[ago[2]], 0)
    if text.isdecimal():
        if int(text) > LAST_MS:
            raise click.BadParameter(f"{text!r} is behind the last time that a record can have, {LAST_MS}")
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no time; 2026-05-04T12:00, 1777896000000 (ms) or -2h are understood"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def format_time(timestamp_ms: int) -> str:
    """ISO 8601 in UTC with milliseconds; the number itself where the calendar ends."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
