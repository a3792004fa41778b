"""OffsetForLeaderEpoch v2 to v4: where an epoch ends, so that a client sees whether its log and ours parted."""

from __future__ import annotations

from ottla.dialects.kafka.answers import RequestContext
from ottla.dialects.kafka.errors import error_code
from ottla.errors import KafkaError
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(request: OffsetForLeaderEpochRequest, context: RequestContext) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_row(context, topic.topic, asked) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _row(context: RequestContext, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        epoch, end_offset = context.broker.end_offset_for_epoch(
            topic, asked.partition, asked.leader_epoch, current_leader_epoch=asked.current_leader_epoch
        )
    except KafkaError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error_code(error))
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
