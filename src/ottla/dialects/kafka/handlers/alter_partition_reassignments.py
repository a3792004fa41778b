"""AlterPartitionReassignments v0 and v1: which brokers shall have a partition (KIP-455, KIP-860)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.metadata.reassign_partitions import Reassignment
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.durable import when_durable
from ottla.errors import KafkaError
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse | LaterAnswer:
    if not request.topics:
        response = _response(request, ())
        response.error_message = ""
        return response
    asked = [
        Reassignment(topic.name, partition.partition_index, partition.replicas)
        for topic in request.topics
        for partition in topic.partitions
    ]
    try:
        committed = context.broker.administration.reassign_partitions(
            asked, allow_replication_factor_change=request.allow_replication_factor_change
        )
    except KafkaError as error:
        return _response(request, [error] * len(asked))
    return when_durable(
        committed.ticket,
        _response(request, committed.answer),
        lambda error: _response(request, [error] * len(asked)),
    )


def _response(
    request: AlterPartitionReassignmentsRequest, outcomes: Sequence[KafkaError | None]
) -> AlterPartitionReassignmentsResponse:
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None
    )
    rows = iter(outcomes)
    for topic in request.topics:
        partitions = [_row(partition.partition_index, next(rows)) for partition in topic.partitions]
        response.responses.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
    return response


def _row(number: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    row = ReassignablePartitionResponse(partition_index=number, error_message=None)
    if error is not None:
        row.error_code = error.code
        row.error_message = error.message  # a reassignment that is not under way gets none, as in Kafka
    return row
