"""Bounded loads on a topic, for `ottla perf`: how long they take, and what each record took."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Final

from ottla.cli.options import cluster_settings
from ottla.cli.output import Refused, count_text, say
from ottla.client.consumer import Consumer
from ottla.client.producer import Producer, ProducerSettings
from ottla.model import TopicPartition

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)
LOOK_AGAIN_MS: Final = 100
"""A consumer looks so often whether what is left before the end are no records but markers, or were compacted away."""

LATE_SECONDS: Final = 10.0
"""Records that have not come back so long after the last one was sent are lost."""


async def produce_load(
    bootstrap: str, topic: str, records: int, size_bytes: int, rate: float | None, settings: ProducerSettings
) -> float:
    """Send so many records, as fast as they go or so many a second; return the seconds until all were acknowledged.

    Raises what kept a record from being written.
    """
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
        return time.perf_counter() - started


async def _keep_pace(started: float, number: int, rate: float) -> None:
    """Wait until record `number` is due; a little early is on time, since timers cost more than records."""
    early = started + number / rate - time.perf_counter()
    if early > 0.002:
        await asyncio.sleep(early)


async def consume_load(bootstrap: str, topic: str, records: int | None) -> tuple[int, int, float]:
    """Read a topic from its start to its present end, or so many records; return records, bytes of values, seconds."""
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
        return count, size_bytes, finished - started


def _has_read_to(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> bool:
    return all((consumer.known_position(partition) or 0) >= end for partition, end in ends.items())


def _say_stopped(count: int) -> None:
    say(f"\nstopped after {count_text(count, 'record')}")


async def measure_latency(
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
