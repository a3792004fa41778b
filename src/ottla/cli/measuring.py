"""Bounded loads on a topic, for `ottla perf`: how long they take, and what each record took.

What is said of it is decided by `perf`, what figures come of single times by `latencies`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from itertools import cycle
from random import Random
from string import ascii_uppercase
from typing import Final

from ottla.cli.latencies import Latencies, timed_each
from ottla.cli.options import cluster_settings
from ottla.cli.output import Refused, count_text, say
from ottla.client.consumer import Consumer
from ottla.client.producer import Producer, ProducerSettings
from ottla.client.producer_batch import Delivery
from ottla.errors import UnknownTopicOrPartition
from ottla.model import TopicPartition

LOOK_AGAIN_MS: Final = 100
"""A consumer looks so often whether what is left before the end are no records but markers, or were compacted away."""

LATE_SECONDS: Final = 10.0
"""Records that have not come back so long after the last one was sent are lost."""

INTERVAL_SECONDS: Final = 5.0
"""Kafka's tools tell so often how far they are, too."""

TEXT_BYTES: Final = 1_048_576
"""So much text is made for values: more than a batch holds by default, so that none has the same piece twice."""

_TO_LETTERS: Final = bytes(ord(ascii_uppercase[byte % len(ascii_uppercase)]) for byte in range(256))

Tell = Callable[[str], None]
"""Takes a line for the person who waits."""


async def produce_load(
    bootstrap: str,
    topic: str,
    records: int,
    size_bytes: int,
    rate: float | None,
    settings: ProducerSettings,
    tell: Tell,
) -> tuple[float, Latencies]:
    """Send so many records, as fast as they go or so many a second.

    Returns the seconds until all were acknowledged, and what those that were timed took from `send` to that. Raises
    what kept a record from being written.
    """
    latencies = Latencies()
    timed = timed_each(records)
    values = _values(size_bytes)
    async with Producer(bootstrap, settings=settings, cluster=cluster_settings()) as producer:
        await _check_topic(producer, topic)

        def acknowledged(sent: float, delivery: Delivery) -> None:
            latencies.note(time.perf_counter() - sent)

        started = time.perf_counter()
        async with _interval_lines(lambda: producer.delivered_count, tell):
            for number, value in zip(range(records), values, strict=False):
                if rate is not None:
                    await _keep_pace(started, number, rate)
                if number % timed:
                    await producer.send(topic, value)
                else:
                    sent = time.perf_counter()
                    delivery = await producer.send(topic, value)
                    delivery.add_done_callback(partial(acknowledged, sent))
                if producer.failed_count:
                    break  # flush says why
            await producer.flush()
        return time.perf_counter() - started, latencies


async def _check_topic(client: Producer | Consumer, topic: str) -> None:
    """Raises `Refused` where it is not there: nothing is measured with a topic that was not made for that."""
    try:
        await (client.partitions_of(topic, 0) if isinstance(client, Producer) else client.partitions_of(topic))
    except UnknownTopicOrPartition:
        raise Refused(f"topic {topic!r} does not exist; `ottla topics create {topic}` makes it") from None


def _values(size_bytes: int) -> Iterator[bytes]:
    """Yield values for ever: capital letters by chance, as kafka-producer-perf-test sends, so that compression works.

    They are the same in every run, pieces of a text of which each comes round when all have been sent.
    """
    pieces = max(1, TEXT_BYTES // max(1, size_bytes))
    text = Random(0).randbytes(pieces * size_bytes).translate(_TO_LETTERS)
    return cycle([text[at * size_bytes : (at + 1) * size_bytes] for at in range(pieces)])


async def _keep_pace(started: float, number: int, rate: float) -> None:
    """Wait until record `number` is due; a little early is on time, since timers cost more than records."""
    early = started + number / rate - time.perf_counter()
    if early > 0.002:
        await asyncio.sleep(early)


async def consume_load(bootstrap: str, topic: str, records: int | None, tell: Tell) -> tuple[int, int, float]:
    """Read a topic from its start to its present end, or exactly so many records.

    Returns records, bytes of their keys and values, and seconds; fewer records when the end comes first.
    """
    count = size_bytes = 0
    async with Consumer(bootstrap, auto_offset_reset="earliest", cluster=cluster_settings()) as consumer:
        await _check_topic(consumer, topic)
        await consumer.assign_topics(topic)
        ends = await consumer.end_offsets(consumer.assignment)
        started = finished = time.perf_counter()
        async with _interval_lines(lambda: count, tell):
            while (records is None or count < records) and not _has_read_to(consumer, ends):
                batch = await consumer.next_batch(LOOK_AGAIN_MS)
                if batch is None:
                    continue
                counted = batch.records if records is None else batch.records[: records - count]
                count += len(counted)
                size_bytes += sum(len(record.key or b"") + len(record.value or b"") for record in counted)
                finished = time.perf_counter()
        return count, size_bytes, finished - started


def _has_read_to(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> bool:
    return all((consumer.known_position(partition) or 0) >= end for partition, end in ends.items())


@asynccontextmanager
async def _interval_lines(count: Callable[[], int], tell: Tell) -> AsyncIterator[None]:
    """Tell every few seconds how far a load is and how fast it was since, and when it is stopped, after how many."""
    telling = asyncio.create_task(_tell_intervals(count, tell))
    try:
        yield
    except asyncio.CancelledError:
        _say_stopped(count())
        raise
    finally:
        telling.cancel()


async def _tell_intervals(count: Callable[[], int], tell: Tell) -> None:
    then, count_then = time.perf_counter(), 0
    while True:
        await asyncio.sleep(INTERVAL_SECONDS)
        now, count_now = time.perf_counter(), count()
        rate = (count_now - count_then) / (now - then)
        tell(f"{count_text(count_now, 'record')} so far, {rate:,.0f} records/s")
        then, count_then = now, count_now


def _say_stopped(count: int) -> None:
    say(f"\nstopped after {count_text(count, 'record')}")


async def measure_latency(
    bootstrap: str, topic: str, records: int, size_bytes: int, rate: float, acks: str
) -> tuple[Latencies, Latencies]:
    """Return the times to the acknowledgement and to the consumer, of each record on partition 0."""
    partition = TopicPartition(topic, 0)
    acknowledged, received = Latencies(), Latencies()
    values = _values(size_bytes)
    sent_at: dict[int, float] = {}
    async with (
        Producer(bootstrap, settings=ProducerSettings(acks=acks, linger_ms=0), cluster=cluster_settings()) as producer,
        Consumer(bootstrap, cluster=cluster_settings()) as consumer,
    ):
        await _check_topic(consumer, topic)
        await consumer.assign([partition])
        await consumer.position(partition)

        async def read() -> None:
            while len(received) < records:
                batch = await consumer.next_batch()
                now = time.perf_counter()
                for record in batch.records if batch is not None else ():
                    number = int.from_bytes((record.key or b"")[:8], "big")
                    if number in sent_at:
                        received.note(now - sent_at[number])

        async def send(number: int) -> None:
            sent_at[number] = time.perf_counter()
            await producer.send_and_wait(topic, next(values), key=number.to_bytes(8, "big"), partition=0)
            acknowledged.note(time.perf_counter() - sent_at[number])

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
