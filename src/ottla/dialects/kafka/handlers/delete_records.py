"""DeleteRecords v0 to v2: let the records below an offset go, for each partition asked about.

A partition that stands twice gets one row, by what was asked last; the timeout does not matter, since nobody but this
broker has the records.
"""

from __future__ import annotations

from functools import partial

from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import ROWS_A_STEP, RequestContext, rows_in_steps
from ottla.dialects.kafka.errors import error_code
from ottla.errors import KafkaError
from ottla.model import NO_OFFSET
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


def handle(request: DeleteRecordsRequest, context: RequestContext) -> Steps[DeleteRecordsResponse]:
    asked: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            asked.setdefault(topic.name, {})[partition.partition_index] = partition
    topics = []
    for name, partitions in asked.items():
        rows = yield from rows_in_steps(partitions.values(), partial(_row, context, name))
        topics.append(DeleteRecordsTopicResult(name=name, partitions=rows))
        if len(topics) % ROWS_A_STEP == 0:
            yield
    return DeleteRecordsResponse(topics=topics)


def _row(context: RequestContext, topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    row = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=NO_OFFSET)
    try:
        row.low_watermark = context.broker.delete_records(topic, asked.partition_index, asked.offset)
    except KafkaError as error:
        row.error_code = error_code(error)
    return row
