"""What the application is being given: one fetched answer at a time, batch by batch or record by record.

A batch of which single records are handed out is open; it is parked while its partition is paused, and forgotten when
the application seeks. The position moves with what is handed out, so that it always says what has been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ottla.client.consumer_record import ConsumerBatch, ConsumerRecord
from ottla.client.fetch_buffer import FetchBuffer
from ottla.client.fetched import FetchedPartition
from ottla.client.serializers import Deserializer
from ottla.client.subscription import PartitionState, Subscription
from ottla.model import TopicPartition
from ottla.records.record import Record


class OpenBatch:
    """A batch of which single records are being handed out; the partition's position says how far."""

    __slots__ = ("batch", "state")

    def __init__(self, state: PartitionState, batch: ConsumerBatch) -> None:
        self.state = state
        self.batch = batch

    def remaining(self) -> list[Record]:
        return [record for record in self.batch.records if record.offset >= self.state.position]

    def rest(self) -> ConsumerBatch | None:
        """Return what is left as a batch of its own, None when nothing is."""
        remaining = self.remaining()
        return replace(self.batch, records=remaining) if remaining else None


class FetchCollector:
    """Hands out what one consumer has fetched. `kick` has more fetched when an answer is used up."""

    def __init__(
        self,
        buffer: FetchBuffer,
        subscription: Subscription,
        *,
        kick: Callable[[], None],
        key_deserializer: Deserializer | None,
        value_deserializer: Deserializer | None,
    ) -> None:
        self._buffer = buffer
        self._subscription = subscription
        self._kick = kick
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._fetched: FetchedPartition | None = None
        self._opened: OpenBatch | None = None
        self._parked: list[OpenBatch] = []
        self._records: Iterator[ConsumerRecord] = iter(())

    # ---- batches

    def take_rest(self) -> ConsumerBatch | None:
        """Return what is left of a batch of which single records were handed out, None when nothing is."""
        opened, self._opened = self._opened or self._unpark(), None
        if opened is None:
            return None
        self._records = iter(())
        rest = opened.rest()
        opened.state.position = opened.batch.next_offset
        return rest

    def take_batch(self) -> ConsumerBatch | None:
        """Return the next batch that has arrived, None when there is none. Moves the position past it.

        Raises what went wrong with a partition.
        """
        while (fetched := self._usable_fetched()) is not None:
            records = fetched.next_records()
            state = fetched.state
            state.position = fetched.next_offset
            if fetched.leader_epoch >= 0:
                state.position_epoch = fetched.leader_epoch
            if records:
                return ConsumerBatch(
                    state.partition, records, fetched.next_offset, fetched.leader_epoch, state.high_watermark
                )
            self._fetched = None
            self._kick()
        return None

    def _usable_fetched(self) -> FetchedPartition | None:
        fetched = self._fetched
        if fetched is not None and not fetched.is_outdated:
            if not fetched.state.is_paused:
                return fetched
            self._buffer.put_back(fetched)
        self._fetched = None
        self._fetched = self._buffer.take()
        return self._fetched

    # ---- single records

    def take_record(self) -> ConsumerRecord | None:
        """Return the next record of the open batch, None when all were handed out or none is open."""
        for record in self._records:
            assert self._opened is not None
            self._opened.state.position = record.offset + 1
            return record
        return None

    def open_parked(self) -> bool:
        """Go on with a batch whose partition was paused and is no longer; False when there is none."""
        if self._opened is not None:  # all of it was handed out; what is not for consumers is passed too
            self._opened.state.position = self._opened.batch.next_offset
            self._opened = None
        opened = self._unpark()
        if opened is None:
            return False
        self._hand_out(opened)
        return True

    def open(self, batch: ConsumerBatch) -> None:
        """Make a batch the source of single records, with the position still before it."""
        opened = OpenBatch(self._subscription.state(batch.partition), batch)
        opened.state.position = batch.records[0].offset
        self._hand_out(opened)

    def _hand_out(self, opened: OpenBatch) -> None:
        self._opened = opened
        self._records = iter(self._convert(opened.batch.partition, opened.remaining()))

    def _convert(self, where: TopicPartition, rows: Iterable[Record]) -> list[ConsumerRecord]:
        topic, partition = where
        key_of, value_of = self._key_deserializer, self._value_deserializer
        if key_of is None and value_of is None:
            return [
                ConsumerRecord(topic, partition, row.offset, row.timestamp, row.key, row.value, row.headers)
                for row in rows
            ]
        return [
            ConsumerRecord(
                topic,
                partition,
                row.offset,
                row.timestamp,
                row.key if key_of is None or row.key is None else key_of(row.key),
                row.value if value_of is None or row.value is None else value_of(row.value),
                row.headers,
            )
            for row in rows
        ]

    # ---- what the application does in between

    def forget(self, state: PartitionState) -> None:
        """Drop what was decoded before a seek; the fetched bytes outdate themselves."""
        if self._opened is not None and self._opened.state is state:
            self._opened = None
            self._records = iter(())
        self._parked = [opened for opened in self._parked if opened.state is not state]

    def park(self, state: PartitionState) -> None:
        """Put the open batch of a partition aside until it is paused no longer."""
        if self._opened is not None and self._opened.state is state:
            self._parked.append(self._opened)
            self._opened = None
            self._records = iter(())

    def _unpark(self) -> OpenBatch | None:
        for index, opened in enumerate(self._parked):
            if not opened.state.is_paused:
                return self._parked.pop(index)
        return None
