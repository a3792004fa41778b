"""DescribeProducers v0: the idempotent and transactional producers that a partition's log remembers (KIP-664)."""

from __future__ import annotations

from functools import partial

from ottla.broker.metadata.topic_names import check_topic_name
from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import ROWS_A_STEP, RequestContext, rows_in_steps
from ottla.dialects.kafka.errors import error_code
from ottla.engine import ActiveProducer
from ottla.errors import KafkaError, UnknownTopicOrPartition
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)


def handle(request: DescribeProducersRequest, context: RequestContext) -> Steps[DescribeProducersResponse]:
    topics = []
    for asked in request.topics:
        topics.append((yield from _topic(asked, context)))
        if len(topics) % ROWS_A_STEP == 0:
            yield
    return DescribeProducersResponse(topics=topics)


def _topic(asked: TopicRequest, context: RequestContext) -> Steps[TopicResponse]:
    """A topic that is not there has a message, a partition that is not there has none."""
    broker = context.broker
    try:
        check_topic_name(asked.name)
        if broker.find_topic(asked.name) is None:
            raise UnknownTopicOrPartition(f"There is no topic '{asked.name}'.")
    except KafkaError as error:
        row = partial(_refused, error)
    else:
        row = partial(_partition, asked.name, context)
    rows = yield from rows_in_steps(asked.partition_indexes, row)
    return TopicResponse(name=asked.name, partitions=rows)


def _refused(error: KafkaError, number: int) -> PartitionResponse:
    return PartitionResponse(partition_index=number, error_code=error.code, error_message=error.message)


def _partition(topic: str, context: RequestContext, number: int) -> PartitionResponse:
    row = PartitionResponse(partition_index=number)
    broker = context.broker
    try:
        partition = broker.partition(topic, number).topic_partition
        row.active_producers = [_producer(one) for one in broker.administration.producers(partition)]
    except KafkaError as error:
        row.error_code = error_code(error)
    return row


def _producer(producer: ActiveProducer) -> ProducerState:
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp_ms,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.txn_first_offset,
    )
