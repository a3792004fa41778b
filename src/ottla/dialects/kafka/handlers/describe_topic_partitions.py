"""DescribeTopicPartitions v0: topics and their partitions in order, page by page (KIP-966).

A page ends when it has as many partitions as the client wants at most, and then its cursor says where the next begins.
An empty list of topics means all of them. What the client may do is told unasked.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.broker import Broker
from ottla.broker.metadata.image import PartitionImage, TopicImage
from ottla.broker.metadata.topic_names import is_legal_topic_name
from ottla.dialects.kafka.answers import RequestContext
from ottla.dialects.kafka.authorized_operations import TOPIC_OPERATIONS
from ottla.dialects.kafka.handlers.metadata import offline_replicas
from ottla.errors import InvalidRequest, InvalidTopicException, UnknownTopicOrPartition
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def handle(request: DescribeTopicPartitionsRequest, context: RequestContext) -> DescribeTopicPartitionsResponse:
    broker = context.broker
    named = [topic.name for topic in request.topics]
    cursor = request.cursor
    if cursor is not None and (cursor.partition_index < 0 or (named and cursor.topic_name not in named)):
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(error_code=InvalidRequest.code, name=name)
                for name in dict.fromkeys(named)
            ]
        )
    names = sorted(set(named) if named else broker.image.topic_names())
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    limit = min(request.response_partition_limit, broker.config.integer("max.request.partition.size.limit"))
    return _page(names, cursor, max(limit, 1), broker)


def _page(names: list[str], cursor: Cursor | None, limit: int, broker: Broker) -> DescribeTopicPartitionsResponse:
    response = DescribeTopicPartitionsResponse()
    for name in names:
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        if limit == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=first)
            return response
        topic = broker.image.topic(name)
        if topic is None:
            response.topics.append(_missing(name))
            continue
        shown = topic.partitions[first : first + limit]
        response.topics.append(_row(topic, shown, broker))
        limit -= len(shown)
        if first + len(shown) < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=first + len(shown))
            return response
    return response


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    error = UnknownTopicOrPartition if is_legal_topic_name(name) else InvalidTopicException
    return DescribeTopicPartitionsResponseTopic(
        error_code=error.code, name=name, topic_authorized_operations=TOPIC_OPERATIONS
    )


def _row(topic: TopicImage, shown: Sequence[PartitionImage], broker: Broker) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(partition, broker) for partition in shown],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(partition: PartitionImage, broker: Broker) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        partition_index=partition.partition,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.eligible_leader_replicas),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(partition, broker),
    )
