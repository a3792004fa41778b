"""Message sets of magic 0 and 1, written before Kafka 0.11: read them, and make v2 batches of them.

A Kafka 4 broker refuses them in Produce, but data directories may still hold them and Kafka 0.7's dialect brings them.

A message: 8 bytes offset, 4 size of the rest, 4 CRC-32 of what follows it, 1 magic, 1 attributes, 8 timestamp (magic 1
only), then key and value, each with a 4-byte length (-1: null). A compressed message is a wrapper: its value inflates
to a message set. Its offset is that of the last inner message; inner offsets are absolute in magic 0 and relative in
magic 1.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from ottla.errors import InvalidRecord
from ottla.model import NO_TIMESTAMP_MS, TimestampType
from ottla.records.batch import (
    CODEC_BITS,
    CURRENT_MAGIC,
    LOG_OVERHEAD_BYTES,
    MAGIC_AT,
    TIMESTAMP_TYPE_BIT,
    RecordBatch,
    next_batch_size,
)
from ottla.records.builder import BatchBuilder
from ottla.records.compression import MAX_INFLATED_BYTES, Codec, inflate
from ottla.records.record import Record

_CRC_AT: Final = 12
_COVERED_AT: Final = 16
_ATTRIBUTES_AT: Final = 17
_TIMESTAMP_AT: Final = 18
_KEY_AT: Final = (18, 26)
"""Where the key's length stands, by magic."""


class _Message(NamedTuple):
    """One message of a set, before offsets and times of a wrapper are applied."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


@final
class LegacyBatch:
    """A read-only view of one message of magic 0 or 1, which is a batch of its own: plain, or a wrapper of many."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: bytes | bytearray | memoryview) -> None:
        """`buffer` holds exactly one message."""
        self.buffer = bytes(buffer)

    @property
    def magic(self) -> int:
        return self.buffer[MAGIC_AT]

    @property
    def size_in_bytes(self) -> int:
        return len(self.buffer)

    @property
    def crc(self) -> int:
        """The stored CRC-32, unsigned."""
        return int(i64(read_i32_be(self.buffer, _CRC_AT)) & 0xFFFFFFFF)

    @property
    def codec(self) -> Codec:
        """Raises `UnsupportedCompressionType`."""
        return Codec.of(self.buffer[_ATTRIBUTES_AT] & CODEC_BITS)

    @property
    def timestamp_type(self) -> TimestampType | None:
        """None for magic 0, which has no time."""
        if self.magic == 0:
            return None
        is_append_time = self.buffer[_ATTRIBUTES_AT] & TIMESTAMP_TYPE_BIT
        return TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME

    @property
    def max_timestamp(self) -> int:
        return NO_TIMESTAMP_MS if self.magic == 0 else read_i64_be(self.buffer, _TIMESTAMP_AT)

    @property
    def last_offset(self) -> int:
        return read_i64_be(self.buffer, 0)

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def base_offset(self) -> int:
        """The first record's offset, for which a wrapper has to be inflated. Raises what `records` raises."""
        if self.codec == Codec.NONE:
            return self.last_offset
        return int(next(self.records()).offset)

    def is_crc_valid(self) -> bool:
        return zlib.crc32(self.buffer[_COVERED_AT:]) == self.crc

    def records(self, limit_bytes: int = MAX_INFLATED_BYTES) -> Iterator[Record]:
        """Iterate the message, or those inside it. Raises `InvalidRecord`, `UnsupportedCompressionType`."""
        outer = _parse_message(self.buffer)
        if self.codec == Codec.NONE:
            return iter((Record(outer.offset, outer.timestamp, outer.key, outer.value),))
        return iter(_unwrap(outer, self.codec, limit_bytes))


def _unwrap(outer: _Message, codec: Codec, limit_bytes: int) -> list[Record]:
    inner = _inner_messages(outer, codec, limit_bytes)
    shift = _offset_shift(outer, inner[-1].offset) if outer.magic == 1 else 0
    is_append_time = outer.magic == 1 and outer.attributes & TIMESTAMP_TYPE_BIT != 0
    return [
        Record(
            message.offset + shift,
            outer.timestamp if is_append_time else message.timestamp,
            message.key,
            message.value,
        )
        for message in inner
    ]


def _offset_shift(outer: _Message, last_inner_offset: int) -> int:
    """Return what makes relative inner offsets absolute: nothing at 0, where early librdkafka left its wrappers."""
    if outer.offset == 0:
        return 0
    if outer.offset < last_inner_offset:
        raise InvalidRecord(f"a wrapper at offset {outer.offset} holds a message at offset {last_inner_offset}")
    return outer.offset - last_inner_offset


def _inner_messages(outer: _Message, codec: Codec, limit_bytes: int) -> list[_Message]:
    if codec == Codec.ZSTD:
        raise InvalidRecord("zstd came after message sets")
    if outer.value is None:
        raise InvalidRecord("a wrapper without a value")
    packed = memoryview(outer.value)
    if codec == Codec.LZ4 and outer.magic == 0:
        from ottla.records.lz4_frame import inflate_lz4  # with its library, see `compression`

        data = inflate_lz4(packed, limit_bytes, check_header=False)
    else:
        data = inflate(codec, packed, limit_bytes)
    inner = [_parse_message(bytes(piece)) for piece in _split(memoryview(data))]
    if not inner:
        raise InvalidRecord("a wrapper without messages in it")
    for message in inner:
        if message.magic != outer.magic:
            raise InvalidRecord(f"a wrapper of magic {outer.magic} holds a message of magic {message.magic}")
        if message.attributes & CODEC_BITS:
            raise InvalidRecord("a wrapper inside a wrapper")
    return inner


def _parse_message(data: bytes) -> _Message:
    magic = data[MAGIC_AT]
    if magic >= CURRENT_MAGIC:
        raise InvalidRecord(f"a record batch of magic {magic} inside a message set")
    if len(data) < LOG_OVERHEAD_BYTES + _KEY_AT[magic] - 4:
        raise InvalidRecord("a message is cut short")
    key, position = _read_field(data, _KEY_AT[magic])
    value, _ = _read_field(data, position)
    timestamp = read_i64_be(data, _TIMESTAMP_AT) if magic == 1 else i64(NO_TIMESTAMP_MS)
    return _Message(read_i64_be(data, 0), magic, data[_ATTRIBUTES_AT], timestamp, key, value)


def _read_field(data: bytes, position: int) -> tuple[bytes | None, int]:
    if len(data) - position < 4:
        raise InvalidRecord("a message is cut short")
    size = int(read_i32_be(data, position))
    position += 4
    if size < 0:
        return None, position
    if size > len(data) - position:
        raise InvalidRecord("a message is cut short")
    return data[position : position + size], position + size


def _split(view: memoryview) -> Iterator[memoryview]:
    position: i64 = 0
    while True:
        size = next_batch_size(view, position)
        if size < 0:
            return
        yield view[position : position + size]
        position += size


def split_any(buffer: bytes | bytearray | memoryview) -> Iterator[RecordBatch | LegacyBatch]:
    """Yield batches and messages of all formats that stand in `buffer`, up to a torn one at its end.

    Raises `CorruptMessage` where none can start.
    """
    for piece in _split(memoryview(buffer)):
        yield RecordBatch(piece) if piece[MAGIC_AT] == CURRENT_MAGIC else LegacyBatch(piece)


def valid_bytes(buffer: bytes | bytearray | memoryview) -> int:
    """Return how many bytes at the start of `buffer` are whole batches. Raises `CorruptMessage`."""
    return sum(len(piece) for piece in _split(memoryview(buffer)))


def convert(batches: Iterable[LegacyBatch], *, codec: Codec = Codec.NONE, level: int | None = None) -> bytes:
    """Make one v2 batch of messages in offset order; offsets and times stay. Raises `InvalidRecord` without any."""
    builder: BatchBuilder | None = None
    base_offset = 0
    for batch in batches:
        for record in batch.records():
            if builder is None:
                base_offset = int(record.offset)
                builder = BatchBuilder(codec=codec, level=level, base_offset=base_offset)
            builder.append_at(record.offset - base_offset, record.timestamp, record.key, record.value)
    if builder is None:
        raise InvalidRecord("no messages to convert")
    return builder.build()
