"""GetTelemetrySubscriptions v0: which metrics a client shall push: none (KIP-714). Served, and not announced."""

from __future__ import annotations

from typing import Final

from ottla.broker.telemetry import PUSH_INTERVAL_MS, SUBSCRIPTION_ID, TelemetryCompression
from ottla.dialects.kafka.answers import RequestContext
from ottla.errors import KafkaError
from ottla.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

PREFERRED_FIRST: Final = (
    TelemetryCompression.ZSTD,
    TelemetryCompression.LZ4,
    TelemetryCompression.GZIP,
    TelemetryCompression.SNAPPY,
)


def handle(request: GetTelemetrySubscriptionsRequest, context: RequestContext) -> GetTelemetrySubscriptionsResponse:
    broker = context.broker
    try:
        client_id = broker.telemetry.subscribe(request.client_instance_id)
    except KafkaError as error:
        return GetTelemetrySubscriptionsResponse(error_code=error.code)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=client_id,
        subscription_id=SUBSCRIPTION_ID,
        accepted_compression_types=list(PREFERRED_FIRST),
        push_interval_ms=PUSH_INTERVAL_MS,
        telemetry_max_bytes=broker.config.integer("telemetry.max.bytes"),
        delta_temporality=True,
    )
