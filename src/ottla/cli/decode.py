"""`ottla decode`: what a consumer would see of log bytes in a file, without a broker.

The bytes are those of a `.log` file or of the records field of a fetch answer. Damage is told on standard error, after
the records before it, and makes the exit code 1.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ottla.cli.options import examples, format_time, json_option
from ottla.cli.output import ANSWER_IS_NO, DONE, Refused, print_json, print_line, print_table, run, say_error
from ottla.model import IsolationLevel
from ottla.records.reading import NO_LIMIT, Decoded
from ottla.records.reading import decode as decode_log
from ottla.records.record import Record


@click.command(
    epilog=examples(
        "ottla decode ottla-data/orders-0/00000000000000000000.log",
        "ottla decode ottla-data/orders-0/00000000000000000000.log --from 1 --high-watermark 2 --json",
    )
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--from",
    "fetch_offset",
    type=click.IntRange(min=0),
    metavar="OFFSET",
    default=0,
    show_default=True,
    help="Fetch offset.",
)
@click.option(
    "--high-watermark",
    type=click.IntRange(min=0),
    metavar="OFFSET",
    help="Records from here on are not visible; all are by default.",
)
@click.option("--read-committed", is_flag=True, help="Leave out records of aborted and of open transactions.")
@click.option(
    "--last-stable-offset",
    type=click.IntRange(min=0),
    metavar="OFFSET",
    help="Where the first open transaction begins.",
)
@click.option(
    "--aborted",
    multiple=True,
    metavar="PRODUCER:OFFSET",
    help="An aborted transaction by producer id and first offset, as Fetch answers it.",
)
@json_option
def decode(
    file: str,
    fetch_offset: int,
    high_watermark: int | None,
    read_committed: bool,
    last_stable_offset: int | None,
    aborted: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the records that a consumer sees in the log bytes of FILE (- for standard input)."""
    transactions = [_parse_aborted(text) for text in aborted]

    async def work() -> int:
        data = _bytes_of(file)
        found = decode_log(
            data,
            fetch_offset,
            NO_LIMIT if high_watermark is None else high_watermark,
            isolation_level=IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED,
            last_stable_offset=last_stable_offset,
            aborted_transactions=transactions,
        )
        lag = None if high_watermark is None else found.lag
        if as_json:
            print_json(_as_json(found, lag))
        else:
            _print(found, lag)
        if found.problem is None:
            return DONE
        say_error(f"{found.problem.error} [{found.problem.name}]")
        return ANSWER_IS_NO

    run(work())


def _bytes_of(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Refused(f"{file}: {error.strerror or error}") from None


def _parse_aborted(text: str) -> tuple[int, int]:
    producer_id, colon, first_offset = text.partition(":")
    if not colon or not producer_id.isdecimal() or not first_offset.isdecimal():
        raise click.BadParameter(f"{text!r} is no PRODUCER:OFFSET")
    return int(producer_id), int(first_offset)


def _as_json(found: Decoded, lag: int | None) -> dict[str, object]:
    answer: dict[str, object] = {
        "records": [_record_json(record) for record in found.records],
        "position": found.position,
        "lag": lag,
        "next_fetch_offset": found.next_fetch_offset,
    }
    if found.error is not None:
        answer["error"] = found.error
    return answer


def _record_json(record: Record) -> dict[str, object]:
    """Return a record with its bytes in hex, which needs no decision about what they are."""
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _hex(record.key),
        "value": _hex(record.value),
        "headers": [[name, _hex(value)] for name, value in record.headers],
    }


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _print(found: Decoded, lag: int | None) -> None:
    print_table(
        ["offset", "time", "key", "value", "headers"],
        [
            (
                record.offset,
                format_time(record.timestamp),
                _text(record.key),
                _text(record.value),
                ", ".join(f"{name}={_text(value) or '-'}" for name, value in record.headers),
            )
            for record in found.records
        ],
    )
    told_lag = "" if lag is None else f", lag {lag}"
    print_line(f"position {found.position}{told_lag}, next fetch offset {found.next_fetch_offset}")


def _text(data: bytes | None) -> str | None:
    """Return bytes as one line of text; what is no printable character is escaped."""
    if data is None:
        return None
    text = data.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
