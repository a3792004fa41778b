"""A broker on a log in a temporary directory, with time that stands still and no event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ottla.broker.fetch_sessions import FetchEntry
from ottla.broker.metadata.create_topics import NewTopic
from ottla.model import ZERO_TOPIC_ID
from ottla.records.builder import BatchBuilder
from ottla.testing.clock import ManualClock
from ottla.testing.cluster import RunningBroker, running_broker

TOPIC = "t"


@asynccontextmanager
async def broker_with_topic(*, partitions: int = 1, **settings: str) -> AsyncIterator[RunningBroker]:
    """Run a broker that has one topic, on a clock that the test moves."""
    properties = {name.replace("__", "."): value for name, value in settings.items()}
    async with running_broker(properties, clock=ManualClock()) as running:
        running.broker.metadata.create_topics([NewTopic(TOPIC, partitions, 1)])
        yield running


def batch(*values: bytes, timestamp_ms: int = 1_750_000_000_000) -> memoryview:
    """Return a batch as a producer sends it, in memory that may be written."""
    builder = BatchBuilder()
    for value in values:
        builder.append(timestamp_ms, None, value)
    return memoryview(bytearray(builder.build()))


def append(running: RunningBroker, *values: bytes, partition: int = 0) -> int:
    """Append a batch and return its base offset."""
    broker = running.broker
    return broker.append(broker.partition(TOPIC, partition), batch(*values)).base_offset


def entry(offset: int, *, partition: int = 0, max_bytes: int = 1 << 20, topic: str = TOPIC) -> FetchEntry:
    return FetchEntry(topic, ZERO_TOPIC_ID, partition, offset, max_bytes)
