"""`ottla consume --group`: records of the partitions that a group gives to this process, committed once out."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Final

from ottla.cli.formats import Writer
from ottla.cli.options import cluster_settings
from ottla.cli.output import DONE, count_text, no_topic, say
from ottla.client.consumer import Consumer
from ottla.client.fetcher import FetchSettings
from ottla.client.membership import GroupSettings, RebalanceListener
from ottla.errors import UnknownTopicOrPartition
from ottla.model import IsolationLevel, TopicPartition

COMMIT_SECONDS: Final = 1.0
SHOWN_PLACES: Final = 20


def member_of(bootstrap: str, group_id: str, protocol: str, reset: str, *, is_committed: bool) -> Consumer:
    """Return a consumer that joins a group and leaves committing to whoever has written its records."""
    isolation = IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED
    return Consumer(
        bootstrap,
        settings=FetchSettings(isolation_level=isolation),
        auto_offset_reset=reset,
        group=GroupSettings(group_id=group_id, group_protocol=protocol, enable_auto_commit=False),
        cluster=cluster_settings(),
    )


class SharedReading(RebalanceListener):
    """One run of the command as a member of a group."""

    def __init__(self, consumer: Consumer, write: Writer, count: int | None, *, is_quiet: bool) -> None:
        """`consumer` has a group and does not commit by itself."""
        self._consumer = consumer
        self._write = write
        self._limit = count
        self._is_quiet = is_quiet
        self._count = 0
        self._written: dict[TopicPartition, int] = {}
        self._places: dict[TopicPartition, int | None] = {}
        self._committed_at = time.monotonic()

    async def run(self, topics: Sequence[str]) -> int:
        try:
            await self._consumer.start()
            for topic in topics:
                await self._check_topic(topic)
            await self._consumer.subscribe(*topics, listener=self)
            try:
                await self._read_all()
            finally:
                await self._commit(list(self._written))
            if not self._is_quiet:
                say(f"{count_text(self._count, 'record')} read and committed")
        finally:
            await self._consumer.close()
        return DONE

    async def _check_topic(self, topic: str) -> None:
        """A member of a group would wait for a topic to appear, without a word."""
        try:
            await self._consumer.partitions_of(topic)
        except UnknownTopicOrPartition:
            raise no_topic(topic) from None

    async def _read_all(self) -> None:
        try:
            while self._limit is None or self._count < self._limit:
                await self._read()
        except asyncio.CancelledError:
            say("\n" + where_it_was(self._count, self._places))
            raise

    async def _read(self) -> None:
        batch = await self._consumer.next_batch(int(COMMIT_SECONDS * 1000))
        if batch is not None:
            left = None if self._limit is None else self._limit - self._count
            records = batch.records[:left]
            sys.stdout.buffer.write(self._write(batch.partition, records))
            sys.stdout.buffer.flush()
            self._count += len(records)
            is_whole = len(records) == len(batch.records)
            place = batch.next_offset if is_whole else records[-1].offset + 1
            self._written[batch.partition] = self._places[batch.partition] = place
        if time.monotonic() - self._committed_at >= COMMIT_SECONDS:
            await self._commit(list(self._written))

    async def _commit(self, partitions: Sequence[TopicPartition]) -> None:
        self._committed_at = time.monotonic()
        offsets = {partition: self._written.pop(partition) for partition in partitions if partition in self._written}
        if offsets:
            await self._consumer.commit(offsets)

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await self._commit(partitions)

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        if not self._is_quiet and partitions:
            say("reading " + ", ".join(map(str, sorted(partitions))))

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            self._written.pop(partition, None)


def where_it_was(count: int, places: Mapping[TopicPartition, int | None]) -> str:
    """Return what Ctrl-C makes a reading command say: how much it had, and where each partition would go on."""
    shown = [f"{tp} at {'-' if offset is None else offset}" for tp, offset in sorted(places.items())]
    text = ", ".join(shown[:SHOWN_PLACES]) + (" ..." if len(shown) > SHOWN_PLACES else "")
    return f"stopped after {count_text(count, 'record')}" + (f": {text}" if text else "")
