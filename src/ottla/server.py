"""The composition root: from a configuration to a broker that serves, and back to files that can be trusted.

Knows every room and has no logic of its own. Start: directories (locked, looked at), metadata (loaded, replayed),
addresses (bound; whoever is refused so far finds everything as it was), directories (formatted when new, taken over),
partitions, and last the first accepted connection. Stop: no new connections, what was asked is answered,
everything flushed and checkpointed, and the clean-shutdown files last.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Sequence
from typing import Final

from ottla.broker.broker import Broker
from ottla.broker.loop import LoopOffload, LoopTimers
from ottla.broker.membership import LocalMembership
from ottla.broker.metadata.control import (
    kraft_version_body,
    leader_change_body,
    snapshot_footer_body,
    snapshot_header_body,
    voters_body,
)
from ottla.broker.metadata.controller import MetadataController
from ottla.broker.metadata.image import ListenerImage, MetadataView
from ottla.broker.metadata.quorum import QuorumListener, Voter
from ottla.broker.metadata.records import encode_record
from ottla.broker.metadata.refusal import MetadataRefused
from ottla.broker.metadata.registration import BrokerIdentity, format_records
from ottla.clock import Clock, SystemClock
from ottla.config.broker_config import BrokerConfig
from ottla.config.listeners import SECURITY_PROTOCOLS
from ottla.config.listeners import Listener as ListenerConfig
from ottla.config.log_config import LogConfig
from ottla.dialects.choice import Dialects
from ottla.dialects.connection_gate import ConnectionGate
from ottla.dialects.listener import HostNames, IdleConnections, Listener, SocketSettings
from ottla.engine import StateRecord
from ottla.errors import KafkaError, KafkaStorageError
from ottla.model import TopicId, TopicPartition, format_uuid
from ottla.random_ids import random_uuid
from ottla.records.compression import Codec
from ottla.storage.checkpoints import CorruptCheckpoint
from ottla.storage.directory import META_PROPERTIES, DirectoryError, MetaProperties, check_known, check_none_lost
from ottla.storage.files import FileSystem, LocalFileSystem
from ottla.storage.manager import LogManager
from ottla.storage.metadata_log import MetadataLog, find_metadata_directory, metadata_log_config
from ottla.storage.metadata_snapshots import ControlBodies
from ottla.storage.quorum_state import CorruptQuorumState
from ottla.storage.state_store import LocalStateStore, ReadOnlyStateStore

DRAIN_SECONDS: Final = 2.0
METADATA_FORMAT_LEVEL: Final = 33
"""metadata.version of new directories: that of Kafka 4.4."""


class StartError(Exception):
    """The broker cannot start; the message says why, in one line."""


_REASONS: Final = (
    DirectoryError,
    CorruptCheckpoint,
    CorruptQuorumState,
    KafkaStorageError,
    MetadataRefused,
    StartError,
    OSError,
)
"""What the rooms below raise when they cannot work with what they found, and what the system does on the way."""


class Server:
    """One broker with its listeners. `start` and `stop` are called once each, on the loop that it lives on."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        filesystem: FileSystem | None = None,
        is_read_only: bool = False,
    ) -> None:
        """With `is_read_only` the log directories are served as they are and not changed in any way."""
        self.config = config
        self.clock: Clock = clock if clock is not None else SystemClock()
        self._is_read_only = is_read_only
        if is_read_only:
            filesystem = _overlay(self.clock)
        self.listeners: list[Listener] = []
        self._filesystem: FileSystem = filesystem if filesystem is not None else LocalFileSystem()
        loop = asyncio.get_running_loop()
        self.timers = LoopTimers(loop, self.clock)
        self._offload = LoopOffload(loop)
        self._log = LogManager(config, self.clock, self._offload, self._filesystem)
        self._membership = LocalMembership(config.node_id, config.rack)
        self._metadata: MetadataController | None = None
        self._broker: Broker | None = None
        self._is_whole = False
        """True once all that was found has been taken over and checked, so that a stop can say that it is clean."""

    @property
    def broker(self) -> Broker:
        """The broker's own door, once it was started."""
        assert self._broker is not None
        return self._broker

    @property
    def address(self) -> str:
        """`host:port` of the first listener as it is bound."""
        listener = self.listeners[0]
        return f"[{listener.host}]:{listener.port}" if ":" in listener.host else f"{listener.host}:{listener.port}"

    # -- start ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Serve. Raises `StartError`, in one line, and leaves nothing locked or bound."""
        try:
            await self._open()
            for listener in self.listeners:
                await self._listen(listener)
        except _REASONS as error:
            await self._give_up()
            raise StartError(str(error)) from error
        except BaseException:
            await self._give_up()
            raise

    @staticmethod
    async def _listen(listener: Listener) -> None:
        try:
            await listener.start()
        except OSError as error:  # two that start at once can both bind a port, and one of them listens
            raise _cannot_listen(listener.host, listener.port, error) from error

    async def _open(self) -> None:
        if self._is_read_only:
            self._check_there()
        self._log.open()
        meta = self._claim_directories()
        self._log.find_logs()
        store = self._find_metadata_log()
        self._metadata = MetadataController(store, self._identity(meta, ()), self.config, random_uuid=random_uuid)
        store.check()
        self._metadata.load()
        self._check_directories(self._metadata.view)
        self._broker = self._new_broker(self._metadata)
        await self._bind(self._broker)
        self._log.begin()  # whatever is refused was not changed
        if not store.is_formatted:
            self._format_metadata(store)
            self._metadata.load()
        store.open(self._metadata_log_config())
        self._log.settle_deleted(self._topic_of)
        self._metadata.begin()
        if self._log.has_unchecked:
            await asyncio.to_thread(self._log.recover, self._log_config)
        self._is_whole = True
        self._metadata.settings.watch(self._follow_settings)
        self._metadata.register(self._identity(meta, self._advertise()))
        if left := self._log.logs_from_jafka():
            self._take_over(left)
        self._metadata.watch_snapshot_age(self.timers, self.clock)
        self._broker.load_topics()
        self._broker.load_groups()
        if not self._is_read_only:  # nothing is compacted, and nothing goes, however old it is
            self._log.start_housekeeping(self.timers, self._metadata.settings.values)

    def _check_directories(self, view: MetadataView) -> None:
        """Compare the directories with those that this broker had when it was last registered."""
        registered = view.broker(self.config.node_id)
        known = registered.log_dirs if registered is not None else ()
        check_known(self._log.directories, known)
        if not self._is_read_only:  # what is left may be looked at
            ours = (
                TopicPartition(topic.name, partition.partition)
                for topic in view.topics()
                for partition in topic.partitions
                if self.config.node_id in partition.replicas
            )
            check_none_lost(self._log.directories, known, (one for one in ours if not self._log.contains(one)))

    def _new_broker(self, metadata: MetadataController) -> Broker:
        offsets_codec = Codec.of(self.config.integer("offsets.topic.compression.codec"))
        stored = LocalStateStore(self._log, self.clock, offsets_codec)
        return Broker(
            log=self._log,
            state=ReadOnlyStateStore(stored, self._offload) if self._is_read_only else stored,
            metadata=metadata,
            membership=self._membership,
            timers=self.timers,
            clock=self.clock,
            is_read_only=self._is_read_only,
        )

    def _take_over(self, logs: Sequence[TopicPartition]) -> None:
        from ottla.broker.jafka_topics import take_over  # once in a directory's life

        assert self._metadata is not None
        try:
            take_over(self._metadata, logs)
        except KafkaError as error:
            raise StartError(str(error)) from error

    def _topic_of(self, topic_id: TopicId, partition: int) -> str | None:
        """The name of the topic that has this id and this partition."""
        assert self._metadata is not None
        image = self._metadata.view.topic_by_id(topic_id)
        return None if image is None or partition >= len(image.partitions) else image.name

    def _log_config(self, topic: str) -> LogConfig:
        """The settings by which a log is made whole again; those of a topic that is gone are the broker's."""
        assert self._metadata is not None
        image = self._metadata.view.topic(topic)
        return self._metadata.settings.log_config({} if image is None else image.configs)

    def _follow_settings(self, settings: BrokerConfig) -> None:
        self._log.forget_producers_after(settings.integer("producer.id.expiration.ms"))
        self._log.configure_housekeeping(settings)

    def _check_there(self) -> None:
        for path in self.config.log_dirs:
            if not self._filesystem.is_directory(path):
                raise StartError(f"there is no directory {path} to serve read-only")

    def _claim_directories(self) -> MetaProperties:
        """Give new directories an identity as this broker's own. Returns the first one's."""
        directories = self._log.every_directory
        known = next((directory.meta for directory in directories if directory.meta is not None), None)
        if known is not None and known.node_id != self.config.node_id:
            raise StartError(
                f"{directories[0].path} belongs to node {known.node_id}, and node.id is {self.config.node_id}"
            )
        cluster_id = known.cluster_id if known is not None else format_uuid(random_uuid())
        for directory in directories:
            if directory.meta is None:
                if self._is_read_only:
                    raise StartError(f"{directory.path} has no {META_PROPERTIES}: there is nothing to serve read-only")
                directory.claim(MetaProperties(cluster_id, self.config.node_id, random_uuid()))
        meta = directories[0].meta
        assert meta is not None
        return meta

    def _find_metadata_log(self) -> MetadataLog:
        node_id = self.config.node_id
        wanted = self.config.text("metadata.log.dir")
        directory = find_metadata_directory(self._log.every_directory, self._filesystem, wanted)
        store = MetadataLog(
            self._log,
            directory,
            self._filesystem,
            self.clock,
            node_id=node_id,
            control=ControlBodies(leader_change_body(node_id), snapshot_header_body, snapshot_footer_body()),
        )
        if not store.is_formatted:
            if self._is_read_only:
                raise StartError(f"{directory.path} has no metadata log: there is nothing to serve read-only")
            if self._log.count_logs_of_topics():
                raise StartError(f"{directory.path} has partitions, but the metadata log that knows them is gone")
        return store

    def _format_metadata(self, store: MetadataLog) -> None:
        meta = store.directory.meta
        directory_id = meta.directory_id if meta is not None else None
        voter = Voter(self.config.node_id, directory_id or bytes(16), self._quorum_listeners())
        store.format(
            (StateRecord(None, encode_record(record, METADATA_FORMAT_LEVEL)) for record in format_records()),
            kraft_version=kraft_version_body(),
            voters=voters_body(voter),
        )

    def _metadata_log_config(self) -> LogConfig:
        tests_segment_bytes = self.config.explicit("internal.metadata.log.segment.bytes")
        segment_bytes = self.config.integer("metadata.log.segment.bytes")
        return metadata_log_config(
            segment_bytes=tests_segment_bytes if isinstance(tests_segment_bytes, int) else segment_bytes,
            segment_ms=self.config.integer("metadata.log.segment.ms"),
            retention_bytes=self.config.integer("metadata.max.retention.bytes"),
            retention_ms=self.config.integer("metadata.max.retention.ms"),
        )

    def _quorum_listeners(self) -> list[QuorumListener]:
        """Where a Kafka with this configuration would listen for its quorum; without one, where Kafka's own does."""
        listeners = self.config.controller_listeners
        return [QuorumListener(one.name, one.host or _machine_name(), one.port) for one in listeners] or [
            QuorumListener("CONTROLLER", "localhost", 9093)
        ]

    def _identity(self, meta: MetaProperties, listeners: Sequence[ListenerImage]) -> BrokerIdentity:
        return BrokerIdentity(
            cluster_id=meta.cluster_id,
            node_id=meta.node_id,
            directory_id=meta.directory_id or bytes(16),
            log_dirs=sorted(one.meta.directory_id or bytes(16) for one in self._log.directories if one.meta),
            incarnation_id=random_uuid(),
            listeners=listeners,
            rack=self.config.rack,
        )

    async def _bind(self, broker: Broker) -> None:
        idle = IdleConnections(self.timers, self.clock, self.config.connections_max_idle_ms / 1000)
        dialects = Dialects(broker, lambda: self._log.jafka)
        gate = ConnectionGate(broker.config, self.timers, self.clock, HostNames(self._offload).resolve)
        broker.metadata.settings.watch(gate.configure)
        for wanted in self.config.listeners:
            dialect = dialects.of(wanted)
            listener = Listener(
                wanted.name,
                dialect,
                gate=gate,
                idle=idle,
                offload=self._offload,
                clock=self.clock,
                sockets=SocketSettings.from_config(broker.config),
            )
            try:
                await listener.bind(wanted.host, wanted.port)
            except OSError as error:
                raise _cannot_listen(wanted.host, wanted.port, error) from error
            self.listeners.append(listener)

    def _advertise(self) -> list[ListenerImage]:
        """Tell clients where each listener is reached: as configured, else where it is bound."""
        images = []
        for listener, told in zip(self.listeners, self.config.advertised_listeners, strict=True):
            host = told.host or _machine_name()
            port = told.port if self._is_port_told(told) else listener.port
            self._membership.advertise(listener.name, host, port)
            if told.speaks_kafka:
                protocol = SECURITY_PROTOCOLS.index(told.security_protocol)
                images.append(ListenerImage(listener.name, host, port, protocol))
        return images

    @staticmethod
    def _is_port_told(told: ListenerConfig) -> bool:
        return told.port != 0

    # -- stop -----------------------------------------------------------------------------------------------------

    async def stop(self, drain_seconds: float = DRAIN_SECONDS) -> None:
        """Answer what was asked, for at most `drain_seconds`, then bring everything to disk."""
        for listener in self.listeners:
            listener.stop_accepting()
        await asyncio.gather(*(listener.drain(drain_seconds) for listener in self.listeners))
        await self._flushes_done()
        if self._is_read_only:
            self._release()
        else:
            self._log.close(self._metadata.broker_epoch if self._metadata is not None else -1)
        if self._broker is not None:
            self._broker.turns.close()
        self.timers.close()
        self._offload.close()

    async def _flushes_done(self) -> None:
        self._log.prepare_close()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._log.when_idle(lambda: done.set_result(None))
        await done

    async def _give_up(self) -> None:
        """Let go of what a failed start had opened. Directories that were left cleanly, or were checked, stay clean."""
        if self._is_whole:
            await self.stop(0)
            return
        for listener in self.listeners:
            listener.stop_accepting()
        self._release()
        self.timers.close()
        self._offload.close()

    def _release(self) -> None:
        for directory in self._log.every_directory:
            directory.release()


def _overlay(clock: Clock) -> FileSystem:
    from ottla.storage.overlay import OverlayFileSystem  # few brokers write nothing
    from ottla.storage.read_only_files import ReadOnlyFiles

    return OverlayFileSystem(ReadOnlyFiles(), clock)


def _machine_name() -> str:
    """A name under which others may find this machine; the loopback address where it has none that resolves."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "127.0.0.1"
    return name


def _cannot_listen(host: str, port: int, error: OSError) -> StartError:
    if error.errno == errno.EADDRINUSE:
        return StartError(f"cannot listen at {host}:{port}: the port is in use; --listen HOST:PORT takes another")
    return StartError(f"cannot listen at {host}:{port}: {error.strerror}")
