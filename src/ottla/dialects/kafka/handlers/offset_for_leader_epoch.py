"""OffsetForLeaderEpoch v2 to v4: where an epoch ends, so that a client sees whether its log and ours parted."""

from __future__ import annotations

from functools import partial

from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import ROWS_A_STEP, RequestContext, rows_in_steps
from ottla.dialects.kafka.errors import error_code
from ottla.errors import KafkaError
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(request: OffsetForLeaderEpochRequest, context: RequestContext) -> Steps[OffsetForLeaderEpochResponse]:
    topics = []
    for topic in request.topics:
        rows = yield from rows_in_steps(topic.partitions, partial(_row, context, topic.topic))
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=rows))
        if len(topics) % ROWS_A_STEP == 0:
            yield
    return OffsetForLeaderEpochResponse(topics=topics)


def _row(context: RequestContext, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        epoch, end_offset = context.broker.end_offset_for_epoch(
            topic, asked.partition, asked.leader_epoch, current_leader_epoch=asked.current_leader_epoch
        )
    except KafkaError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error_code(error))
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
