"""DeleteTopics v1 to v6: by name, from v6 on also by id. The answer leaves when the deletion is durable."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ottla.broker.metadata.delete_topics import DeletedTopic, TopicReference, reference_error
from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import RequestContext, Settled, rows_in_steps
from ottla.dialects.kafka.durable import when_durable
from ottla.errors import InvalidRequest, KafkaError, RequestTimedOut, TopicDeletionDisabled
from ottla.model import TopicId
from ottla.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse

TOPIC_IDS_FROM_VERSION: Final = 6
DELETION_DISABLED_FROM_VERSION: Final = 3
"""Older clients do not know TOPIC_DELETION_DISABLED and are told INVALID_REQUEST."""


def handle(request: DeleteTopicsRequest, context: RequestContext) -> Steps[Settled]:
    references = yield from _references(request, context)
    error = _refusal(request, references, context)
    if error is not None:
        return _refused(references, error)
    try:
        committed = yield from context.broker.metadata.delete_topics_in_steps(references)
    except KafkaError as failure:
        return _refused(references, failure)
    response = DeleteTopicsResponse(responses=(yield from rows_in_steps(committed.answer, _row)))
    return when_durable(committed.ticket, response, lambda error: _refused(references, error))


def _references(request: DeleteTopicsRequest, context: RequestContext) -> Steps[list[TopicReference]]:
    if context.api_version >= TOPIC_IDS_FROM_VERSION:
        return rows_in_steps(request.topics, lambda topic: TopicReference(topic.name, TopicId(topic.topic_id)))
    return rows_in_steps(request.topic_names, TopicReference)


def _refusal(
    request: DeleteTopicsRequest, references: list[TopicReference], context: RequestContext
) -> KafkaError | None:
    """Why nothing is deleted at all. Kafka looks at the timeout only where something is left to be deleted."""
    if not context.broker.config.delete_topic_enable:
        if context.api_version < DELETION_DISABLED_FROM_VERSION:
            return InvalidRequest("Topics cannot be deleted here (delete.topic.enable is false).")
        return TopicDeletionDisabled("Topics cannot be deleted here (delete.topic.enable is false).")
    if request.timeout_ms > 0:
        return None
    times = Counter(references)
    asks_for_any = any(times[one] == 1 and reference_error(one) is None for one in references)
    return RequestTimedOut() if asks_for_any else None


def _refused(references: list[TopicReference], error: KafkaError) -> DeleteTopicsResponse:
    rows = [DeletedTopic(reference.name, reference.topic_id, error) for reference in references]
    return DeleteTopicsResponse(responses=[_row(row) for row in rows])


def _row(deleted: DeletedTopic) -> DeletableTopicResult:
    row = DeletableTopicResult(name=deleted.name, topic_id=deleted.topic_id)
    if deleted.error is not None:
        row.error_code = deleted.error.code
        row.error_message = deleted.error.message
    return row
