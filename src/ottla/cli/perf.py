"""`ottla perf`: a bounded load on a named topic, and what it took."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Final

import click

from ottla.cli.options import (
    MOST_PER_SECOND,
    Amount,
    bootstrap_option,
    cluster_settings,
    examples,
    json_option,
    producer_options,
)
from ottla.cli.output import DONE, Refused, count_text, print_json, print_line, run, say
from ottla.client.consumer import Consumer
from ottla.client.producer import Producer, ProducerSettings
from ottla.model import TopicPartition

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)
LOOK_AGAIN_MS: Final = 100
"""A consumer looks so often whether what is left before the end are no records but markers, or were compacted away."""

LATE_SECONDS: Final = 10.0
"""Records that have not come back so long after the last one was sent are lost."""


@click.group()
def perf() -> None:
    """Measure throughput and latency with a bounded load.

    Records go to and come from a topic that you name; use one that nobody needs.
    """


@perf.command(
    "produce",
    epilog=examples("ottla perf produce load --records 10000", "ottla perf produce load -n 100 -r 1000 --json"),
)
@click.argument("topic")
@click.option(
    "-n",
    "--records",
    type=click.IntRange(1, 1_000_000_000),
    metavar="N",
    default=1_000_000,
    show_default=True,
    help="How many.",
)
@click.option(
    "-s",
    "--size",
    "size_bytes",
    type=click.IntRange(0, 100_000_000),
    metavar="BYTES",
    default=100,
    show_default=True,
    help="Bytes each.",
)
@click.option(
    "-r",
    "--rate",
    type=Amount(MOST_PER_SECOND, above_zero=True),
    metavar="N",
    help="Records per second; else all it takes.",
)
@producer_options
@json_option
@bootstrap_option
def perf_produce(
    topic: str,
    records: int,
    size_bytes: int,
    rate: float | None,
    compression: str,
    acks: str,
    linger_ms: float,
    batch_size: int,
    as_json: bool,
    bootstrap: str,
) -> None:
    """Send records as fast as they go, or at a rate."""
    settings = ProducerSettings(
        acks=acks if acks == "all" else int(acks),
        compression_type=compression,
        linger_ms=linger_ms,
        batch_size=batch_size,
        max_request_size=max(1_048_576, size_bytes + 1024),
    )

    async def work() -> int:
        async with Producer(bootstrap, settings=settings, cluster=cluster_settings()) as producer:
            await producer.partitions_of(topic, patience_ms=0)
            value = b"x" * size_bytes
            started = time.perf_counter()
            try:
                for number in range(records):
                    if rate is not None:
                        await _keep_pace(started, number, rate)
                    await producer.send(topic, value)
                    if producer.failed_count:
                        break  # flush says why
                await producer.flush()
            except asyncio.CancelledError:
                _say_stopped(producer.delivered_count)
                raise
            seconds = time.perf_counter() - started
        _report({"records": records, "size_bytes": size_bytes}, records, records * size_bytes, seconds, as_json)
        return DONE

    run(work())


async def _keep_pace(started: float, number: int, rate: float) -> None:
    """Wait until record `number` is due; a little early is on time, since timers cost more than records."""
    early = started + number / rate - time.perf_counter()
    if early > 0.002:
        await asyncio.sleep(early)


@perf.command("consume", epilog=examples("ottla perf consume load", "ottla perf consume load -n 100 --json"))
@click.argument("topic")
@click.option(
    "-n", "--records", type=click.IntRange(1, 1_000_000_000), metavar="N", help="Stop after so many; else at the end."
)
@json_option
@bootstrap_option
def perf_consume(topic: str, records: int | None, as_json: bool, bootstrap: str) -> None:
    """Read a topic from its start."""

    async def work() -> int:
        count = size_bytes = 0
        async with Consumer(bootstrap, auto_offset_reset="earliest", cluster=cluster_settings()) as consumer:
            await consumer.assign_topics(topic)
            ends = await consumer.end_offsets(consumer.assignment)
            started = finished = time.perf_counter()
            try:
                while (records is None or count < records) and not _has_read_to(consumer, ends):
                    batch = await consumer.next_batch(LOOK_AGAIN_MS)
                    if batch is None:
                        continue
                    count += len(batch.records)
                    size_bytes += sum(len(record.value) for record in batch.records if record.value is not None)
                    finished = time.perf_counter()
            except asyncio.CancelledError:
                _say_stopped(count)
                raise
            seconds = finished - started
        if not count:
            raise Refused(f"topic {topic!r} has no records")
        _report({"records": count}, count, size_bytes, seconds, as_json)
        return DONE

    run(work())


def _has_read_to(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> bool:
    return all((consumer.known_position(partition) or 0) >= end for partition, end in ends.items())


def _say_stopped(count: int) -> None:
    say(f"\nstopped after {count_text(count, 'record')}")


def _report(facts: dict[str, object], count: int, size_bytes: int, seconds: float, as_json: bool) -> None:
    rate, megabytes = count / seconds, size_bytes / seconds / 1e6
    if as_json:
        facts |= {"seconds": round(seconds, 6), "records_per_second": round(rate), "mb_per_second": round(megabytes, 3)}
        print_json(facts)
    else:
        print_line(f"{count:,} records in {seconds:.2f} s: {rate:,.0f} records/s, {megabytes:.1f} MB/s")


@perf.command(epilog=examples("ottla perf latency load --records 100 --rate 1000"))
@click.argument("topic")
@click.option(
    "-n",
    "--records",
    type=click.IntRange(10, 10_000_000),
    metavar="N",
    default=1000,
    show_default=True,
    help="How many.",
)
@click.option(
    "-s",
    "--size",
    "size_bytes",
    type=click.IntRange(0, 1_000_000),
    metavar="BYTES",
    default=100,
    show_default=True,
    help="Bytes each.",
)
@click.option(
    "-r",
    "--rate",
    type=Amount(MOST_PER_SECOND, above_zero=True),
    metavar="N",
    default=400.0,
    show_default=True,
    help="Records a second.",
)
@json_option
@bootstrap_option
def latency(topic: str, records: int, size_bytes: int, rate: float, as_json: bool, bootstrap: str) -> None:
    """Time records from send to acknowledgement and from send to being read."""

    async def work() -> int:
        acknowledged, received = await _measure_latency(bootstrap, topic, records, size_bytes, rate)
        rows = {"acknowledged": percentiles(acknowledged), "received": percentiles(received)}
        if as_json:
            print_json({"records": records, "rate": rate, "unit": "ms", **rows})
        else:
            for name, row in rows.items():
                print_line(f"{name:12} " + "  ".join(f"{key} {value:.3f} ms" for key, value in row.items()))
        return DONE

    run(work())


async def _measure_latency(
    bootstrap: str, topic: str, records: int, size_bytes: int, rate: float
) -> tuple[Sequence[float], Sequence[float]]:
    """Return milliseconds to the acknowledgement and to the consumer, for each record on partition 0."""
    partition = TopicPartition(topic, 0)
    acknowledged: list[float] = []
    received: list[float] = []
    sent_at: dict[int, float] = {}
    async with (
        Producer(bootstrap, settings=ProducerSettings(linger_ms=0), cluster=cluster_settings()) as producer,
        Consumer(bootstrap, cluster=cluster_settings()) as consumer,
    ):
        await consumer.assign([partition])
        await consumer.position(partition)

        async def read() -> None:
            while len(received) < records:
                batch = await consumer.next_batch()
                now = time.perf_counter()
                for record in batch.records if batch is not None else ():
                    number = int.from_bytes((record.key or b"")[:8], "big")
                    if number in sent_at:
                        received.append((now - sent_at[number]) * 1000)

        async def send(number: int) -> None:
            sent_at[number] = time.perf_counter()
            await producer.send_and_wait(topic, b"x" * size_bytes, key=number.to_bytes(8, "big"), partition=0)
            acknowledged.append((time.perf_counter() - sent_at[number]) * 1000)

        reader = asyncio.create_task(read())
        sending: list[asyncio.Task[None]] = []
        started = time.perf_counter()
        try:
            for number in range(records):
                await _keep_pace(started, number, rate)
                sending.append(asyncio.create_task(send(number)))
            for error in await asyncio.gather(*sending, return_exceptions=True):
                if error is not None:
                    raise error
            await asyncio.wait_for(reader, LATE_SECONDS)
        except asyncio.CancelledError:
            _say_stopped(len(received))
            raise
        except TimeoutError:
            raise Refused(f"only {len(received):,} of {count_text(records, 'record')} came back") from None
        finally:
            for task in (reader, *sending):
                task.cancel()
    return acknowledged, received


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the usual percentiles by nearest rank, and the maximum."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return {f"p{rank:g}": round(ordered[min(last, int(len(ordered) * rank / 100))], 3) for rank in PERCENTILES} | {
        "max": round(ordered[-1], 3)
    }
