"""`ottla commitlog`: plain commit log files (`ottla.commitlog`), and the way from them to topics and back.

`append` owns the file, repairs what a crash left and prints offsets. `read` and `verify` change nothing.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from ottla.cli.input_lines import read_lines
from ottla.cli.options import acks_option, bootstrap_option, cluster_settings, examples, json_option
from ottla.cli.output import (
    ANSWER_IS_NO,
    DONE,
    Refused,
    count_text,
    describe_error,
    no_topic,
    print_json,
    print_line,
    run,
    say,
    say_error,
)
from ottla.commitlog import CommitLog, LogRecord, TornTail, check_log, read_log
from ottla.errors import UnknownTopicOrPartition
from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer
    from ottla.client.producer import Producer

BATCH_COUNT: Final = 1000
PATIENCE_MS: Final = 900
LOOK_AGAIN_MS: Final = 200

from_option = click.option(
    "--from",
    "start_offset",
    type=click.IntRange(min=0),
    metavar="OFFSET",
    default=0,
    show_default=True,
    help="First offset.",
)
partition_option = click.option(
    "-p", "--partition", type=click.IntRange(min=0), metavar="N", default=0, show_default=True, help="Partition."
)


@click.group()
def commitlog() -> None:
    """Append to, read and check commit log files: offset, size, value, back to back."""


@commitlog.command(
    epilog=examples("ottla commitlog append values.log one two", "cat orders.txt | ottla commitlog append values.log")
)
@click.argument("file", type=click.Path(dir_okay=False))
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def append(file: str, values: tuple[str, ...], as_json: bool) -> None:
    """Append VALUEs to FILE, else the lines of standard input; print the offset of each once it is on the disk."""

    async def work() -> int:
        with CommitLog(file) as log:
            if values:
                _append(log, [value.encode("utf-8", "surrogateescape") for value in values], as_json=as_json)
                return DONE
            async for lines in read_lines(sys.stdin.buffer):
                _append(log, lines, as_json=as_json)
        return DONE

    run(work())


def _append(log: CommitLog, values: Sequence[bytes], *, as_json: bool) -> None:
    base_offset = log.append_many(values)
    for offset in range(base_offset, base_offset + len(values)):
        print_line(f'{{"offset": {offset}}}' if as_json else str(offset))
    sys.stdout.flush()


@commitlog.command(epilog=examples("ottla commitlog read values.log --from 1 --offsets"))
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@from_option
@click.option("-o", "--offsets", "with_offsets", is_flag=True, help="The offset and a tab before each value.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def read(file: str, start_offset: int, with_offsets: bool, as_json: bool) -> None:
    """Print the values in FILE, a line each; a torn end is told after the good records."""

    async def work() -> int:
        out = sys.stdout.buffer
        try:
            for record in read_log(file, start_offset):
                if as_json:
                    print_json(_as_json(record))
                else:
                    out.write((b"%d\t" % record.offset if with_offsets else b"") + record.value + b"\n")
        except TornTail as torn:
            out.flush()
            say_error(f"{file}: {torn}")
            return ANSWER_IS_NO
        out.flush()
        return DONE

    run(work())


def _as_json(record: LogRecord) -> dict[str, object]:
    try:
        return {"offset": record.offset, "value": record.value.decode()}
    except UnicodeDecodeError:
        return {"offset": record.offset, "value_base64": base64.b64encode(record.value).decode("ascii")}


@commitlog.command(epilog=examples("ottla commitlog verify values.log --json"))
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@json_option
def verify(file: str, as_json: bool) -> None:
    """Check that the records of FILE are whole and numbered 0, 1, 2 ... Changes nothing."""

    async def work() -> int:
        result = check_log(file)
        problem = None if result.problem is None else str(result.problem)
        if as_json:
            print_json(
                {
                    "records": result.count,
                    "valid_bytes": result.valid_bytes,
                    "size_bytes": result.size_bytes,
                    "problem": problem,
                }
            )
        else:
            print_line(f"{result.count:,} records in {result.valid_bytes:,} of {result.size_bytes:,} bytes")
        if problem is None:
            return DONE
        say_error(f"{file}: {problem}")
        return ANSWER_IS_NO

    run(work())


@commitlog.command("import", epilog=examples("ottla commitlog import values.log orders --partition 0"))
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("topic")
@partition_option
@from_option
@acks_option
@json_option
@bootstrap_option
def import_(file: str, topic: str, partition: int, start_offset: int, acks: str, as_json: bool, bootstrap: str) -> None:
    """Send the values in FILE to a partition of TOPIC, in their order."""
    from ottla.client.producer import Producer, ProducerSettings  # the commands on files alone come without a client

    async def work() -> int:
        settings = cluster_settings(allow_auto_create_topics=True)
        sending = ProducerSettings(acks=acks, linger_ms=5)
        async with Producer(bootstrap, settings=sending, cluster=settings) as producer:
            try:
                await producer.partitions_of(topic, patience_ms=PATIENCE_MS)
            except UnknownTopicOrPartition:
                raise Refused(f"topic {topic!r} does not exist; try: ottla topics create {topic}") from None
            torn = await _send_all(producer, TopicPartition(topic, partition), read_log(file, start_offset))
            await producer.flush()
            if as_json:
                print_json({"topic": topic, "partition": partition, "records": producer.delivered_count})
            else:
                say(f"{count_text(producer.delivered_count, 'record')} sent to {TopicPartition(topic, partition)}")
        if torn is None:
            return DONE
        say_error(f"{file}: {describe_error(torn)}")
        return ANSWER_IS_NO

    run(work())


async def _send_all(producer: Producer, to: TopicPartition, records: Iterator[LogRecord]) -> TornTail | None:
    """Send every record; return how the file ends where it is torn."""
    try:
        for record in records:
            await producer.send(to.topic, record.value, partition=to.partition)
    except TornTail as torn:
        return torn
    return None


@commitlog.command(epilog=examples("ottla commitlog export orders copy.log --partition 0"))
@click.argument("topic")
@click.argument("file", type=click.Path(dir_okay=False))
@partition_option
@from_option
@json_option
@bootstrap_option
def export(topic: str, file: str, partition: int, start_offset: int, as_json: bool, bootstrap: str) -> None:
    """Append the values of a partition of TOPIC to FILE, up to what is there now.

    Such a file has only values: keys, headers and times are left out, null values become empty, and offsets count on
    from those that FILE has.
    """

    from ottla.client.consumer import Consumer

    async def work() -> int:
        consumer = Consumer(bootstrap, auto_offset_reset="none", cluster=cluster_settings())
        async with consumer:
            try:
                await consumer.partitions_of(topic)
            except UnknownTopicOrPartition:
                raise no_topic(topic) from None
            with CommitLog(file) as log:
                count = await _export(consumer, TopicPartition(topic, partition), start_offset, log)
        if as_json:
            print_json({"file": file, "records": count})
        else:
            say(f"{count_text(count, 'record')} written to {file}")
        return DONE

    run(work())


async def _export(consumer: Consumer, partition: TopicPartition, start_offset: int, log: CommitLog) -> int:
    await consumer.assign([partition])
    position = max(start_offset, (await consumer.beginning_offsets([partition]))[partition])
    end = (await consumer.end_offsets([partition]))[partition]
    consumer.seek(partition, position)
    count = 0
    while position < end:
        batch = await consumer.next_batch(timeout_ms=LOOK_AGAIN_MS)  # what is left may be no records but markers
        if batch is not None:
            values = [record.value or b"" for record in batch.records if record.offset < end]
            for some in _slices(values):
                log.append_many(some)
            count += len(values)
        position = max(position, consumer.known_position(partition) or 0)
    return count


def _slices(values: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(values), BATCH_COUNT):
        yield values[start : start + BATCH_COUNT]
