"""`ottla produce`: lines, files or JSON lines become records; a count and a rate at the end, or all of it as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum
from typing import Final

import click

from ottla.cli.formats import bytes_from_json
from ottla.cli.input_lines import read_chunks, read_lines
from ottla.cli.options import (
    LAST_MS,
    bootstrap_option,
    cluster_settings,
    examples,
    json_option,
    parse_headers,
    producer_options,
)
from ottla.cli.output import (
    ANSWER_IS_NO,
    DONE,
    Refused,
    code_of,
    count_text,
    describe_error,
    print_json,
    run,
    say,
    say_error,
)
from ottla.client.producer import Producer, ProducerSettings
from ottla.errors import KafkaError, UnknownTopicOrPartition
from ottla.model import NO_TIMESTAMP_MS
from ottla.records.record import Headers

TOPIC_PATIENCE_MS: Final = 900
"""How long a topic may take to appear where the cluster creates topics by itself."""


class Form(Enum):
    """What a record is in the input."""

    LINES = "lines"
    JSON = "json"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Shape:
    """How input becomes records."""

    key: bytes | None
    key_separator: bytes | None
    headers: Headers
    null: bytes | None
    form: Form


@dataclass(frozen=True, slots=True)
class Row:
    """One record as given."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int | None = None
    timestamp_ms: int | None = None


@click.command(
    epilog=examples(
        "printf 'one\\ntwo\\n' | ottla produce orders",
        "ottla produce orders orders.txt --key-separator : --header source=shop",
        "ottla consume orders --until end --json | ottla produce payments --input json",
        "ottla produce orders --input whole picture.png --key picture --json",
    )
)
@click.argument("topic")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("-k", "--key-separator", metavar="TEXT", help="What stands between key and value; lines without it fail.")
@click.option("--key", metavar="TEXT", help="One key for all records.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header for all records.")
@click.option("-p", "--partition", type=click.IntRange(min=0), metavar="N", help="Send to this partition.")
@click.option("--null", metavar="TEXT", help="Values equal to TEXT are null (tombstones).")
@click.option(
    "-i",
    "--input",
    "form",
    type=click.Choice([form.value for form in Form]),
    default=Form.LINES.value,
    show_default=True,
    help="What a record is: a line, a line of JSON as `ottla consume --json` prints it, or a whole FILE.",
)
@producer_options
@click.option("-q", "--quiet", is_flag=True, help="Do not say count and rate.")
@json_option
@bootstrap_option
def produce(
    topic: str,
    files: tuple[str, ...],
    key_separator: str | None,
    key: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    null: str | None,
    form: str,
    compression: str,
    acks: str,
    linger_ms: float,
    batch_size: int,
    quiet: bool,
    as_json: bool,
    bootstrap: str,
) -> None:
    """Send records to TOPIC from FILEs, or from standard input; a line is a record.

    With --json what was written is told on standard output: how many records, in how many bytes of batches, how fast,
    and for each partition the first and the last of their offsets.
    """
    if key_separator == "":
        raise click.BadParameter("nothing cannot stand between key and value", param_hint="--key-separator")
    if key_separator is not None and form != Form.LINES.value:
        raise click.UsageError(f"--key-separator is for lines; with --input {form} there is none")
    shape = Shape(
        key=None if key is None else key.encode("utf-8", "surrogateescape"),
        key_separator=None if key_separator is None else _unescaped(key_separator),
        headers=parse_headers(headers),
        null=None if null is None else null.encode("utf-8", "surrogateescape"),
        form=Form(form),
    )
    settings = ProducerSettings(
        acks=acks,
        compression_type=compression,
        batch_size=batch_size,
        linger_ms=linger_ms,
    )
    producer = Producer(bootstrap, settings=settings, cluster=cluster_settings(allow_auto_create_topics=True))
    report = Report(producer, topic, as_json=as_json, is_quiet=quiet)
    run(_produce(producer, topic, files or ("-",), shape, partition, report))


def _unescaped(text: str) -> bytes:
    r"""Let people write \t for a tab."""
    return text.replace("\\t", "\t").replace("\\0", "\0").encode("utf-8", "surrogateescape")


class Report:
    """What is told at the end: a line for people, or a document for programs."""

    def __init__(self, producer: Producer, topic: str, *, as_json: bool, is_quiet: bool) -> None:
        self._producer = producer
        self._topic = topic
        self._as_json = as_json
        self._is_quiet = is_quiet
        self._started = time.monotonic()

    def tell(self, problem: Exception | None = None, *, is_cut_short: bool = False) -> None:
        """Say what was written and what kept the rest from it; a person who wants quiet hears of trouble only."""
        producer = self._producer
        seconds = time.monotonic() - self._started
        rate = producer.delivered_count / seconds if seconds > 0 else 0.0
        if self._as_json:
            print_json(self._document(seconds, rate, problem))
        elif not self._is_quiet or problem is not None or is_cut_short:
            failed = f", {producer.failed_count:,} failed" if producer.failed_count else ""
            say(f"{count_text(producer.delivered_count, 'record')} in {seconds:.2f} s ({rate:,.0f}/s){failed}")
        if problem is not None:
            say_error(describe_error(problem) if isinstance(problem, KafkaError) else str(problem))

    def _document(self, seconds: float, rate: float, problem: Exception | None) -> dict[str, object]:
        written = sorted(self._producer.written.items())
        return {
            "topic": self._topic,
            "records": self._producer.delivered_count,
            "failed": self._producer.failed_count,
            "bytes": sum(place.size_bytes for _, place in written),
            "seconds": round(seconds, 6),
            "records_per_second": round(rate),
            "partitions": [
                {
                    "partition": partition.partition,
                    "records": place.records,
                    "bytes": place.size_bytes,
                    "first_offset": place.first_offset,
                    "last_offset": place.last_offset,
                }
                for partition, place in written
            ],
            "error": problem.name if isinstance(problem, KafkaError) else None if problem is None else str(problem),
        }


async def _produce(
    producer: Producer, topic: str, files: tuple[str, ...], shape: Shape, partition: int | None, report: Report
) -> int:
    try:
        await producer.start()
        await _check_topic(producer, topic)
        problem: Exception | None = None
        try:
            await _send_all(producer, topic, files, shape, partition)
        except (Refused, KafkaError) as error:
            problem = error
        try:
            await producer.flush()
        except KafkaError as error:
            problem = error
        report.tell(problem)
        if problem is None:
            return DONE
        return code_of(problem) if isinstance(problem, KafkaError) else ANSWER_IS_NO
    except asyncio.CancelledError:
        report.tell(is_cut_short=True)
        raise
    finally:
        await producer.abandon()


async def _check_topic(producer: Producer, topic: str) -> None:
    try:
        await producer.partitions_of(topic, patience_ms=TOPIC_PATIENCE_MS)
    except UnknownTopicOrPartition:
        raise Refused(
            f"topic {topic!r} does not exist and the cluster does not create it by itself; "
            f"try: ottla topics create {topic}"
        ) from None


async def _send_all(
    producer: Producer, topic: str, files: tuple[str, ...], shape: Shape, partition: int | None
) -> None:
    for file in files:
        where = "standard input" if file == "-" else file
        try:
            async for rows in _rows(file, where, shape):
                for row in rows:
                    await producer.send(
                        topic,
                        row.value,
                        key=row.key,
                        partition=partition if row.partition is None else row.partition,
                        headers=row.headers,
                        timestamp_ms=row.timestamp_ms,
                    )
                if producer.failed_count:
                    return  # flush says why; more would fail the same way
        except OSError as error:
            raise Refused(f"{where}: {error.strerror or error}") from None


async def _rows(file: str, where: str, shape: Shape) -> AsyncIterator[list[Row]]:
    with nullcontext(sys.stdin.buffer) if file == "-" else open(file, "rb") as stream:
        if shape.form is Form.WHOLE:
            yield [Row(shape.key, b"".join([chunk async for chunk in read_chunks(stream)]), shape.headers)]
            return
        number = 0
        async for lines in read_lines(stream):
            yield [_row(line, f"{where}, line {number + index + 1}", shape) for index, line in enumerate(lines)]
            number += len(lines)


def _row(line: bytes, where: str, shape: Shape) -> Row:
    """Make a record of a line. Raises `Refused` for a line that has not the announced shape."""
    if shape.form is Form.JSON:
        return _row_from_json(line, where, shape)
    key, value = shape.key, line
    if shape.key_separator is not None:
        found, separator, value = line.partition(shape.key_separator)
        if not separator:
            raise Refused(f"{where}: there is no key separator in it")
        key = found
    return Row(key, None if value == shape.null else value, shape.headers)


def _row_from_json(line: bytes, where: str, shape: Shape) -> Row:
    """Take `key`, `value`, `headers`, `timestamp_ms`; partition and offset of an earlier place are left out.

    A record without a value would be a tombstone, and a misspelt name must not make one.
    """
    try:
        fields = json.loads(line)
        if not isinstance(fields, dict):
            raise ValueError("an object with a value is expected")
        if not {"value", "value_base64"} & fields.keys():
            raise ValueError('it has no "value"; null is one')
        headers = fields.get("headers") or []
        if not isinstance(headers, list) or not all(isinstance(one, dict) and "name" in one for one in headers):
            raise ValueError('headers are a list of {"name": ..., "value": ...}')
        return Row(
            bytes_from_json(fields, "key") if "key" in fields or "key_base64" in fields else shape.key,
            bytes_from_json(fields, "value"),
            (*shape.headers, *((_header_name(header), bytes_from_json(header, "value")) for header in headers)),
            timestamp_ms=_timestamp_ms(fields),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"{where}: not a record in JSON ({error})") from None
    except RecursionError:
        raise Refused(f"{where}: not a record in JSON (too many brackets within each other)") from None


def _header_name(header: dict[str, object]) -> str:
    """Raises `ValueError` for one that is no text in UTF-8, as JSON's escapes allow."""
    name = str(header["name"])
    name.encode()
    return name


def _timestamp_ms(fields: dict[str, object]) -> int | None:
    """Return None for what old records without a time have. Raises `ValueError` for what no record can have."""
    timestamp_ms = fields.get("timestamp_ms")
    if timestamp_ms in (None, NO_TIMESTAMP_MS):
        return None
    if type(timestamp_ms) is not int or not 0 <= timestamp_ms <= LAST_MS:
        raise ValueError(f"timestamp_ms is no whole number from 0 to {LAST_MS}")
    return timestamp_ms
