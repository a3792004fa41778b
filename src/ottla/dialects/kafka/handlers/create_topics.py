"""CreateTopics v2 to v7: create topics, or with validate_only say what would become of them.

The answer leaves when the new topics are durable; very many are made by several batches of records. A timeout that is
over before we begin creates nothing; as in Kafka it is not looked at where nothing is left to be created.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final

from ottla.broker.broker import Broker
from ottla.broker.metadata.create_topics import CreatedTopic, NewTopic
from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import RequestContext, Settled, rows_in_steps
from ottla.dialects.kafka.durable import when_durable
from ottla.errors import KafkaError, RequestTimedOut
from ottla.model import METADATA_TOPIC
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

CONFIGS_FROM_VERSION: Final = 5
"""From it on the answer has the settings of each new topic (KIP-525)."""


def handle(request: CreateTopicsRequest, context: RequestContext) -> Steps[Settled]:
    if request.timeout_ms <= 0 and _asks_for_any(request):
        return _refusal(request, RequestTimedOut())
    metadata = context.broker.metadata
    try:
        topics = yield from rows_in_steps(request.topics, _new_topic)
        committed = yield from metadata.create_topics_in_steps(topics, validate_only=request.validate_only)
    except KafkaError as error:
        return _refusal(request, error)
    rows = yield from rows_in_steps(committed.answer.items(), partial(_row, context))
    response = CreateTopicsResponse(topics=rows)
    return when_durable(committed.ticket, response, lambda error: _refusal(request, error))


def _asks_for_any(request: CreateTopicsRequest) -> bool:
    counts = Counter(topic.name for topic in request.topics)
    return any(count == 1 and name != METADATA_TOPIC for name, count in counts.items())


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(assigned.partition_index, assigned.broker_ids) for assigned in topic.assignments],
        configs=[(config.name, config.value) for config in topic.configs],
    )


def _row(context: RequestContext, outcome: tuple[str, CreatedTopic | KafkaError]) -> CreatableTopicResult:
    name, created = outcome
    return _refused(name, created) if isinstance(created, KafkaError) else _created(created, context)


def _created(topic: CreatedTopic, context: RequestContext) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        configs=_configs(topic.configs, context.broker) if context.api_version >= CONFIGS_FROM_VERSION else None,
    )


def _configs(overrides: Mapping[str, str], broker: Broker) -> list[CreatableTopicConfigs]:
    """Every setting of the new topic; its own are shown as they were written."""
    from ottla.config.describe import ConfigSource  # with much else, for which a start has no time

    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=overrides[entry.name] if entry.source is ConfigSource.TOPIC else entry.value,
            config_source=entry.source,
        )
        for entry in broker.metadata.describe_topic_configs(overrides)
    ]


def _refusal(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_refused(topic.name, error) for topic in request.topics])


def _refused(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)
