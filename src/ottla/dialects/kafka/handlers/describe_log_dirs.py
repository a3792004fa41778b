"""DescribeLogDirs v1 to v5: log directories, their volumes, and how large each partition's log is (KIP-113, KIP-827).

Partitions that are not here are left out. One that moves to another directory is there too, as a future replica, with
what it lacks. From v5 on a directory tells whether it takes new partitions (KIP-1066).
"""

from __future__ import annotations

from ottla.broker.administration import Administration
from ottla.dialects.kafka.answers import RequestContext
from ottla.dialects.kafka.errors import error_code
from ottla.engine import LogDirectoryFacts
from ottla.errors import KafkaStorageError, UnknownTopicOrPartition
from ottla.model import TopicPartition
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    administration = context.broker.administration
    wanted: set[TopicPartition] | None = None
    if request.topics is not None:
        wanted = {TopicPartition(asked.topic, number) for asked in request.topics for number in asked.partitions}
    return DescribeLogDirsResponse(
        results=[_result(directory, wanted, administration) for directory in administration.log_directories()]
    )


def _result(
    directory: LogDirectoryFacts, wanted: set[TopicPartition] | None, administration: Administration
) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(
        log_dir=directory.path,
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
        is_cordoned=directory.is_cordoned,
    )
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition in sorted(directory.partitions):
        if wanted is not None and partition not in wanted:
            continue
        try:
            size_bytes = administration.size_bytes(partition)
        except UnknownTopicOrPartition:
            continue
        except KafkaStorageError as error:
            return DescribeLogDirsResult(error_code=error_code(error), log_dir=directory.path)
        topic = topics.setdefault(partition.topic, DescribeLogDirsTopic(name=partition.topic))
        topic.partitions.append(
            DescribeLogDirsPartition(partition_index=partition.partition, partition_size=size_bytes)
        )
    for future in sorted(directory.futures):
        if wanted is None or future.partition in wanted:
            name, number = future.partition
            topic = topics.setdefault(name, DescribeLogDirsTopic(name=name))
            topic.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=number,
                    partition_size=future.size_bytes,
                    offset_lag=future.offset_lag,
                    is_future_key=True,
                )
            )
    result.topics = list(topics.values())
    return result
