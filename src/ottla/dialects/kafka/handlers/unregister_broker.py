"""UnregisterBroker v0: forget a broker that is gone for good (KIP-500)."""

from __future__ import annotations

from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.durable import when_durable
from ottla.errors import KafkaError
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(request: UnregisterBrokerRequest, context: RequestContext) -> UnregisterBrokerResponse | LaterAnswer:
    try:
        committed = context.broker.administration.unregister_broker(request.broker_id)
    except KafkaError as error:
        return _refusal(error)
    return when_durable(committed.ticket, UnregisterBrokerResponse(error_message=""), _refusal)


def _refusal(error: KafkaError) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=error.code, error_message=str(error))
