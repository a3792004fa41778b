"""Keeps records coming: fetches ahead from every leader of an assigned partition, within a bound of memory.

Each broker has at most one Fetch under way, on a connection of its own, since a broker may hold it for long. A broker
is asked again when none of its partitions holds as much as one fetch may bring, so that a full partition neither
starves the others nor hides behind their long poll. Answers wait as `FetchedPartition`s, errors as exceptions, in the
order in which they came. Positions that are not known are asked of the leaders first, and a new leader is asked whether
it has what was read under the last one. A leader may send us to a follower that is nearer (KIP-392).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.errors import LogTruncated
from ottla.client.fetch_session import FetchPosition, FetchSession, SessionRequest, forgotten_rows, topic_rows
from ottla.client.fetched import FetchedPartition
from ottla.client.offset_reset import OffsetReset
from ottla.client.offsets import OffsetAndTimestamp, list_offsets
from ottla.client.retry import Reaction, reaction_to
from ottla.client.subscription import PartitionState, Subscription
from ottla.client.topology import BrokerAddress
from ottla.client.truncation import EpochEnd, find_epoch_ends
from ottla.errors import (
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
    KafkaError,
    LeaderNotAvailable,
    MessageTooLarge,
    OffsetOutOfRange,
    UnknownServerError,
    UnsupportedVersion,
    error_for_code,
)
from ottla.model import (
    LATEST_TIMESTAMP,
    ZERO_TOPIC_ID,
    IsolationLevel,
    TopicId,
    TopicPartition,
)
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.records.reading import Aborted, split_readable

FETCH_CHANNEL: Final = "fetch"
TOPIC_IDS_FROM: Final = 13
"""The first version that names topics by id (KIP-516)."""

MAX_FAILURES: Final = 10
"""After so many failures of one partition in a row, the application hears of it."""


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


class Failure(NamedTuple):
    """An error that the application must hear of, unless it seeks away first."""

    state: PartitionState
    seek_count: int
    error: KafkaError

    @property
    def is_outdated(self) -> bool:
        return self.seek_count != self.state.seek_count


class Fetcher:
    """Fetches for one consumer. `kick` starts whatever is due; nothing else has to be called for progress."""

    def __init__(
        self, cluster: Cluster, subscription: Subscription, settings: FetchSettings, reset: OffsetReset
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._settings = settings
        self._reset = reset
        self._arrived: deque[FetchedPartition | Failure] = deque()
        self._has_news = asyncio.Event()
        self._sessions: defaultdict[int, tuple[Connection | None, FetchSession]] = defaultdict(
            lambda: (None, FetchSession())
        )
        self._fetching: dict[int, asyncio.Task[None]] = {}
        self._preparing: asyncio.Task[None] | None = None
        self._wake_timer: asyncio.TimerHandle | None = None
        self._is_kicked = False
        self._is_closed = False
        self._mistake: BaseException | None = None

    # ---- what the consumer takes

    def take(self) -> FetchedPartition | None:
        """Return the oldest waiting answer of a partition that is not paused. Raises an error that came before it."""
        if self._mistake is not None:
            raise self._mistake
        held: list[FetchedPartition] = []
        try:
            while self._arrived:
                item = self._arrived.popleft()
                if item.is_outdated:
                    continue
                if isinstance(item, Failure):
                    raise item.error
                if not item.state.is_paused:
                    return item
                held.append(item)
            return None
        finally:
            self._arrived.extendleft(reversed(held))

    def put_back(self, fetched: FetchedPartition) -> None:
        """Keep what a paused partition still holds for later."""
        self._arrived.appendleft(fetched)

    def raise_error_of(self, partition: TopicPartition) -> None:
        """Raise the oldest error of a partition, if there is one."""
        for item in self._arrived:
            if isinstance(item, Failure) and item.state.partition == partition and not item.is_outdated:
                self._arrived.remove(item)
                raise item.error

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._has_news.set()

    async def wait_until(self, deadline: float | None) -> bool:
        """Wait for news; False when none came before the loop's time `deadline`."""
        self._has_news.clear()
        try:
            async with asyncio.timeout_at(deadline):
                await self._has_news.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Stop fetching; brokers forget the sessions with their connections."""
        self._is_closed = True
        if self._wake_timer is not None:
            self._wake_timer.cancel()
        tasks = list(self._fetching.values())
        if self._preparing is not None:
            tasks.append(self._preparing)
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
        if self._is_closed or self._mistake is not None:
            return
        now = asyncio.get_running_loop().time()
        due: defaultdict[int, dict[TopicPartition, FetchPosition]] = defaultdict(dict)
        full: set[int] = set()
        next_retry: float | None = None
        must_prepare = False
        buffered_bytes = 0
        for state in self._subscription.states.values():
            buffered_bytes += state.buffered_bytes
            if state.retry_at > now:
                next_retry = state.retry_at if next_retry is None else min(next_retry, state.retry_at)
                continue
            source = self._source_of(state, now)
            if state.reset_timestamp_ms is not None or source is None:
                must_prepare = True
            elif self._must_validate(state):
                must_prepare = must_prepare or state.is_drained
            elif source not in self._fetching and not state.is_paused and state.has_position:
                if state.buffered_bytes >= self._settings.max_partition_fetch_bytes:
                    full.add(source)
                else:
                    due[source][state.partition] = self._fetch_position(state)
        if must_prepare and self._preparing is None:
            self._preparing = self._start(self._prepare())
        if next_retry is not None:
            self._wake_at(next_retry)
        if buffered_bytes < self._settings.max_buffered_bytes:
            for node_id in due.keys() - full:
                self._fetching[node_id] = self._start(self._fetch(node_id, due[node_id]))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        """A task that ends with anything but a Kafka error shows a mistake of ours: hand it on instead of going on."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._mistake = error
            self._has_news.set()

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

    def _leader_epoch_of(self, state: PartitionState) -> int:
        return self._cluster.topics[state.partition.topic].partitions[state.partition.partition].leader_epoch

    def _must_validate(self, state: PartitionState) -> bool:
        return state.has_position and state.must_validate(self._leader_epoch_of(state))

    def _fetch_position(self, state: PartitionState) -> FetchPosition:
        state.leader_epoch = leader_epoch = self._leader_epoch_of(state)
        topic_id = self._cluster.topics[state.partition.topic].topic_id
        return FetchPosition(topic_id, state.fetch_offset, leader_epoch, self._settings.max_partition_fetch_bytes)

    # ---- positions

    async def _prepare(self) -> None:
        """Find leaders and ask for the offsets of partitions that have no position."""
        states = self._subscription.without_position()
        asked = {state.partition: state.seek_count for state in states}
        timestamps = {state.partition: state.reset_timestamp_ms or 0 for state in states}
        try:
            topics = {state.partition.topic for state in self._subscription.states.values()}
            if any(self._cluster.leader_of(partition) is None for partition in self._subscription.states):
                self._cluster.want(topics)
                await self._cluster.refresh()
            answers = await list_offsets(self._cluster, timestamps, self._settings.isolation_level)
            for state in states:
                if state.seek_count == asked[state.partition]:
                    self._take_position(state, answers[state.partition], timestamps[state.partition])
            await self._validate()
            for state in self._subscription.states.values():
                if self._cluster.leader_of(state.partition) is None:
                    self._fail(state, LeaderNotAvailable(f"{state.partition} has no leader"))
        except KafkaError as error:
            for state in self._subscription.states.values():
                self._fail(state, error)
        finally:
            self._preparing = None
            self.kick()

    def _take_position(self, state: PartitionState, answer: OffsetAndTimestamp | KafkaError, asked_ms: int) -> None:
        if isinstance(answer, KafkaError):
            self._fail(state, answer)
        elif answer.offset < 0:  # no record is that late: go on at the end
            assert asked_ms != LATEST_TIMESTAMP
            state.seek_to_time(LATEST_TIMESTAMP)
        else:
            state.seek(answer.offset)
            self._has_news.set()

    async def _validate(self) -> None:
        """Ask new leaders whether they have what was read before."""
        states = [
            state
            for state in self._subscription.states.values()
            if self._cluster.leader_of(state.partition) is not None and state.is_drained and self._must_validate(state)
        ]
        asked = {state.partition: (state.seek_count, self._leader_epoch_of(state)) for state in states}
        ends = await find_epoch_ends(self._cluster, {state.partition: state.position_epoch for state in states})
        for state in states:
            seek_count, leader_epoch = asked[state.partition]
            if state.seek_count == seek_count:
                missing = UnknownServerError("the broker's answer about leader epochs leaves it out")
                self._take_epoch_end(state, ends.get(state.partition, missing), leader_epoch)

    def _take_epoch_end(self, state: PartitionState, end: EpochEnd | KafkaError, leader_epoch: int) -> None:
        """Go on, or where the log was cut off, from the first offset that differs (as Kafka's consumer does)."""
        reset = self._reset.timestamp_ms()
        if isinstance(end, UnsupportedVersion):  # a broker that cannot tell
            state.leader_epoch = leader_epoch
        elif isinstance(end, KafkaError):
            self._take_error(state, end)
        elif end.leader_epoch >= 0 and state.position <= end.end_offset:
            state.failures = 0
            state.leader_epoch = leader_epoch
        elif reset is None:
            known = f"from offset {end.end_offset} on" if end.leader_epoch >= 0 else "but cannot tell from where on"
            what = f"{state.partition}: the log of the new leader differs {known}, before position {state.position}"
            self._fail(state, LogTruncated(what, end.end_offset))
        elif end.leader_epoch < 0:
            state.seek_to_time(reset)
        else:
            state.seek(end.end_offset, end.leader_epoch)
            state.leader_epoch = leader_epoch

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
                self._fail(state, error)
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
            self._take_error(state, error, self._learn_leader(state, row, response))
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
            self._take_error(
                state, type(problem.error)(f"{state.partition} at offset {state.fetch_offset}: {problem.error}")
            )
            return
        if not batches:  # only brokers before 0.10.1 cut a batch that is larger than the limit
            self._take_error(
                state, MessageTooLarge(f"{state.partition}: the batch at {state.fetch_offset} is too large")
            )
            return
        aborted = None
        if self._settings.isolation_level is IsolationLevel.READ_COMMITTED:
            aborted = Aborted([(entry.producer_id, entry.first_offset) for entry in row.aborted_transactions or ()])
        fetched = FetchedPartition(state, batches, aborted=aborted, check_crcs=self._settings.check_crcs)
        state.buffered_bytes += sum(batch.size_in_bytes for batch in batches)
        state.fetch_offset = max(state.fetch_offset, *(batch.next_offset for batch in batches))
        self._arrived.append(fetched)
        self._has_news.set()

    def _learn_leader(self, state: PartitionState, row: PartitionData, response: FetchResponse) -> bool:
        """Take over the leader that the answer names (KIP-951); True when that is news."""
        addresses = [BrokerAddress(one.node_id, one.host, one.port, one.rack) for one in response.node_endpoints]
        leader = row.current_leader
        return self._cluster.learn_leader(state.partition, leader.leader_id, leader.leader_epoch, addresses)

    def _take_error(self, state: PartitionState, error: KafkaError, has_moved: bool = False) -> None:
        """Try again: at once where the leader is known, else later; or go where the settings say."""
        was_at_follower = state.forget_replica()
        reset = self._reset.timestamp_ms()
        if has_moved:
            return
        if isinstance(error, OffsetOutOfRange) and (was_at_follower or not state.is_drained):
            self._pause(state)  # the leader knows better; and what was fetched comes before what is missing
        elif isinstance(error, OffsetOutOfRange) and reset is not None:
            state.seek_to_time(reset)
        else:
            if reaction_to(error) is Reaction.REFRESH:
                self._cluster.refresh_soon()
            self._fail(state, error)

    def _pause(self, state: PartitionState) -> None:
        state.retry_at = asyncio.get_running_loop().time() + self._cluster.retry_delay_seconds(1)

    def _fail(self, state: PartitionState, error: KafkaError) -> None:
        """Try a partition again later; tell the application when that cannot help or did not for long."""
        state.failures += 1
        state.retry_at = asyncio.get_running_loop().time() + self._cluster.retry_delay_seconds(state.failures)
        is_told = any(
            isinstance(item, Failure) and item.state is state and not item.is_outdated for item in self._arrived
        )
        if not is_told and (reaction_to(error) is Reaction.GIVE_UP or state.failures % MAX_FAILURES == 0):
            self._arrived.append(Failure(state, state.seek_count, _about(state.partition, error)))
            self._has_news.set()


def _about(partition: TopicPartition, error: KafkaError) -> KafkaError:
    """Return an error of the same kind whose message names the partition."""
    if error.message is not None and str(partition) in error.message:
        return error
    named = KafkaError.__new__(type(error))
    KafkaError.__init__(named, f"{partition}: {error}")
    return named
