"""Administration of what a cluster agrees on: the metadata quorum, feature levels, brokers that are gone for good.

`admin.quorum` has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.controller import ask_controller
from ottla.client.errors import raise_error
from ottla.errors import KafkaError, UnknownServerError, error_for_code
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    ReplicaState,
)
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

METADATA_TOPIC: Final = "__cluster_metadata"


class UpgradeType(IntEnum):
    """What a change of a feature level may be; the numbers are the wire's."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class QuorumReplica(NamedTuple):
    """A voter or observer; moments are -1 where they are not known."""

    replica_id: int
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """The metadata quorum as its leader sees it."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: Sequence[QuorumReplica]
    observers: Sequence[QuorumReplica]


class Quorum:
    """What an administrator does with what the cluster agrees on."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def describe(self) -> QuorumDescription:
        """Return leader, voters and observers of the metadata log."""
        partitions = [DescribeQuorumRequestPartitionData(partition_index=0)]
        request = DescribeQuorumRequest(
            topics=[DescribeQuorumRequestTopicData(topic_name=METADATA_TOPIC, partitions=partitions)]
        )
        response = await self._cluster.call(ApiKey.DESCRIBE_QUORUM, request, DescribeQuorumResponse)
        raise_error(response.error_code, response.error_message)
        for topic in response.topics:
            for row in topic.partitions:
                raise_error(row.error_code, row.error_message)
                return QuorumDescription(
                    row.leader_id,
                    row.leader_epoch,
                    row.high_watermark,
                    _replicas(row.current_voters),
                    _replicas(row.observers),
                )
        raise UnknownServerError("the answer about the quorum is empty")

    async def update_features(
        self,
        levels: Mapping[str, int],
        upgrade_type: UpgradeType = UpgradeType.UPGRADE,
        *,
        validate_only: bool = False,
    ) -> dict[str, KafkaError | None]:
        """Set feature levels, 0 for off. Newer clusters do all or nothing and raise why not."""
        request = UpdateFeaturesRequest(
            timeout_ms=self._cluster.settings.connection.request_timeout_ms,
            feature_updates=[
                FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
                for name, level in levels.items()
            ],
            validate_only=validate_only,
        )
        response = await ask_controller(self._cluster, ApiKey.UPDATE_FEATURES, request, UpdateFeaturesResponse)
        raise_error(response.error_code, response.error_message)
        told = {row.feature: error_for_code(row.error_code, row.error_message) for row in response.results}
        return {name: told.get(name) for name in levels}

    async def unregister_broker(self, node_id: int) -> None:
        """Have the cluster forget a broker that will not come back. Raises `BrokerIdNotRegistered` and the like."""
        response = await ask_controller(
            self._cluster,
            ApiKey.UNREGISTER_BROKER,
            UnregisterBrokerRequest(broker_id=node_id),
            UnregisterBrokerResponse,
        )
        raise_error(response.error_code, response.error_message)


def _replicas(rows: Sequence[ReplicaState]) -> list[QuorumReplica]:
    return [
        QuorumReplica(row.replica_id, row.log_end_offset, row.last_fetch_timestamp, row.last_caught_up_timestamp)
        for row in rows
    ]
