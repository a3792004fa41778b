"""`MetadataController`: decide, append, replay, for everything that `__cluster_metadata` holds.

Every change goes the same way: a pure decision gives records, they are appended as one batch and replayed at once, so
that the next decision sees them; the answer waits for the ticket. Loading is the same replay. Whoever keeps logs and
partitions hears of changed topics through one listener. Runs on the broker's loop; takes microseconds and never waits.

A start, in order: `load`, `begin` (a new epoch; the bootstrap records of a new cluster), `register` (this broker, with
the addresses that it is reached at).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ottla.broker.metadata.auto_create import topic_to_create
from ottla.broker.metadata.control import kraft_version_level, quorum_voter
from ottla.broker.metadata.create_topics import (
    CreatedTopic,
    CreateTopicsAnswer,
    NewTopic,
    TopicPlacement,
    check_total,
    decide_create_topics,
    name_errors,
    partitions_of,
)
from ottla.broker.metadata.decision import Committed, Decision
from ottla.broker.metadata.features import KRAFT_VERSION
from ottla.broker.metadata.image import MetadataView, TopicImage
from ottla.broker.metadata.producer_ids import ProducerIdBlock, ProducerIds, decide_producer_id_block
from ottla.broker.metadata.quorum import QuorumImage
from ottla.broker.metadata.records import (
    AbortTransactionRecord,
    MetadataRecord,
    PartitionChangeRecord,
    encode_record,
)
from ottla.broker.metadata.refusal import MetadataRefused
from ottla.broker.metadata.registration import (
    BrokerIdentity,
    bootstrap_records,
    leadership_records,
    registration_record,
    unfence_record,
)
from ottla.broker.metadata.snapshot_timer import SnapshotTimer
from ottla.broker.metadata.state import MetadataState
from ottla.broker.read_only import refuse_change
from ottla.broker.turns import Steps, at_once
from ottla.clock import Clock, Timers
from ottla.config.broker_config import BrokerConfig
from ottla.config.current_config import CurrentConfig
from ottla.config.resource_type import ResourceType
from ottla.config.topic_settings import validate_topic_configs
from ottla.engine import Shard, StateRecord, StateStore, Ticket
from ottla.errors import KafkaError, KafkaStorageError
from ottla.model import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_TOPIC_ID, TopicId, TopicPartition, format_uuid
from ottla.protocol.primitives import DecodeError

if TYPE_CHECKING:
    from ottla.broker.metadata.alter_configs import AlterConfigsAnswer, ConfigAlteration
    from ottla.broker.metadata.create_partitions import CreatePartitionsAnswer, GrownTopic
    from ottla.broker.metadata.delete_topics import DeletedTopic, TopicReference
    from ottla.broker.metadata.reassign_partitions import Reassignment, ReassignmentAnswer
    from ottla.config.describe import ConfigEntry

_log = logging.getLogger(__name__)

MANY_PARTITIONS: Final = 128
"""A CreateTopics of more, counting one for each topic besides, is cut: each gets a directory, which takes its time."""
PARTITIONS_AT_ONCE: Final = 16
"""How many partitions each part of it has, unless a topic has more."""
TOPICS_A_STEP: Final = 256
TOPICS_AT_ONCE: Final = 8
"""How many topics a batch of a very large DeleteTopics names."""

METADATA_SHARD: Final = Shard(METADATA_TOPIC, 0)

AnswerT = TypeVar("AnswerT")


class MetadataStore(StateStore, Protocol):
    """A state store that knows where its metadata shard stands; local: `storage.metadata_log`."""

    @property
    def next_offset(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def kraft_version(self) -> bytes | None:
        """Body of the record that says which kraft.version the log has."""

    @property
    def voters(self) -> bytes | None:
        """Body of the record that says who votes."""

    @property
    def record_bytes_since_snapshot(self) -> int: ...

    def has_room(self) -> bool:
        """False when the disk is full but for a reserve, which is for records that help to make room."""

    def become_leader(self) -> int:
        """Begin a new epoch and return it. Everything must have been loaded."""


class TopicsListener(Protocol):
    """Hears of topics that changed, after replay and before any answer."""

    def on_topics_changed(
        self, created: Sequence[TopicImage], deleted: Sequence[TopicImage], reconfigured: Sequence[TopicImage]
    ) -> None:
        """`created` has topics that are new or have more partitions; `deleted` shows them as they last were."""


class MetadataController:
    """The one writer of the cluster's metadata. `view` is what everybody else reads."""

    def __init__(
        self,
        store: MetadataStore,
        identity: BrokerIdentity,
        config: BrokerConfig,
        *,
        random_uuid: Callable[[], bytes],
    ) -> None:
        """`random_uuid` gives 16 random bytes with a UUID's version in them, anew at each call."""
        self._store = store
        self._identity = identity
        self.settings = CurrentConfig(config)
        """This broker's settings as of now; what was changed at run time stands in the metadata."""
        self._random_uuid = random_uuid
        self._max_record_bytes = config.integer("metadata.log.max.record.bytes.between.snapshots")
        self._state = MetadataState(identity.cluster_id, identity.node_id)
        self._epoch = 0
        self._broker_epoch = -1
        self._listener: TopicsListener | None = None
        self._producer_ids = ProducerIds(self._next_producer_id_block)
        self._producer_ids_ticket: Ticket | None = None
        self._snapshot_timer: SnapshotTimer | None = None
        self.is_read_only = False
        """True once changes that clients ask for are refused; what the broker itself records is not."""

    @property
    def view(self) -> MetadataView:
        """The metadata as of the last change; live."""
        return self._state

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's registration, -1 before `register`."""
        return self._broker_epoch

    @property
    def features(self) -> Mapping[str, int]:
        """Finalized feature levels by name, with the one that stands in the log's control records."""
        level = self.kraft_version
        return {**self._state.features, KRAFT_VERSION: level} if level else self._state.features

    @property
    def features_epoch(self) -> int:
        """A number that grows with every change of features: where the metadata ends."""
        return self._store.next_offset - 1

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version, which stands in the log's control records."""
        return kraft_version_level(self._store.kraft_version)

    @property
    def quorum(self) -> QuorumImage:
        """Who votes and leads, and how far the log has come."""
        node_id, store = self._identity.node_id, self._store
        voter = quorum_voter(store.voters, node_id, self._identity.directory_id)
        return QuorumImage(node_id, store.leader_epoch, store.high_watermark, store.next_offset, voter)

    def listen(self, listener: TopicsListener) -> None:
        """Tell `listener` of every change of topics from now on. There is one."""
        self._listener = listener

    # -- start ----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Replay all that is stored. Nothing is written. Raises `MetadataRefused`, `KafkaStorageError`."""
        for batch in self._store.load(METADATA_SHARD):
            for offset, record in enumerate(batch.records, batch.base_offset):
                if record.value is None:
                    raise MetadataRefused(f"the metadata record at offset {offset} is empty")
                try:
                    self._state.replay(record.value)
                except DecodeError as error:
                    raise MetadataRefused(f"the metadata record at offset {offset} is damaged: {error}") from error
        self._state.take_changes()
        self._take_settings()

    def begin(self) -> None:
        """Begin a new epoch. A new cluster gets its bootstrap records; a half-written transaction is called off."""
        is_new_cluster = self._store.next_offset == 0
        self._epoch = self._store.become_leader()
        if is_new_cluster:
            self._append(bootstrap_records(self._state.features))
        if self._state.is_in_transaction:
            self._append([AbortTransactionRecord(reason="the controller stopped before its end")])
        self._state.raise_leader_epochs()

    def register(self, identity: BrokerIdentity) -> None:
        """Register this broker with the addresses that `identity` now has, and let it serve."""
        self._identity = identity
        self._broker_epoch = self._store.next_offset
        self._append([registration_record(identity, broker_epoch=self._broker_epoch)])
        self._append([unfence_record(identity.node_id, broker_epoch=self._broker_epoch)])

    def watch_snapshot_age(self, timers: Timers, clock: Clock) -> None:
        """Write snapshots by age, too, from now on, if that is configured."""
        interval_ms = self.settings.layers.broker.integer("metadata.log.max.snapshot.interval.ms")
        if interval_ms > 0:
            self._snapshot_timer = SnapshotTimer(timers, clock, interval_ms, self._try_snapshot)
            if self._store.record_bytes_since_snapshot:
                self._snapshot_timer.note_append()

    # -- changes; what decides most of them is imported when it is first needed: imports are half of a start --------

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Committed[CreateTopicsAnswer]:
        """Create topics. Raises `PolicyViolation` for a request that is too large as a whole."""
        return self.commit(self._decide_new_topics(topics), validate_only=validate_only, takes_room=True)

    def create_topics_in_steps(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Steps[Committed[CreateTopicsAnswer]]:
        """As `create_topics`; of very many partitions some at a time, with a batch of records for each time.

        What keeps the rest from being appended stands in the answer then. The ticket is that of the last batch.
        """
        placement = self._placement()
        total = 0
        for number, topic in enumerate(topics, 1):
            total += partitions_of(topic, placement)
            if number % TOPICS_A_STEP == 0:
                yield
        check_total(total)
        if max(total, 0) + len(topics) <= MANY_PARTITIONS:
            return self.create_topics(topics, validate_only=validate_only)
        errors = yield from name_errors(self._state, topics)
        answer: dict[str, CreatedTopic | KafkaError] = {}
        ticket: Ticket | None = None
        some: list[NewTopic] = []
        left = PARTITIONS_AT_ONCE
        sound = [topic for topic in topics if errors[topic.name] is None]
        companions = {topic.name for topic in sound}
        for number, topic in enumerate(sound, 1):
            some.append(topic)
            left -= 1 + max(partitions_of(topic, placement), 0)
            if left > 0 and number < len(sound):
                continue
            try:
                decision = self._decide_new_topics(some, companions)
                committed = self.commit(decision, validate_only=validate_only, takes_room=True)
            except KafkaError as error:
                if ticket is None:
                    raise
                answer.update((one.name, error) for one in some)
            else:
                answer.update(committed.answer)
                ticket = committed.ticket or ticket
            some, left = [], PARTITIONS_AT_ONCE
            yield
        return Committed({name: error or answer[name] for name, error in errors.items()}, ticket)

    def _placement(self) -> TopicPlacement:
        settings = self.settings.values
        return TopicPlacement(
            settings.num_partitions,
            settings.default_replication_factor,
            self._identity.directory_id,
            settings.is_closed,
        )

    def _decide_new_topics(
        self, topics: Sequence[NewTopic], companions: Container[str] = ()
    ) -> Decision[CreateTopicsAnswer]:
        return decide_create_topics(
            self._state,
            topics,
            self._placement(),
            check_configs=validate_topic_configs,
            new_topic_id=self._new_topic_id,
            companions=companions,
        )

    def auto_create_topics(self, names: Iterable[str]) -> Committed[CreateTopicsAnswer]:
        """Create topics that clients or coordinators miss, as the configuration says they are made. Never raises."""
        return at_once(self.auto_create_topics_in_steps(names))

    def auto_create_topics_in_steps(self, names: Iterable[str]) -> Steps[Committed[CreateTopicsAnswer]]:
        """As `auto_create_topics`, some topics at a time."""
        topics = []
        for name in dict.fromkeys(names):
            topics.append(topic_to_create(name, self.settings.values))
            if len(topics) % TOPICS_A_STEP == 0:
                yield
        try:
            return (yield from self.create_topics_in_steps(topics))
        except KafkaError as error:
            return Committed({topic.name: error for topic in topics}, None)

    def create_internal_topic(self, name: str) -> Committed[CreateTopicsAnswer]:
        """Create a topic of the broker's own. Never raises."""
        decision = self._decide_new_topics([topic_to_create(name, self.settings.values)])
        try:
            return self._commit(decision, takes_room=True)
        except KafkaError as error:
            return Committed({name: error}, None)

    def describe_topic_configs(self, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Return the settings that a new topic with these overrides has, and where they come from."""
        from ottla.config.describe import describe_new_topic

        return describe_new_topic(self.settings.layers, overrides)

    def delete_topics(self, references: Sequence[TopicReference]) -> Committed[list[DeletedTopic]]:
        """Delete topics by name or id."""
        from ottla.broker.metadata.delete_topics import decide_delete_topics

        return self.commit(decide_delete_topics(self._state, references))

    def delete_topics_in_steps(self, references: Sequence[TopicReference]) -> Steps[Committed[list[DeletedTopic]]]:
        """As `delete_topics`; very many some at a time, with a batch of records for each time.

        What keeps the rest from being appended stands in the answer then. The ticket is that of the last batch.
        """
        from ottla.broker.metadata.delete_topics import DeletedTopic, decide_each, named_once

        if len(references) <= TOPICS_AT_ONCE:
            return self.delete_topics(references)
        asked = yield from named_once(self._state, references)
        answer: list[DeletedTopic] = []
        ticket: Ticket | None = None
        for start in range(0, len(asked), TOPICS_AT_ONCE):
            some = asked[start : start + TOPICS_AT_ONCE]
            try:
                committed = self.commit(decide_each(self._state, some))
            except KafkaError as error:
                if ticket is None:
                    raise
                answer += [DeletedTopic(one.name, one.topic_id, refusal or error) for one, refusal in some]
            else:
                answer += committed.answer
                ticket = committed.ticket or ticket
            yield
        return Committed(answer, ticket)

    def create_partitions(
        self, topics: Sequence[GrownTopic], *, validate_only: bool = False
    ) -> Committed[CreatePartitionsAnswer]:
        """Give topics more partitions. Raises `PolicyViolation` for a request that is too large as a whole."""
        from ottla.broker.metadata.create_partitions import decide_create_partitions

        decision = decide_create_partitions(
            self._state,
            topics,
            directory_id=self._identity.directory_id,
            is_closed=self.settings.values.is_closed,
        )
        return self.commit(decision, validate_only=validate_only, takes_room=True)

    def alter_configs(
        self, alterations: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Committed[AlterConfigsAnswer]:
        """Change settings of topics, brokers, groups and client metrics."""
        from ottla.broker.metadata.alter_configs import decide_alter_configs

        decision = decide_alter_configs(self._state, alterations, self.settings.values)
        return self.commit(decision, validate_only=validate_only)

    def reassign_partitions(
        self, reassignments: Sequence[Reassignment], *, allow_replication_factor_change: bool
    ) -> Committed[ReassignmentAnswer]:
        """Change partitions' replicas. A leader epoch that was only raised in memory is recorded with it."""
        from ottla.broker.metadata.reassign_partitions import decide_reassignments

        decision = decide_reassignments(
            self._state,
            reassignments,
            allow_replication_factor_change=allow_replication_factor_change,
            is_closed=self.settings.values.is_closed,
        )
        if decision.records and self.is_read_only:
            raise refuse_change()
        for record in decision.records:
            assert isinstance(record, PartitionChangeRecord), "replicas are changed partition by partition"
            self.write_leader_epoch(TopicId(record.topic_id), record.partition_id)
        return self.commit(decision)

    def assign_directory(self, partition: TopicPartition, directory_id: bytes) -> Committed[None]:
        """Record that a log lies in another log directory now. Raises `KafkaStorageError`."""
        from ottla.broker.metadata.assign_directory import decide_assign_directory

        decision = decide_assign_directory(self._state, partition, directory_id)
        for record in decision.records:
            assert isinstance(record, PartitionChangeRecord), "a directory is changed by partition"
            self.write_leader_epoch(TopicId(record.topic_id), record.partition_id)
        return self.commit(decision)

    def next_producer_id(self) -> Committed[int]:
        """Hand out a producer id. Its ticket is that of the block, when that is new."""
        producer_id = self._producer_ids.next_id()
        ticket = self._producer_ids_ticket
        if ticket is not None and ticket.is_durable:
            self._producer_ids_ticket = ticket = None
        return Committed(producer_id, ticket)

    def write_leader_epoch(self, topic_id: TopicId, partition: int) -> Ticket | None:
        """Record the leader epoch that this start gave a partition. Call it before the first append to the partition.

        Returns None when it is recorded already.
        """
        if not self._state.has_unwritten_epoch(topic_id, partition):
            return None
        recorded = self._state.recorded_partition(topic_id, partition)
        assert recorded is not None, "a raised epoch belongs to a partition"
        return self._append(leadership_records(topic_id, recorded, self._identity.node_id), takes_room=True)

    # -- append and replay ----------------------------------------------------------------------------------------

    def commit(
        self, decision: Decision[AnswerT], *, validate_only: bool = False, takes_room: bool = False
    ) -> Committed[AnswerT]:
        """Append and replay what was decided on `view` just now, or with `validate_only` leave it at that.

        What `takes_room`, as new topics do, is left alone on a full disk, so that there is room for deletions.
        Raises `PolicyViolation` when there is something to append and nothing is written here, `KafkaStorageError`.
        """
        if validate_only or not decision.records:
            return Committed(decision.answer, None)
        if self.is_read_only:
            raise refuse_change()
        return self._commit(decision, takes_room=takes_room)

    def _commit(self, decision: Decision[AnswerT], *, takes_room: bool = False) -> Committed[AnswerT]:
        ticket = self._append(decision.records, takes_room=takes_room) if decision.records else None
        return Committed(decision.answer, ticket)

    def _append(self, records: Sequence[MetadataRecord], *, takes_room: bool = False) -> Ticket:
        if takes_room and not self._store.has_room():
            raise KafkaStorageError("The disk is full: topics can be deleted and settings changed, and nothing else.")
        version = self._state.metadata_version
        values = [encode_record(record, version) for record in records]
        ticket = self._store.append(METADATA_SHARD, [StateRecord(None, value) for value in values], self._epoch)
        for value in values:
            self._state.replay(value)
        self._announce()
        if self._snapshot_timer is not None:
            self._snapshot_timer.note_append()
        if self._store.record_bytes_since_snapshot >= self._max_record_bytes:
            self._try_snapshot()
        return ticket

    def _announce(self) -> None:
        changes = self._state.take_changes()
        if changes.reconfigures_all:
            self._take_settings()
        if self._listener is None:
            return
        touched = self._state.topic_names() if changes.reconfigures_all else changes.reconfigured
        created = self._images(changes.created)
        reconfigured = self._images(name for name in touched if name not in changes.created)
        if created or changes.deleted or reconfigured:
            self._listener.on_topics_changed(created, changes.deleted, reconfigured)

    def _take_settings(self) -> None:
        self.settings.change(
            self._state.configs(ResourceType.BROKER, str(self._identity.node_id)),
            self._state.configs(ResourceType.BROKER, ""),
        )

    def _images(self, names: Iterable[str]) -> list[TopicImage]:
        return [topic for name in list(names) if (topic := self._state.topic(name)) is not None]

    def _try_snapshot(self) -> None:
        try:
            self.snapshot()
        except OSError:  # what was appended stands without it; the next change or timer tries again
            _log.exception("the metadata's snapshot cannot be written")

    def snapshot(self) -> None:
        """Store the whole state, so that earlier records may go."""
        self._store.snapshot(METADATA_SHARD, self._snapshot_records())
        if self._snapshot_timer is not None:
            self._snapshot_timer.note_snapshot()

    def _snapshot_records(self) -> Iterator[StateRecord]:
        return (StateRecord(None, value) for value in self._state.snapshot_records())

    # -- ids ------------------------------------------------------------------------------------------------------

    def _new_topic_id(self) -> TopicId:
        """A random id that is free, not reserved, and whose text form does not look like a command-line option."""
        while True:
            topic_id = TopicId(self._random_uuid())
            is_taken = topic_id in (ZERO_TOPIC_ID, METADATA_TOPIC_ID) or self._state.topic_by_id(topic_id) is not None
            if not is_taken and not format_uuid(topic_id).startswith("-"):
                return topic_id

    def _next_producer_id_block(self) -> ProducerIdBlock:
        decision = decide_producer_id_block(self._state, broker_epoch=self._broker_epoch)
        committed = self._commit(decision, takes_room=True)
        self._producer_ids_ticket = committed.ticket
        return committed.answer
