"""The broker that coordinates a group: found, asked, and found anew when it is another one now."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.errors import raise_error
from ottla.client.retry import Reaction, reaction_to
from ottla.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaError,
    NetworkException,
    NotCoordinator,
)
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

_log = logging.getLogger(__name__)

GROUP: Final = 0
BATCHED_KEYS_FROM: Final = 4
GROUP_CHANNEL: Final = "group"
LONG_ATTEMPTS: Final = 8
"""A coordinator that moves or loads is back before so many; then it is worth a line."""
"""Joins may keep a connection busy for long; commits and offsets take the usual one."""


class GroupLink:
    """The way to a group's coordinator."""

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        self.cluster = cluster
        self.group_id = group_id
        self._node_id: int | None = None

    def forget(self) -> None:
        """Look for the coordinator anew before the next request."""
        self._node_id = None

    async def connection(self, channel: str = "", deadline: float | None = None) -> Connection:
        """Return a connection to the coordinator. Raises what keeps it from being found, `KafkaError`s all.

        `deadline` is on the loop's clock; without one that is over when the time for a call is.
        """
        if deadline is None:
            deadline = self.cluster.deadline()
        attempt = 0
        while True:
            try:
                if self._node_id is None:
                    self._node_id = await self._find()
                return await self.cluster.connection_to(self._node_id, channel)
            except KafkaError as error:
                self.forget()
                if reaction_to(error) is Reaction.GIVE_UP:
                    raise
                attempt += 1
                await self.cluster.pause(attempt, deadline, error)
                if isinstance(error, NetworkException):  # it may be the same node at another address
                    with suppress(KafkaError):
                        await self.cluster.refresh()

    async def _find(self) -> int:
        connection = await self.cluster.any_connection()
        version = connection.version_for(ApiKey.FIND_COORDINATOR)
        request = (
            FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[self.group_id])
            if version >= BATCHED_KEYS_FROM
            else FindCoordinatorRequest(key=self.group_id, key_type=GROUP)
        )
        response = await connection.send(ApiKey.FIND_COORDINATOR, request, version, None)
        assert isinstance(response, FindCoordinatorResponse)
        row = response.coordinators[0] if response.coordinators else response
        raise_error(row.error_code)
        if row.node_id not in self.cluster.brokers:
            await self.cluster.refresh()
        return row.node_id

    def note(self, error: KafkaError) -> None:
        """Remember from an answer that the coordinator is another one."""
        if isinstance(error, NotCoordinator | CoordinatorNotAvailable | NetworkException):
            self.forget()

    async def pause_after(self, error: KafkaError, attempt: int, deadline: float | None = None) -> None:
        """Wait a little before another attempt. Raises `error` where another one would be in vain, or after `deadline`.

        Without one a membership goes on trying for ever, as Kafka's consumer does, and as that one warns of it.
        """
        self.note(error)
        is_passing = isinstance(error, NotCoordinator | CoordinatorNotAvailable | CoordinatorLoadInProgress)
        is_worth_telling = isinstance(error, NetworkException) or (is_passing and attempt >= LONG_ATTEMPTS)
        if deadline is None and is_worth_telling and attempt.bit_count() == 1:
            _log.warning("group %s cannot be reached, trying on: %s", self.group_id, error)
        if not is_passing and reaction_to(error) is Reaction.GIVE_UP:
            raise error
        if deadline is not None:
            await self.cluster.pause(attempt, deadline, error)
        else:
            await asyncio.sleep(self.cluster.retry_delay_seconds(attempt))
