"""`Admin`: topics, offsets, settings and the cluster itself.

    async with Admin("localhost:9092") as admin:
        await admin.create_topic("orders", partitions=6, configs={"retention.ms": "86400000"})

Calls about several things answer per thing: a mapping from name to result or to the `KafkaError` that the cluster gave
for it. Their singular forms raise. What the cluster as a whole cannot do (`UnsupportedVersion`) and an unreachable
cluster always raise. Requests go to any broker, which passes on what is the controller's; to the leader or the broker
they concern where Kafka wants that.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from ottla.client.cluster import Cluster, ClusterSettings
from ottla.client.configs import (
    ConfigEntry,
    ConfigResource,
    ConfigValue,
    ResourceType,
    alteration_rows,
    config_entries,
    describe_rows,
)
from ottla.client.controller import ask_controller, known_node, named_error, only
from ottla.client.errors import raise_error
from ottla.client.offsets import OffsetAndTimestamp, list_offsets
from ottla.client.topology import BrokerAddress, TopicInfo, topic_info
from ottla.errors import KafkaError, LeaderNotAvailable, error_for_code
from ottla.model import IsolationLevel, TopicId, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from ottla.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

if TYPE_CHECKING:
    from ottla.client.groups import Groups
    from ottla.client.quorum import Quorum
    from ottla.client.replicas import Replicas
    from ottla.client.users import Users

BROKER_DEFAULT: Final = -1
"""A partition count or replication factor of -1 leaves the choice to the cluster (KIP-464)."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created. `assignments` gives the replicas of each partition in place of the two counts."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    configs: Mapping[str, str] | None = None
    assignments: Mapping[int, Sequence[int]] | None = None


class CreatedTopic(NamedTuple):
    """A topic as it was created; counts are -1 and the id is zero where an old broker does not tell."""

    name: str
    topic_id: TopicId
    partitions: int
    replication_factor: int


class ClusterDescription(NamedTuple):
    """A cluster as one of its brokers sees it. `controller_id` is -1 when it names none."""

    cluster_id: str | None
    controller_id: int
    brokers: Sequence[BrokerAddress]


class Admin:
    """Administers any Kafka-compatible cluster. Use it on one event loop."""

    def __init__(self, bootstrap: str | Iterable[str], *, cluster: ClusterSettings | None = None) -> None:
        self._cluster = Cluster(bootstrap, cluster or ClusterSettings(allow_auto_create_topics=False))

    # ---- parts, which are imported when they are asked for: most programs ask for none

    @cached_property
    def groups(self) -> Groups:
        """All about groups and their offsets."""
        from ottla.client.groups import Groups

        return Groups(self._cluster)

    @cached_property
    def replicas(self) -> Replicas:
        """Log directories, elections, reassignments, producers."""
        from ottla.client.replicas import Replicas

        return Replicas(self._cluster)

    @cached_property
    def users(self) -> Users:
        """Quotas and SCRAM credentials."""
        from ottla.client.users import Users

        return Users(self._cluster)

    @cached_property
    def quorum(self) -> Quorum:
        """The metadata quorum, feature levels, brokers that are gone."""
        from ottla.client.quorum import Quorum

        return Quorum(self._cluster)

    # ---- life

    async def start(self) -> None:
        """Reach the cluster. Raises `ClusterUnreachable`."""
        await self._cluster.start()

    async def close(self) -> None:
        """Close the connections."""
        await self._cluster.close()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # ---- topics

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, str] | None = None,
    ) -> CreatedTopic:
        """Create one topic. Raises `TopicAlreadyExists`, `InvalidTopicException`, `InvalidConfig` and the like."""
        results = await self.create_topics([NewTopic(name, partitions, replication_factor, configs)])
        return only(results)

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> dict[str, CreatedTopic | KafkaError]:
        """Create topics, or only look whether that would work."""
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics],
            timeout_ms=self._timeout_ms,
            validate_only=validate_only,
        )
        response = await ask_controller(self._cluster, ApiKey.CREATE_TOPICS, request, CreateTopicsResponse)
        return {
            row.name: error_for_code(row.error_code, row.error_message)
            or CreatedTopic(row.name, TopicId(row.topic_id), row.num_partitions, row.replication_factor)
            for row in response.topics
        }

    async def delete_topic(self, name: str) -> None:
        """Delete one topic. Raises `UnknownTopicOrPartition` and the like."""
        only(await self.delete_topics([name]))

    async def delete_topics(self, names: Sequence[str]) -> dict[str, KafkaError | None]:
        """Delete topics with all their records."""
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in names],
            topic_names=list(names),
            timeout_ms=self._timeout_ms,
        )
        connection = await self._cluster.any_connection()
        if connection.version_for(ApiKey.DELETE_TOPICS) < 6:
            request.topics = []
        response = await ask_controller(self._cluster, ApiKey.DELETE_TOPICS, request, DeleteTopicsResponse)
        return {row.name or "": named_error(row.error_code, row.error_message, row.name) for row in response.responses}

    async def grow_topic(self, name: str, partitions: int) -> None:
        """Raise a topic's partition count. Raises `InvalidPartitions` when it is not larger."""
        only(await self.grow_topics({name: partitions}))

    async def grow_topics(
        self, counts: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, KafkaError | None]:
        """Raise partition counts. Keys move: records of one key may go to another partition from now on."""
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in counts.items()],
            timeout_ms=self._timeout_ms,
            validate_only=validate_only,
        )
        response = await ask_controller(self._cluster, ApiKey.CREATE_PARTITIONS, request, CreatePartitionsResponse)
        return {row.name: named_error(row.error_code, row.error_message, row.name) for row in response.results}

    async def list_topics(self, *, include_internal: bool = False) -> list[TopicInfo]:
        """Return all topics by name; internal ones (`__consumer_offsets`, ...) only when asked for."""
        response = await self._cluster.ask_metadata(None)
        topics = [topic_info(row) for row in response.topics if not row.error_code]
        return sorted(topic for topic in topics if include_internal or not topic.is_internal)

    async def describe_topic(self, name: str) -> TopicInfo:
        """Return one topic. Raises `UnknownTopicOrPartition` and the like."""
        return only(await self.describe_topics([name]))

    async def describe_topics(self, names: Sequence[str]) -> dict[str, TopicInfo | KafkaError]:
        """Return topics with their partitions, leaders and replicas. Creates nothing."""
        response = await self._cluster.ask_metadata(names)
        self._cluster.update(response)
        return {
            row.name or "": named_error(row.error_code, None, row.name) or topic_info(row) for row in response.topics
        }

    # ---- offsets

    async def list_offsets(
        self,
        timestamps_ms: Mapping[TopicPartition, int],
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError]:
        """Return the first offset at or after each timestamp, which may be one of `ottla.model`'s special ones."""
        self._cluster.want({partition.topic for partition in timestamps_ms})
        return await list_offsets(self._cluster, timestamps_ms, isolation_level)

    async def delete_records(
        self, before_offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | KafkaError]:
        """Delete all records below an offset (-1: all up to the high watermark); returns the new log starts."""
        for name in {partition.topic for partition in before_offsets}:
            await self._cluster.topic(name, patience_ms=0)
        by_leader: defaultdict[int | None, dict[TopicPartition, int]] = defaultdict(dict)
        for partition, offset in before_offsets.items():
            by_leader[self._cluster.leader_of(partition)][partition] = offset
        results: dict[TopicPartition, int | KafkaError] = {
            partition: LeaderNotAvailable(f"{partition} has no leader") for partition in by_leader.pop(None, {})
        }
        answers = await asyncio.gather(*(self._delete_records(node, rows) for node, rows in by_leader.items()))
        for answer in answers:
            results.update(answer)
        return results

    async def _delete_records(
        self, node_id: int | None, before_offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | KafkaError]:
        topics: defaultdict[str, list[DeleteRecordsPartition]] = defaultdict(list)
        for partition, offset in before_offsets.items():
            topics[partition.topic].append(DeleteRecordsPartition(partition_index=partition.partition, offset=offset))
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=name, partitions=rows) for name, rows in topics.items()],
            timeout_ms=self._timeout_ms,
        )
        response = await self._cluster.call(ApiKey.DELETE_RECORDS, request, DeleteRecordsResponse, node_id)
        return {
            TopicPartition(topic.name, row.partition_index): named_error(
                row.error_code, None, f"{topic.name}-{row.partition_index}"
            )
            or row.low_watermark
            for topic in response.topics
            for row in topic.partitions
        }

    # ---- settings

    async def describe_configs(
        self, resources: Sequence[ConfigResource], names: Sequence[str] | None = None
    ) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
        """Return settings with where each value comes from; all of them unless `names` are given."""
        results: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
        for node_id, group in _by_broker(resources).items():
            request = DescribeConfigsRequest(
                resources=describe_rows(group, names), include_synonyms=True, include_documentation=False
            )
            response = await self._cluster.call(
                ApiKey.DESCRIBE_CONFIGS, request, DescribeConfigsResponse, await known_node(self._cluster, node_id)
            )
            for row in response.results:
                resource = ConfigResource.of(row.resource_type, row.resource_name)
                results[resource] = error_for_code(row.error_code, row.error_message) or config_entries(row)
        return results

    async def alter_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, ConfigValue]], *, validate_only: bool = False
    ) -> dict[ConfigResource, KafkaError | None]:
        """Change single settings and leave the others (KIP-339): text sets, None goes back to the default."""
        results: dict[ConfigResource, KafkaError | None] = {}
        for node_id, group in _by_broker(changes).items():
            request = IncrementalAlterConfigsRequest(
                resources=alteration_rows({resource: changes[resource] for resource in group}),
                validate_only=validate_only,
            )
            response = await self._cluster.call(
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                request,
                IncrementalAlterConfigsResponse,
                await known_node(self._cluster, node_id),
            )
            for row in response.responses:
                resource = ConfigResource.of(row.resource_type, row.resource_name)
                results[resource] = error_for_code(row.error_code, row.error_message)
        return results

    async def list_config_resources(self, types: Iterable[ResourceType] = ()) -> list[ConfigResource]:
        """Return what has settings, of all types when none is named (KIP-1142)."""
        request = ListConfigResourcesRequest(resource_types=list(types))
        response = await self._cluster.call(ApiKey.LIST_CONFIG_RESOURCES, request, ListConfigResourcesResponse)
        raise_error(response.error_code)
        return sorted(ConfigResource.of(row.resource_type, row.resource_name) for row in response.config_resources)

    # ---- the cluster

    async def describe_cluster(self) -> ClusterDescription:
        """Return the cluster's id, controller and brokers."""
        connection = await self._cluster.any_connection()
        if ApiKey.DESCRIBE_CLUSTER not in connection.versions:
            await self._cluster.refresh()
            brokers = sorted(self._cluster.brokers.values())
            return ClusterDescription(self._cluster.cluster_id, self._cluster.controller_id, brokers)
        response = await self._cluster.call(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(), DescribeClusterResponse)
        raise_error(response.error_code, response.error_message)
        rows = [BrokerAddress(row.broker_id, row.host, row.port, row.rack) for row in response.brokers]
        return ClusterDescription(response.cluster_id, response.controller_id, sorted(rows))

    async def acquire_producer_id(self) -> int:
        """Have the cluster give out a producer id, as every idempotent producer does first."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        response = await self._cluster.call(ApiKey.INIT_PRODUCER_ID, request, InitProducerIdResponse)
        raise_error(response.error_code)
        return response.producer_id

    async def api_versions(self, node_id: int | None = None) -> ApiVersionsResponse:
        """Return what a broker serves (any broker when None): version ranges and features."""
        node = await known_node(self._cluster, node_id)
        if node is None:
            return (await self._cluster.any_connection()).api_versions
        return (await self._cluster.connection_to(node)).api_versions

    # ---- within

    @property
    def _timeout_ms(self) -> int:
        return self._cluster.settings.connection.request_timeout_ms


def _creatable(topic: NewTopic) -> CreatableTopic:
    assignments = topic.assignments or {}
    return CreatableTopic(
        name=topic.name,
        num_partitions=BROKER_DEFAULT if assignments else topic.partitions,
        replication_factor=BROKER_DEFAULT if assignments else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(replicas))
            for partition, replicas in sorted(assignments.items())
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in (topic.configs or {}).items()],
    )


def _by_broker(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    """Group by the broker that must be asked: a broker's own settings are known to itself alone."""
    groups: defaultdict[int | None, list[ConfigResource]] = defaultdict(list)
    for resource in resources:
        groups[resource.broker_to_ask].append(resource)
    return groups
