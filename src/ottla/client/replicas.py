"""Administration of replicas: where they lie, who leads, who writes to them, and having them moved.

`admin.replicas` has it. Moves and elections are begun, not waited for.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.controller import ask_controller, by_topic, known_node, named_error
from ottla.client.errors import raise_error
from ottla.errors import KafkaError, LeaderNotAvailable, error_for_code
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)

Outcomes = dict[TopicPartition, "KafkaError | None"]


class Election(IntEnum):
    """Which leader is wanted; the numbers are the wire's."""

    PREFERRED = 0
    UNCLEAN = 1


class ReplicaSize(NamedTuple):
    """A replica on disk. One that is being moved to the directory is a future one, `offset_lag` behind the present."""

    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A log directory of a broker. Sizes of its volume are None where the broker does not tell."""

    path: str
    replicas: Mapping[TopicPartition, ReplicaSize]
    total_bytes: int | None
    usable_bytes: int | None
    is_cordoned: bool


class ActiveProducer(NamedTuple):
    """A producer as a partition remembers it; what it does not know is -1."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    txn_start_offset: int


class Reassignment(NamedTuple):
    """A move that is under way."""

    replicas: Sequence[int]
    adding: Sequence[int]
    removing: Sequence[int]


class Replicas:
    """What an administrator does with replicas."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # ---- on disk

    async def log_dirs(
        self, node_id: int | None = None, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[str, LogDirectory | KafkaError]:
        """Return a broker's log directories by path (any broker's when None), with all replicas or these."""
        topics = None
        if partitions is not None:
            topics = [
                DescribableLogDirTopic(topic=name, partitions=numbers) for name, numbers in by_topic(partitions).items()
            ]
        response = await self._cluster.call(
            ApiKey.DESCRIBE_LOG_DIRS,
            DescribeLogDirsRequest(topics=topics),
            DescribeLogDirsResponse,
            await known_node(self._cluster, node_id),
        )
        raise_error(response.error_code)
        return {
            row.log_dir: named_error(row.error_code, None, row.log_dir) or _directory(row) for row in response.results
        }

    async def move_to_directories(self, node_id: int, paths: Mapping[TopicPartition, str]) -> Outcomes:
        """Have a broker move replicas to other ones of its directories."""
        directories: defaultdict[str, list[TopicPartition]] = defaultdict(list)
        for partition, path in paths.items():
            directories[path].append(partition)
        request = AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path=path,
                    topics=[
                        AlterReplicaLogDirTopic(name=name, partitions=numbers)
                        for name, numbers in by_topic(partitions).items()
                    ],
                )
                for path, partitions in directories.items()
            ]
        )
        response = await self._cluster.call(
            ApiKey.ALTER_REPLICA_LOG_DIRS,
            request,
            AlterReplicaLogDirsResponse,
            await known_node(self._cluster, node_id),
        )
        return {
            TopicPartition(topic.topic_name, row.partition_index): named_error(
                row.error_code, None, TopicPartition(topic.topic_name, row.partition_index)
            )
            for topic in response.results
            for row in topic.partitions
        }

    # ---- leaders and brokers

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None = None, election: Election = Election.PREFERRED
    ) -> Outcomes:
        """Have leaders elected anew, of all partitions when None. `ElectionNotNeeded` says that all is as wanted."""
        topics = None
        if partitions is not None:
            topics = [TopicPartitions(topic=name, partitions=numbers) for name, numbers in by_topic(partitions).items()]
        request = ElectLeadersRequest(election_type=election, topic_partitions=topics, timeout_ms=self._timeout_ms)
        response = await ask_controller(self._cluster, ApiKey.ELECT_LEADERS, request, ElectLeadersResponse)
        raise_error(response.error_code)
        return {
            TopicPartition(topic.topic, row.partition_id): error_for_code(row.error_code, row.error_message)
            for topic in response.replica_election_results
            for row in topic.partition_result
        }

    async def reassign(self, replicas: Mapping[TopicPartition, Sequence[int] | None]) -> Outcomes:
        """Move partitions to these brokers; None takes a move back that is under way."""
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self._timeout_ms,
            topics=[
                ReassignableTopic(
                    name=name,
                    partitions=[_reassignable(number, replicas[TopicPartition(name, number)]) for number in numbers],
                )
                for name, numbers in by_topic(replicas).items()
            ],
        )
        response = await ask_controller(
            self._cluster, ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, AlterPartitionReassignmentsResponse
        )
        raise_error(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, row.partition_index): error_for_code(row.error_code, row.error_message)
            for topic in response.responses
            for row in topic.partitions
        }

    async def reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Return which moves are under way."""
        topics = None
        if partitions is not None:
            topics = [
                ListPartitionReassignmentsTopics(name=name, partition_indexes=numbers)
                for name, numbers in by_topic(partitions).items()
            ]
        request = ListPartitionReassignmentsRequest(timeout_ms=self._timeout_ms, topics=topics)
        response = await ask_controller(
            self._cluster, ApiKey.LIST_PARTITION_REASSIGNMENTS, request, ListPartitionReassignmentsResponse
        )
        raise_error(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, row.partition_index): Reassignment(
                row.replicas, row.adding_replicas, row.removing_replicas
            )
            for topic in response.topics
            for row in topic.partitions
        }

    # ---- producers

    async def producers(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, list[ActiveProducer] | KafkaError]:
        """Return who has written to partitions lately, as their leaders remember it (KIP-664)."""
        wanted = list(partitions)
        for name in {partition.topic for partition in wanted}:
            await self._cluster.topic(name, patience_ms=0)
        by_leader: defaultdict[int | None, list[TopicPartition]] = defaultdict(list)
        for partition in wanted:
            by_leader[self._cluster.leader_of(partition)].append(partition)
        found: dict[TopicPartition, list[ActiveProducer] | KafkaError] = {
            partition: LeaderNotAvailable(f"{partition} has no leader") for partition in by_leader.pop(None, [])
        }
        for rows in await asyncio.gather(*(self._producers(node, some) for node, some in by_leader.items())):
            found.update(rows)
        return found

    async def _producers(
        self, node_id: int | None, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, list[ActiveProducer] | KafkaError]:
        topics = [TopicRequest(name=name, partition_indexes=numbers) for name, numbers in by_topic(partitions).items()]
        response = await self._cluster.call(
            ApiKey.DESCRIBE_PRODUCERS, DescribeProducersRequest(topics=topics), DescribeProducersResponse, node_id
        )
        return {
            TopicPartition(topic.name, row.partition_index): error_for_code(row.error_code, row.error_message)
            or [
                ActiveProducer(
                    one.producer_id,
                    one.producer_epoch,
                    one.last_sequence,
                    one.last_timestamp,
                    one.coordinator_epoch,
                    one.current_txn_start_offset,
                )
                for one in row.active_producers
            ]
            for topic in response.topics
            for row in topic.partitions
        }

    @property
    def _timeout_ms(self) -> int:
        return self._cluster.settings.connection.request_timeout_ms


def _directory(row: DescribeLogDirsResult) -> LogDirectory:
    replicas = {
        TopicPartition(topic.name, one.partition_index): ReplicaSize(
            one.partition_size, one.offset_lag, one.is_future_key
        )
        for topic in row.topics
        for one in topic.partitions
    }
    total_bytes = row.total_bytes if row.total_bytes >= 0 else None
    usable_bytes = row.usable_bytes if row.usable_bytes >= 0 else None
    return LogDirectory(row.log_dir, replicas, total_bytes, usable_bytes, row.is_cordoned)


def _reassignable(number: int, replicas: Sequence[int] | None) -> ReassignablePartition:
    return ReassignablePartition(partition_index=number, replicas=None if replicas is None else list(replicas))
