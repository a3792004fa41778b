"""Producers for tests with a `ScriptedCluster`, and what of theirs was written."""

from __future__ import annotations

import asyncio
from typing import Any

from ottla.client import Delivery, Producer, ProducerSettings
from ottla.records.batch import RecordBatch
from tests.client.scripted import (
    BOOTSTRAP,
    PRODUCER_ID,
    TOPIC,
    settings,
)


def a_producer(**said: Any) -> Producer:
    """A producer that sends each record as soon as it can."""
    cluster = settings(**{key: said.pop(key) for key in ("request_timeout_ms",) if key in said})
    return Producer(BOOTSTRAP, settings=ProducerSettings(**{"linger_ms": 0, **said}), cluster=cluster)


async def send_each(producer: Producer, *values: bytes) -> list[Delivery]:
    """Send each value in a batch of its own."""
    deliveries = []
    for value in values:
        deliveries.append(await producer.send(TOPIC, value, partition=0))
        await asyncio.sleep(0.001)
    return deliveries


def sequences(log: Any) -> list[tuple[int, int, int]]:
    """Producer id (from 1), epoch and base sequence of each written batch."""
    found = [RecordBatch(data) for data in log.batches]
    return [(batch.producer_id - PRODUCER_ID, batch.producer_epoch, batch.base_sequence) for batch in found]
