"""AlterConfigs v0 to v2: replace all settings of a resource. Old clients still send it."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.metadata.alter_configs import ConfigAlteration
from ottla.config.alter import Operation
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.durable import when_durable
from ottla.errors import KafkaError
from ottla.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse | LaterAnswer:
    alterations = [
        ConfigAlteration(
            resource.resource_type,
            resource.resource_name,
            [(config.name, Operation.SET, config.value) for config in resource.configs],
            replaces=True,
        )
        for resource in request.resources
    ]
    try:
        committed = context.broker.alter_configs(alterations, validate_only=request.validate_only)
    except KafkaError as error:
        return _response(request, [error] * len(request.resources))
    return when_durable(
        committed.ticket,
        _response(request, committed.answer),
        lambda error: _response(request, [error] * len(request.resources)),
    )


def _response(request: AlterConfigsRequest, outcomes: Sequence[KafkaError | None]) -> AlterConfigsResponse:
    response = AlterConfigsResponse()
    for resource, error in zip(request.resources, outcomes, strict=True):
        row = AlterConfigsResourceResponse(
            error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        if error is not None:
            row.error_code = error.code
            row.error_message = str(error)
        response.responses.append(row)
    return response
