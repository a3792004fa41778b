"""PushTelemetry: a client's metrics (KIP-714; API key 72)."""

from __future__ import annotations

from ottla.protocol.schema import Message, boolean, int8, int16, int32, octets, uuid


class PushTelemetryRequest(Message, key=72, versions="0", flexible="0+"):
    """Metrics as OTLP protobuf, perhaps compressed, opaque here."""

    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    terminating: bool = boolean()
    compression_type: int = int8()
    metrics: bytes = octets()


class PushTelemetryResponse(Message, key=72, versions="0", flexible="0+"):
    """Whether they were taken."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
