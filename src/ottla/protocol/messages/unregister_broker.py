"""UnregisterBroker: forget a broker that will not come back (API key 64)."""

from __future__ import annotations

from ottla.protocol.schema import Message, int16, int32, string


class UnregisterBrokerRequest(Message, key=64, versions="0", flexible="0+"):
    """The broker to forget."""

    broker_id: int = int32()


class UnregisterBrokerResponse(Message, key=64, versions="0", flexible="0+"):
    """What became of it."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
