"""Consumers for tests with a `ScriptedCluster`."""

from __future__ import annotations

from typing import Any

from ottla.client import Consumer, FetchSettings
from tests.client.scripted import (
    BOOTSTRAP,
    ScriptedCluster,
    settings,
)


def a_consumer(reset: str = "earliest", **said: Any) -> Consumer:
    return Consumer(
        BOOTSTRAP,
        settings=FetchSettings(auto_offset_reset=reset, **said),
        cluster=settings(),
    )


async def values(consumer: Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        record = await consumer.next_record(60_000)
        assert record is not None, f"only {found} came"
        found.append(record.value)
    return found


def filled(brokers: int = 2) -> ScriptedCluster:
    cluster = ScriptedCluster(brokers=brokers)
    cluster.fill(0, b"a", b"b")
    return cluster
