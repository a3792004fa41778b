"""CreatePartitions v0 to v3: give topics more partitions. The answer leaves when they are durable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ottla.broker.metadata.create_partitions import GrownTopic
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.durable import when_durable
from ottla.errors import KafkaError, RequestTimedOut
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def handle(request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse | LaterAnswer:
    names = Counter(topic.name for topic in request.topics)
    if request.timeout_ms <= 0 and 1 in names.values():  # Kafka looks at it only where something is left to be done
        return _response(dict.fromkeys(names, RequestTimedOut()))
    try:
        committed = context.broker.metadata.create_partitions(
            [_grown_topic(topic) for topic in request.topics], validate_only=request.validate_only
        )
    except KafkaError as error:
        return _response(dict.fromkeys(names, error))
    return when_durable(
        committed.ticket, _response(committed.answer), lambda error: _response(dict.fromkeys(names, error))
    )


def _grown_topic(topic: CreatePartitionsTopic) -> GrownTopic:
    assignments = topic.assignments
    brokers = None if assignments is None else [assigned.broker_ids for assigned in assignments]
    return GrownTopic(topic.name, topic.count, brokers)


def _response(outcomes: Mapping[str, KafkaError | None]) -> CreatePartitionsResponse:
    response = CreatePartitionsResponse()
    for name, error in outcomes.items():
        row = CreatePartitionsTopicResult(name=name)
        if error is not None:
            row.error_code = error.code
            row.error_message = error.message  # an unknown topic gets none, as in Kafka
        response.results.append(row)
    return response
