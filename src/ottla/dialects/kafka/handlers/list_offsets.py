"""ListOffsets v1 to v11: the offset of a time, of the start or of the end, for each partition asked about.

Which special timestamps exist depends on the version; one that it does not know is UNSUPPORTED_VERSION, also where no
version knows it. A partition that is asked for twice is refused, once. A topic without partitions is not answered.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.broker import Broker
from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import ROWS_A_STEP, RequestContext
from ottla.dialects.kafka.errors import error_code
from ottla.errors import InvalidRequest, KafkaError, UnsupportedVersion
from ottla.model import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    IsolationLevel,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LEADER_EPOCH_FROM_VERSION: Final = 4
CONSUMER_REPLICA_ID: Final = -1
"""Replicas and debuggers (-2) see the whole log."""

SPECIAL_FROM_VERSION: Final = {
    LATEST_TIMESTAMP: 1,
    EARLIEST_TIMESTAMP: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
NEVER: Final = 1 << 15


def handle(request: ListOffsetsRequest, context: RequestContext) -> Steps[ListOffsetsResponse]:
    isolation: IsolationLevel | None = None
    if request.replica_id == CONSUMER_REPLICA_ID:
        isolation = IsolationLevel.READ_COMMITTED if request.isolation_level else IsolationLevel.READ_UNCOMMITTED
    topics: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
    count = 0
    for topic in request.topics:
        rows = topics.setdefault(topic.name, {})
        for asked in topic.partitions:
            if asked.partition_index in rows:
                rows[asked.partition_index] = _refused(asked, InvalidRequest.code)
            else:
                rows[asked.partition_index] = _row(context, topic.name, asked, isolation)
            count += 1
            if count % ROWS_A_STEP == 0:
                yield
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=name, partitions=list(rows.values())) for name, rows in topics.items() if rows
        ]
    )


def _row(
    context: RequestContext, topic: str, asked: ListOffsetsPartition, isolation: IsolationLevel | None
) -> ListOffsetsPartitionResponse:
    if asked.timestamp < 0 and context.api_version < SPECIAL_FROM_VERSION.get(asked.timestamp, NEVER):
        return _refused(asked, UnsupportedVersion.code)
    broker: Broker = context.broker
    try:
        found = broker.offset_for_timestamp(
            topic, asked.partition_index, asked.timestamp, isolation, current_leader_epoch=asked.current_leader_epoch
        )
    except KafkaError as error:
        return _refused(asked, error_code(error))
    row = ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, timestamp=found.timestamp_ms, offset=found.offset
    )
    if context.api_version >= LEADER_EPOCH_FROM_VERSION:
        row.leader_epoch = found.leader_epoch
    return row


def _refused(asked: ListOffsetsPartition, code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)
