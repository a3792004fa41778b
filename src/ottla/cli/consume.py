"""`ottla consume`: its command line. What it asks for is done by `reading` and, in a group, by `shared_reading`.

Those are imported when they are needed, so that the help comes at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from ottla.cli.options import bootstrap_option, examples, parse_time
from ottla.cli.output import run
from ottla.clock import SystemClock

if TYPE_CHECKING:
    from ottla.cli.formats import Writer
    from ottla.cli.reading import Range

DEFAULT_POSITIONS: Final = {"start": "earliest", "end": "latest"}
"""Where a group begins that has not committed yet, in Kafka's words."""


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
@click.option("--format", "template", metavar="FORMAT", help=r"As in '%t-%p %o %k: %s\n'; see Formats above.")
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

    A group goes on where it has got; where it has not been yet it begins at --from, which is start, end or @TIME.

    \b
    Formats: %t topic  %p partition  %o offset  %T timestamp in ms  %D timestamp
             %k key  %K its size  %s value  %S its size  %h headers  %% percent
             \\n newline  \\t tab  \\0 zero byte  \\xHH any byte  \\\\ backslash
    """
    if sum((template is not None, is_json, with_keys or with_headers)) > 1:
        raise click.UsageError("--format, --json and --keys/--headers exclude each other")
    wanted = _range(start, until, count)
    null_bytes = null.encode("utf-8", "surrogateescape")
    write = _writer(template, null_bytes, is_json=is_json, is_hex=is_hex, keys=with_keys, headers=with_headers)
    if group is not None:
        if not group:
            raise click.BadParameter("a group has a name", param_hint="--group")
        reset = _group_reset(start, wanted.start_ms)
        if partitions or until is not None or reset is None:
            raise click.UsageError("with --group there is no --partition or --until, and --from is start, end or @TIME")
        from ottla.cli.shared_reading import SharedReading, member_of

        member = member_of(bootstrap, group, protocol, reset, is_committed=committed)
        run(SharedReading(member, write, count, is_quiet=quiet).run(topics))
    from ottla.cli.reading import Reading, lone_consumer

    consumer = lone_consumer(bootstrap, is_committed=committed)
    run(Reading(consumer, wanted, write, is_quiet=quiet).run(topics, partitions))


def _group_reset(start: str, start_ms: int | None) -> str | None:
    """Return where a group begins, in Kafka's words for it; None for what it has no words for."""
    if start_ms is None:
        return DEFAULT_POSITIONS.get(start)
    return f"by_duration:PT{max(0, SystemClock().wall_ms() - start_ms) / 1000:.3f}S"


def _range(start: str, until: str | None, count: int | None) -> Range:
    from ottla.cli.reading import Range

    now_ms = SystemClock().wall_ms()
    start_ms = parse_time(start[1:], now_ms) if start.startswith("@") else None
    if start_ms is None and start not in ("start", "end") and not start.removeprefix("-").isdecimal():
        raise click.BadParameter(f"{start!r} is none of start, end, OFFSET, -N, @TIME", param_hint="--from")
    if until is not None and until != "end" and not until.startswith("@"):
        raise click.BadParameter(f"{until!r} is neither end nor @TIME", param_hint="--until")
    until_ms = parse_time(until[1:], now_ms) if until is not None and until != "end" else None
    return Range(start, start_ms, until == "end", until_ms, count)


def _writer(template: str | None, null: bytes, *, is_json: bool, is_hex: bool, keys: bool, headers: bool) -> Writer:
    from ottla.cli.formats import format_writer, value_writer, write_json

    if is_json:
        return write_json
    if template is None:
        return value_writer(null=null, is_hex=is_hex, with_key=keys, with_headers=headers)
    try:
        return format_writer(template, null=null, is_hex=is_hex)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--format") from None
