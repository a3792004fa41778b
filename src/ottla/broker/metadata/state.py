"""The state machine of the cluster's metadata: records in, state changed; state out, as records of a snapshot.

`replay` is the only way in, for what was loaded and for what was just decided. Rules:

1. A record that this version does not know, and a feature level that it cannot keep, are refused (`MetadataRefused`)
   before anything changes.
2. Records of features that we don't serve (delegation tokens, controllers) are carried byte for byte: the last one of
   each identity stands, and a snapshot gives it back as it came.
3. Records between a begin and an end of a metadata transaction (KIP-868) take effect together at its end, or not at
   all.
4. What replay makes of a log is what it makes of a snapshot of that log (a property test holds it to that).

Leader epochs: Kafka raises a partition's leader epoch by two at each start, by writing two changes. With thousands of
partitions that would make every start a large write, so we raise it in memory (`raise_leader_epochs`) and write the
change when the partition is first appended to. What is served (`topic`) has the raised epoch; what is stored in a
snapshot has what was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, cast

from ottla.broker.metadata.access_rules import AccessRules
from ottla.broker.metadata.client_quotas import ClientQuotas
from ottla.broker.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES
from ottla.broker.metadata.image import BrokerImage, ListenerImage, PartitionImage, TopicImage
from ottla.broker.metadata.partition_records import (
    NO_LEADER_CHANGE,
    changed_partition,
    partition_record,
    raises_at_start,
)
from ottla.broker.metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RawRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
    decode_metadata_record,
    encode_record,
)
from ottla.broker.metadata.refusal import MetadataRefused
from ottla.broker.metadata.scram_users import ScramUsers
from ottla.broker.metadata.topic_names import collision_key
from ottla.config.resource_type import ResourceType
from ottla.model import TopicId, format_uuid

_EMPTY: Final[Mapping[str, str]] = {}


class _Topic:
    __slots__ = ("image", "name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: TopicId) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: dict[int, PartitionImage] = {}
        self.image: TopicImage | None = None


class TopicChanges:
    """Which topics a batch of records made, removed or reconfigured. Fed by replay, taken by the controller.

    `reconfigures_all` when a broker's settings changed, which are every topic's defaults.
    """

    __slots__ = ("created", "deleted", "reconfigured", "reconfigures_all")

    def __init__(self) -> None:
        self.created: list[str] = []
        self.deleted: list[TopicImage] = []
        self.reconfigured: list[str] = []
        self.reconfigures_all = False


class MetadataState:
    """All of the cluster's metadata as of the last replayed record; `image.MetadataView` is its read side."""

    def __init__(self, cluster_id: str, node_id: int) -> None:
        self.cluster_id = cluster_id
        self.node_id = node_id
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.client_quotas = ClientQuotas()
        self.scram_users = ScramUsers()
        self.access_rules = AccessRules()
        self.changes = TopicChanges()
        self._producer_ids: ProducerIdsRecord | None = None
        self._topics: dict[TopicId, _Topic] = {}
        self._by_name: dict[str, _Topic] = {}
        self._collisions: dict[str, set[str]] = {}
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._brokers: dict[int, RegisterBrokerRecord] = {}
        self._carried: dict[type[MetadataRecord], dict[object, bytes]] = {}
        self._raised: set[tuple[TopicId, int]] = set()
        self._transaction: list[bytes] | None = None
        self._replay: dict[type[MetadataRecord], Callable[[Any, bytes], None]] = {
            AbortTransactionRecord: self._abort_transaction,
            AccessControlEntryRecord: lambda record, raw: self.access_rules.replay(record),
            BeginTransactionRecord: self._begin_transaction,
            BrokerRegistrationChangeRecord: self._change_registration,
            ClearElrRecord: self._clear_eligible_leaders,
            ClientQuotaRecord: lambda record, raw: self.client_quotas.replay(record),
            ConfigRecord: self._set_config,
            DelegationTokenRecord: lambda record, raw: self._carry(record, record.token_id, raw),
            EndTransactionRecord: self._end_transaction,
            FeatureLevelRecord: self._set_feature_level,
            FenceBrokerRecord: lambda record, raw: self._fence(record.id, is_fenced=True),
            NoOpRecord: lambda record, raw: None,
            PartitionChangeRecord: self._change_partition,
            PartitionRecord: self._set_partition,
            ProducerIdsRecord: self._set_producer_ids,
            RegisterBrokerRecord: self._register_broker,
            RegisterControllerRecord: lambda record, raw: self._carry(record, record.controller_id, raw),
            RemoveAccessControlEntryRecord: lambda record, raw: self.access_rules.replay_removal(record),
            RemoveDelegationTokenRecord: lambda record, raw: self._drop(DelegationTokenRecord, record.token_id),
            RemoveTopicRecord: self._remove_topic,
            RemoveUserScramCredentialRecord: lambda record, raw: self.scram_users.replay_removal(record),
            TopicRecord: self._add_topic,
            UnfenceBrokerRecord: lambda record, raw: self._fence(record.id, is_fenced=False),
            UnregisterBrokerRecord: lambda record, raw: self._unregister_broker(record.broker_id),
            UnregisterControllerRecord: lambda record, raw: self._drop(RegisterControllerRecord, record.controller_id),
            UserScramCredentialRecord: lambda record, raw: self.scram_users.replay(record),
            ZkMigrationStateRecord: lambda record, raw: self._carry(record, None, raw),
        }

    # -- read side ------------------------------------------------------------------------------------------------

    @property
    def metadata_version(self) -> int:
        """The finalized metadata.version; the lowest that Kafka 4 reads when none was recorded."""
        return self.features.get(METADATA_VERSION, SUPPORTED_FEATURES[METADATA_VERSION].min_level)

    @property
    def is_in_transaction(self) -> bool:
        """True when a metadata transaction was begun and neither ended nor aborted."""
        return self._transaction is not None

    def topic(self, name: str) -> TopicImage | None:
        topic = self._by_name.get(name)
        if topic is None:
            return None
        return topic.image if topic.image is not None else self._build_image(topic)

    def topic_by_id(self, topic_id: TopicId) -> TopicImage | None:
        topic = self._topics.get(topic_id)
        if topic is None:
            return None
        return topic.image if topic.image is not None else self._build_image(topic)

    def topics(self) -> Iterator[TopicImage]:
        for topic in self._topics.values():
            yield topic.image if topic.image is not None else self._build_image(topic)

    def topic_names(self) -> Iterable[str]:
        return self._by_name.keys()

    def colliding_topics(self, name: str) -> Sequence[str]:
        return sorted(self._collisions.get(collision_key(name), set()) - {name})

    def configs(self, resource_type: ResourceType, name: str) -> Mapping[str, str]:
        return self._configs.get((resource_type, name), _EMPTY)

    def config_resources(self, resource_type: ResourceType) -> Iterator[str]:
        return (name for kind, name in self._configs if kind == resource_type)

    def brokers(self) -> Iterator[BrokerImage]:
        return (_broker_image(record) for record in self._brokers.values())

    def broker(self, node_id: int) -> BrokerImage | None:
        record = self._brokers.get(node_id)
        return None if record is None else _broker_image(record)

    def controllers(self) -> Collection[int]:
        return cast(Collection[int], self._carried.get(RegisterControllerRecord, {}).keys())

    # -- leader epochs --------------------------------------------------------------------------------------------

    def raise_leader_epochs(self) -> None:
        """Take over, in memory, every partition that this broker has a replica of.

        As in Kafka a broker that was there before loses leadership when it registers anew, and gets it again. Where the
        metadata has never heard of it, it leads what the records say, in their epochs.
        """
        is_known = self.node_id in self._brokers
        for topic in self._topics.values():
            for partition in topic.partitions.values():
                if self.node_id in partition.replicas and (is_known or partition.leader != self.node_id):
                    self._raised.add((topic.topic_id, partition.partition))
            topic.image = None

    def has_unwritten_epoch(self, topic_id: TopicId, partition: int) -> bool:
        """Say whether the partition's leader epoch was raised in memory and is not in the log yet."""
        return (topic_id, partition) in self._raised

    def recorded_partition(self, topic_id: TopicId, partition: int) -> PartitionImage | None:
        """Return a partition as the log has it, whatever was raised since."""
        topic = self._topics.get(topic_id)
        return None if topic is None else topic.partitions.get(partition)

    def _build_image(self, topic: _Topic) -> TopicImage:
        partitions = [self._served_partition(topic, number) for number in sorted(topic.partitions)]
        configs = dict(self.configs(ResourceType.TOPIC, topic.name))
        topic.image = TopicImage(topic.name, topic.topic_id, partitions, configs)
        return topic.image

    def _served_partition(self, topic: _Topic, number: int) -> PartitionImage:
        partition = topic.partitions[number]
        if (topic.topic_id, number) not in self._raised:
            return partition
        return partition._replace(
            leader=self.node_id,
            leader_epoch=partition.leader_epoch + raises_at_start(partition),
            isr=(self.node_id,),
            eligible_leader_replicas=(),
            last_known_elr=(),
        )

    # -- replay ---------------------------------------------------------------------------------------------------

    def replay(self, raw: bytes) -> None:
        """Apply one stored record. Raises `MetadataRefused`."""
        record = decode_metadata_record(raw)
        if isinstance(record, RawRecord):
            raise MetadataRefused(
                f"the metadata has a record that this version does not know "
                f"(type {record.record_type}, version {record.version})"
            )
        apply = self._replay[type(record)]
        if self._transaction is not None and not isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            self._transaction.append(raw)
            return
        apply(record, raw)

    def take_changes(self) -> TopicChanges:
        """Return what changed since the last call."""
        changes, self.changes = self.changes, TopicChanges()
        return changes

    def _begin_transaction(self, record: BeginTransactionRecord, raw: bytes) -> None:
        self._transaction = []

    def _end_transaction(self, record: EndTransactionRecord, raw: bytes) -> None:
        if self._transaction is None:
            raise MetadataRefused("the metadata ends a transaction that was never begun")
        records, self._transaction = self._transaction, None
        for one in records:
            self.replay(one)

    def _abort_transaction(self, record: AbortTransactionRecord, raw: bytes) -> None:
        self._transaction = None

    def _set_feature_level(self, record: FeatureLevelRecord, raw: bytes) -> None:
        supported = SUPPORTED_FEATURES.get(record.name)
        if supported is None and record.feature_level > 0:
            raise MetadataRefused(
                f"the metadata uses the feature {record.name} (level {record.feature_level}), which this version lacks"
            )
        if supported is not None and not supported.min_level <= record.feature_level <= supported.max_level:
            raise MetadataRefused(
                f"the metadata is at {record.name} {record.feature_level}; this version keeps levels "
                f"{supported.min_level} to {supported.max_level}"
            )
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level

    def _add_topic(self, record: TopicRecord, raw: bytes) -> None:
        topic_id = TopicId(record.topic_id)
        if record.name in self._by_name or topic_id in self._topics:
            raise MetadataRefused(f"the metadata creates the topic {record.name} twice")
        topic = _Topic(record.name, topic_id)
        self._topics[topic_id] = self._by_name[record.name] = topic
        if "." in record.name or "_" in record.name:
            self._collisions.setdefault(collision_key(record.name), set()).add(record.name)
        self.changes.created.append(record.name)

    def _remove_topic(self, record: RemoveTopicRecord, raw: bytes) -> None:
        topic = self._known_topic(record.topic_id)
        self.changes.deleted.append(topic.image or self._build_image(topic))
        del self._topics[topic.topic_id], self._by_name[topic.name]
        self._configs.pop((ResourceType.TOPIC, topic.name), None)
        self._raised.difference_update((topic.topic_id, number) for number in topic.partitions)
        rivals = self._collisions.get(collision_key(topic.name))
        if rivals is not None:
            rivals.discard(topic.name)

    def _set_partition(self, record: PartitionRecord, raw: bytes) -> None:
        topic = self._known_topic(record.topic_id)
        topic.partitions[record.partition_id] = PartitionImage(
            partition=record.partition_id,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            directories=tuple(record.directories),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            eligible_leader_replicas=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            leader_recovery_state=record.leader_recovery_state,
        )
        topic.image = None
        if topic.name not in self.changes.created:
            self.changes.created.append(topic.name)

    def _change_partition(self, record: PartitionChangeRecord, raw: bytes) -> None:
        topic = self._known_topic(record.topic_id)
        partition = topic.partitions.get(record.partition_id)
        if partition is None:
            raise MetadataRefused(f"the metadata changes the unknown partition {topic.name}-{record.partition_id}")
        topic.partitions[record.partition_id] = changed_partition(partition, record)
        topic.image = None
        if record.leader != NO_LEADER_CHANGE:
            self._raised.discard((topic.topic_id, record.partition_id))

    def _clear_eligible_leaders(self, record: ClearElrRecord, raw: bytes) -> None:
        topics = [self._by_name[record.topic_name]] if record.topic_name in self._by_name else []
        for topic in topics if record.topic_name else self._topics.values():
            topic.image = None
            for number, partition in topic.partitions.items():
                topic.partitions[number] = partition._replace(eligible_leader_replicas=(), last_known_elr=())

    def _set_config(self, record: ConfigRecord, raw: bytes) -> None:
        key = (record.resource_type, record.resource_name)
        configs = self._configs.setdefault(key, {})
        if record.value is None:
            configs.pop(record.name, None)
            if not configs:
                del self._configs[key]
        else:
            configs[record.name] = record.value
        if record.resource_type == ResourceType.BROKER:
            self.changes.reconfigures_all = True
        topic = self._by_name.get(record.resource_name)
        if record.resource_type == ResourceType.TOPIC and topic is not None:
            topic.image = None
            if record.resource_name not in self.changes.reconfigured:
                self.changes.reconfigured.append(record.resource_name)

    def _set_producer_ids(self, record: ProducerIdsRecord, raw: bytes) -> None:
        self._producer_ids = record
        self.next_producer_id = record.next_producer_id

    def _register_broker(self, record: RegisterBrokerRecord, raw: bytes) -> None:
        self._brokers[record.broker_id] = record

    def _unregister_broker(self, node_id: int) -> None:
        self._brokers.pop(node_id, None)

    def _fence(self, node_id: int, *, is_fenced: bool) -> None:
        self._known_broker(node_id).fenced = is_fenced

    def _change_registration(self, record: BrokerRegistrationChangeRecord, raw: bytes) -> None:
        broker = self._known_broker(record.broker_id)
        if record.fenced != 0:
            broker.fenced = record.fenced == 1
        if record.in_controlled_shutdown != 0:
            broker.in_controlled_shutdown = record.in_controlled_shutdown == 1
        if record.log_dirs:
            broker.log_dirs = list(record.log_dirs)
        if record.cordoned_log_dirs is not None:
            broker.cordoned_log_dirs = list(record.cordoned_log_dirs)

    def _carry(self, record: MetadataRecord, identity: object, raw: bytes) -> None:
        self._carried.setdefault(type(record), {})[identity] = bytes(raw)

    def _drop(self, kind: type[MetadataRecord], identity: object) -> None:
        self._carried.get(kind, {}).pop(identity, None)

    def _known_topic(self, topic_id: bytes) -> _Topic:
        topic = self._topics.get(TopicId(topic_id))
        if topic is None:
            raise MetadataRefused(f"the metadata speaks of the unknown topic id {format_uuid(topic_id)}")
        return topic

    def _known_broker(self, node_id: int) -> RegisterBrokerRecord:
        broker = self._brokers.get(node_id)
        if broker is None:
            raise MetadataRefused(f"the metadata speaks of broker {node_id}, which never registered")
        return broker

    # -- snapshot -------------------------------------------------------------------------------------------------

    def snapshot_records(self) -> Iterator[bytes]:
        """Yield the whole state as records, in the order in which Kafka's snapshots have them."""
        version = self.metadata_version
        for record in self._feature_records():
            yield encode_record(record, version)
        for broker in self._brokers.values():
            yield encode_record(broker, version)
        yield from self._carried_records(RegisterControllerRecord)
        for topic in self._topics.values():
            yield encode_record(TopicRecord(name=topic.name, topic_id=topic.topic_id), version)
            for number in sorted(topic.partitions):
                yield encode_record(partition_record(topic.topic_id, topic.partitions[number]), version)
        for record in chain(self._config_records(), self.client_quotas.records()):
            yield encode_record(record, version)
        if self._producer_ids is not None:
            yield encode_record(self._producer_ids, version)
        for record in chain(self.access_rules, self.scram_users.records()):
            yield encode_record(record, version)
        yield from self._carried_records(DelegationTokenRecord)
        yield from self._carried_records(ZkMigrationStateRecord)

    def _feature_records(self) -> Iterator[MetadataRecord]:
        yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=self.metadata_version)
        for name, level in self.features.items():
            if name != METADATA_VERSION:
                yield FeatureLevelRecord(name=name, feature_level=level)

    def _config_records(self) -> Iterator[MetadataRecord]:
        for (resource_type, resource_name), configs in self._configs.items():
            for name, value in configs.items():
                yield ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)

    def _carried_records(self, kind: type[MetadataRecord]) -> Iterable[bytes]:
        return self._carried.get(kind, {}).values()


def _broker_image(record: RegisterBrokerRecord) -> BrokerImage:
    return BrokerImage(
        node_id=record.broker_id,
        incarnation_id=record.incarnation_id,
        broker_epoch=record.broker_epoch,
        listeners=[ListenerImage(e.name, e.host, e.port, e.security_protocol) for e in record.end_points],
        rack=record.rack,
        is_fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=list(record.log_dirs),
    )
