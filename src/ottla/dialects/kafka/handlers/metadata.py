"""Metadata v0 to v13: who is there and what they lead.

Asked for nothing, v0 tells of every topic and later versions of none; null means every topic. From v12 on topics can
be asked for by id; where one is, entries without an id are passed over, and an id wins over the name beside it. v10 and
v11 have the field but not the meaning: an id makes the whole request invalid.

A topic that is missing is made on the way where broker and client allow it; this answer still says that it is unknown
(Kafka's clients ask again), the next one knows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ottla.broker.broker import Broker
from ottla.broker.metadata.image import PartitionImage, TopicImage
from ottla.broker.metadata.topic_names import INTERNAL_TOPICS, is_legal_topic_name
from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import ROWS_A_STEP, RequestContext
from ottla.dialects.kafka.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from ottla.errors import InvalidRequest, InvalidTopicException, UnknownTopicId, UnknownTopicOrPartition
from ottla.model import METADATA_TOPIC, ZERO_TOPIC_ID, TopicId
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

TOPIC_IDS_FROM_VERSION: Final = 12
NO_CONTROLLER: Final = -1


def handle(request: MetadataRequest, context: RequestContext) -> Steps[MetadataResponse]:
    topics = request.topics
    if topics is not None and not _is_valid(topics, context):
        return _invalid(topics)
    broker = context.broker
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=one.node_id, host=one.host, port=one.port, rack=one.rack)
            for one in broker.membership.brokers(context.listener_name)
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
    )
    if topics is None or (not topics and context.api_version == 0):
        response.topics = yield from _in_steps(_known(topic, broker) for topic in list(broker.image.topics()))
    elif any(topic.topic_id != ZERO_TOPIC_ID for topic in topics):
        response.topics = yield from _in_steps(_by_id(topics, broker))
    else:
        missing: list[str] = []
        names = dict.fromkeys(topic.name or "" for topic in topics)
        response.topics = yield from _in_steps(_by_name(names, broker, missing))
        if missing and request.allow_auto_topic_creation and broker.config.auto_create_topics_enable:
            yield from broker.metadata.auto_create_topics_in_steps(name for name in missing if name != METADATA_TOPIC)
    if request.include_topic_authorized_operations:
        for row in response.topics:
            if row.error_code != UnknownTopicId.code:
                row.topic_authorized_operations = TOPIC_OPERATIONS
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _is_valid(topics: Iterable[MetadataRequestTopic], context: RequestContext) -> bool:
    if context.api_version < TOPIC_IDS_FROM_VERSION:
        return all(topic.name is not None and topic.topic_id == ZERO_TOPIC_ID for topic in topics)
    return all(topic.name is not None or topic.topic_id != ZERO_TOPIC_ID for topic in topics)


def _invalid(topics: Iterable[MetadataRequestTopic]) -> MetadataResponse:
    """The answer to a request that makes no sense names no broker and no cluster. (From v12 on Kafka's error is -1.)"""
    rows = [
        MetadataResponseTopic(error_code=InvalidRequest.code, name=topic.name or "", topic_id=topic.topic_id)
        for topic in topics
    ]
    return MetadataResponse(controller_id=NO_CONTROLLER, topics=rows, error_code=InvalidRequest.code)


def _in_steps(rows: Iterable[MetadataResponseTopic]) -> Steps[list[MetadataResponseTopic]]:
    """Find all rows, some at a time; one with many partitions counts for as many."""
    found: list[MetadataResponseTopic] = []
    count = 0
    for row in rows:
        found.append(row)
        count += 1 + len(row.partitions)
        if count >= ROWS_A_STEP:
            count = 0
            yield
    return found


def _by_id(topics: Iterable[MetadataRequestTopic], broker: Broker) -> Iterator[MetadataResponseTopic]:
    for topic_id in dict.fromkeys(topic.topic_id for topic in topics if topic.topic_id != ZERO_TOPIC_ID):
        found = broker.image.topic_by_id(TopicId(topic_id))
        if found is None:
            yield MetadataResponseTopic(error_code=UnknownTopicId.code, name=None, topic_id=topic_id)
        else:
            yield _known(found, broker)


def _by_name(names: Iterable[str], broker: Broker, missing: list[str]) -> Iterator[MetadataResponseTopic]:
    """Names that could be those of topics but are none yet are added to `missing`."""
    for name in names:
        found = broker.image.topic(name)
        if found is not None:
            yield _known(found, broker)
        elif is_legal_topic_name(name):
            missing.append(name)
            is_internal = name in INTERNAL_TOPICS
            code = UnknownTopicOrPartition.code
            yield MetadataResponseTopic(error_code=code, name=name, is_internal=is_internal)
        else:
            yield MetadataResponseTopic(error_code=InvalidTopicException.code, name=name)


def _known(topic: TopicImage, broker: Broker) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(partition, broker) for partition in topic.partitions],
    )


def _partition(partition: PartitionImage, broker: Broker) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=partition.partition,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=offline_replicas(partition, broker),
    )


def offline_replicas(partition: PartitionImage, broker: Broker) -> list[int]:
    """Replicas on brokers that are not there: in a directory taken over from a cluster there can be some."""
    if partition.replicas == (broker.node_id,):
        return []
    live = {one.node_id for one in broker.image.brokers() if not one.is_fenced}
    return [replica for replica in partition.replicas if replica not in live]
