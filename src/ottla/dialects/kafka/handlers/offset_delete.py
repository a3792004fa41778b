"""OffsetDelete v0: forget committed offsets, but for topics that a live group is subscribed to (KIP-496)."""

from __future__ import annotations

from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.handlers.group_rows import code_of
from ottla.errors import KafkaError, UnknownTopicOrPartition
from ottla.model import TopicPartition
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse | LaterAnswer:
    response = OffsetDeleteResponse(topics=[_topic(topic) for topic in request.topics])
    known: list[TopicPartition] = []
    rows: list[OffsetDeleteResponsePartition] = []
    for topic in response.topics:
        found = context.broker.find_topic(topic.name)
        for row in topic.partitions:
            if found is None or not 0 <= row.partition_index < len(found.partitions):
                row.error_code = UnknownTopicOrPartition.code
            else:
                known.append(TopicPartition(topic.name, row.partition_index))
                rows.append(row)
    later = LaterAnswer()

    def reply(outcomes: list[KafkaError | None]) -> None:
        for row, outcome in zip(rows, outcomes, strict=True):
            row.error_code = code_of(outcome)
        later.complete(response)

    try:
        context.broker.groups.delete_offsets(request.group_id, known, reply)
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=error.code)
    return later


def _topic(asked: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=asked.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=partition.partition_index) for partition in asked.partitions
        ],
    )
