"""`Broker`: the only door that dialects use, in the domain's words. No versions, no wire codes.

Owns what a broker knows at run time: which topics there are and their partitions, who waits for what, fetch sessions.
It decides little itself: metadata decides about topics, `Partition` about appends and reads, `Fetching` about
waiting. All of it runs on one event loop and nothing here blocks or awaits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.broker.fetch_sessions import MAX_SESSION_ID, FetchEntry, FetchSessions
from ottla.broker.fetching import Fetching, FetchPlan, Reply
from ottla.broker.metadata.controller import MetadataController
from ottla.broker.metadata.decision import Committed
from ottla.broker.metadata.features import SUPPORTED_FEATURES, FeatureRange
from ottla.broker.metadata.image import MetadataView, TopicImage
from ottla.broker.metadata.topic_names import INTERNAL_TOPICS, check_not_internal
from ottla.broker.partition import Partition, PartitionRead
from ottla.broker.purgatory import Purgatory, Waiting
from ottla.broker.read_only import refuse_change
from ottla.broker.turns import Steps, Turns
from ottla.clock import Clock, Timers
from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.engine import EpochEndOffset, Membership, RecordLog, Shard, StateStore, Ticket, TimestampOffset
from ottla.errors import (
    InconsistentTopicId,
    KafkaStorageError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from ottla.model import OFFSETS_TOPIC, ZERO_TOPIC_ID, IsolationLevel, TopicId, TopicPartition
from ottla.random_ids import random_below, random_uuid

if TYPE_CHECKING:
    from ottla.broker.administration import Administration
    from ottla.broker.groups.coordinator import GroupCoordinator
    from ottla.broker.metadata.alter_configs import AlterConfigsAnswer, ConfigAlteration
    from ottla.broker.telemetry import Telemetry

_log = logging.getLogger(__name__)


class Topic:
    """A topic as it is served: its partitions by number."""

    __slots__ = ("is_internal", "name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: TopicId, *, is_internal: bool) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions: list[Partition] = []

    def partition(self, number: int) -> Partition:
        """Return a partition. Raises `UnknownTopicOrPartition`."""
        if 0 <= number < len(self.partitions):
            return self.partitions[number]
        raise UnknownTopicOrPartition


class Broker:
    """What the dialects talk to. `load_topics` makes it ready; `metadata` has what changes topics and settings."""

    def __init__(
        self,
        *,
        log: RecordLog,
        state: StateStore,
        metadata: MetadataController,
        membership: Membership,
        timers: Timers,
        clock: Clock,
        is_read_only: bool = False,
    ) -> None:
        """With `is_read_only` whatever would change what is stored is refused with `PolicyViolation`."""
        self.metadata = metadata
        metadata.is_read_only = is_read_only
        self._is_read_only = is_read_only
        self.membership = membership
        self.clock = clock
        self.timers = timers
        self.turns = Turns(timers, clock)
        self.fetch_sessions = FetchSessions(
            clock,
            lambda: 1 + random_below(MAX_SESSION_ID),
            slots=self.config.integer("max.incremental.fetch.session.cache.slots"),
        )
        self._administration: Administration | None = None
        self._groups: GroupCoordinator | None = None
        self._telemetry: Telemetry | None = None
        self._log = log
        self._state = state
        self._fetch_max_bytes = self.config.fetch_max_bytes
        self.acknowledges_at_once = not self.config.flushes_before_ack
        """True when an append is all that acks=all asks for (ottla.flush.policy=os)."""
        self._topics: dict[str, Topic] = {}
        self._topics_by_id: dict[TopicId, Topic] = {}
        self._purgatory: Purgatory[TopicPartition] = Purgatory(timers)
        self._fetching = Fetching(membership.node_id, self._partition_of, self._purgatory, clock)
        log.on_advance(self._purgatory.wake)
        log.on_moved(self._note_moved)
        metadata.listen(self)

    # -- rooms that are opened when they are first entered: importing them is a large part of a start ---------------

    @property
    def groups(self) -> GroupCoordinator:
        """Groups of consumers and what they have committed."""
        if self._groups is None:
            from uuid import uuid4

            from ottla.broker.groups.coordinator import GroupCoordinator
            from ottla.broker.groups.rebalance import GroupServices

            self._groups = GroupCoordinator(
                store=self._state,
                services=GroupServices(self.timers, self.clock, self.metadata.settings, new_uuid=lambda: str(uuid4())),
                metadata=self.metadata.view,
                lead=self._lead,
                is_read_only=self._is_read_only,
            )
        return self._groups

    @property
    def administration(self) -> Administration:
        """What administrators ask for besides topics and settings."""
        if self._administration is None:
            from ottla.broker.administration import Administration

            self._administration = Administration(self.metadata, self._log)
        return self._administration

    @property
    def telemetry(self) -> Telemetry:
        """What clients push of their own metrics."""
        if self._telemetry is None:
            from ottla.broker.telemetry import Telemetry

            self._telemetry = Telemetry(self.clock, random_uuid)
        return self._telemetry

    # -- who we are -----------------------------------------------------------------------------------------------

    @property
    def config(self) -> BrokerConfig:
        """This broker's settings as of now, with what was changed at run time."""
        return self.metadata.settings.values

    @property
    def image(self) -> MetadataView:
        """The cluster's metadata as of the last change; live."""
        return self.metadata.view

    @property
    def cluster_id(self) -> str:
        return self.metadata.view.cluster_id

    @property
    def node_id(self) -> int:
        return self.membership.node_id

    @property
    def features(self) -> Mapping[str, int]:
        """Finalized feature levels by name."""
        return self.metadata.features

    @property
    def features_epoch(self) -> int:
        """A number that never falls while features change."""
        return self.metadata.features_epoch

    @property
    def supported_features(self) -> Mapping[str, FeatureRange]:
        return SUPPORTED_FEATURES

    # -- settings -------------------------------------------------------------------------------------------------

    def alter_configs(
        self, alterations: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Committed[AlterConfigsAnswer]:
        """Change levels of loggers, here and now, and all other settings, in the metadata.

        The answer has one entry per alteration, in their order: None where it was done. Raises `KafkaStorageError`.
        """
        from ottla.broker.loggers import alter_logger_resources

        for_loggers = [one for one in alterations if one.is_for_loggers]
        committed = self.metadata.alter_configs(
            [one for one in alterations if not one.is_for_loggers], validate_only=validate_only
        )
        recorded = iter(committed.answer)
        logged = iter(alter_logger_resources(for_loggers, self.node_id, validate_only=validate_only))
        answer = [next(logged if one.is_for_loggers else recorded) for one in alterations]
        return Committed(answer, committed.ticket)

    # -- topics ---------------------------------------------------------------------------------------------------

    def find_topic(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def find_topic_by_id(self, topic_id: bytes) -> Topic | None:
        return self._topics_by_id.get(TopicId(topic_id))

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic that has this id now."""
        topic = self._topics_by_id.get(TopicId(topic_id))
        return None if topic is None else topic.name

    def partition(self, topic: str, number: int) -> Partition:
        """Return a partition by name. Raises `UnknownTopicOrPartition`."""
        found = self._topics.get(topic)
        if found is None:
            raise UnknownTopicOrPartition
        return found.partition(number)

    def load_topics(self) -> None:
        """Make the partitions of every topic that the metadata has. Logs are opened when they are first used."""
        stored = set(self._log.partitions())
        for image in self.image.topics():
            self._add_topic(image, stored)
        known = {partition.topic_partition for topic in self._topics.values() for partition in topic.partitions}
        for stray in sorted(stored - known):
            if not stray.topic.startswith("__cluster_metadata"):
                _log.warning("a log belongs to no topic and is left alone", extra={"partition": str(stray)})

    def load_groups(self) -> None:
        """Replay the groups and offsets that are stored."""
        topic = self._topics.get(OFFSETS_TOPIC)
        if topic is not None:
            self.groups.open(len(topic.partitions))

    def on_topics_changed(
        self, created: Sequence[TopicImage], deleted: Sequence[TopicImage], reconfigured: Sequence[TopicImage]
    ) -> None:
        """Follow the metadata (`metadata.controller.TopicsListener`)."""
        for image in deleted:
            self._remove_topic(image)
        for image in created:
            self._add_topic(image, frozenset())
        if self._groups is not None and (created or deleted):
            self._groups.on_topics_changed(are_new=bool(created))
        self._tell_groups([image.name for image in deleted])
        for image in reconfigured:
            topic = self._topics.get(image.name)
            if topic is not None:
                config = self.log_config(image)
                for partition in topic.partitions:
                    if partition.config != config:
                        partition.configure(config)

    def log_config(self, image: TopicImage) -> LogConfig:
        """The settings of a topic: its own, else those of this broker, of all brokers, of the configuration."""
        return self.metadata.settings.log_config(image.configs)

    def _add_topic(self, image: TopicImage, stored: set[TopicPartition] | frozenset[TopicPartition]) -> None:
        """Make a topic's partitions, or those that it gained. `stored` are logs that need not be created."""
        topic = self._topics.get(image.name)
        if topic is None:
            topic = Topic(image.name, image.topic_id, is_internal=image.name in INTERNAL_TOPICS)
            self._topics[image.name] = self._topics_by_id[image.topic_id] = topic
        config = self.log_config(image)
        for partition in image.partitions[len(topic.partitions) :]:
            topic_partition = TopicPartition(image.name, partition.partition)
            log = self._log.keeping(config)
            topic.partitions.append(Partition(topic_partition, image.topic_id, log, config, partition.leader_epoch))
            try:
                self._log.create(topic_partition, image.topic_id, config)
            except KafkaStorageError:
                _log.exception("a log cannot be made", extra={"partition": str(topic_partition)})

    def _remove_topic(self, image: TopicImage) -> None:
        topic = self._topics_by_id.pop(image.topic_id, None)
        if topic is None:
            return
        del self._topics[topic.name]
        for partition in topic.partitions:
            try:
                self._log.delete(partition.topic_partition)
            except (KafkaStorageError, UnknownTopicOrPartition):  # the topic is gone all the same
                _log.exception("a log cannot be removed", extra={"partition": str(partition.topic_partition)})
            self._purgatory.wake(partition.topic_partition)

    def _note_moved(self, partition: TopicPartition, directory_id: bytes) -> None:
        try:
            self.metadata.assign_directory(partition, directory_id)
        except KafkaStorageError:  # it lies where it lies, whatever the metadata says of it
            _log.exception("a log's directory is not recorded", extra={"partition": str(partition)})

    def create_offsets_topic(self) -> Ticket | None:
        """Make the topic that groups live in where it is not there yet; it lasts once the ticket is durable."""
        if OFFSETS_TOPIC in self._topics:
            return None
        return self.metadata.create_internal_topic(OFFSETS_TOPIC).ticket

    def _tell_groups(self, deleted: Sequence[str]) -> None:
        if self._groups is not None:
            if OFFSETS_TOPIC in deleted:
                self._groups.close()
            elif deleted:
                self._groups.forget_topics(deleted)
        self.load_groups()

    def check_writable(self) -> None:
        """Raise `PolicyViolation` where data is only served."""
        if self._is_read_only:
            raise refuse_change()

    # -- records --------------------------------------------------------------------------------------------------

    def append(self, partition: Partition, records: memoryview, *, is_zstd_allowed: bool = True) -> Ticket:
        """Append one produced batch; whoever wants acks=all waits for the ticket. Raises as `Partition.append`.

        `records` is read and stamped in place and not kept.
        """
        if not partition.is_epoch_written:
            self._prepare_first_append(partition)
        return partition.append(records, self.clock.wall_ms(), is_zstd_allowed=is_zstd_allowed)

    def append_together(
        self, partition: Partition, several: Sequence[memoryview], *, is_zstd_allowed: bool = True
    ) -> Sequence[Ticket]:
        """Append the first of some produced batches with one write, see `Partition.append_together`."""
        if not partition.is_epoch_written:
            return ()
        return partition.append_together(several, self.clock.wall_ms(), is_zstd_allowed=is_zstd_allowed)

    def _prepare_first_append(self, partition: Partition) -> None:
        """Record the epoch in which it is written, and make the log if the disk did not let us when it was due.

        Where nothing is written no epoch ever is, so that this is where every append ends: it raises `PolicyViolation`.
        """
        self.check_writable()
        topic_partition, topic_id = partition.topic_partition, partition.topic_id
        if not self._log.contains(topic_partition):
            self._log.create(topic_partition, topic_id, partition.config)
        self.metadata.write_leader_epoch(topic_id, topic_partition.partition)
        partition.is_epoch_written = True

    def _lead(self, shard: Shard) -> int:
        """The leader epoch of a state shard's partition, recorded now if it is not yet."""
        partition = self.partition(shard.topic, shard.partition)
        if not partition.is_epoch_written and not self._is_read_only:
            self._prepare_first_append(partition)
        return partition.leader_epoch

    def fetch(self, plan: FetchPlan, reply: Reply) -> list[PartitionRead] | Waiting[TopicPartition]:
        """Read by the one fetch rule: what there is, or the wait after which `reply` is called with it."""
        self._limit(plan)
        return self._fetching.fetch(plan, reply)

    def fetch_in_steps(
        self, plan: FetchPlan, ready: Callable[[], None]
    ) -> Steps[list[PartitionRead] | Waiting[TopicPartition]]:
        """As `fetch`, for long plans. After a wait `ready` is called, and `read_in_steps` gives what there is then."""
        self._limit(plan)
        return self._fetching.fetch_in_steps(plan, ready)

    def read_in_steps(self, plan: FetchPlan) -> Steps[list[PartitionRead]]:
        """Read a plan that was waited for."""
        return self._fetching.read_in_steps(plan)

    def _limit(self, plan: FetchPlan) -> None:
        plan.max_bytes = min(plan.max_bytes, self._fetch_max_bytes)
        plan.min_bytes = min(plan.min_bytes, plan.max_bytes)

    def delete_records(self, topic: str, number: int, before_offset: int) -> int:
        """Let a partition's records below an offset go (-1: below the high watermark); returns the log's new start.

        Raises `InvalidTopicException` for internal topics, and as `partition` and `Partition.delete_records`.
        """
        partition = self.partition(topic, number)
        self.check_writable()
        check_not_internal(topic)
        log_start_offset = partition.delete_records(before_offset)
        self._purgatory.wake(TopicPartition(topic, number))
        return log_start_offset

    def offset_for_timestamp(
        self,
        topic: str,
        number: int,
        timestamp_ms: int,
        isolation: IsolationLevel | None,
        *,
        current_leader_epoch: int = -1,
    ) -> TimestampOffset:
        """Answer ListOffsets for one partition. Raises `UnknownTopicOrPartition` and the leader epoch errors."""
        partition = self.partition(topic, number)
        partition.check_leader_epoch(current_leader_epoch)
        return partition.offset_for_timestamp(timestamp_ms, isolation)

    def end_offset_for_epoch(
        self, topic: str, number: int, leader_epoch: int, *, current_leader_epoch: int = -1
    ) -> EpochEndOffset:
        """Answer OffsetForLeaderEpoch for one partition. Raises as `offset_for_timestamp`."""
        partition = self.partition(topic, number)
        partition.check_leader_epoch(current_leader_epoch)
        return partition.end_offset_for_epoch(leader_epoch)

    def _partition_of(self, entry: FetchEntry) -> Partition:
        """The partition that an entry of a fetch names, by id or by name; a session learns the name of an id late."""
        if entry.topic is None:
            topic = self._topics_by_id.get(entry.topic_id)
            if topic is None:
                raise UnknownTopicId
            entry.topic = topic.name
        else:
            topic = self._topics.get(entry.topic)
            if topic is None:
                raise UnknownTopicOrPartition
            if entry.topic_id not in (ZERO_TOPIC_ID, topic.topic_id):
                raise InconsistentTopicId
        return topic.partition(entry.partition)
