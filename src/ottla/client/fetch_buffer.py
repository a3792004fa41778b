"""What fetches have brought and the application has not taken yet, in the order in which it came, errors among it.

The fetcher puts in, the consumer takes out, and waits here while there is nothing. How much may wait is the fetcher's
to decide.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from ottla.client.errors import about_partition
from ottla.client.fetched import FetchedPartition
from ottla.client.subscription import PartitionState
from ottla.errors import KafkaError
from ottla.model import TopicPartition


class Failure(NamedTuple):
    """An error that the application must hear of, unless it seeks away first."""

    state: PartitionState
    seek_count: int
    error: KafkaError

    @property
    def is_outdated(self) -> bool:
        return self.seek_count != self.state.seek_count


class FetchBuffer:
    """Answers and errors of one consumer, oldest first."""

    def __init__(self) -> None:
        self._arrived: deque[FetchedPartition | Failure] = deque()
        self._has_news = asyncio.Event()
        self._mistake: BaseException | None = None

    # ---- what fetching puts in

    def add(self, fetched: FetchedPartition) -> None:
        """Keep an answer, and wake who waits."""
        self._arrived.append(fetched)
        self._has_news.set()

    def add_failure(self, state: PartitionState, error: KafkaError) -> None:
        """Keep an error, and wake who waits; nothing when the application has yet to hear of an earlier one."""
        is_told = any(
            isinstance(item, Failure) and item.state is state and not item.is_outdated for item in self._arrived
        )
        if not is_told:
            self._arrived.append(Failure(state, state.seek_count, about_partition(state.partition, error)))
            self._has_news.set()

    def end(self, task: asyncio.Task[None]) -> None:
        """A task that ends with anything but a Kafka error shows a mistake of ours: hand it on instead of going on."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._mistake = error
            self._has_news.set()

    @property
    def has_ended(self) -> bool:
        """Nothing more may be put in, since a mistake of ours came first."""
        return self._mistake is not None

    # ---- what the consumer takes

    def take(self) -> FetchedPartition | None:
        """Return the oldest waiting answer of a partition that is not paused. Raises an error that came before it."""
        if self._mistake is not None:
            raise self._mistake
        held: list[FetchedPartition] = []
        try:
            while self._arrived:
                item = self._arrived.popleft()
                if item.is_outdated:
                    continue
                if isinstance(item, Failure):
                    raise item.error
                if not item.state.is_paused:
                    return item
                held.append(item)
            return None
        finally:
            self._arrived.extendleft(reversed(held))

    def put_back(self, fetched: FetchedPartition) -> None:
        """Keep what a paused partition still holds for later."""
        self._arrived.appendleft(fetched)

    def raise_error_of(self, partition: TopicPartition) -> None:
        """Raise the oldest error of a partition, if there is one."""
        for item in self._arrived:
            if isinstance(item, Failure) and item.state.partition == partition and not item.is_outdated:
                self._arrived.remove(item)
                raise item.error

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._has_news.set()

    async def wait_until(self, deadline: float | None) -> bool:
        """Wait for news; False when none came before the loop's time `deadline`."""
        self._has_news.clear()
        try:
            async with asyncio.timeout_at(deadline):
                await self._has_news.wait()
        except TimeoutError:
            return False
        return True
