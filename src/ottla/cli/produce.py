"""`ottla produce`: lines, files or JSON lines become records; a count and a rate at the end."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from io import RawIOBase
from typing import BinaryIO, Final

import click

from ottla.cli.formats import bytes_from_json
from ottla.cli.options import bootstrap_option, cluster_settings, examples, parse_headers, producer_options
from ottla.cli.output import ANSWER_IS_NO, DONE, Refused, count_text, describe_error, run, say, say_error
from ottla.client.producer import Producer, ProducerSettings
from ottla.errors import KafkaError, UnknownTopicOrPartition
from ottla.records.record import Headers

CHUNK_BYTES: Final = 256 * 1024
TOPIC_PATIENCE_MS: Final = 900
"""How long a topic may take to appear where the cluster creates topics by itself."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How input becomes records."""

    key: bytes | None
    key_separator: bytes | None
    headers: Headers
    null: bytes | None
    is_json: bool
    is_whole: bool


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
        "ottla consume orders --until end --json | ottla produce payments --json",
        "ottla produce orders --whole picture.png --key picture",
    )
)
@click.argument("topic")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("-k", "--key-separator", metavar="TEXT", help="What stands between key and value; lines without it fail.")
@click.option("--key", metavar="TEXT", help="One key for all records.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header for all records.")
@click.option("-p", "--partition", type=click.IntRange(min=0), metavar="N", help="Send to this partition.")
@click.option("--null", metavar="TEXT", help="Values equal to TEXT are null (tombstones).")
@click.option("--json", "is_json", is_flag=True, help="Lines are JSON objects as `ottla consume --json` prints them.")
@click.option("--whole", "is_whole", is_flag=True, help="Each FILE is one record.")
@producer_options
@click.option("-q", "--quiet", is_flag=True, help="Do not say count and rate.")
@bootstrap_option
def produce(
    topic: str,
    files: tuple[str, ...],
    key_separator: str | None,
    key: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    null: str | None,
    is_json: bool,
    is_whole: bool,
    compression: str,
    acks: str,
    linger_ms: float,
    batch_size: int,
    quiet: bool,
    bootstrap: str,
) -> None:
    """Send records to TOPIC from FILEs, or from standard input; a line is a record."""
    shape = Shape(
        key=None if key is None else key.encode("utf-8", "surrogateescape"),
        key_separator=None if key_separator is None else _unescaped(key_separator),
        headers=parse_headers(headers),
        null=None if null is None else null.encode("utf-8", "surrogateescape"),
        is_json=is_json,
        is_whole=is_whole,
    )
    settings = ProducerSettings(
        acks=acks if acks == "all" else int(acks),
        compression_type=compression,
        batch_size=batch_size,
        linger_ms=linger_ms,
    )
    producer = Producer(bootstrap, settings=settings, cluster=cluster_settings(allow_auto_create_topics=True))
    run(_produce(producer, topic, files or ("-",), shape, partition, is_quiet=quiet))


def _unescaped(text: str) -> bytes:
    r"""Let people write \t for a tab."""
    return text.replace("\\t", "\t").replace("\\0", "\0").encode("utf-8", "surrogateescape")


async def _produce(
    producer: Producer, topic: str, files: tuple[str, ...], shape: Shape, partition: int | None, *, is_quiet: bool
) -> int:
    started = time.monotonic()
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
        if not is_quiet or problem is not None:
            _say_result(producer, time.monotonic() - started)
        if problem is not None:
            say_error(describe_error(problem) if isinstance(problem, KafkaError) else str(problem))
            return ANSWER_IS_NO
        return DONE
    except asyncio.CancelledError:
        _say_result(producer, time.monotonic() - started)
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


async def _rows(file: str, where: str, shape: Shape) -> AsyncIterator[list[Row]]:
    with nullcontext(sys.stdin.buffer) if file == "-" else open(file, "rb") as stream:
        if shape.is_whole:
            yield [Row(shape.key, b"".join([chunk async for chunk in read_chunks(stream)]), shape.headers)]
            return
        number = 0
        async for lines in read_lines(stream):
            yield [_row(line, f"{where}, line {number + index + 1}", shape) for index, line in enumerate(lines)]
            number += len(lines)


def _row(line: bytes, where: str, shape: Shape) -> Row:
    """Make a record of a line. Raises `Refused` for a line that has not the announced shape."""
    if shape.is_json:
        return _row_from_json(line, where, shape)
    key, value = shape.key, line
    if shape.key_separator is not None:
        found, separator, value = line.partition(shape.key_separator)
        if not separator:
            raise Refused(f"{where}: there is no key separator in it")
        key = found
    return Row(key, None if value == shape.null else value, shape.headers)


def _row_from_json(line: bytes, where: str, shape: Shape) -> Row:
    """Take `key`, `value`, `headers`, `timestamp_ms`; partition and offset of an earlier place are left out."""
    try:
        fields = json.loads(line)
        if not isinstance(fields, dict):
            raise ValueError("an object with a value is expected")
        headers = fields.get("headers") or ()
        timestamp_ms = fields.get("timestamp_ms")
        if timestamp_ms is not None and not isinstance(timestamp_ms, int):
            raise ValueError("timestamp_ms is no whole number")
        return Row(
            bytes_from_json(fields, "key") if "key" in fields or "key_base64" in fields else shape.key,
            bytes_from_json(fields, "value"),
            (*shape.headers, *((str(header["name"]), bytes_from_json(header, "value")) for header in headers)),
            timestamp_ms=timestamp_ms,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"{where}: not a record in JSON ({error})") from None


def _say_result(producer: Producer, seconds: float) -> None:
    count = producer.delivered_count
    rate = count / seconds if seconds > 0 else 0.0
    failed = f", {producer.failed_count:,} failed" if producer.failed_count else ""
    say(f"{count_text(count, 'record')} in {seconds:.2f} s ({rate:,.0f}/s){failed}")


async def read_lines(stream: BinaryIO) -> AsyncIterator[list[bytes]]:
    """Yield lists of lines, without their ends, as soon as they can be read; a last line needs no end."""
    tail = b""
    async for chunk in read_chunks(stream):
        *lines, tail = (tail + chunk).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if tail:
        yield [tail.removesuffix(b"\r")]


async def read_chunks(stream: BinaryIO) -> AsyncIterator[bytes]:
    """Yield what can be read as soon as it can be.

    Reading happens on a thread that dies with the process, since a read from a terminal cannot be called off. It reads
    below Python's buffer: the thread would hold that one's lock, without which the interpreter cannot end.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes | Exception] = asyncio.Queue()
    room = threading.Semaphore(4)

    def pump() -> None:
        try:
            for chunk in _chunks(getattr(stream, "raw", stream)):
                room.acquire()
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            loop.call_soon_threadsafe(chunks.put_nowait, b"")
        except (OSError, ValueError) as error:
            loop.call_soon_threadsafe(chunks.put_nowait, error)
        except RuntimeError:
            return  # the loop is gone, and with it whoever would read

    threading.Thread(target=pump, name="input", daemon=True).start()
    while chunk := await chunks.get():
        if isinstance(chunk, Exception):
            raise chunk
        room.release()
        yield chunk


def _chunks(stream: RawIOBase | BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk
