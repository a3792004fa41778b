"""The read side of the cluster's metadata: topics, partitions, configs, brokers, features.

Frozen values. `MetadataImage` is a live view of the state machine: every answer is as of the last replayed record, and
what it returned stays as it was. Names are resolved in one dictionary lookup, since every Produce and Fetch asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.broker.metadata.access_rules import AccessRules
from ottla.broker.metadata.client_quotas import ClientQuotas
from ottla.broker.metadata.scram_users import ScramUsers
from ottla.broker.metadata.topic_names import INTERNAL_TOPICS
from ottla.config.resource_type import ResourceType
from ottla.model import TopicId

NO_LEADER: Final = -1

ConfigResourceType = ResourceType


class PartitionImage(NamedTuple):
    """One partition: who has it, who leads it, and how often that changed. `leader` is -1 when there is none."""

    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[bytes, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = 0


class TopicImage(NamedTuple):
    """One topic with its partitions in order and the settings made on the topic itself."""

    name: str
    topic_id: TopicId
    partitions: Sequence[PartitionImage]
    configs: Mapping[str, str]

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    def find_partition(self, partition: int) -> PartitionImage | None:
        """Return the partition of this number, None when there is none. Numbers always run from 0."""
        return self.partitions[partition] if 0 <= partition < len(self.partitions) else None


class ListenerImage(NamedTuple):
    """An address at which a broker said it can be reached."""

    name: str
    host: str
    port: int
    security_protocol: int


class BrokerImage(NamedTuple):
    """A broker's registration."""

    node_id: int
    incarnation_id: bytes
    broker_epoch: int
    listeners: Sequence[ListenerImage]
    rack: str | None
    is_fenced: bool
    in_controlled_shutdown: bool
    log_dirs: Sequence[bytes]


class MetadataView(Protocol):
    """What deciding code and the rest of the broker may ask of the metadata."""

    @property
    def cluster_id(self) -> str: ...

    @property
    def node_id(self) -> int:
        """This broker's own id."""

    @property
    def features(self) -> Mapping[str, int]:
        """Finalized feature levels by name; a feature at level 0 is absent."""

    def topic(self, name: str) -> TopicImage | None: ...

    def topic_by_id(self, topic_id: TopicId) -> TopicImage | None: ...

    def topics(self) -> Iterable[TopicImage]:
        """All topics, in no particular order."""

    def topic_names(self) -> Iterable[str]: ...

    def colliding_topics(self, name: str) -> Sequence[str]:
        """Names of existing topics that differ from `name` only in `.` and `_`."""

    def configs(self, resource_type: ResourceType, name: str) -> Mapping[str, str]:
        """Settings made on one resource. Broker name "" holds the defaults of all brokers."""

    def config_resources(self, resource_type: ResourceType) -> Iterable[str]:
        """Names of the resources of a type that have settings."""

    def brokers(self) -> Iterable[BrokerImage]: ...

    def broker(self, node_id: int) -> BrokerImage | None: ...

    def controllers(self) -> Iterable[int]:
        """Node ids of the registered controllers. This broker controls itself and is not registered as such."""

    @property
    def client_quotas(self) -> ClientQuotas: ...

    @property
    def scram_users(self) -> ScramUsers: ...

    @property
    def access_rules(self) -> AccessRules: ...

    @property
    def next_producer_id(self) -> int:
        """First producer id that no block was given out for."""
