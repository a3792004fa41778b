"""Messages as Kafka 0.7 and Jafka write them: check a set, take its payloads out, make messages of payloads.

A set is entries, nothing around them: 4 bytes size of the message, then the message: 1 byte magic (1), 1 attributes
(low two bits: 0 plain, 1 gzip), 4 CRC-32 of the payload alone, payload. A gzip message's payload inflates to a set
again. There are no keys, no times and no offsets: a message's place is the byte at which it stands.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Final, NamedTuple, final

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
MAX_PAYLOAD_BYTES: Final = (1 << 31) - 1
STEP_MESSAGES: Final = 256
STEP_BYTES: Final = 256 * 1024
PIECE_BYTES: Final = 4 * 1024 * 1024
"""How much of a set is written at a time."""


class Piece(NamedTuple):
    """Where a run of whole messages of a set ends, and how many payloads are in it."""

    end: int
    payload_count: int


@final
class SetWalk:
    """Goes through a produced set and checks every message, inner ones too, some at a time.

    A last entry that is cut is left out. Raises, when it is come to, `CorruptMessage` or `InvalidRecord` for anything
    damaged or unknown, for what inflates to more than the limit (an inner message counts `MESSAGE_COST_BYTES` besides)
    and for a set of which nothing is whole, `MessageTooLarge` for an outer payload above the limit.
    """

    __slots__ = ("_count", "_left_bytes", "_levels", "_max_payload_bytes", "_piece_start", "is_over", "pieces")

    def __init__(
        self, data: bytes | memoryview, max_payload_bytes: int, *, max_inflated_bytes: int = MAX_INFLATED_BYTES
    ) -> None:
        self._levels = [_Level(data, is_inner=False)]  # the set, and within it those that are gone through now
        self._max_payload_bytes = max_payload_bytes
        self._left_bytes = max_inflated_bytes
        self._count = 0  # payloads since the last piece
        self._piece_start = 0
        self.is_over = False
        self.pieces: list[Piece] = []
        """What was gone through of the set itself, of `PIECE_BYTES` each, or one message."""

    @property
    def end(self) -> int:
        """Where the pieces end."""
        return self.pieces[-1].end if self.pieces else 0

    def take(self) -> list[bytes]:
        """Return the payloads of the next messages, inflated, in order: of a step's worth."""
        payloads: list[bytes] = []
        left_messages = STEP_MESSAGES
        while left_messages > 0 and not self.is_over:
            left_messages -= self._take_from(self._levels[-1], left_messages, payloads)
        return payloads

    def _take_from(self, level: _Level, most: int, payloads: list[bytes]) -> int:
        """Take messages of one set until they are many, or another set is to be gone through; returns how many."""
        data, start = level.window()
        position = level.position - start
        for taken in range(most):
            end = _entry_end(data, position)
            if not end:
                if position and start + len(data) < len(level.data):
                    return most  # the window ends, and with it the step
                self._leave(level)
                return taken + 1
            payload = data[position + ENTRY_BYTES : end]
            _, magic, attributes, crc = _ENTRY.unpack_from(data, position)
            if level.is_inner:
                self._count_inner()
            elif len(payload) > self._max_payload_bytes:
                raise MessageTooLarge(f"a payload may have {self._max_payload_bytes} bytes")
            if magic != MAGIC:
                raise CorruptMessage(f"a message of magic {magic}")
            if zlib.crc32(payload) != crc:
                raise CorruptMessage("a message fails its checksum")
            position = end
            level.position = start + end
            if attributes & CODEC_BITS:
                self._enter(payload, attributes & CODEC_BITS)
                return taken + 1
            payloads.append(payload)
            self._count += 1
            if not level.is_inner and level.position - self._piece_start >= PIECE_BYTES:
                self._end_piece(level.position)
        return most

    def _count_inner(self) -> None:
        self._left_bytes -= MESSAGE_COST_BYTES
        if self._left_bytes < 0:
            raise InvalidRecord("a compressed set has too many messages")

    def _enter(self, payload: bytes, codec: int) -> None:
        """Go through the set in a compressed payload next."""
        if codec != GZIP or len(self._levels) > _DEEPEST:
            raise CorruptMessage(f"a message of codec {codec} at depth {len(self._levels) - 1}")
        inner = inflate(Codec.GZIP, memoryview(payload), self._left_bytes)
        self._left_bytes -= len(inner)
        self._levels.append(_Level(inner, is_inner=True))

    def _leave(self, level: _Level) -> None:
        """No more messages are whole in the set that is gone through now."""
        if len(self._levels) > 1:
            if level.position != len(level.data):
                raise CorruptMessage("a compressed set ends within a message")
            self._levels.pop()
            outer = self._levels[-1]
            if not outer.is_inner and outer.position - self._piece_start >= PIECE_BYTES:
                self._end_piece(outer.position)
            return
        self.is_over = True
        if level.position > self.end:
            self._end_piece(level.position)
        elif level.data and not level.position:
            raise CorruptMessage("no message of the set is whole")

    def _end_piece(self, end: int) -> None:
        self.pieces.append(Piece(end, self._count))
        self._count = 0
        self._piece_start = end


@final
class _Level:
    """A set, and how far it was gone through."""

    __slots__ = ("data", "is_inner", "position")

    def __init__(self, data: bytes | memoryview, *, is_inner: bool) -> None:
        self.data = data
        self.is_inner = is_inner
        self.position = 0

    def window(self) -> tuple[bytes, int]:
        """Return what comes next, one message at least, and where in the set that begins. Raises `CorruptMessage`.

        What is not bytes yet is copied by windows, as bytes are faster to look at.
        """
        if isinstance(self.data, bytes):
            return self.data, 0
        size = STEP_BYTES
        front = bytes(self.data[self.position : self.position + SIZE_BYTES])
        if len(front) == SIZE_BYTES:
            size = max(size, entry_size(front))
        return bytes(self.data[self.position : self.position + size]), self.position


def payloads_of(data: bytes, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> list[bytes]:
    """Return the payloads of all whole messages of a set, or of one message. Raises as `SetWalk`."""
    payloads: list[bytes] = []
    walk = SetWalk(data, max_payload_bytes)
    while not walk.is_over:
        payloads += walk.take()
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
