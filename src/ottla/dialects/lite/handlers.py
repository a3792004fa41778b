"""Requests to calls on the broker. An answer comes now or later; either way it is given to `reply`.

A record is its value here: what other clients wrote besides (keys, headers, times) is left out, a null value is empty.
Fetch gives what consumers may see, and its answer has no offsets: ask for Offsets where compaction left gaps.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

from ottla.broker.broker import Broker
from ottla.broker.fetch_sessions import FetchEntry
from ottla.broker.fetching import FetchPlan
from ottla.broker.metadata.create_topics import CreatedTopic, NewTopic
from ottla.broker.partition import PartitionRead
from ottla.broker.purgatory import Waiting
from ottla.broker.visible import visible_records
from ottla.dialects.lite.codec import CreateTopic, Fetch, Produce, Request, encode_values
from ottla.engine import Ticket
from ottla.errors import KafkaError, OffsetOutOfRange
from ottla.model import ZERO_TOPIC_ID, TopicPartition
from ottla.records.builder import BatchBuilder

Reply = Callable[[bytes | KafkaError], None]


def handle(request: Request, broker: Broker, reply: Reply) -> WaitingFetch | None:
    """Do what is asked. Raises `KafkaError`, or replies with an error. A fetch may still wait when this returns."""
    if isinstance(request, Fetch):
        return WaitingFetch(request, broker, reply)
    if isinstance(request, Produce):
        _produce(request, broker, reply)
    elif isinstance(request, CreateTopic):
        _create(request, broker, reply)
    else:
        offsets = broker.partition(request.topic, request.partition).offsets()
        reply(struct.pack(">QQ", offsets.log_start_offset, offsets.high_watermark))
    return None


def _produce(request: Produce, broker: Broker, reply: Reply) -> None:
    """Append all values as one batch: they get offsets in a row, or none of them any."""
    partition = broker.partition(request.topic, request.partition)
    batch = BatchBuilder()
    for value in request.values:
        batch.append(broker.clock.wall_ms(), None, value)
    ticket = broker.append(partition, memoryview(bytearray(batch.build())))
    _when_durable(ticket, struct.pack(">IQ", len(request.values), ticket.base_offset), reply)


def _create(request: CreateTopic, broker: Broker, reply: Reply) -> None:
    """Create a topic; one that is there stays as it is."""
    if (topic := broker.find_topic(request.topic)) is not None:
        return reply(struct.pack(">I", len(topic.partitions)))
    committed = broker.metadata.create_topics([NewTopic(request.topic, request.partitions)])
    created = committed.answer[request.topic]
    if not isinstance(created, CreatedTopic):
        raise created
    _when_durable(committed.ticket, struct.pack(">I", created.num_partitions), reply)


def _when_durable(ticket: Ticket | None, answer: bytes, reply: Reply) -> None:
    if ticket is None or ticket.is_durable:
        reply(answer)
    else:
        ticket.on_done(lambda: reply(ticket.error or answer))


class WaitingFetch:
    """One Fetch: reads, and again when more has come, until there are enough records or the time is over."""

    def __init__(self, request: Fetch, broker: Broker, reply: Reply) -> None:
        log_start_offset = broker.partition(request.topic, request.partition).offsets().log_start_offset
        self._request = replace(request, start_offset=min(max(request.start_offset, log_start_offset), (1 << 63) - 1))
        self._broker = broker
        self._reply = reply
        self._max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
        self._deadline = broker.clock.monotonic() + request.max_wait_ms / 1000
        self._waiting: Waiting[TopicPartition] | None = None
        self._read(min_bytes=1)

    def hurry(self) -> None:
        """Answer with what there is."""
        if self._waiting is not None:
            self._deadline = 0.0
            self._waiting.finish_now()

    def cancel(self) -> None:
        """Nobody waits any more."""
        if self._waiting is not None:
            self._waiting.cancel()

    def _read(self, min_bytes: int) -> None:
        request = self._request
        wait_ms = round((self._deadline - self._broker.clock.monotonic()) * 1000)
        entry = FetchEntry(request.topic, ZERO_TOPIC_ID, request.partition, request.start_offset, self._max_bytes)
        plan = FetchPlan([entry], wait_ms if request.min_records else 0, min_bytes, self._max_bytes)
        found = self._broker.fetch(plan, lambda reads: self._take(reads[0], min_bytes))
        if isinstance(found, Waiting):
            self._waiting = found
        else:
            self._take(found[0], min_bytes)

    def _take(self, read: PartitionRead, min_bytes: int) -> None:
        """Answer, unless there are too few records and more than before was waited for and came."""
        try:
            if read.error is not None and not isinstance(read.error, OffsetOutOfRange):
                raise read.error
            size_bytes = read.size_bytes
            records = visible_records(read, self._request.start_offset, self._max_bytes)
        except KafkaError as error:
            self._reply(error)
            return
        if len(records) < self._request.min_records and size_bytes >= min_bytes:
            self._read(size_bytes + 1)
        else:
            self._reply(encode_values([record.value or b"" for record in records]))
