"""The table of APIs: keys, versions, flexibility, and where each one's messages are declared.

One row per API that Kafka 4.4 has on its broker listener. What a broker announces and serves is its router's decision;
a row says what can be read and written. Message classes are imported when first asked for, so that a broker pays
at start for the APIs that are used and no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from importlib import import_module
from typing import Final

from ottla.protocol.schema import Message

NEVER: Final = 1 << 15
"""Above every version: the API has no flexible ones."""
ALWAYS: Final = -(1 << 15)
"""Below every version: the API has no others, and its header is flexible whatever version is asked for."""


class ApiKey(IntEnum):
    """API keys by Kafka's names."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94


class Api:
    """One API.

    `min_version` to `max_version` can be decoded and encoded. `announced` is the range that Kafka names in its
    ApiVersions answer: wider for Produce, which librdkafka wants to see from 0, and without what is still unstable.
    Versions from `flexible_from` on have compact lengths and tagged fields.
    """

    __slots__ = ("announced", "flexible_from", "key", "max_version", "min_version", "name")

    def __init__(
        self,
        key: ApiKey,
        name: str,
        min_version: int,
        max_version: int,
        flexible_from: int,
        announced: tuple[int, int] | None = None,
    ) -> None:
        self.key = key
        self.name = name
        self.min_version = min_version
        self.max_version = max_version
        self.flexible_from = flexible_from
        self.announced = announced or (min_version, max_version)

    def __repr__(self) -> str:
        return f"Api({self.name}, {self.min_version}-{self.max_version})"

    @property
    def module(self) -> str:
        """Name of the module that declares the request and the response."""
        return f"ottla.protocol.messages.{self.key.name.lower()}"

    @property
    def request(self) -> type[Message]:
        return self._message("Request")

    @property
    def response(self) -> type[Message]:
        return self._message("Response")

    def _message(self, kind: str) -> type[Message]:
        found: type[Message] = getattr(import_module(self.module), self.name + kind)
        return found

    def request_header_version(self, api_version: int) -> int:
        """2 in flexible versions (tagged fields), else 1."""
        return 2 if api_version >= self.flexible_from else 1

    def response_header_version(self, api_version: int) -> int:
        """1 in flexible versions, else 0; ApiVersions always 0, since its client cannot know what the broker speaks."""
        return 1 if api_version >= self.flexible_from and self.key != ApiKey.API_VERSIONS else 0


_TABLE: Final = (
    Api(ApiKey.PRODUCE, "Produce", 3, 13, 9, announced=(0, 13)),
    Api(ApiKey.FETCH, "Fetch", 4, 18, 12),
    Api(ApiKey.LIST_OFFSETS, "ListOffsets", 1, 11, 6),
    Api(ApiKey.METADATA, "Metadata", 0, 13, 9),
    Api(ApiKey.OFFSET_COMMIT, "OffsetCommit", 2, 10, 8),
    Api(ApiKey.OFFSET_FETCH, "OffsetFetch", 1, 10, 6),
    Api(ApiKey.FIND_COORDINATOR, "FindCoordinator", 0, 6, 3),
    Api(ApiKey.JOIN_GROUP, "JoinGroup", 0, 9, 6),
    Api(ApiKey.HEARTBEAT, "Heartbeat", 0, 4, 4),
    Api(ApiKey.LEAVE_GROUP, "LeaveGroup", 0, 5, 4),
    Api(ApiKey.SYNC_GROUP, "SyncGroup", 0, 5, 4),
    Api(ApiKey.DESCRIBE_GROUPS, "DescribeGroups", 0, 6, 5),
    Api(ApiKey.LIST_GROUPS, "ListGroups", 0, 5, 3),
    Api(ApiKey.SASL_HANDSHAKE, "SaslHandshake", 0, 1, NEVER),
    Api(ApiKey.API_VERSIONS, "ApiVersions", 0, 5, 3),
    Api(ApiKey.CREATE_TOPICS, "CreateTopics", 2, 7, 5),
    Api(ApiKey.DELETE_TOPICS, "DeleteTopics", 1, 6, 4),
    Api(ApiKey.DELETE_RECORDS, "DeleteRecords", 0, 2, 2),
    Api(ApiKey.INIT_PRODUCER_ID, "InitProducerId", 0, 6, 2, announced=(0, 5)),
    Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", 2, 4, 4),
    Api(ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn", 0, 5, 3),
    Api(ApiKey.ADD_OFFSETS_TO_TXN, "AddOffsetsToTxn", 0, 4, 3),
    Api(ApiKey.END_TXN, "EndTxn", 0, 5, 3),
    Api(ApiKey.WRITE_TXN_MARKERS, "WriteTxnMarkers", 1, 2, ALWAYS),
    Api(ApiKey.TXN_OFFSET_COMMIT, "TxnOffsetCommit", 0, 6, 3),
    Api(ApiKey.DESCRIBE_ACLS, "DescribeAcls", 1, 3, 2),
    Api(ApiKey.CREATE_ACLS, "CreateAcls", 1, 3, 2),
    Api(ApiKey.DELETE_ACLS, "DeleteAcls", 1, 3, 2),
    Api(ApiKey.DESCRIBE_CONFIGS, "DescribeConfigs", 1, 4, 4),
    Api(ApiKey.ALTER_CONFIGS, "AlterConfigs", 0, 2, 2),
    Api(ApiKey.ALTER_REPLICA_LOG_DIRS, "AlterReplicaLogDirs", 1, 2, 2),
    Api(ApiKey.DESCRIBE_LOG_DIRS, "DescribeLogDirs", 1, 5, 2),
    Api(ApiKey.SASL_AUTHENTICATE, "SaslAuthenticate", 0, 2, 2),
    Api(ApiKey.CREATE_PARTITIONS, "CreatePartitions", 0, 3, 2),
    Api(ApiKey.CREATE_DELEGATION_TOKEN, "CreateDelegationToken", 1, 3, 2),
    Api(ApiKey.RENEW_DELEGATION_TOKEN, "RenewDelegationToken", 1, 2, 2),
    Api(ApiKey.EXPIRE_DELEGATION_TOKEN, "ExpireDelegationToken", 1, 2, 2),
    Api(ApiKey.DESCRIBE_DELEGATION_TOKEN, "DescribeDelegationToken", 1, 3, 2),
    Api(ApiKey.DELETE_GROUPS, "DeleteGroups", 0, 3, 2),
    Api(ApiKey.ELECT_LEADERS, "ElectLeaders", 0, 2, 2),
    Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigs", 0, 1, 1),
    Api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, "AlterPartitionReassignments", 0, 1, ALWAYS),
    Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, "ListPartitionReassignments", 0, 0, ALWAYS),
    Api(ApiKey.OFFSET_DELETE, "OffsetDelete", 0, 0, NEVER),
    Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotas", 0, 1, 1),
    Api(ApiKey.ALTER_CLIENT_QUOTAS, "AlterClientQuotas", 0, 1, 1),
    Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "DescribeUserScramCredentials", 0, 0, ALWAYS),
    Api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "AlterUserScramCredentials", 0, 0, ALWAYS),
    Api(ApiKey.DESCRIBE_QUORUM, "DescribeQuorum", 0, 2, ALWAYS),
    Api(ApiKey.UPDATE_FEATURES, "UpdateFeatures", 0, 2, ALWAYS),
    Api(ApiKey.DESCRIBE_CLUSTER, "DescribeCluster", 0, 2, ALWAYS),
    Api(ApiKey.DESCRIBE_PRODUCERS, "DescribeProducers", 0, 0, ALWAYS),
    Api(ApiKey.UNREGISTER_BROKER, "UnregisterBroker", 0, 0, ALWAYS),
    Api(ApiKey.DESCRIBE_TRANSACTIONS, "DescribeTransactions", 0, 0, ALWAYS),
    Api(ApiKey.LIST_TRANSACTIONS, "ListTransactions", 0, 2, ALWAYS),
    Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, "ConsumerGroupHeartbeat", 0, 1, ALWAYS),
    Api(ApiKey.CONSUMER_GROUP_DESCRIBE, "ConsumerGroupDescribe", 0, 1, ALWAYS),
    Api(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, "GetTelemetrySubscriptions", 0, 0, ALWAYS),
    Api(ApiKey.PUSH_TELEMETRY, "PushTelemetry", 0, 0, ALWAYS),
    Api(ApiKey.LIST_CONFIG_RESOURCES, "ListConfigResources", 0, 1, ALWAYS),
    Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "DescribeTopicPartitions", 0, 0, ALWAYS),
    Api(ApiKey.SHARE_GROUP_HEARTBEAT, "ShareGroupHeartbeat", 1, 1, ALWAYS),
    Api(ApiKey.SHARE_GROUP_DESCRIBE, "ShareGroupDescribe", 1, 1, ALWAYS),
    Api(ApiKey.SHARE_FETCH, "ShareFetch", 1, 2, ALWAYS),
    Api(ApiKey.SHARE_ACKNOWLEDGE, "ShareAcknowledge", 1, 2, ALWAYS),
    Api(ApiKey.ADD_RAFT_VOTER, "AddRaftVoter", 0, 1, ALWAYS),
    Api(ApiKey.REMOVE_RAFT_VOTER, "RemoveRaftVoter", 0, 0, ALWAYS),
    Api(ApiKey.INITIALIZE_SHARE_GROUP_STATE, "InitializeShareGroupState", 0, 0, ALWAYS),
    Api(ApiKey.READ_SHARE_GROUP_STATE, "ReadShareGroupState", 0, 0, ALWAYS),
    Api(ApiKey.WRITE_SHARE_GROUP_STATE, "WriteShareGroupState", 0, 1, ALWAYS),
    Api(ApiKey.DELETE_SHARE_GROUP_STATE, "DeleteShareGroupState", 0, 0, ALWAYS),
    Api(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, "ReadShareGroupStateSummary", 0, 1, ALWAYS),
    Api(ApiKey.STREAMS_GROUP_HEARTBEAT, "StreamsGroupHeartbeat", 0, 1, ALWAYS),
    Api(ApiKey.STREAMS_GROUP_DESCRIBE, "StreamsGroupDescribe", 0, 1, ALWAYS),
    Api(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "DescribeShareGroupOffsets", 0, 1, ALWAYS),
    Api(ApiKey.ALTER_SHARE_GROUP_OFFSETS, "AlterShareGroupOffsets", 0, 0, ALWAYS),
    Api(ApiKey.DELETE_SHARE_GROUP_OFFSETS, "DeleteShareGroupOffsets", 0, 0, ALWAYS),
    Api(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, "StreamsGroupTopologyDescriptionUpdate", 0, 0, ALWAYS),
    Api(ApiKey.UNREGISTER_CONTROLLER, "UnregisterController", 0, 0, ALWAYS),
)

API: Final[Mapping[int, Api]] = {api.key: api for api in _TABLE}
"""Every API by key."""
