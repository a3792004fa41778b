"""Connections to addresses, none tried sooner than its last failures allow; the pauses grow (KIP-144).

Which address, and what it stands for, is `cluster`'s business.
"""

from __future__ import annotations

import asyncio
import random

from ottla.client.connection import Connection, ConnectionSettings, format_address, open_connection
from ottla.client.errors import ConnectionLost
from ottla.client.retry import Backoff


class Dialer:
    """Opens connections and remembers how it went."""

    __slots__ = ("_backoff", "_failures", "_retry_at", "_settings")

    def __init__(self, settings: ConnectionSettings, backoff: Backoff) -> None:
        self._settings = settings
        self._backoff = backoff
        self._failures: dict[str, int] = {}
        self._retry_at: dict[str, float] = {}

    async def connect(self, host: str, port: int) -> Connection:
        """Connect, after the pause that is due. Raises `ConnectionLost` and what authentication raises."""
        address = format_address(host, port)
        loop = asyncio.get_running_loop()
        wait = self._retry_at.get(address, 0.0) - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        try:
            connection = await open_connection(host, port, self._settings)
        except ConnectionLost:
            failures = self._failures[address] = self._failures.get(address, 0) + 1
            self._retry_at[address] = loop.time() + self._backoff.delay_seconds(failures, random.random)
            raise
        self._failures.pop(address, None)
        self._retry_at.pop(address, None)
        return connection
