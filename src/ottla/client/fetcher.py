"""Keeps records coming: fetches ahead from every leader of an assigned partition, within a bound of memory.

Each broker has at most one Fetch under way, on a connection of its own, since a broker may hold it for long. A broker
is asked again when none of its partitions holds as much as one fetch may bring, so that a full partition neither
starves the others nor hides behind their long poll. A leader may send us to a follower that is nearer (KIP-392). What
comes waits in `fetch_buffer`; where partitions are read from `offset_fetcher` finds out, what an error means for one
`fetch_errors` decides.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.fetch_buffer import FetchBuffer
from ottla.client.fetch_errors import FetchErrors
from ottla.client.fetch_session import FetchPosition, FetchSession, SessionRequest, forgotten_rows, topic_rows
from ottla.client.fetched import FetchedPartition
from ottla.client.offset_fetcher import OffsetFetcher
from ottla.client.offset_reset import OffsetReset
from ottla.client.subscription import PartitionState, Subscription
from ottla.client.topology import BrokerAddress
from ottla.errors import (
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
    KafkaError,
    MessageTooLarge,
    error_for_code,
)
from ottla.model import ZERO_TOPIC_ID, IsolationLevel, TopicId, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from ottla.records.reading import Aborted, split_readable

FETCH_CHANNEL: Final = "fetch"
TOPIC_IDS_FROM: Final = 13
"""The first version that names topics by id (KIP-516)."""


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How records are fetched. Names and defaults are those of Kafka's consumer, `max_buffered_bytes` is ours."""

    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = 1_048_576
    max_buffered_bytes: int = 67_108_864
    """No fetch starts while so much waits for the application."""
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    auto_offset_reset: str = "latest"
    """Where to go when the position is out of range: "earliest", "latest", "none" for an error, or "by_duration:P7D"
    for records that are at most so old (KIP-1106; an ISO 8601 duration in days, hours, minutes, seconds)."""
    check_crcs: bool = True
    client_rack: str = ""


class Fetcher:
    """Fetches for one consumer. `kick` starts whatever is due; nothing else has to be called for progress."""

    def __init__(
        self,
        cluster: Cluster,
        subscription: Subscription,
        settings: FetchSettings,
        reset: OffsetReset,
        buffer: FetchBuffer,
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._settings = settings
        self._buffer = buffer
        self._errors = FetchErrors(cluster, reset, buffer)
        self._offsets = OffsetFetcher(cluster, subscription, settings.isolation_level, reset, buffer, self._errors)
        self._sessions: defaultdict[int, tuple[Connection | None, FetchSession]] = defaultdict(
            lambda: (None, FetchSession())
        )
        self._fetching: dict[int, asyncio.Task[None]] = {}
        self._finding_positions: asyncio.Task[None] | None = None
        self._wake_timer: asyncio.TimerHandle | None = None
        self._is_kicked = False
        self._is_closed = False

    async def close(self) -> None:
        """Stop fetching. Brokers drop sessions that are used no more by themselves, when they need room."""
        self._is_closed = True
        if self._wake_timer is not None:
            self._wake_timer.cancel()
        tasks = list(self._fetching.values())
        if self._finding_positions is not None:
            tasks.append(self._finding_positions)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---- what to do next

    def kick_soon(self) -> None:
        """Have `kick` run once what happens now is over, so that several seeks make one fetch."""
        if not self._is_kicked:
            self._is_kicked = True
            asyncio.get_running_loop().call_soon(self.kick)

    def kick(self) -> None:
        """Start the requests that are due: positions first, then a fetch from each idle broker with room."""
        self._is_kicked = False
        if self._is_closed or self._buffer.has_ended:
            return
        now = asyncio.get_running_loop().time()
        due: defaultdict[int, dict[TopicPartition, FetchPosition]] = defaultdict(dict)
        full: set[int] = set()
        next_retry: float | None = None
        must_find = False
        buffered_bytes = 0
        for state in self._subscription.states.values():
            buffered_bytes += state.buffered_bytes
            if state.retry_at > now:
                next_retry = state.retry_at if next_retry is None else min(next_retry, state.retry_at)
                continue
            source = self._source_of(state, now)
            if state.reset_timestamp_ms is not None or source is None:
                must_find = True
            elif self._offsets.must_validate(state):
                must_find = must_find or state.is_drained
            elif source not in self._fetching and not state.is_paused and state.has_position:
                if state.buffered_bytes >= self._settings.max_partition_fetch_bytes:
                    full.add(source)
                else:
                    due[source][state.partition] = self._fetch_position(state)
        if must_find and self._finding_positions is None:
            self._finding_positions = self._start(self._find_positions())
        if next_retry is not None:
            self._wake_at(next_retry)
        if buffered_bytes < self._settings.max_buffered_bytes:
            for node_id in due.keys() - full:
                self._fetching[node_id] = self._start(self._fetch(node_id, due[node_id]))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._buffer.end)
        return task

    def _wake_at(self, when: float) -> None:
        if self._wake_timer is not None:
            self._wake_timer.cancel()
        self._wake_timer = asyncio.get_running_loop().call_at(when, self.kick)

    def _source_of(self, state: PartitionState, now: float) -> int | None:
        """Return the broker to read from: the leader, or the follower that it named; None when no leader is known."""
        leader = self._cluster.leader_of(state.partition)
        replica = state.preferred_replica
        if leader is None or replica is None:
            return leader
        if now < state.preferred_until and replica in self._cluster.brokers:
            return replica
        state.forget_replica()
        return leader

    def _fetch_position(self, state: PartitionState) -> FetchPosition:
        state.leader_epoch = leader_epoch = self._cluster.leader_epoch_of(state.partition)
        topic_id = self._cluster.topics[state.partition.topic].topic_id
        return FetchPosition(topic_id, state.fetch_offset, leader_epoch, self._settings.max_partition_fetch_bytes)

    async def _find_positions(self) -> None:
        try:
            await self._offsets.find_positions()
        finally:
            self._finding_positions = None
            self.kick()

    # ---- fetching

    async def _fetch(self, node_id: int, wanted: Mapping[TopicPartition, FetchPosition]) -> None:
        """One Fetch to one broker, and what comes of it."""
        states = {partition: self._subscription.states[partition] for partition in wanted}
        seek_counts = {partition: state.seek_count for partition, state in states.items()}
        try:
            connection = await self._cluster.connection_to(node_id, FETCH_CHANNEL)
            session = self._session(node_id, connection)
            response, names = await self._ask(connection, session.plan(wanted), wanted)
            if not self._is_refused(session, response):
                for topic in response.responses:
                    name = names.get(TopicId(topic.topic_id), topic.topic) or topic.topic
                    for row in topic.partitions:
                        state = states.get(TopicPartition(name, row.partition_index))
                        if state is not None and seek_counts[state.partition] == state.seek_count:
                            self._take_row(state, row, response)
        except KafkaError as error:
            self._cluster.refresh_soon()
            for state in states.values():
                state.forget_replica()
                self._errors.fail(state, error)
        finally:
            del self._fetching[node_id]
            self.kick()

    def _session(self, node_id: int, connection: Connection) -> FetchSession:
        """A session lives as long as its connection: another connection may lead to another process."""
        known, session = self._sessions[node_id]
        if known is not connection:
            session = FetchSession()
            self._sessions[node_id] = (connection, session)
        return session

    async def _ask(
        self, connection: Connection, said: SessionRequest, wanted: Mapping[TopicPartition, FetchPosition]
    ) -> tuple[FetchResponse, dict[TopicId, str]]:
        settings = self._settings
        version = connection.version_for(ApiKey.FETCH)
        names = {position.topic_id: partition.topic for partition, position in wanted.items()}
        if version >= TOPIC_IDS_FROM and ZERO_TOPIC_ID in names:
            version = connection.version_for(ApiKey.FETCH, at_most=TOPIC_IDS_FROM - 1)
        request = FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=settings.isolation_level,
            session_id=said.session_id,
            session_epoch=said.session_epoch,
            topics=topic_rows(said),
            forgotten_topics_data=forgotten_rows(said),
            rack_id=settings.client_rack,
        )
        timeout_ms = self._cluster.settings.connection.request_timeout_ms + settings.fetch_max_wait_ms
        response = await connection.send(ApiKey.FETCH, request, version, timeout_ms)
        assert isinstance(response, FetchResponse)
        return response, names

    def _is_refused(self, session: FetchSession, response: FetchResponse) -> bool:
        """Take the session's side of an answer. True when it brings nothing and all must be named again."""
        error = error_for_code(response.error_code)
        if error is None:
            session.accept(response.session_id)
            return False
        if isinstance(error, FetchSessionIdNotFound | InvalidFetchSessionEpoch | FetchSessionTopicIdError):
            session.reset(is_forgotten=isinstance(error, FetchSessionIdNotFound))
            return True
        session.reset()
        raise error

    def _take_row(self, state: PartitionState, row: PartitionData, response: FetchResponse) -> None:
        error = error_for_code(row.error_code)
        if error is not None:
            self._errors.take(state, error, has_moved=self._learn_leader(state, row, response))
            return
        if row.preferred_read_replica >= 0:
            age_seconds = self._cluster.settings.metadata_max_age_ms / 1000
            state.preferred_replica = row.preferred_read_replica
            state.preferred_until = asyncio.get_running_loop().time() + age_seconds
        state.failures = 0
        state.high_watermark = row.high_watermark
        state.last_stable_offset = row.last_stable_offset
        state.log_start_offset = max(state.log_start_offset, row.log_start_offset)
        assert row.records is None or isinstance(row.records, memoryview)
        if row.records:
            self._take_records(state, row, row.records)

    def _take_records(self, state: PartitionState, row: PartitionData, records: memoryview) -> None:
        batches, problem = split_readable(records, with_legacy=True)
        if not batches and problem is not None:  # behind other batches it is met again, at the beginning
            self._errors.take(
                state, type(problem.error)(f"{state.partition} at offset {state.fetch_offset}: {problem.error}")
            )
            return
        if not batches:  # only brokers before 0.10.1 cut a batch that is larger than the limit
            self._errors.take(
                state, MessageTooLarge(f"{state.partition}: the batch at {state.fetch_offset} is too large")
            )
            return
        aborted = None
        if self._settings.isolation_level is IsolationLevel.READ_COMMITTED:
            aborted = Aborted([(entry.producer_id, entry.first_offset) for entry in row.aborted_transactions or ()])
        fetched = FetchedPartition(state, batches, aborted=aborted, check_crcs=self._settings.check_crcs)
        state.buffered_bytes += sum(batch.size_in_bytes for batch in batches)
        state.fetch_offset = max(state.fetch_offset, *(batch.next_offset for batch in batches))
        self._buffer.add(fetched)

    def _learn_leader(self, state: PartitionState, row: PartitionData, response: FetchResponse) -> bool:
        """Take over the leader that the answer names (KIP-951); True when that is news."""
        addresses = [BrokerAddress(one.node_id, one.host, one.port, one.rack) for one in response.node_endpoints]
        leader = row.current_leader
        return self._cluster.learn_leader(state.partition, leader.leader_id, leader.leader_epoch, addresses)
