"""UnregisterController v0: forget a controller that is gone for good."""

from __future__ import annotations

from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.durable import when_durable
from ottla.errors import KafkaError
from ottla.protocol.messages.unregister_controller import UnregisterControllerRequest, UnregisterControllerResponse


def handle(request: UnregisterControllerRequest, context: RequestContext) -> UnregisterControllerResponse | LaterAnswer:
    try:
        committed = context.broker.administration.unregister_controller(request.controller_id)
    except KafkaError as error:
        return _refusal(error)
    return when_durable(committed.ticket, UnregisterControllerResponse(error_message=""), _refusal)


def _refusal(error: KafkaError) -> UnregisterControllerResponse:
    return UnregisterControllerResponse(error_code=error.code, error_message=str(error))
