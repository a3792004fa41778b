"""Sends due batches to their leaders, and reads the answers.

One pass (`_pump`) takes at most one batch of each partition per request and keeps at most `max_in_flight` requests on
a connection. With idempotence (the default) every batch has the partition's next sequence number, so that a retry after
a lost answer is written once and in order (KIP-98); without it, order is kept by one request in flight per partition.
What has to be there before a batch can go is `readiness`' to find, what becomes of it afterwards is decided by
`batch_completion`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from ottla.client.accumulator import Accumulator
from ottla.client.batch_completion import BatchCompletion
from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.producer_batch import PartitionQueue, ProducerBatch
from ottla.client.readiness import Readiness
from ottla.client.refusals import errors_of_records, refused_with
from ottla.client.sequencing import Sequencing
from ottla.client.topology import BrokerAddress
from ottla.errors import DuplicateSequenceNumber, KafkaError, MessageTooLarge, UnknownServerError, error_for_code
from ottla.model import NO_OFFSET, ZERO_TOPIC_ID, TopicId
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
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


class SenderSettings(NamedTuple):
    """How batches are sent."""

    acks: int
    is_idempotent: bool
    max_in_flight: int
    max_request_size: int


class Sender:
    """One producer's sending side. `wake` is safe to call as often as one likes; the pass runs once per loop turn."""

    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        settings: SenderSettings,
        on_unseen: Callable[[KafkaError], None],
    ) -> None:
        """`on_unseen` gets the error of a batch of which nobody awaits a record."""
        self._cluster = cluster
        self._accumulator = accumulator
        self._settings = settings
        self._is_woken = False
        self._is_closed = False
        self._in_flight: defaultdict[Connection, int] = defaultdict(int)
        self._timer: asyncio.TimerHandle | None = None
        self._expiry_timer: asyncio.TimerHandle | None = None
        self._sequencing = Sequencing(is_idempotent=settings.is_idempotent)
        self._readiness = Readiness(cluster, self._sequencing, wake=self.wake, give_up=self._give_up)
        self._completion = BatchCompletion(
            cluster, accumulator, self._sequencing, refresh=self._readiness.refresh, on_unseen=on_unseen
        )

    @property
    def is_woken(self) -> bool:
        """A pass is due, and the event loop has not come to it yet."""
        return self._is_woken

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
        await self._readiness.close()
        self._completion.close()

    def _give_up(self, error: KafkaError) -> None:
        self._completion.give_up_all(error)

    # ---- one pass

    def _pump(self) -> None:
        self._is_woken = False
        if self._is_closed:
            return
        if self._expiry_timer is None:
            self._watch_expiry()
        if not self._readiness.has_producer_id():
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
        for queue in list(self._accumulator.due):
            if not queue.has_due:
                del self._accumulator.due[queue]
            elif queue.retry_at > now:
                later = queue.retry_at if later is None else min(later, queue.retry_at)
            elif not self._must_wait(queue):
                connection = self._readiness.connection_to_leader(queue.partition)
                if connection is None or self._in_flight[connection] >= self._settings.max_in_flight:
                    continue
                if sizes[connection] and sizes[connection] + queue.next_size_bytes > self._settings.max_request_size:
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
                self._completion.fail(batch, error)
            return
        for batch in batches:
            self._completion.succeed(batch, NO_OFFSET)

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
                self._completion.fail(batch, reason)
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
            self._completion.fail(
                batch, UnknownServerError(f"{batch.queue.partition}: the broker's answer leaves it out")
            )
            return
        error = error_for_code(row.error_code, row.error_message)
        if error is None:
            batch.log_append_time_ms = row.log_append_time_ms
            self._completion.succeed(batch, row.base_offset)
        elif isinstance(error, DuplicateSequenceNumber):
            self._completion.succeed(batch, NO_OFFSET)  # written before, too long ago for the broker to know where
        elif isinstance(error, MessageTooLarge) and batch.count > 1 and not batch.done.done():
            self._completion.split(batch)
        elif row.record_errors:
            refused = errors_of_records(batch, error, row.record_errors)
            self._completion.fail(batch, refused_with(batch, refused), record_errors=refused)
        else:
            leader = row.current_leader
            addresses = [BrokerAddress(one.node_id, one.host, one.port, one.rack) for one in endpoints]
            has_moved = self._cluster.learn_leader(
                batch.queue.partition, leader.leader_id, leader.leader_epoch, addresses
            )
            self._completion.fail(batch, error, has_moved=has_moved)

    # ---- time

    def _wake_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(when, self.wake)

    def _watch_expiry(self) -> None:
        deadline = self._accumulator.earliest_deadline
        if deadline is not None:
            self._expiry_timer = asyncio.get_running_loop().call_at(deadline + 0.001, self._expire)

    def _expire(self) -> None:
        self._expiry_timer = None
        self._completion.expire()
        self.wake()
