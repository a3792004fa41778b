"""A stored set of Jafka's messages, walked: how many records are in it, and these as a record batch of Kafka.

A plain message is one record, a compressed one as many as are in it. Every message is checked. A walk ends before a
message that is cut; what is damaged is told where a walk begins with it, so that what stands before it counts.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, NamedTuple

from ottla.errors import CorruptMessage, KafkaError
from ottla.model import NO_TIMESTAMP_MS
from ottla.records.builder import BatchBuilder
from ottla.records.jafka import CODEC_BITS, ENTRY_BYTES, FRONT_BYTES, MAGIC, SIZE_BYTES, payloads_of

_ENTRY: Final = struct.Struct(">ibBI")
NO_LIMIT: Final = (1 << 63) - 1


class Walked(NamedTuple):
    """How far a walk came: where the next message begins, and how many records are in those before it."""

    end: int
    records: int
    is_over: bool
    """True where it ended before the next message because no more was wanted."""


def count_records(data: bytes, max_count: int = NO_LIMIT) -> Walked:
    """Count records, up to the message that would make them more than `max_count`.

    Raises `CorruptMessage`, `InvalidRecord` and the like for a first message that is damaged.
    """
    position = count = 0
    while True:
        end, values = _message_at(data, position)
        if not end:
            return Walked(position, count, False)
        if count + len(values) > max_count:
            return Walked(position, count, True)
        position, count = end, count + len(values)


def fill_batch(
    batch: BatchBuilder, data: bytes, skipped: int, max_bytes: int, max_count: int, *, at_least_one: bool
) -> Walked:
    """Append the values of records to a batch, but for the first `skipped` ones, until it is full.

    A batch is full that has `max_count` records, or would have more than `max_bytes` with the next one; with
    `at_least_one` the first is taken whatever its size. The walk then ends before the message of the record that it
    came to. Raises as `count_records`.
    """
    position = count = 0
    while True:
        end, values = _message_at(data, position)
        if not end:
            return Walked(position, count, False)
        if count + len(values) > skipped:
            for value in values[max(skipped - count, 0) :]:
                is_first = batch.count == 0
                if not (is_first and at_least_one) and batch.size_with(NO_TIMESTAMP_MS, None, value) > max_bytes:
                    return Walked(position, count, True)
                batch.append(NO_TIMESTAMP_MS, None, value)
                if batch.count == max_count:
                    return Walked(position, count, True)
        position, count = end, count + len(values)


def _message_at(data: bytes, position: int) -> tuple[int, list[bytes]]:
    """Return where the message at `position` ends and the values of its records; 0 where a walk ends before it.

    That is a message that is cut, or damaged and not the first; a first one that is damaged raises.
    """
    if position + ENTRY_BYTES > len(data):
        return 0, []
    size, magic, attributes, crc = _ENTRY.unpack_from(data, position)
    end = position + SIZE_BYTES + int(size)
    if end > len(data):
        return 0, []
    if size >= FRONT_BYTES and magic == MAGIC and not attributes & CODEC_BITS:
        value = data[position + ENTRY_BYTES : end]
        if zlib.crc32(value) == crc:
            return end, [value]
    try:
        if size < FRONT_BYTES:
            raise CorruptMessage(f"a message cannot have {size} bytes")
        return end, payloads_of(data[position:end])
    except KafkaError:
        if position:
            return 0, []
        raise
