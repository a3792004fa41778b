"""DeleteRecords v0 to v2: let the records below an offset go, for each partition asked about."""

from __future__ import annotations

from ottla.dialects.kafka.answers import RequestContext
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


def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[_row(context, topic.name, asked) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _row(context: RequestContext, topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    row = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=NO_OFFSET)
    try:
        row.low_watermark = context.broker.delete_records(topic, asked.partition_index, asked.offset)
    except KafkaError as error:
        row.error_code = error_code(error)
    return row
