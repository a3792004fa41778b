"""AlterReplicaLogDirs v1 and v2: which log directory shall have which partitions (KIP-113).

Each partition has one row. Of a partition that is asked for twice the last directory counts.
"""

from __future__ import annotations

from ottla.dialects.kafka.answers import RequestContext
from ottla.dialects.kafka.errors import error_code
from ottla.errors import NONE, KafkaError
from ottla.model import TopicPartition
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(request: AlterReplicaLogDirsRequest, context: RequestContext) -> AlterReplicaLogDirsResponse:
    wanted = {
        TopicPartition(topic.name, number): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for number in topic.partitions
    }
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for partition, path in wanted.items():
        topic = topics.setdefault(partition.topic, AlterReplicaLogDirTopicResult(topic_name=partition.topic))
        code = _keep(context, path, partition)
        topic.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=partition.partition, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def _keep(context: RequestContext, path: str, partition: TopicPartition) -> int:
    try:
        context.broker.administration.keep_log_in(path, partition)
    except KafkaError as error:
        return error_code(error)
    return NONE
