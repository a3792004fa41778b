"""GetTelemetrySubscriptions: which metrics clients shall send (KIP-714; API key 71)."""

from __future__ import annotations

from ottla.protocol.schema import Message, array, boolean, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Message, key=71, versions="0", flexible="0+"):
    """A client asks, at first without an id."""

    client_instance_id: bytes = uuid()


class GetTelemetrySubscriptionsResponse(Message, key=71, versions="0", flexible="0+"):
    """Its id, and which metrics to push, how often and how packed."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(int8)
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = boolean()
    requested_metrics: list[str] = array(string)
