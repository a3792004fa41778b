"""`Consumer`: reads the partitions that it is told to, or those that its group gives to it.

    async with Consumer("localhost:9092", auto_offset_reset="earliest") as consumer:
        await consumer.assign_topics("orders")
        async for record in consumer:
            print(record.offset, record.value)

    async with Consumer("localhost:9092", group="billing") as consumer:
        await consumer.subscribe("orders")
        async for record in consumer:
            ...

Records come one by one (`async for record in consumer`) or as they were batched (`async for batch in
consumer.batches()`), which costs a fraction. The position moves when a record or batch is handed out. Fetching goes on
in the background and is bounded in memory. Deserializers apply to single records; batches give bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ottla.client.cluster import Cluster, ClusterSettings
from ottla.client.committed import OffsetAndMetadata
from ottla.client.consumer_record import ConsumerBatch, ConsumerRecord
from ottla.client.errors import NotAssigned
from ottla.client.fetch_buffer import FetchBuffer
from ottla.client.fetch_collector import FetchCollector
from ottla.client.fetcher import Fetcher, FetchSettings
from ottla.client.membership import GroupSettings, RebalanceListener
from ottla.client.offset_reset import OffsetReset
from ottla.client.offsets import OffsetAndTimestamp, OffsetAnswers, list_offsets
from ottla.client.serializers import Deserializer
from ottla.client.subscription import PartitionState, Subscription
from ottla.clock import Clock, SystemClock
from ottla.errors import KafkaError, OffsetOutOfRange, UnknownTopicOrPartition
from ottla.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, IsolationLevel, TopicPartition

if TYPE_CHECKING:
    from ottla.client.group_reading import GroupReading


class Consumer:
    """A consumer. With a group it may subscribe and commit; else partitions and positions are the caller's to keep."""

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        *,
        settings: FetchSettings | None = None,
        auto_offset_reset: str | None = None,
        isolation_level: IsolationLevel | None = None,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        group: GroupSettings | str | None = None,
        cluster: ClusterSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`auto_offset_reset` and `isolation_level` override `settings`; a `group` may be just its id.

        Raises `ValueError` for wrong ones.
        """
        fetching = _with_overrides(settings or FetchSettings(), auto_offset_reset, isolation_level)
        self._settings = fetching
        self._cluster = Cluster(bootstrap, cluster or ClusterSettings(allow_auto_create_topics=False))
        self._subscription = Subscription()
        self._reset = OffsetReset(fetching.auto_offset_reset, (clock or SystemClock()).wall_ms)
        self._buffer = FetchBuffer()
        self._fetcher = Fetcher(self._cluster, self._subscription, fetching, self._reset, self._buffer)
        self._collector = FetchCollector(
            self._buffer,
            self._subscription,
            kick=self._fetcher.kick,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
        )
        self._group_settings = GroupSettings(group_id=group) if isinstance(group, str) else group
        self._group: GroupReading | None = None

    # ---- life

    async def start(self) -> None:
        """Reach the cluster. Raises `ClusterUnreachable`."""
        await self._cluster.start()

    async def close(self) -> None:
        """Leave the group, stop fetching and close the connections. With auto-commit, positions are committed."""
        if self._group is not None:
            await self._group.close()
        await self._fetcher.close()
        await self._cluster.close()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # ---- what is read

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions; those that stay keep their position, new ones begin at the default.

        Raises `UnknownTopicOrPartition` for what the cluster does not have.
        """
        if self._group is not None and self._group.is_subscribed:
            raise ValueError("this consumer has subscribed; its group assigns its partitions")
        wanted = list(dict.fromkeys(partitions))
        for name in dict.fromkeys(partition.topic for partition in wanted):
            await self._cluster.topic(name, patience_ms=0)
        for partition in wanted:
            count = len(self._cluster.topics[partition.topic].partitions)
            if not 0 <= partition.partition < count:
                raise UnknownTopicOrPartition(f"{partition} does not exist; the topic has {count} partitions")
        default = self._reset.timestamp_ms()
        for state in self._read_exactly(wanted):
            if default is not None:
                state.seek_to_time(default)
        self._fetcher.kick_soon()

    def _read_exactly(self, wanted: Sequence[TopicPartition]) -> Sequence[PartitionState]:
        """Return those that are new; they have no position yet."""
        before = dict(self._subscription.states)
        new = self._subscription.assign(wanted)
        for partition in before.keys() - self._subscription.states.keys():
            self._collector.forget(before[partition])
        return new

    async def assign_topics(self, *topics: str) -> None:
        """Read all partitions of these topics, as they are now."""
        await self.assign([partition for topic in topics for partition in await self.partitions_of(topic)])

    async def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions. Raises `UnknownTopicOrPartition`."""
        info = await self._cluster.topic(topic, patience_ms=0)
        return [TopicPartition(topic, row.partition) for row in info.partitions]

    @property
    def assignment(self) -> Sequence[TopicPartition]:
        return list(self._subscription.states)

    # ---- the group

    async def subscribe(
        self, *topics: str, pattern: str | None = None, listener: RebalanceListener | None = None
    ) -> None:
        """Read these topics together with the other members of the group, from where the group has got.

        `pattern` is in RE2 syntax and for groups of the new protocol only. Subscribing anew replaces what was before.
        Raises `ValueError` without a group.
        """
        await self._reading().subscribe(topics, pattern, listener or RebalanceListener())

    async def unsubscribe(self) -> None:
        """Leave the group."""
        if self._group is not None:
            await self._group.unsubscribe()

    async def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        """Commit these offsets, or where this consumer has got. Raises why a partition was refused."""
        await self._reading().commit(
            None
            if offsets is None
            else {
                partition: committed if isinstance(committed, OffsetAndMetadata) else OffsetAndMetadata(committed)
                for partition, committed in offsets.items()
            }
        )

    async def committed(self, *partitions: TopicPartition) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Return what the group has committed, for all partitions when none is named; those without are left out."""
        return await self._reading().committed(partitions)

    def _reading(self) -> GroupReading:
        if self._group is None:
            if self._group_settings is None:
                raise ValueError("this consumer has no group; give it one: Consumer(..., group=...)")
            from ottla.client.group_reading import GroupReading  # groups are much code, and many consumers have none

            self._group = GroupReading(
                self._cluster,
                self._group_settings,
                self._subscription,
                read_exactly=self._read_exactly,
                kick=self._fetcher.kick_soon,
                wake=self._buffer.wake,
                reset=self._reset,
            )
        return self._group

    # ---- positions

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Go on at an offset. Raises `NotAssigned`, `OffsetOutOfRange` for a negative one.

        With the leader epoch of an `OffsetAndMetadata`, the leader first says whether the record before it is still
        there.
        """
        place = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        if place.offset < 0:
            raise OffsetOutOfRange(f"{partition}: offset {place.offset} is negative")
        state = self._subscription.state(partition)
        self._collector.forget(state)
        state.seek(place.offset, place.leader_epoch)
        self._fetcher.kick_soon()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go to the first record of these partitions, of all assigned ones when none is named."""
        self._seek_to_time(partitions, EARLIEST_TIMESTAMP)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go past the last record of these partitions, of all assigned ones when none is named."""
        self._seek_to_time(partitions, LATEST_TIMESTAMP)

    def seek_to_time(self, timestamp_ms: int, *partitions: TopicPartition) -> None:
        """Go to the first record at or after a moment, past the end where there is none."""
        self._seek_to_time(partitions, timestamp_ms)

    def _seek_to_time(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> None:
        for state in self._subscription.chosen(partitions):
            self._collector.forget(state)
            state.seek_to_time(timestamp_ms)
        self._fetcher.kick_soon()

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record that will be handed out, waiting until it is known.

        Raises `NotAssigned`, and what kept the position from being found.
        """
        state = self._subscription.state(partition)
        if state.reset_timestamp_ms is None and not state.has_position:
            raise OffsetOutOfRange(f"{partition} has no position and auto_offset_reset is none; seek first")
        while not state.has_position:
            self._fetcher.kick_soon()
            self._buffer.raise_error_of(partition)
            await self._buffer.wait_until(None)
        return state.position

    def known_position(self, partition: TopicPartition) -> int | None:
        """Return the position without waiting, None while it is not known. Raises `NotAssigned`."""
        state = self._subscription.state(partition)
        return state.position if state.has_position else None

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the first offset of each partition."""
        return await self._offsets_at(partitions, EARLIEST_TIMESTAMP)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the offset after the last record of each partition that this consumer may see."""
        return await self._offsets_at(partitions, LATEST_TIMESTAMP)

    async def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record at or after each moment, None where there is none."""
        await self._know_topics(timestamps_ms)
        answers = _or_raise(await list_offsets(self._cluster, timestamps_ms, self._settings.isolation_level))
        return {partition: answer if answer.offset >= 0 else None for partition, answer in answers.items()}

    async def _offsets_at(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
        asked = dict.fromkeys(partitions, timestamp_ms)
        await self._know_topics(asked)
        answers = _or_raise(await list_offsets(self._cluster, asked, self._settings.isolation_level))
        return {partition: answer.offset for partition, answer in answers.items()}

    async def _know_topics(self, partitions: Iterable[TopicPartition]) -> None:
        for name in {partition.topic for partition in partitions}:
            await self._cluster.topic(name, patience_ms=0)

    # ---- pausing and lag

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these partitions (all when none is named) until `resume`; what was fetched is kept."""
        for state in self._subscription.chosen(partitions):
            state.is_paused = True
            self._collector.park(state)

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with these partitions, all when none is named."""
        for state in self._subscription.chosen(partitions):
            state.is_paused = False
        self._fetcher.kick_soon()
        self._buffer.wake()

    @property
    def paused(self) -> Sequence[TopicPartition]:
        return [partition for partition, state in self._subscription.states.items() if state.is_paused]

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """Return the high watermark as of the last answer, None before the first one. Raises `NotAssigned`."""
        high_watermark = self._subscription.state(partition).high_watermark
        return high_watermark if high_watermark >= 0 else None

    def lag(self, partition: TopicPartition) -> int | None:
        """Return how many offsets lie before the high watermark, None while unknown. Raises `NotAssigned`."""
        return self._subscription.state(partition).lag

    # ---- records

    async def next_batch(self, timeout_ms: int | None = None) -> ConsumerBatch | None:
        """Return the next records of some partition, None when none came in time; without `timeout_ms` wait for ever.

        Raises what went wrong with a partition; after `CorruptMessage` a `seek` goes past the damage.
        """
        if self._group is not None:
            await self._group.at_poll()
        rest = self._collector.take_rest()
        return rest if rest is not None else await self._await_batch(timeout_ms)

    async def _await_batch(self, timeout_ms: int | None) -> ConsumerBatch | None:
        group = self._group
        if not self._subscription.states and (group is None or not group.is_subscribed):
            raise NotAssigned("nothing is assigned to this consumer; call subscribe, assign or assign_topics first")
        deadline = None if timeout_ms is None else asyncio.get_running_loop().time() + timeout_ms / 1000
        while (batch := self._collector.take_batch()) is None:
            if group is None:
                if not await self._buffer.wait_until(deadline):
                    return None
            elif not await group.wait(self._buffer.wait_until(deadline)):
                return None
        return batch

    async def batches(self) -> AsyncIterator[ConsumerBatch]:
        """Iterate over batches for ever."""
        while True:
            batch = await self.next_batch()
            if batch is not None:
                yield batch

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        """Return the next record, waiting for ever. Raises what `next_batch` raises."""
        while True:
            if self._group is not None:
                await self._group.at_poll()
            record = self._collector.take_record()
            if record is not None:
                return record
            await self._open_batch(None)

    async def next_record(self, timeout_ms: int) -> ConsumerRecord | None:
        """Return the next record, None when none came in time."""
        while True:
            if self._group is not None:
                await self._group.at_poll()
            record = self._collector.take_record()
            if record is not None:
                return record
            if not await self._open_batch(timeout_ms):
                return None

    async def _open_batch(self, timeout_ms: int | None) -> bool:
        """Have another batch that single records come from; False when none came in time."""
        if not self._collector.open_parked():
            batch = await self._await_batch(timeout_ms)
            if batch is None:
                return False
            self._collector.open(batch)
        return True


def _with_overrides(
    settings: FetchSettings, auto_offset_reset: str | None, isolation_level: IsolationLevel | None
) -> FetchSettings:
    if auto_offset_reset is not None:
        settings = replace(settings, auto_offset_reset=auto_offset_reset)
    if isolation_level is not None:
        settings = replace(settings, isolation_level=isolation_level)
    return settings


def _or_raise(answers: OffsetAnswers) -> dict[TopicPartition, OffsetAndTimestamp]:
    for answer in answers.values():
        if isinstance(answer, KafkaError):
            raise answer
    return {partition: answer for partition, answer in answers.items() if not isinstance(answer, KafkaError)}
