"""Sends due batches to their leaders and settles them: order, sequences, retries, expiry.

One pass (`_pump`) takes at most one batch of each partition per request and keeps at most `max_in_flight` requests on
a connection. With idempotence (the default) every batch has the partition's next sequence number, so that a retry after
a lost answer is written once and in order (KIP-98); after a batch had to be given up, and when the broker's idea of the
sequence is another one, the partition goes on under a new producer epoch from sequence 0 (KIP-360). Without it, order
is kept by one request in flight per partition. A batch that is too large for the broker is sent as two.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from ottla.client.accumulator import Accumulator
from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.errors import DeliveryExpired
from ottla.client.producer_batch import PartitionQueue, ProducerBatch
from ottla.client.refusals import about_partition, errors_of_records, refused_with
from ottla.client.retry import Reaction, reaction_to
from ottla.client.sequencing import Sequencing
from ottla.client.topology import BrokerAddress
from ottla.errors import (
    DuplicateSequenceNumber,
    InvalidProducerEpoch,
    KafkaError,
    MessageTooLarge,
    OutOfOrderSequenceNumber,
    UnknownProducerId,
    UnknownServerError,
    error_for_code,
)
from ottla.model import NO_OFFSET, NO_SEQUENCE, ZERO_TOPIC_ID, TopicId
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.produce import (
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

TOPIC_IDS_FROM: Final = 13
"""The first version of Produce that names topics by id (KIP-516)."""

MAX_FENCED_ATTEMPTS: Final = 3
"""So often a batch is tried under another producer epoch when the broker calls its epoch outdated."""


class SenderSettings(NamedTuple):
    """How batches are sent."""

    acks: int
    is_idempotent: bool
    max_in_flight: int
    max_request_size: int


class Sender:
    """One producer's sending side. `wake` is safe to call as often as one likes; the pass runs once per loop turn."""

    def __init__(self, cluster: Cluster, settings: SenderSettings, on_unseen: Callable[[KafkaError], None]) -> None:
        self._cluster = cluster
        self._settings = settings
        self._on_unseen = on_unseen
        self._accumulator: Accumulator | None = None
        self._is_woken = False
        self._is_closed = False
        self._in_flight: defaultdict[Connection, int] = defaultdict(int)
        self._connecting: dict[int, asyncio.Task[None]] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._identifying: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._expiry_timer: asyncio.TimerHandle | None = None
        self._sequencing = Sequencing(is_idempotent=settings.is_idempotent)
        self._failures = 0
        self._refresh_at = 0.0

    @property
    def accumulator(self) -> Accumulator:
        assert self._accumulator is not None
        return self._accumulator

    def attach(self, accumulator: Accumulator) -> None:
        """Send what this accumulator holds."""
        self._accumulator = accumulator

    def wake(self) -> None:
        """Have a pass run soon."""
        if not self._is_woken and not self._is_closed:
            self._is_woken = True
            asyncio.get_running_loop().call_soon(self._pump)

    async def close(self) -> None:
        """Stop; what was not settled fails."""
        self._is_closed = True
        for timer in (self._timer, self._expiry_timer):
            if timer is not None:
                timer.cancel()
        tasks = [*self._connecting.values()]
        tasks += [task for task in (self._refreshing, self._identifying) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for batch in self.accumulator.unsettled:
            self._settle(batch, DeliveryExpired(f"{batch.queue.partition}: the producer was closed before delivery"))

    # ---- one pass

    def _pump(self) -> None:
        self._is_woken = False
        if self._is_closed:
            return
        if self._expiry_timer is None:
            self._watch_expiry()
        if self._sequencing.needs_id:
            self._identify()
            return
        while True:
            requests, later = self._collect()
            for connection, batches in requests.items():
                self._send(connection, batches)
            if not requests:
                break
        if later is not None:
            self._wake_at(later)

    def _collect(self) -> tuple[dict[Connection, list[ProducerBatch]], float | None]:
        """Take a request's worth of due batches for each broker that can take one; and when to look again."""
        requests: dict[Connection, list[ProducerBatch]] = {}
        sizes: defaultdict[Connection, int] = defaultdict(int)
        now = asyncio.get_running_loop().time()
        later: float | None = None
        for queue in list(self.accumulator.due):
            if not queue.has_due:
                del self.accumulator.due[queue]
            elif queue.retry_at > now:
                later = queue.retry_at if later is None else min(later, queue.retry_at)
            elif not self._must_wait(queue):
                connection = self._connection_for(queue)
                if connection is None or self._in_flight[connection] >= self._settings.max_in_flight:
                    continue
                if sizes[connection] and sizes[connection] + _next_size(queue) > self._settings.max_request_size:
                    continue
                batch = queue.take_due()
                assert batch is not None
                sizes[connection] += batch.size_bytes
                requests.setdefault(connection, []).append(batch)
        return requests, later

    def _must_wait(self, queue: PartitionQueue) -> bool:
        if not queue.in_flight:
            return False
        return queue.is_draining or not self._settings.is_idempotent

    def _connection_for(self, queue: PartitionQueue) -> Connection | None:
        """Return the leader's connection; None when it has to be found or opened first, which is begun."""
        leader = self._cluster.leader_of(queue.partition)
        if leader is None:
            self._refresh()
            return None
        connection = self._cluster.open_connection_to(leader)
        if connection is None and leader not in self._connecting:
            self._connecting[leader] = self._start(self._connect(leader))
        return connection

    def _send(self, connection: Connection, batches: list[ProducerBatch]) -> None:
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name, index = batch.queue.partition
            topic = topics.get(name)
            if topic is None:
                info = self._cluster.topics.get(name)
                topic_id = info.topic_id if info is not None else ZERO_TOPIC_ID
                topic = topics[name] = TopicProduceData(name=name, topic_id=topic_id, partition_data=[])
            topic.partition_data.append(PartitionProduceData(index=index, records=self._sequencing.sealed(batch)))
            if not batch.rank:
                batch.rank = (batch.queue.sent_count,)
                batch.queue.sent_count += 1
            batch.queue.in_flight.append(batch)
        request = ProduceRequest(
            acks=self._settings.acks,
            timeout_ms=self._cluster.settings.connection.request_timeout_ms,
            topic_data=list(topics.values()),
        )
        try:
            version = self._version(connection, request)
            if self._settings.acks != 0:
                names = {TopicId(topic.topic_id): topic.name for topic in request.topic_data}
                answer = connection.send(ApiKey.PRODUCE, request, version)
                self._in_flight[connection] += 1
                answer.add_done_callback(partial(self._answered, connection, batches, names))
                return
            connection.send_unanswered(ApiKey.PRODUCE, request, version)
        except KafkaError as error:
            for batch in batches:
                self._failed(batch, error)
            return
        for batch in batches:
            self._succeeded(batch, NO_OFFSET)

    def _version(self, connection: Connection, request: ProduceRequest) -> int:
        """The best version, below those that name topics by id when one's id is not known."""
        version = connection.version_for(ApiKey.PRODUCE)
        if version >= TOPIC_IDS_FROM and any(topic.topic_id == ZERO_TOPIC_ID for topic in request.topic_data):
            version = connection.version_for(ApiKey.PRODUCE, at_most=TOPIC_IDS_FROM - 1)
        return version

    # ---- answers

    def _answered(
        self,
        connection: Connection,
        batches: list[ProducerBatch],
        names: dict[TopicId, str],
        answer: asyncio.Future[Message],
    ) -> None:
        self._in_flight[connection] -= 1
        if not connection.is_open and self._in_flight[connection] <= 0:
            del self._in_flight[connection]
        error = answer.exception()
        if error is not None:
            reason = error if isinstance(error, KafkaError) else UnknownServerError(str(error))
            self._cluster.refresh_soon()
            for batch in batches:
                self._failed(batch, reason)
        else:
            response = answer.result()
            assert isinstance(response, ProduceResponse)
            rows = {
                (names.get(TopicId(topic.topic_id)) or topic.name, row.index): row
                for topic in response.responses
                for row in topic.partition_responses
            }
            for batch in batches:
                self._take_row(batch, rows.get(batch.queue.partition), response.node_endpoints)
        self.wake()

    def _take_row(
        self, batch: ProducerBatch, row: PartitionProduceResponse | None, endpoints: Sequence[NodeEndpoint]
    ) -> None:
        if row is None:
            self._failed(batch, UnknownServerError(f"{batch.queue.partition}: the broker's answer leaves it out"))
            return
        error = error_for_code(row.error_code, row.error_message)
        if error is None:
            batch.log_append_time_ms = row.log_append_time_ms
            self._succeeded(batch, row.base_offset)
        elif isinstance(error, DuplicateSequenceNumber):
            self._succeeded(batch, NO_OFFSET)  # written before, too long ago for the broker to know where
        elif isinstance(error, MessageTooLarge) and batch.count > 1 and not batch.done.done():
            self._split(batch)
        elif row.record_errors:
            refused = errors_of_records(batch, error, row.record_errors)
            self._failed(batch, refused_with(batch, refused), record_errors=refused)
        else:
            leader = row.current_leader
            addresses = [BrokerAddress(one.node_id, one.host, one.port, one.rack) for one in endpoints]
            has_moved = self._cluster.learn_leader(
                batch.queue.partition, leader.leader_id, leader.leader_epoch, addresses
            )
            self._failed(batch, error, has_moved=has_moved)

    def _succeeded(self, batch: ProducerBatch, base_offset: int) -> None:
        batch.queue.in_flight.remove(batch)
        if not batch.done.done():  # it may have been given up while the answer was under way
            self._settle(batch, base_offset)
        self._maybe_drained(batch.queue)

    def _failed(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        *,
        record_errors: Mapping[int, KafkaError] | None = None,
        has_moved: bool = False,
    ) -> None:
        """Have a batch sent again, or give it up. `has_moved`: the new leader is known, so that there is no pause."""
        queue = batch.queue
        queue.in_flight.remove(batch)
        queue.is_draining = True
        batch.attempts += 1
        now = asyncio.get_running_loop().time()
        if reaction_to(error) is Reaction.REFRESH and not has_moved:
            self._refresh()
        if batch.done.done():
            queue.is_spoilt = queue.is_spoilt or batch.base_sequence != NO_SEQUENCE
        elif self._is_worth_another_attempt(batch, error) and now < batch.deadline:
            delay = 0.0 if has_moved else self._cluster.retry_delay_seconds(batch.attempts)
            queue.retry_at = max(queue.retry_at, now + delay)
            queue.failed.append(batch)
        else:
            queue.is_spoilt = queue.is_spoilt or batch.base_sequence != NO_SEQUENCE
            self._settle(batch, about_partition(batch, error), record_errors)
        self._maybe_drained(queue)

    def _split(self, batch: ProducerBatch) -> None:
        """Send a batch that is too large for the broker as two, with the sequence numbers that it had."""
        queue = batch.queue
        queue.in_flight.remove(batch)
        queue.is_draining = True
        queue.failed += self.accumulator.replace(batch)
        self._maybe_drained(queue)

    def _is_worth_another_attempt(self, batch: ProducerBatch, error: KafkaError) -> bool:
        """Decide as Kafka's producer does; notes when the broker's idea of the sequence is another one than ours."""
        queue = batch.queue
        if isinstance(error, OutOfOrderSequenceNumber) and batch.base_sequence != NO_SEQUENCE:
            if not queue.has_sent_before(batch):  # else it is only that one which is missing
                queue.is_spoilt = True
            return True
        if isinstance(error, UnknownProducerId | InvalidProducerEpoch):
            queue.is_spoilt = True
            return isinstance(error, UnknownProducerId) or batch.attempts <= MAX_FENCED_ATTEMPTS
        return reaction_to(error) is not Reaction.GIVE_UP

    def _maybe_drained(self, queue: PartitionQueue) -> None:
        """With nothing in flight any more, line up what failed, in its old order and with sequences that fit."""
        if not queue.is_draining or queue.in_flight:
            return
        queue.is_draining = False
        queue.line_up_failed()
        if queue.is_spoilt:
            self._sequencing.renew_epoch(queue)
        if queue.has_due:
            self.accumulator.mark_due(queue)

    def _settle(
        self,
        batch: ProducerBatch,
        result: int | KafkaError,
        record_errors: Mapping[int, KafkaError] | None = None,
    ) -> None:
        self.accumulator.settle(batch, result, record_errors)
        if isinstance(result, KafkaError) and not batch.is_watched:
            self._on_unseen(next(iter(record_errors.values())) if record_errors else result)

    # ---- what has to happen before a batch can go

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        """A task that ends with an error shows a mistake of ours: fail what waits instead of going on."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._give_up(UnknownServerError(f"the producer failed: {error!r}"))

    async def _connect(self, node_id: int) -> None:
        try:
            await self._cluster.connection_to(node_id)
        except KafkaError as error:
            if reaction_to(error) is Reaction.GIVE_UP:
                self._give_up(error)
            else:
                await self._refresh_after_pause()
        finally:
            del self._connecting[node_id]
            self.wake()

    def _refresh(self) -> None:
        if self._refreshing is None:
            self._refreshing = self._start(self._refresh_metadata())

    async def _refresh_metadata(self) -> None:
        try:
            await self._refresh_after_pause()
        finally:
            self._refreshing = None
            self.wake()

    async def _refresh_after_pause(self) -> None:
        """Refresh the metadata, no sooner after the last refresh than a retry is allowed."""
        loop = asyncio.get_running_loop()
        wait = self._refresh_at - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        try:
            await self._cluster.refresh()
            self._failures = 1
        except KafkaError:
            self._failures += 1
        self._refresh_at = loop.time() + self._cluster.retry_delay_seconds(self._failures)

    def _identify(self) -> None:
        if self._identifying is None:
            self._identifying = self._start(self._ask_producer_id())

    async def _ask_producer_id(self) -> None:
        """Get a producer id from any broker; errors that waiting does not mend end the producer."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        try:
            response = await self._cluster.call(ApiKey.INIT_PRODUCER_ID, request, InitProducerIdResponse)
            error = error_for_code(response.error_code)
            if error is not None:
                raise error
            self._sequencing.identify(response.producer_id, response.producer_epoch)
        except KafkaError as error:
            if reaction_to(error) is Reaction.GIVE_UP:
                self._give_up(error)
            else:
                await self._refresh_after_pause()
        finally:
            self._identifying = None
            self.wake()

    def _give_up(self, error: KafkaError) -> None:
        self.accumulator.refuse(error)
        for batch in self.accumulator.unsettled:
            self._settle(batch, error)
        self.accumulator.due.clear()

    # ---- time

    def _wake_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(when, self.wake)

    def _watch_expiry(self) -> None:
        deadline = self.accumulator.earliest_deadline
        if deadline is not None:
            self._expiry_timer = asyncio.get_running_loop().call_at(deadline + 0.001, self._expire)

    def _expire(self) -> None:
        """Give up batches that waited longer than delivery.timeout.ms.

        Those in flight keep their place until the broker has answered, so that the sequence goes on as it must.
        """
        self._expiry_timer = None
        now = asyncio.get_running_loop().time()
        for batch in self.accumulator.unsettled:
            if batch.deadline > now:
                break
            queue = batch.queue
            if batch not in queue.in_flight:
                _remove(queue, batch)
                queue.is_spoilt = queue.is_spoilt or batch.base_sequence != NO_SEQUENCE
                if queue.is_spoilt and not queue.in_flight:
                    self._sequencing.renew_epoch(queue)
            self._settle(batch, DeliveryExpired(f"{queue.partition}: not delivered within delivery.timeout.ms"))
        self.wake()


def _next_size(queue: PartitionQueue) -> int:
    batch = queue.waiting[0] if queue.waiting else queue.open
    return batch.size_bytes if batch is not None else 0


def _remove(queue: PartitionQueue, batch: ProducerBatch) -> None:
    """Take a batch out of wherever it waits."""
    if queue.open is batch:
        queue.open = None
        queue.is_due = False
    elif batch in queue.waiting:
        queue.waiting.remove(batch)
    elif batch in queue.failed:
        queue.failed.remove(batch)
