"""Records of `__cluster_metadata`: brokers, topics, settings, features, rules and quotas as KRaft stores them.

The key is the record type; `framing` writes it and the version in front. Types 6, 13 and 16 are gone from Kafka.
"""

from __future__ import annotations

from ottla.protocol.schema import (
    Message,
    Struct,
    array,
    boolean,
    float64,
    int8,
    int16,
    int32,
    int64,
    octets,
    string,
    uint16,
    uuid,
)


class BrokerEndpoint(Struct):
    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


class BrokerFeature(Struct):
    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class RegisterBrokerRecord(Message, key=0, versions="0-4", flexible="0+"):
    """A broker joins with its addresses and features, fenced at first.

    Version 1 adds controlled shutdown; 2 migration from ZooKeeper; 3 directories (KIP-858); 4 cordoned ones.
    """

    broker_id: int = int32()
    is_migrating_zk_broker: bool = boolean("2+")
    incarnation_id: bytes = uuid()
    broker_epoch: int = int64()
    end_points: list[BrokerEndpoint] = array(BrokerEndpoint)
    features: list[BrokerFeature] = array(BrokerFeature)
    rack: str | None = string(nullable="0+")
    fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean("1+")
    log_dirs: list[bytes] = array(uuid, "3+", tag=0)
    cordoned_log_dirs: list[bytes] | None = array(uuid, "4+", nullable="4+", default=None, tag=1)


class UnregisterBrokerRecord(Message, key=1, versions="0", flexible="0+"):
    """A broker is forgotten, with all its registration said."""

    broker_id: int = int32()
    broker_epoch: int = int64()


class TopicRecord(Message, key=2, versions="0", flexible="0+"):
    """A topic is created; its partitions follow."""

    name: str = string()
    topic_id: bytes = uuid()


class PartitionRecord(Message, key=3, versions="0-2", flexible="0+"):
    """A partition as it is created, or as a snapshot holds it.

    Version 1 adds the directory of each replica (KIP-858); 2 eligible leader replicas (KIP-966).
    """

    partition_id: int = int32(default=-1)
    topic_id: bytes = uuid()
    replicas: list[int] = array(int32)
    isr: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    leader: int = int32(default=-1)
    leader_recovery_state: int = int8(tag=0)
    leader_epoch: int = int32(default=-1)
    partition_epoch: int = int32(default=-1)
    directories: list[bytes] = array(uuid, "1+")
    eligible_leader_replicas: list[int] | None = array(int32, "2+", nullable="2+", default=None, tag=1)
    last_known_elr: list[int] | None = array(int32, "2+", nullable="2+", default=None, tag=2)


class ConfigRecord(Message, key=4, versions="0", flexible="0+"):
    """A setting of a resource is set, or with a null value goes back to its default."""

    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(nullable="0+")


class PartitionChangeRecord(Message, key=5, versions="0-2", flexible="0+"):
    """What changed about a partition; what is left out stays. Leader -2 means no change.

    Version 1 adds directories (KIP-858); 2 eligible leader replicas (KIP-966).
    """

    partition_id: int = int32(default=-1)
    topic_id: bytes = uuid()
    isr: list[int] | None = array(int32, nullable="0+", default=None, tag=0)
    leader: int = int32(default=-2, tag=1)
    replicas: list[int] | None = array(int32, nullable="0+", default=None, tag=2)
    removing_replicas: list[int] | None = array(int32, nullable="0+", default=None, tag=3)
    adding_replicas: list[int] | None = array(int32, nullable="0+", default=None, tag=4)
    leader_recovery_state: int = int8(default=-1, tag=5)
    directories: list[bytes] | None = array(uuid, "1+", nullable="1+", default=None, tag=8)
    eligible_leader_replicas: list[int] | None = array(int32, "2+", nullable="2+", default=None, tag=6)
    last_known_elr: list[int] | None = array(int32, "2+", nullable="2+", default=None, tag=7)


class FenceBrokerRecord(Message, key=7, versions="0", flexible="0+"):
    """A broker is fenced: it leads nothing."""

    id: int = int32()
    epoch: int = int64()


class UnfenceBrokerRecord(Message, key=8, versions="0", flexible="0+"):
    """A broker is unfenced: it may lead."""

    id: int = int32()
    epoch: int = int64()


class RemoveTopicRecord(Message, key=9, versions="0", flexible="0+"):
    """A topic is removed with all its partitions and settings."""

    topic_id: bytes = uuid()


class DelegationTokenRecord(Message, key=10, versions="0", flexible="0+"):
    """A delegation token is created or renewed; its secret is derived, never stored."""

    owner: str = string()
    requester: str = string()
    renewers: list[str] = array(string)
    issue_timestamp: int = int64()
    max_timestamp: int = int64()
    expiration_timestamp: int = int64()
    token_id: str = string()


class UserScramCredentialRecord(Message, key=11, versions="0", flexible="0+"):
    """A user's SCRAM credential, salted and hashed."""

    name: str = string()
    mechanism: int = int8()
    salt: bytes = octets()
    stored_key: bytes = octets()
    server_key: bytes = octets()
    iterations: int = int32()


class FeatureLevelRecord(Message, key=12, versions="0", flexible="0+"):
    """A feature of the cluster is set to a level; 0 removes it."""

    name: str = string()
    feature_level: int = int16()


class EntityData(Struct):
    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


class ClientQuotaRecord(Message, key=14, versions="0", flexible="0+"):
    """A quota of a user, client id or address is set or removed."""

    entity: list[EntityData] = array(EntityData)
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


class ProducerIdsRecord(Message, key=15, versions="0", flexible="0+"):
    """A block of producer ids was handed out, up to the next free one."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    next_producer_id: int = int64()


class BrokerRegistrationChangeRecord(Message, key=17, versions="0-3", flexible="0+"):
    """What changed about a broker: fenced -1 or 1, controlled shutdown.

    Version 2 adds directories (KIP-858); 3 cordoned ones.
    """

    broker_id: int = int32()
    broker_epoch: int = int64()
    fenced: int = int8(tag=0)
    in_controlled_shutdown: int = int8("1+", tag=1)
    log_dirs: list[bytes] = array(uuid, "2+", tag=2)
    cordoned_log_dirs: list[bytes] | None = array(uuid, "3+", nullable="3+", default=None, tag=3)


class AccessControlEntryRecord(Message, key=18, versions="0", flexible="0+"):
    """An access rule is added under an id of its own."""

    id: bytes = uuid()
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8()
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class RemoveAccessControlEntryRecord(Message, key=19, versions="0", flexible="0+"):
    """The access rule of an id is removed."""

    id: bytes = uuid()


class NoOpRecord(Message, key=20, versions="0", flexible="0+"):
    """Nothing; written so that the metadata log advances (KIP-835)."""


class ZkMigrationStateRecord(Message, key=21, versions="0", flexible="0+"):
    """How far a migration from ZooKeeper has come; 0 in clusters that never had it."""

    zk_migration_state: int = int8()


class RemoveUserScramCredentialRecord(Message, key=22, versions="0", flexible="0+"):
    """A user's SCRAM credential is removed."""

    name: str = string()
    mechanism: int = int8()


class BeginTransactionRecord(Message, key=23, versions="0", flexible="0+"):
    """Records from here on count only when the end follows (KIP-868)."""

    name: str | None = string(nullable="0+", default=None, tag=0)


class EndTransactionRecord(Message, key=24, versions="0", flexible="0+"):
    """Records since the beginning of the metadata transaction count."""


class AbortTransactionRecord(Message, key=25, versions="0", flexible="0+"):
    """Records since the beginning of the metadata transaction do not count."""

    reason: str | None = string(nullable="0+", default=None, tag=0)


class RemoveDelegationTokenRecord(Message, key=26, versions="0", flexible="0+"):
    """A delegation token is removed or has expired."""

    token_id: str = string()


class ControllerEndpoint(Struct):
    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


class ControllerFeature(Struct):
    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class RegisterControllerRecord(Message, key=27, versions="0", flexible="0+"):
    """A controller says its addresses and features (KIP-919)."""

    controller_id: int = int32()
    incarnation_id: bytes = uuid()
    zk_migration_ready: bool = boolean()
    end_points: list[ControllerEndpoint] = array(ControllerEndpoint)
    features: list[ControllerFeature] = array(ControllerFeature)


class ClearElrRecord(Message, key=28, versions="0", flexible="0+"):
    """Eligible leader replicas are forgotten, of one topic or of all when none is named (KIP-966)."""

    topic_name: str = string()


class UnregisterControllerRecord(Message, key=29, versions="0", flexible="0+"):
    """A controller's registration is forgotten."""

    controller_id: int = int32()
