"""DescribeClientQuotas v0 and v1: the limits of those users, client ids and addresses that match (KIP-546)."""

from __future__ import annotations

from ottla.broker.metadata.client_quotas import QuotaFilter
from ottla.dialects.kafka.answers import RequestContext
from ottla.errors import KafkaError
from ottla.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


def handle(request: DescribeClientQuotasRequest, context: RequestContext) -> DescribeClientQuotasResponse:
    filters = [QuotaFilter(part.entity_type, part.match_type, part.match) for part in request.components]
    try:
        found = context.broker.administration.client_quotas(filters, strict=request.strict)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=str(error), entries=None)
    return DescribeClientQuotasResponse(
        error_message="",
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in sorted(entity)],
                values=[ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for entity, quotas in found
        ],
    )
