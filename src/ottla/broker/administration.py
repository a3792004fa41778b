"""`Administration`: what administrators ask of a broker besides topics and settings.

Users, quotas, features, replicas, log directories, the quorum. Each method is one decision on the metadata or one look
at the logs; nothing here is needed to serve records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.broker.metadata.alter_client_quotas import QuotaAlteration, QuotaAnswer, decide_alter_client_quotas
from ottla.broker.metadata.alter_scram_users import CredentialAlteration, ScramAnswer, decide_alter_scram_users
from ottla.broker.metadata.client_quotas import QuotaEntity, QuotaFilter
from ottla.broker.metadata.controller import MetadataController
from ottla.broker.metadata.decision import Committed
from ottla.broker.metadata.quorum import QuorumImage
from ottla.broker.metadata.reassign_partitions import Reassignment, ReassignmentAnswer
from ottla.broker.metadata.unregister import decide_unregister_broker, decide_unregister_controller
from ottla.broker.metadata.update_features import FeatureUpdate, decide_update_features
from ottla.broker.read_only import refuse_change
from ottla.engine import ActiveProducer, LogDirectoryFacts, RecordLog
from ottla.errors import ReplicaNotAvailable, UnknownTopicOrPartition
from ottla.model import TopicPartition


class Administration:
    """The part of a broker's door that only administrators use."""

    __slots__ = ("_log", "_metadata")

    def __init__(self, metadata: MetadataController, log: RecordLog) -> None:
        self._metadata = metadata
        self._log = log

    # -- the cluster ----------------------------------------------------------------------------------------------

    @property
    def quorum(self) -> QuorumImage:
        """The metadata quorum as of now."""
        return self._metadata.quorum

    def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> Committed[Sequence[str]]:
        """Change feature levels, all or none. Raises `InvalidUpdateVersion`, `KafkaStorageError`."""
        decision = decide_update_features(
            self._metadata.view,
            updates,
            kraft_version=self._metadata.kraft_version,
            min_insync_replicas=self._metadata.settings.layers.broker.integer("min.insync.replicas"),
        )
        return self._metadata.commit(decision, validate_only=validate_only)

    def unregister_broker(self, broker_id: int) -> Committed[None]:
        """Forget a broker that is gone. Raises `BrokerIdNotRegistered`, `InvalidRequest`, `KafkaStorageError`."""
        return self._metadata.commit(decide_unregister_broker(self._metadata.view, broker_id))

    def unregister_controller(self, controller_id: int) -> Committed[None]:
        """Forget a controller. Raises `ControllerIdNotRegistered`, `InvalidRequest`, `KafkaStorageError`."""
        return self._metadata.commit(decide_unregister_controller(self._metadata.view, controller_id))

    def reassign_partitions(
        self, reassignments: Sequence[Reassignment], *, allow_replication_factor_change: bool
    ) -> Committed[ReassignmentAnswer]:
        """Change partitions' replicas. Raises `KafkaStorageError`."""
        return self._metadata.reassign_partitions(
            reassignments, allow_replication_factor_change=allow_replication_factor_change
        )

    # -- users and quotas -----------------------------------------------------------------------------------------

    def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> Committed[QuotaAnswer]:
        """Change quotas. Raises `KafkaStorageError`."""
        decision = decide_alter_client_quotas(self._metadata.view, alterations)
        return self._metadata.commit(decision, validate_only=validate_only)

    def client_quotas(
        self, filters: Sequence[QuotaFilter], *, strict: bool
    ) -> Iterable[tuple[QuotaEntity, Mapping[str, float]]]:
        """Return the entities that match, with their quotas. Raises as `ClientQuotas.matching`."""
        quotas = self._metadata.view.client_quotas
        return [(entity, quotas.of(entity)) for entity in quotas.matching(filters, strict=strict)]

    def alter_scram_users(self, alterations: Sequence[CredentialAlteration]) -> Committed[ScramAnswer]:
        """Change what proves users' passwords. Raises `KafkaStorageError`."""
        return self._metadata.commit(decide_alter_scram_users(self._metadata.view, alterations))

    # -- logs -----------------------------------------------------------------------------------------------------

    def log_directories(self) -> Sequence[LogDirectoryFacts]:
        """Where logs are kept, and which."""
        return self._log.describe_directories()

    def size_bytes(self, partition: TopicPartition) -> int:
        """Bytes of a partition's segments. Raises `UnknownTopicOrPartition`, `KafkaStorageError`."""
        return self._log.size_bytes(partition)

    def producers(self, partition: TopicPartition) -> Sequence[ActiveProducer]:
        """The producers that a partition's log remembers. Raises as `size_bytes`."""
        return self._log.producers(partition)

    def keep_log_in(self, path: str, partition: TopicPartition) -> None:
        """Have a partition's log in a log directory: moved in the background, or made there once there is a topic.

        Raises `LogDirNotFound`, `UnknownTopicOrPartition`, `ReplicaNotAvailable` for a log that could not be made,
        and as `RecordLog.keep_in`.
        """
        if self._metadata.is_read_only:
            raise refuse_change()
        is_here = self._log.contains(partition)
        self._log.keep_in(partition, path)
        if not is_here:
            topic = self._metadata.view.topic(partition.topic)
            if topic is not None and topic.find_partition(partition.partition) is not None:
                raise ReplicaNotAvailable(f"The log of {partition} is not here.")
            raise UnknownTopicOrPartition(f"There is no partition {partition}.")
