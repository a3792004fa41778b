"""What has to be there before a batch can go: its leader, a connection to it, a producer id.

Each is looked for in the background, by one task at a time: `wake` is called when it was found or did not come, and the
sender looks again. An error that waiting does not mend ends the producer (`give_up`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.errors import raise_error
from ottla.client.retry import Reaction, reaction_to
from ottla.client.sequencing import Sequencing
from ottla.errors import KafkaError, UnknownServerError
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


class Readiness:
    """Connections to leaders and the producer id of one producer, as they are needed."""

    def __init__(
        self,
        cluster: Cluster,
        sequencing: Sequencing,
        *,
        wake: Callable[[], None],
        give_up: Callable[[KafkaError], None],
    ) -> None:
        self._cluster = cluster
        self._sequencing = sequencing
        self._wake = wake
        self._give_up = give_up
        self._connecting: dict[int, asyncio.Task[None]] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._identifying: asyncio.Task[None] | None = None
        self._failures = 0
        self._refresh_at = 0.0

    def connection_to_leader(self, partition: TopicPartition) -> Connection | None:
        """Return the leader's connection; None when it has to be found or opened first, which is begun."""
        leader = self._cluster.leader_of(partition)
        if leader is None:
            self.refresh()
            return None
        connection = self._cluster.open_connection_to(leader)
        if connection is None and leader not in self._connecting:
            self._connecting[leader] = self._start(self._connect(leader))
        return connection

    def has_producer_id(self) -> bool:
        """True when there is a producer id or none is needed; else getting one is begun."""
        if not self._sequencing.needs_id:
            return True
        if self._identifying is None:
            self._identifying = self._start(self._ask_producer_id())
        return False

    def refresh(self) -> None:
        """Have the metadata renewed, no sooner after the last time than a retry is allowed."""
        if self._refreshing is None:
            self._refreshing = self._start(self._refresh_metadata())

    async def close(self) -> None:
        """Look for nothing any more."""
        tasks = [*self._connecting.values()]
        tasks += [task for task in (self._refreshing, self._identifying) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        """A task that ends with an error shows a mistake of ours: fail what waits instead of going on."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._give_up(UnknownServerError(f"the producer failed: {error!r}"))

    async def _connect(self, node_id: int) -> None:
        try:
            await self._cluster.connection_to(node_id)
        except KafkaError as error:
            await self._react_to(error)
        finally:
            del self._connecting[node_id]
            self._wake()

    async def _refresh_metadata(self) -> None:
        try:
            await self._refresh_after_pause()
        finally:
            self._refreshing = None
            self._wake()

    async def _react_to(self, error: KafkaError) -> None:
        """Fail what waits, where another attempt would be in vain; else prepare for one."""
        if reaction_to(error) is Reaction.GIVE_UP:
            self._give_up(error)
        else:
            await self._refresh_after_pause()

    async def _refresh_after_pause(self) -> None:
        loop = asyncio.get_running_loop()
        wait = self._refresh_at - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        try:
            await self._cluster.refresh()
            self._failures = 1
        except KafkaError:
            self._failures += 1
        self._refresh_at = loop.time() + self._cluster.retry_delay_seconds(self._failures)

    async def _ask_producer_id(self) -> None:
        """Get a producer id from any broker."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        try:
            response = await self._cluster.call(ApiKey.INIT_PRODUCER_ID, request, InitProducerIdResponse)
            raise_error(response.error_code)
            self._sequencing.identify(response.producer_id, response.producer_epoch)
        except KafkaError as error:
            await self._react_to(error)
        finally:
            self._identifying = None
            self._wake()
