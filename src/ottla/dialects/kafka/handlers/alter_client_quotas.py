"""AlterClientQuotas v0 and v1: set and remove limits of users, client ids and addresses (KIP-546)."""

from __future__ import annotations

from ottla.broker.metadata.alter_client_quotas import QuotaAlteration, QuotaAnswer
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.durable import when_durable
from ottla.errors import KafkaError
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    EntityData,
)


def handle(request: AlterClientQuotasRequest, context: RequestContext) -> AlterClientQuotasResponse | LaterAnswer:
    alterations = [_alteration(entry) for entry in request.entries]

    def refuse(error: KafkaError) -> AlterClientQuotasResponse:
        return _response([(alteration.entity, error) for alteration in alterations])

    try:
        committed = context.broker.administration.alter_client_quotas(alterations, validate_only=request.validate_only)
    except KafkaError as error:
        return refuse(error)
    return when_durable(committed.ticket, _response(committed.answer), refuse)


def _alteration(entry: AlterClientQuotasRequestEntryData) -> QuotaAlteration:
    entity = {part.entity_type: part.entity_name for part in entry.entity}
    return QuotaAlteration(entity, [(op.key, None if op.remove else op.value) for op in entry.ops])


def _response(outcomes: QuotaAnswer) -> AlterClientQuotasResponse:
    response = AlterClientQuotasResponse()
    for entity, error in outcomes:
        response.entries.append(
            AlterClientQuotasResponseEntryData(
                error_code=0 if error is None else error.code,
                error_message=None if error is None else str(error),
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
            )
        )
    return response
