"""A cluster as a client sees it: brokers, topics, leaders, and one connection to each broker that is needed.

Keeps what Metadata answered and refreshes it when asked to or when it grows old; finds the way in through the bootstrap
addresses, and again through them when no known broker can be reached any more (KIP-899), when a broker asks for it, or
when no broker has answered for long (KIP-1102). A node id that turns up at another address gets a new connection.
`dialer` keeps the pauses between attempts at the same address; what is worth another one, callers decide with `retry`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from ottla.client.connection import Connection, ConnectionSettings, format_address
from ottla.client.dialer import Dialer
from ottla.client.errors import ClusterUnreachable, ConnectionLost
from ottla.client.retry import Backoff, Reaction, reaction_to
from ottla.client.topology import BrokerAddress, TopicInfo, newest_epochs, parse_bootstrap, topic_info
from ottla.errors import (
    KafkaError,
    LeaderNotAvailable,
    RebootstrapRequired,
    UnknownTopicOrPartition,
    error_for_code,
)
from ottla.model import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How a client deals with a cluster. Names and defaults are those of Kafka's clients."""

    connection: ConnectionSettings = field(default_factory=ConnectionSettings)
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    metadata_recovery_rebootstrap_trigger_ms: int = 300_000
    """Without an answer to Metadata for so long, what is known is dropped for the bootstrap addresses."""
    api_timeout_ms: int = 60_000
    """How long a call that is worth another attempt goes on trying (Kafka's default.api.timeout.ms)."""
    allow_auto_create_topics: bool = True


class Cluster:
    """The one object through which producer, consumer and admin talk to brokers."""

    def __init__(self, bootstrap: str | Iterable[str], settings: ClusterSettings | None = None) -> None:
        self.settings = settings or ClusterSettings()
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.brokers: dict[int, BrokerAddress] = {}
        self.topics: dict[str, TopicInfo] = {}
        self.topic_errors: dict[str, KafkaError] = {}
        self._bootstrap = parse_bootstrap(bootstrap)
        self._names: dict[TopicId, str] = {}
        self._wanted: set[str] = set()
        self._connections: dict[tuple[int, str], Connection] = {}
        self._entry: Connection | None = None
        self._opening: dict[tuple[int, str], asyncio.Task[Connection]] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._age_timer: asyncio.TimerHandle | None = None
        self._asking_since: float | None = None
        self._retry_backoff = Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms)
        self._dialer = Dialer(
            self.settings.connection,
            Backoff(self.settings.reconnect_backoff_ms, self.settings.reconnect_backoff_max_ms),
        )

    # ---- life

    async def start(self) -> None:
        """Reach the cluster once. Raises `ClusterUnreachable` when no bootstrap address answers."""
        await self.refresh()

    async def close(self) -> None:
        """Close every connection and stop what is going on in the background."""
        if self._age_timer is not None:
            self._age_timer.cancel()
        tasks: list[asyncio.Task[Connection] | asyncio.Task[None]] = [*self._opening.values()]
        if self._refreshing is not None:
            tasks.append(self._refreshing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        connections = [*self._connections.values()]
        if self._entry is not None:
            connections.append(self._entry)
        self._connections.clear()
        await asyncio.gather(*(connection.close() for connection in connections))

    # ---- connections

    def open_connection_to(self, node_id: int, channel: str = "") -> Connection | None:
        """Return the connection when it stands, None when it would have to be opened."""
        connection = self._connections.get((node_id, channel))
        return connection if connection is not None and connection.is_open else None

    async def connection_to(self, node_id: int, channel: str = "") -> Connection:
        """Return a connection to a broker, opening it when needed.

        `channel` names a connection beside the usual one, for what may keep a broker busy for long (fetches).
        Raises `ConnectionLost`, `LeaderNotAvailable` for a node id that is not in the metadata.
        """
        connection = self.open_connection_to(node_id, channel)
        if connection is not None:
            return connection
        key = (node_id, channel)
        task = self._opening.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._open(key))
            self._opening[key] = task
            task.add_done_callback(lambda done: self._opened(key, done))
        return await asyncio.shield(task)

    async def _open(self, key: tuple[int, str]) -> Connection:
        broker = self.brokers.get(key[0])
        if broker is None:
            raise LeaderNotAvailable(f"broker {key[0]} is not in the cluster's metadata")
        connection = await self._dialer.connect(broker.host, broker.port)
        now_at = self.brokers.get(key[0])
        if now_at is None or (now_at.host, now_at.port) != (broker.host, broker.port):
            connection.abandon()
            raise ConnectionLost(str(broker), f"broker {key[0]} moved away meanwhile")
        connection.on_lost = lambda lost: self._forget(key, lost)
        self._connections[key] = connection
        return connection

    def _opened(self, key: tuple[int, str], task: asyncio.Task[Connection]) -> None:
        del self._opening[key]
        if not task.cancelled():
            task.exception()  # seen here too, when whoever asked has stopped waiting

    def _forget(self, key: tuple[int, str], lost: Connection) -> None:
        if self._connections.get(key) is lost:
            del self._connections[key]

    async def any_connection(self) -> Connection:
        """Return a connection to whichever broker can be had, an open and idle one first.

        Raises `ClusterUnreachable` when neither a known broker nor a bootstrap address can be reached.
        """
        usable = [connection for (_, channel), connection in self._connections.items() if not channel]
        if self._entry is not None:
            usable.append(self._entry)
        usable = [connection for connection in usable if connection.is_open]
        if usable:
            return min(usable, key=lambda connection: connection.in_flight)
        failures: dict[str, str] = {}
        for node_id in random.sample(sorted(self.brokers), len(self.brokers)):
            try:
                return await self.connection_to(node_id)
            except ConnectionLost as error:
                failures[error.address] = error.reason
            except KafkaError as error:
                failures[f"broker {node_id}"] = str(error)
        return await self._enter(failures)

    def _start_over(self) -> None:
        """Forget brokers and topics; the next request goes through a bootstrap address."""
        for connection in [*self._connections.values(), *([] if self._entry is None else [self._entry])]:
            connection.abandon()
        self._connections.clear()
        self._entry = None
        self.brokers = {}
        self.topics.clear()
        self._names.clear()

    async def _enter(self, failures: dict[str, str]) -> Connection:
        """Come in through a bootstrap address. The connection serves until brokers have their own."""
        for host, port in self._bootstrap:
            try:
                self._entry = await self._dialer.connect(host, port)
            except ConnectionLost as error:
                failures[error.address] = error.reason
            except KafkaError as error:
                failures[format_address(host, port)] = str(error)
            else:
                return self._entry
        raise ClusterUnreachable(failures)

    async def call(self, api_key: ApiKey, request: Message, response_type: type[M], node_id: int | None = None) -> M:
        """Ask one broker, or any when `node_id` is None, trying again when the connection fails.

        Before a certain broker is tried again the metadata is refreshed: it may have moved, or be gone for good.
        Errors inside the response are the caller's business. Raises `ConnectionLost`, `ClusterUnreachable`,
        `UnsupportedVersion`.
        """
        deadline = self.deadline()
        attempt = 0
        while True:
            try:
                connection = await (self.any_connection() if node_id is None else self.connection_to(node_id))
                return await connection.call(api_key, request, response_type)
            except KafkaError as error:
                attempt += 1
                if isinstance(error, ClusterUnreachable) or reaction_to(error) is Reaction.GIVE_UP:
                    raise
                await self.pause(attempt, deadline, error)
                if node_id is not None:
                    with suppress(KafkaError):
                        await self.refresh()
                    if node_id not in self.brokers:
                        raise

    # ---- waiting

    def deadline(self) -> float:
        """The loop's time at which a call that starts now gives up."""
        return asyncio.get_running_loop().time() + self.settings.api_timeout_ms / 1000

    async def pause(self, attempt: int, deadline: float, error: KafkaError) -> None:
        """Wait before attempt number `attempt` + 1; raises `error` when that would come after `deadline`."""
        seconds = self._retry_backoff.delay_seconds(attempt, random.random)
        if asyncio.get_running_loop().time() + seconds > deadline:
            raise error
        await asyncio.sleep(seconds)

    def retry_delay_seconds(self, attempt: int) -> float:
        """The pause after so many failures of one request."""
        return self._retry_backoff.delay_seconds(attempt, random.random)

    # ---- metadata

    def leader_of(self, partition: TopicPartition) -> int | None:
        """Return the leader's node id, None when the metadata at hand names none."""
        topic = self.topics.get(partition.topic)
        if topic is None or not 0 <= partition.partition < len(topic.partitions):
            return None
        leader = topic.partitions[partition.partition].leader
        return leader if leader in self.brokers else None

    def leader_epoch_of(self, partition: TopicPartition) -> int:
        """Return the epoch of the leader that `leader_of` gives, -1 where the cluster counts none."""
        return self.topics[partition.topic].partitions[partition.partition].leader_epoch

    def topic_name(self, topic_id: TopicId) -> str | None:
        """Return the name that the metadata at hand gives to an id."""
        return self._names.get(topic_id)

    def want(self, topics: Iterable[str]) -> None:
        """Have these topics in every refresh from now on."""
        self._wanted.update(topics)

    async def topic(self, name: str, patience_ms: int | None = None) -> TopicInfo:
        """Return a topic, asking the cluster when it is not known yet, until it appears.

        Raises `UnknownTopicOrPartition` and the like when it is not there after `patience_ms`
        (default: `api_timeout_ms`), and at once for an error that waiting does not mend.
        """
        loop = asyncio.get_running_loop()
        patience = self.settings.api_timeout_ms if patience_ms is None else patience_ms
        deadline = loop.time() + patience / 1000
        attempt = 0
        self._wanted.add(name)
        while (topic := self.topics.get(name)) is None or not topic.partitions:
            if attempt:
                error = self.topic_errors.get(name) or UnknownTopicOrPartition(f"topic {name!r} does not exist")
                if reaction_to(error) is Reaction.GIVE_UP:
                    raise error
                await self.pause(attempt, deadline, error)
            attempt += 1
            await self.refresh()
        return topic

    def refresh_soon(self) -> asyncio.Task[None]:
        """Start a refresh in the background unless one is under way, and return it."""
        task = self._refreshing
        if task is None or task.done():
            task = self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
            task.add_done_callback(_mark_seen)
        return task

    async def refresh(self) -> None:
        """Ask for brokers and wanted topics now. Raises `ClusterUnreachable` and the like."""
        task = self._refreshing
        if task is not None and not task.done():
            await asyncio.wait([task])  # it may have begun before the caller's topic was wanted
        await asyncio.shield(self.refresh_soon())

    async def _refresh(self) -> None:
        loop = asyncio.get_running_loop()
        if self._asking_since is None:
            self._asking_since = loop.time()
        elif loop.time() - self._asking_since >= self.settings.metadata_recovery_rebootstrap_trigger_ms / 1000:
            self._asking_since = loop.time()
            self._start_over()
        names = sorted(self._wanted)
        self.update(await self.ask_metadata(names, allow_auto_create=self.settings.allow_auto_create_topics))
        self._asking_since = None
        if self._age_timer is not None:
            self._age_timer.cancel()
        self._age_timer = loop.call_later(self.settings.metadata_max_age_ms / 1000, self.refresh_soon)

    async def ask_metadata(self, names: Sequence[str] | None, *, allow_auto_create: bool = False) -> MetadataResponse:
        """Return the cluster's answer about these topics, all of them when None; keeps nothing."""
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=allow_auto_create)
        deadline = self.deadline()
        attempt = 0
        while True:
            response = await self.call(ApiKey.METADATA, request, MetadataResponse)
            error = error_for_code(response.error_code)
            if error is None:
                return response
            if not isinstance(error, RebootstrapRequired):
                raise error
            self._start_over()
            attempt += 1
            await self.pause(attempt, deadline, error)

    def update(self, response: MetadataResponse) -> None:
        """Take over what a broker answered: its brokers replace ours, its topics replace ours of the same name."""
        if response.cluster_id is not None:
            self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        if response.brokers:  # a broker that is just starting may know none
            self._update_brokers(
                {row.node_id: BrokerAddress(row.node_id, row.host, row.port, row.rack) for row in response.brokers}
            )
        for row in response.topics:
            self._update_topic(row)

    def _update_brokers(self, brokers: Mapping[int, BrokerAddress]) -> None:
        for (node_id, channel), connection in list(self._connections.items()):
            old, new = self.brokers.get(node_id), brokers.get(node_id)
            if new is None or (old is not None and (old.host, old.port) != (new.host, new.port)):
                del self._connections[node_id, channel]
                connection.abandon()
        self.brokers = dict(brokers)

    def learn_leader(
        self, partition: TopicPartition, leader: int, leader_epoch: int, addresses: Iterable[BrokerAddress]
    ) -> bool:
        """Take over a leader that a broker's answer names where it is not the leader itself (KIP-951).

        False when that is no news, or does not say where the leader is.
        """
        topic = self.topics.get(partition.topic)
        if topic is None or leader < 0 or partition.partition >= len(topic.partitions):
            return False
        known = topic.partitions[partition.partition]
        if leader_epoch <= known.leader_epoch:
            return False
        told = {address.node_id: address for address in addresses}
        if leader not in self.brokers and leader not in told:
            return False
        self._update_brokers({**self.brokers, **told})
        partitions = list(topic.partitions)
        partitions[partition.partition] = known._replace(leader=leader, leader_epoch=leader_epoch)
        self.topics[partition.topic] = topic._replace(partitions=tuple(partitions))
        return True

    def _update_topic(self, row: MetadataResponseTopic) -> None:
        name = row.name
        if name is None:
            return
        error = error_for_code(row.error_code)
        if error is not None and not row.partitions:
            self.topic_errors[name] = type(error)(f"topic {name!r}: {error.sentence}")
            self.topics.pop(name, None)
            return
        self.topic_errors.pop(name, None)
        old = self.topics.get(name)
        topic = topic_info(row)
        if old is not None and old.topic_id == topic.topic_id:
            topic = topic._replace(partitions=newest_epochs(old.partitions, topic.partitions))
        self.topics[name] = topic
        if topic.topic_id != ZERO_TOPIC_ID:
            self._names[topic.topic_id] = name


def _mark_seen(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()  # a refresh in the background that fails is tried again by whoever needs it
