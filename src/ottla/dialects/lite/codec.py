"""Bytes to requests, and answers to bytes. Integers are unsigned and big-endian.

A request is a type (2 bytes) and its fields, with no length before it; `k ‖ x` is a length of k bytes and x so long:

    1 Produce      topic (2 ‖ n)  partition (4)  count (4)  count × value (4 ‖ n)   -> count (4)  base offset (8)
    2 Fetch        topic (2 ‖ n)  partition (4)  start offset (8)                   -> count (4)  count × value (4 ‖ n)
    3 CreateTopic  topic (2 ‖ n)  partitions (4)                                    -> partitions (4)
    4 FetchWait    as Fetch, then max wait ms (4)  min records (4)  max bytes (4)   -> as Fetch
    5 Offsets      topic (2 ‖ n)  partition (4)                                     -> first (8)  next (8)

An error takes the place of an answer: ffffffff, which is no count, then (4 ‖ n) a code (2) and a message.

`read_request` is a generator: it yields how many bytes it needs next and is sent exactly those. So it can be fed from
a socket in whatever pieces come, and nothing is stored for bytes that a client only announced.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ottla.errors import InvalidRequest, KafkaError, MessageTooLarge, UnsupportedVersion

CODES: Final = {2: 2, 3: 3, 10: 10, 17: 42, 18: 10, 35: 35, 37: 42, 42: 42, 56: 56}
"""Kafka's error codes and what is told here: 2 corrupt, 3 unknown topic or partition, 10 too large, 35 unknown request
type, 42 malformed, 56 storage. All others become 65535."""
CHUNK_BYTES: Final = 16 * 1024
SIZE: Final = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Produce:
    topic: str
    partition: int
    values: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetch, and FetchWait: a Fetch is one that waits for nothing."""

    topic: str
    partition: int
    start_offset: int
    max_wait_ms: int = 0
    min_records: int = 0
    max_bytes: int = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class CreateTopic:
    topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Offsets:
    topic: str
    partition: int


Request = Produce | Fetch | CreateTopic | Offsets


def read_request(max_bytes: int, batch_bytes: Callable[[str, int], int]) -> Generator[int, bytes, Request]:
    """Read one request. Raises `KafkaError` for what is none, and for a Produce of more than `max_bytes`.

    `batch_bytes` tells what a partition takes at once, or raises. Values beyond are read and not kept.
    """
    kind = _number((yield 2))
    if not 1 <= kind <= 5:
        raise UnsupportedVersion(f"unknown request type {kind}")
    try:
        topic = (yield _number((yield 2))).decode()
    except UnicodeDecodeError:
        raise InvalidRequest("the topic is not UTF-8") from None
    number = _number((yield 4))
    if kind == 1:
        return Produce(topic, number, (yield from _read_values(max_bytes, partial(batch_bytes, topic, number))))
    if kind == 3:
        return CreateTopic(topic, number)
    if kind == 5:
        return Offsets(topic, number)
    start_offset = _number((yield 8))
    return Fetch(topic, number, start_offset, *(struct.unpack(">III", (yield 12)) if kind == 4 else ()))


def _read_values(max_bytes: int, batch_bytes: Callable[[], int]) -> Generator[int, bytes, list[bytes]]:
    """Ask for as much at a time as is sure to come: there is a size for each value that follows."""
    count = _number((yield 4))
    if count == 0:
        raise InvalidRequest("a Produce needs at least one record")
    if 4 * count > max_bytes:
        raise MessageTooLarge(f"a Produce may have {max_bytes} bytes")
    refusal: KafkaError = MessageTooLarge("a Produce has more than one batch of the topic may have")
    try:
        room = batch_bytes()
    except KafkaError as error:
        refusal, room = error, -1
    values: list[bytes] = []
    data, position, left = b"", 0, max_bytes - 4 * count
    for behind in reversed(range(count)):
        if len(data) < position + 4:
            data, position = data[position:] + (yield position + 4 - len(data) + min(4 * behind, CHUNK_BYTES)), 0
        (size,) = SIZE.unpack_from(data, position)
        left -= size
        if left < 0:
            raise MessageTooLarge(f"a Produce may have {max_bytes} bytes")
        end = position + 4 + size
        if len(data) < end:
            data, end = data[position:] + (yield end - len(data) + min(4 * behind, CHUNK_BYTES)), 4 + size
            position = 0
        room -= 4 + size
        if room >= 0:
            values.append(data[position + 4 : end])
        position = end
    if room < 0:
        raise refusal
    return values


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def encode_values(values: Sequence[bytes]) -> bytes:
    """Encode what stands behind a count."""
    return b"".join(struct.pack(">I", len(value)) + value for value in values)


def encode_error(error: KafkaError) -> bytes:
    message = str(error).encode()
    return struct.pack(">IIH", 0xFFFFFFFF, 2 + len(message), CODES.get(error.code, 0xFFFF)) + message
