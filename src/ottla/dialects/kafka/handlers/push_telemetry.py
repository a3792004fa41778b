"""PushTelemetry v0: metrics that a client pushes, to be checked and dropped (KIP-714). Served, and not announced."""

from __future__ import annotations

from ottla.dialects.kafka.answers import RequestContext
from ottla.errors import KafkaError
from ottla.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


def handle(request: PushTelemetryRequest, context: RequestContext) -> PushTelemetryResponse:
    broker = context.broker
    try:
        broker.telemetry.push(
            request.client_instance_id,
            request.subscription_id,
            is_terminating=request.terminating,
            compression=request.compression_type,
            size_bytes=len(request.metrics),
            max_bytes=broker.config.integer("telemetry.max.bytes"),
        )
    except KafkaError as error:
        return PushTelemetryResponse(error_code=error.code)
    return PushTelemetryResponse()
