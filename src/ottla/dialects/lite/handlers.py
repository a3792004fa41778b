"""Requests to calls on the broker. An answer comes now or later; either way it is given to `reply`.

A record is its value here: what other clients wrote besides (keys, headers, times) is left out, a null value is empty.
Fetch gives what consumers may see, and its answer has no offsets: ask for Offsets where compaction left gaps.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from functools import partial
from typing import Final

from ottla.broker.broker import Broker
from ottla.broker.metadata.create_topics import CreatedTopic, NewTopic
from ottla.broker.metadata.topic_names import check_not_internal
from ottla.broker.turns import Steps
from ottla.broker.value_fetch import ValueFetch
from ottla.dialects.lite.codec import CreateTopic, Fetch, Produce, Request, encode_values
from ottla.engine import Ticket
from ottla.errors import KafkaError, MessageTooLarge, UnknownServerError
from ottla.model import TopicPartition
from ottla.records.builder import BatchBuilder

VALUES_A_STEP: Final = 256

_log = logging.getLogger(__name__)

Reply = Callable[[bytes | KafkaError], None]


def handle(request: Request, broker: Broker, reply: Reply) -> ValueFetch | None:
    """Do what is asked. Raises `KafkaError`, or replies with an error. It may still go on when this returns."""
    if isinstance(request, Fetch):
        return _fetch(request, broker, reply)
    if isinstance(request, Produce):
        broker.turns.run(_append(request, broker), partial(_when_appended, request, reply), partial(_refuse, reply))
    elif isinstance(request, CreateTopic):
        _create(request, broker, reply)
    else:
        offsets = broker.partition(request.topic, request.partition).offsets()
        reply(struct.pack(">QQ", offsets.log_start_offset, offsets.high_watermark))
    return None


def _fetch(request: Fetch, broker: Broker, reply: Reply) -> ValueFetch:
    return ValueFetch(
        broker,
        TopicPartition(request.topic, request.partition),
        request.start_offset,
        max_bytes=request.max_bytes,
        min_count=request.min_records,
        max_wait_ms=request.max_wait_ms,
        encode=encode_values,
        on_done=lambda count, found: reply(struct.pack(">I", count) + found if isinstance(found, bytes) else found),
    )


def _append(request: Produce, broker: Broker) -> Steps[Ticket]:
    """Append all values as one batch: they get offsets in a row, or none of them any."""
    check_not_internal(request.topic)
    max_message_bytes = broker.partition(request.topic, request.partition).config.max_message_bytes
    batch, now_ms = BatchBuilder(), broker.clock.wall_ms()
    for number, value in enumerate(request.values, 1):
        batch.append(now_ms, None, value)
        if batch.size_in_bytes > max_message_bytes:
            raise MessageTooLarge("more than one batch of the topic may have")
        if number % VALUES_A_STEP == 0:
            yield
    partition = broker.partition(request.topic, request.partition)  # as it is now, some turns later
    return broker.append(partition, memoryview(bytearray(batch.build())))


def _when_appended(request: Produce, reply: Reply, ticket: Ticket) -> None:
    _when_durable(ticket, struct.pack(">IQ", len(request.values), ticket.base_offset), reply)


def _refuse(reply: Reply, error: Exception) -> None:
    if not isinstance(error, KafkaError):
        _log.error("a request met a fault", exc_info=error)
    reply(error if isinstance(error, KafkaError) else UnknownServerError())


def _create(request: CreateTopic, broker: Broker, reply: Reply) -> None:
    """Create a topic; one that is there stays as it is."""
    check_not_internal(request.topic)
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
