"""Client metrics (KIP-714) of a broker that nobody takes metrics from: every client is asked for none.

Decides what clients are told who ask although the APIs are not announced, with Kafka's checks in its order: a client
has an id, comes no more often than once in an interval, and goes once. Metrics that are pushed all the same are
dropped. A bounded number of clients is remembered, those that came last.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from ottla.clock import Clock
from ottla.errors import (
    InvalidRequest,
    TelemetryTooLarge,
    ThrottlingQuotaExceeded,
    UnknownSubscriptionId,
    UnsupportedCompressionType,
)
from ottla.model import METADATA_TOPIC_ID, ZERO_TOPIC_ID

PUSH_INTERVAL_MS: Final = 300_000
SUBSCRIPTION_ID: Final = 1
"""The subscription to nothing, which everybody has."""
REMEMBERED_CLIENTS: Final = 16_384
RESERVED_IDS: Final = (bytes(ZERO_TOPIC_ID), bytes(METADATA_TOPIC_ID))


class TelemetryCompression(IntEnum):
    """How pushed metrics may be compressed; the number is the one on the wire."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class _Client:
    """What is remembered of one client; times are those of the monotonic clock."""

    __slots__ = ("asked_at", "is_gone", "may_ask_again", "pushed_at")

    def __init__(self) -> None:
        self.asked_at: float | None = None
        self.pushed_at: float | None = None
        self.is_gone = False
        self.may_ask_again = False
        """True when a push was refused in a way that a new subscription would mend."""


class Telemetry:
    """All clients that asked or pushed lately. Ids are 16 bytes."""

    __slots__ = ("_clients", "_clock", "_new_id")

    def __init__(self, clock: Clock, new_id: Callable[[], bytes]) -> None:
        self._clock = clock
        self._new_id = new_id
        self._clients: OrderedDict[bytes, _Client] = OrderedDict()

    def subscribe(self, client_id: bytes) -> bytes:
        """Answer GetTelemetrySubscriptions; returns the client's id, a new one for whoever has none yet.

        Raises `ThrottlingQuotaExceeded` for a client that was here within the interval.
        """
        if client_id in RESERVED_IDS:
            client_id = self._new_id()
        client = self._client(client_id)
        now = self._clock.monotonic()
        if self._is_within_interval(client.asked_at, now) and not client.may_ask_again:
            raise ThrottlingQuotaExceeded
        client.asked_at = now
        client.may_ask_again = False
        return client_id

    def push(
        self,
        client_id: bytes,
        subscription_id: int,
        *,
        is_terminating: bool,
        compression: int,
        size_bytes: int,
        max_bytes: int,
    ) -> None:
        """Take pushed metrics, to drop them. Raises what is wrong with the push."""
        if client_id in RESERVED_IDS:
            raise InvalidRequest("The client has no id.")
        client = self._client(client_id)
        if client.is_gone:
            raise InvalidRequest("The client had said that it would push no more.")
        now = self._clock.monotonic()
        if self._is_within_interval(client.pushed_at, now) and not is_terminating:
            client.may_ask_again = False
            raise ThrottlingQuotaExceeded
        client.pushed_at = now
        client.is_gone = is_terminating
        client.may_ask_again = True
        if subscription_id != SUBSCRIPTION_ID:
            raise UnknownSubscriptionId
        if compression not in tuple(TelemetryCompression):
            raise UnsupportedCompressionType
        client.may_ask_again = False
        if size_bytes > max_bytes:
            raise TelemetryTooLarge

    def _client(self, client_id: bytes) -> _Client:
        client = self._clients.get(client_id)
        if client is None:
            client = self._clients[client_id] = _Client()
            if len(self._clients) > REMEMBERED_CLIENTS:
                self._clients.popitem(last=False)
        else:
            self._clients.move_to_end(client_id)
        return client

    def _is_within_interval(self, since: float | None, now: float) -> bool:
        return since is not None and now - since < PUSH_INTERVAL_MS / 1000
