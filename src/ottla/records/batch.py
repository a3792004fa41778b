"""One v2 record batch as bytes with a readable front, and the walk from batch to batch through a buffer.

`RecordBatch` reads and never writes; the two places that write into a header are `stamp` here, for the fields outside
the checksum, and `validation`, which decides what a log may change. Records stay packed until `records()` is called.

Header, 61 bytes, big-endian:

    0 base offset (8)      16 magic (1)         23 last offset delta (4)   43 producer id (8)     57 record count (4)
    8 batch length (4)     17 CRC-32C (4)       27 base timestamp (8)      51 producer epoch (2)  61 records
    12 leader epoch (4)    21 attributes (2)    35 max timestamp (8)       53 base sequence (4)

The batch length counts from byte 12; the checksum covers everything from byte 21, so base offset, length, leader epoch
and magic can change without it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from ottla.errors import CorruptMessage
from ottla.model import NO_PRODUCER_ID, NO_SEQUENCE, TimestampType
from ottla.records.compression import Codec, inflate
from ottla.records.crc32c import crc32c
from ottla.records.record import Record, add_sequence, decode_records

BASE_OFFSET_AT: Final = 0
BATCH_LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
LAST_OFFSET_DELTA_AT: Final = 23
BASE_TIMESTAMP_AT: Final = 27
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_ID_AT: Final = 43
PRODUCER_EPOCH_AT: Final = 51
BASE_SEQUENCE_AT: Final = 53
RECORD_COUNT_AT: Final = 57
RECORDS_AT: Final = 61

HEADER_BYTES: Final = 61
LOG_OVERHEAD_BYTES: Final = 12
"""Base offset and length, which every format has and the length does not count."""

MIN_LENGTH: Final = 14
"""The smallest length that any format can have: a magic 0 message without key and value."""

HEADER_TO_MAGIC_BYTES: Final = 17
CURRENT_MAGIC: Final = 2

CODEC_BITS: Final = 0x07
TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40
KNOWN_ATTRIBUTE_BITS: Final = 0x7F

_OFFSET: Final = struct.Struct(">q")
_EPOCH: Final = struct.Struct(">i")


@final
class RecordBatch:
    """A read-only view of one batch of magic 2.

    The header is copied when the view is made, so a later `stamp` of the same memory needs a new view. Offsets are
    absolute; timestamps are ms since the epoch, -1 for none; sizes are bytes.
    """

    __slots__ = ("_header", "buffer")

    def __init__(self, buffer: bytes | bytearray | memoryview) -> None:
        """View `buffer`, which holds exactly one batch. Raises `CorruptMessage` where no header fits."""
        view = memoryview(buffer)
        if len(view) < HEADER_BYTES:
            raise CorruptMessage(f"a record batch has at least {HEADER_BYTES} bytes, this one {len(view)}")
        self.buffer = view
        self._header = bytes(view[:HEADER_BYTES])

    @property
    def base_offset(self) -> int:
        return read_i64_be(self._header, BASE_OFFSET_AT)

    @property
    def batch_length(self) -> int:
        """The length field: size without the first 12 bytes."""
        return read_i32_be(self._header, BATCH_LENGTH_AT)

    @property
    def size_in_bytes(self) -> int:
        return LOG_OVERHEAD_BYTES + read_i32_be(self._header, BATCH_LENGTH_AT)

    @property
    def partition_leader_epoch(self) -> int:
        return read_i32_be(self._header, LEADER_EPOCH_AT)

    @property
    def magic(self) -> int:
        return self._header[MAGIC_AT]

    @property
    def crc(self) -> int:
        """The stored checksum, unsigned."""
        return int(i64(read_i32_be(self._header, CRC_AT)) & 0xFFFFFFFF)

    @property
    def attributes(self) -> int:
        """All 16 bits, unsigned; those above `KNOWN_ATTRIBUTE_BITS` are reserved."""
        return int(i64(read_i16_be(self._header, ATTRIBUTES_AT)) & 0xFFFF)

    @property
    def codec(self) -> Codec:
        """Raises `UnsupportedCompressionType` for the numbers 5 to 7."""
        return Codec.of(self.attributes & CODEC_BITS)

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_BIT else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """True when the base timestamp field holds the time after which tombstones may go (KIP-534)."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.has_delete_horizon else None

    @property
    def last_offset_delta(self) -> int:
        return read_i32_be(self._header, LAST_OFFSET_DELTA_AT)

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def base_timestamp(self) -> int:
        """What record timestamps count from."""
        return read_i64_be(self._header, BASE_TIMESTAMP_AT)

    @property
    def max_timestamp(self) -> int:
        """The largest record timestamp; the append time of all records under LogAppendTime."""
        return read_i64_be(self._header, MAX_TIMESTAMP_AT)

    @property
    def producer_id(self) -> int:
        return read_i64_be(self._header, PRODUCER_ID_AT)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def producer_epoch(self) -> int:
        return read_i16_be(self._header, PRODUCER_EPOCH_AT)

    @property
    def base_sequence(self) -> int:
        return read_i32_be(self._header, BASE_SEQUENCE_AT)

    @property
    def last_sequence(self) -> int:
        """-1 without a sequence; wraps to 0 after 2^31 - 1."""
        base_sequence = self.base_sequence
        if base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_sequence(base_sequence, self.last_offset_delta)

    @property
    def count(self) -> int:
        """Number of records that the header announces."""
        return read_i32_be(self._header, RECORD_COUNT_AT)

    def is_crc_valid(self) -> bool:
        return crc32c(self.buffer[ATTRIBUTES_AT:]) == self.crc

    def payload(self) -> bytes:
        """Return the records' bytes, inflated. Raises `UnsupportedCompressionType`, `InvalidRecord`."""
        packed = self.buffer[RECORDS_AT:]
        codec = self.codec
        return bytes(packed) if codec == Codec.NONE else inflate(codec, packed)

    def records(self) -> Iterator[Record]:
        """Iterate the records, decoded at once. Raises what `payload` raises, and `InvalidRecord`."""
        return iter(self.decode())

    def decode(self, *, is_strict: bool = False) -> list[Record]:
        """Return the records as a list; the fast way for consumers, who are strict about lengths."""
        is_append_time = self.attributes & TIMESTAMP_TYPE_BIT != 0
        return decode_records(
            self.payload(),
            self.count,
            base_offset=self.base_offset,
            base_timestamp=self.max_timestamp if is_append_time else self.base_timestamp,
            base_sequence=self.base_sequence,
            has_one_time=is_append_time,
            is_strict=is_strict,
        )

    def __repr__(self) -> str:
        return (
            f"RecordBatch(base_offset={self.base_offset}, last_offset={self.last_offset}, count={self.count}, "
            f"size_in_bytes={self.size_in_bytes}, attributes={self.attributes:#x}, producer_id={self.producer_id}, "
            f"producer_epoch={self.producer_epoch}, base_sequence={self.base_sequence})"
        )


def next_batch_size(buffer: memoryview, position: i64) -> i64:
    """Return the size in bytes of the batch or message that starts at `position`, of any magic; -1 where it is torn.

    Torn means that the buffer ends within it. Raises `CorruptMessage` where no batch can start like that.
    """
    return size_from_front(bytes(buffer[position : position + HEADER_TO_MAGIC_BYTES]), len(buffer) - position)


def size_from_front(front: bytes, remaining: i64) -> i64:
    """`next_batch_size` of what begins with `front`, as far as that goes, and has `remaining` bytes in all."""
    if remaining < LOG_OVERHEAD_BYTES:
        return -1
    length = i64(read_i32_be(front, BATCH_LENGTH_AT))
    if length < MIN_LENGTH or length > 0x7FFFFFFF - LOG_OVERHEAD_BYTES:
        raise CorruptMessage(f"a record batch cannot be {length} bytes long")
    if remaining < HEADER_TO_MAGIC_BYTES:
        return -1
    if front[MAGIC_AT] > CURRENT_MAGIC:
        raise CorruptMessage(f"no record batch has magic {front[MAGIC_AT]}")
    size: i64 = length + LOG_OVERHEAD_BYTES
    return size if size <= remaining else -1


def split_batches(buffer: bytes | bytearray | memoryview) -> Iterator[RecordBatch]:
    """Yield the v2 batches that stand one after the other in `buffer`, up to a torn one at its end.

    Raises `CorruptMessage` where no v2 batch can start; `legacy.split_any` reads older formats too.
    """
    view = memoryview(buffer)
    position: i64 = 0
    while True:
        size = next_batch_size(view, position)
        if size < 0:
            return
        if view[position + MAGIC_AT] != CURRENT_MAGIC:
            raise CorruptMessage(f"expected a record batch of magic 2, found magic {view[position + MAGIC_AT]}")
        yield RecordBatch(view[position : position + size])
        position += size


def stamp(buffer: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Give a writable batch its place in the log. Both fields are outside the checksum."""
    _OFFSET.pack_into(buffer, BASE_OFFSET_AT, base_offset)
    _EPOCH.pack_into(buffer, LEADER_EPOCH_AT, leader_epoch)
