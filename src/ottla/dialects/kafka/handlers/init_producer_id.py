"""InitProducerId v0 to v5: a producer id for an idempotent producer.

A null transactional id asks for nothing but an id that nobody had; what else the request says about id and epoch does
not count then. A transactional id is checked as Kafka checks it, and then has no coordinator here.
"""

from __future__ import annotations

from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.durable import when_durable
from ottla.errors import CoordinatorNotAvailable, InvalidRequest, InvalidTransactionTimeout, KafkaError
from ottla.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse | LaterAnswer:
    try:
        _check_request(request, context)
        committed = context.broker.metadata.next_producer_id()
    except KafkaError as error:
        return _refused(error)
    response = InitProducerIdResponse(producer_id=committed.answer, producer_epoch=0)
    return when_durable(committed.ticket, response, _refused)


def _check_request(request: InitProducerIdRequest, context: RequestContext) -> None:
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise InvalidRequest
    if request.transactional_id is None:
        return
    if not request.transactional_id:
        raise InvalidRequest
    if not 0 < request.transaction_timeout_ms <= context.broker.config.integer("transaction.max.timeout.ms"):
        raise InvalidTransactionTimeout
    raise CoordinatorNotAvailable


def _refused(error: KafkaError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_epoch=NO_PRODUCER_EPOCH)
