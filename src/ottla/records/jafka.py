"""Messages as Kafka 0.7 and Jafka write them: check a set, take its payloads out, make messages of payloads.

A set is entries, nothing around them: 4 bytes size of the message, then the message: 1 byte magic (1), 1 attributes
(low two bits: 0 plain, 1 gzip), 4 CRC-32 of the payload alone, payload. A gzip message's payload inflates to a set
again. There are no keys, no times and no offsets: a message's place is the byte at which it stands.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.errors import CorruptMessage, InvalidRecord, MessageTooLarge, UnsupportedForMessageFormat
from ottla.records.batch import RecordBatch
from ottla.records.compression import MAX_INFLATED_BYTES, Codec, inflate

_SIZE: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">ibBI")
SIZE_BYTES: Final = 4
FRONT_BYTES: Final = 6
ENTRY_BYTES: Final = SIZE_BYTES + FRONT_BYTES
MAGIC: Final = 1
GZIP: Final = 1
CODEC_BITS: Final = 3
_DEEPEST: Final = 8
MESSAGE_COST_BYTES: Final = 256
"""What an inner message counts for besides its bytes: many empty ones deflate to nothing, and cost the most time."""


class ProducedSet(NamedTuple):
    """The good part of a produced set, as it was sent, and the payloads in it, inflated, in order."""

    data: bytes
    payloads: list[bytes]


def check_produced(data: bytes, max_payload_bytes: int, *, max_inflated_bytes: int = MAX_INFLATED_BYTES) -> ProducedSet:
    """Check every message of a set, inner ones too. A last entry that is cut is left out.

    Raises `CorruptMessage` or `InvalidRecord` for anything damaged or unknown, for what inflates to more than the limit
    (an inner message counts `MESSAGE_COST_BYTES` besides) and for a set of which nothing is whole, `MessageTooLarge`
    for an outer payload above the limit.
    """
    payloads: list[bytes] = []
    end, _ = _take_messages(data, payloads, max_inflated_bytes, 0, max_payload_bytes)
    if data and not end:
        raise CorruptMessage("no message of the set is whole")
    return ProducedSet(data[:end], payloads)


def payloads_of(entry: bytes) -> list[bytes]:
    """Return the payload of one message, or those in it. Raises as `check_produced`."""
    payloads: list[bytes] = []
    _take_messages(entry, payloads, MAX_INFLATED_BYTES, 0, len(entry))
    return payloads


def entry_size(front: bytes) -> int:
    """Return how many bytes the message takes that begins with these four. Raises `CorruptMessage`."""
    (size,) = _SIZE.unpack_from(front)
    if size < FRONT_BYTES:
        raise CorruptMessage(f"a message cannot have {size} bytes")
    return SIZE_BYTES + int(size)


def _entry_end(data: bytes, position: int) -> int:
    """Where the entry at `position` ends; 0 where the data ends first."""
    if position + SIZE_BYTES > len(data):
        return 0
    end = position + entry_size(data[position : position + SIZE_BYTES])
    return end if end <= len(data) else 0


def _take_messages(
    data: bytes, payloads: list[bytes], left_bytes: int, depth: int, max_payload_bytes: int
) -> tuple[int, int]:
    """Add the payloads of all whole messages of a set; returns where these end, and how much more may be inflated."""
    position = 0
    while (end := _entry_end(data, position)) > 0:
        payload = data[position + ENTRY_BYTES : end]
        if len(payload) > max_payload_bytes:
            raise MessageTooLarge(f"a payload may have {max_payload_bytes} bytes")
        _, magic, attributes, crc = _ENTRY.unpack_from(data, position)
        if magic != MAGIC:
            raise CorruptMessage(f"a message of magic {magic}")
        if zlib.crc32(payload) != crc:
            raise CorruptMessage("a message fails its checksum")
        if not attributes & CODEC_BITS:
            payloads.append(payload)
        else:
            left_bytes = _take_inner(payload, attributes & CODEC_BITS, payloads, left_bytes, depth)
        if depth:
            left_bytes -= MESSAGE_COST_BYTES
            if left_bytes < 0:
                raise InvalidRecord("a compressed set has too many messages")
        position = end
    return position, left_bytes


def _take_inner(payload: bytes, codec: int, payloads: list[bytes], left_bytes: int, depth: int) -> int:
    """Add the payloads in a compressed one; returns how much more may be inflated."""
    if codec != GZIP or depth == _DEEPEST:
        raise CorruptMessage(f"a message of codec {codec} at depth {depth}")
    inner = inflate(Codec.GZIP, memoryview(payload), left_bytes)
    end, left_bytes = _take_messages(inner, payloads, left_bytes - len(inner), depth + 1, len(inner))
    if end != len(inner):
        raise CorruptMessage("a compressed set ends within a message")
    return left_bytes


def build_set(payloads: Iterable[bytes]) -> bytes:
    """Return plain messages with these payloads."""
    parts: list[bytes] = []
    for payload in payloads:
        parts += (_ENTRY.pack(FRONT_BYTES + len(payload), MAGIC, 0, zlib.crc32(payload)), payload)
    return b"".join(parts)


def values_of(batch: RecordBatch) -> list[bytes]:
    """Return the values of a batch whose records have nothing else, their times left out, as messages are.

    Raises `UnsupportedForMessageFormat`.
    """
    if batch.has_producer_id or batch.is_control:
        raise UnsupportedForMessageFormat(
            "the topic is in Jafka's format, which has no place for what idempotent producers number: "
            "take acks=1 or enable.idempotence=false"
        )
    values: list[bytes] = []
    for record in batch.decode():
        if record.key is not None or record.headers or record.value is None:
            raise UnsupportedForMessageFormat(
                "the topic is in Jafka's format, where a record is a value: it can have no key, no headers and no null"
            )
        values.append(record.value)
    return values
