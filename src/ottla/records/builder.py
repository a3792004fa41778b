"""`BatchBuilder`: records in, the bytes of one v2 batch out.

The producer fills one per partition, the state logs one per append. The exact size before compression is known all the
time, so that a caller can stop at its limit; what compression saves is known only from `build`.
"""

from __future__ import annotations

import struct
from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from ottla.model import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP_MS,
    TimestampType,
)
from ottla.records.batch import (
    ATTRIBUTES_AT,
    CONTROL_BIT,
    CURRENT_MAGIC,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from ottla.records.compression import Codec, deflate
from ottla.records.crc32c import crc32c
from ottla.records.record import Headers, record_body_size, write_record
from ottla.records.varint import varint_size

_BEFORE_CRC: Final = struct.Struct(">qiib")
_CRC: Final = struct.Struct(">I")
_AFTER_CRC: Final = struct.Struct(">hiqqqhii")


@final
class BatchBuilder:
    """Collects records with increasing offset deltas. Use it once: `build` ends it."""

    __slots__ = (
        "_base_offset",
        "_base_timestamp",
        "_codec",
        "_count",
        "_has_delete_horizon",
        "_last_offset_delta",
        "_level",
        "_max_timestamp",
        "_out",
        "base_sequence",
        "is_control",
        "is_transactional",
        "leader_epoch",
        "producer_epoch",
        "producer_id",
        "timestamp_type",
    )

    def __init__(
        self,
        *,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        base_offset: i64 = 0,
        leader_epoch: int = NO_LEADER_EPOCH,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        is_control: bool = False,
    ) -> None:
        """`level` None is Kafka's default for the codec. The producer fields may still change before `build`."""
        self._out = BytesWriter()
        self._codec = codec
        self._level = level
        self._base_offset = base_offset
        self._base_timestamp: i64 = NO_TIMESTAMP_MS
        self._max_timestamp: i64 = NO_TIMESTAMP_MS
        self._last_offset_delta: i64 = -1
        self._count: i64 = 0
        self._has_delete_horizon = False
        self.leader_epoch = leader_epoch
        self.timestamp_type = timestamp_type
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.is_transactional = is_transactional
        self.is_control = is_control

    @property
    def count(self) -> int:
        return int(self._count)

    @property
    def size_in_bytes(self) -> int:
        """Size of the batch if it were built now without compression."""
        return HEADER_BYTES + len(self._out)

    @property
    def max_timestamp(self) -> int:
        """The largest record timestamp in ms, -1 without records."""
        return int(self._max_timestamp)

    def size_with(self, timestamp: i64, key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
        """Return what `size_in_bytes` would be after appending this record."""
        is_first: bool = self._count == 0 and not self._has_delete_horizon
        timestamp_delta: i64 = 0 if is_first else timestamp - self._base_timestamp
        body: i64 = record_body_size(timestamp_delta, self._last_offset_delta + 1, key, value, headers)
        return self.size_in_bytes + int(varint_size(body) + body)

    def append(
        self,
        timestamp: i64,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
    ) -> int:
        """Add a record at the next offset and return its offset delta. `timestamp` is in ms since the epoch."""
        return self.append_at(self._last_offset_delta + 1, timestamp, key, value, headers)

    def append_at(
        self,
        offset_delta: i64,
        timestamp: i64,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
    ) -> int:
        """Add a record at an offset delta above the last one's, as compaction leaves them."""
        assert offset_delta > self._last_offset_delta, "offset deltas must rise"
        if self._count == 0:
            if not self._has_delete_horizon:
                self._base_timestamp = timestamp
            self._max_timestamp = timestamp
        elif timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        write_record(self._out, timestamp - self._base_timestamp, offset_delta, key, value, headers)
        self._last_offset_delta = offset_delta
        self._count += 1
        return int(offset_delta)

    def set_delete_horizon(self, delete_horizon_ms: i64) -> None:
        """Say when tombstones may go (KIP-534). Before the first record, since times count from it from now on."""
        assert self._count == 0, "records count from the base timestamp already"
        self._base_timestamp = delete_horizon_ms
        self._has_delete_horizon = True

    def extend_to(self, last_offset_delta: i64) -> None:
        """Let the batch cover offsets behind its last record, which compaction took away."""
        assert last_offset_delta >= self._last_offset_delta, "a batch cannot end before its last record"
        self._last_offset_delta = last_offset_delta

    def set_append_time(self, log_append_time_ms: i64) -> None:
        """Make this the header's time for all records, whatever times they were appended with."""
        self.timestamp_type = TimestampType.LOG_APPEND_TIME
        self._max_timestamp = log_append_time_ms

    def build(self) -> bytes:
        """Return the batch with its checksum."""
        payload = self._out.getvalue()
        if self._codec != Codec.NONE:
            payload = deflate(self._codec, payload, self._level)
        attributes = int(self._codec)
        if self.timestamp_type == TimestampType.LOG_APPEND_TIME:
            attributes |= TIMESTAMP_TYPE_BIT
        if self.is_transactional:
            attributes |= TRANSACTIONAL_BIT
        if self.is_control:
            attributes |= CONTROL_BIT
        if self._has_delete_horizon:
            attributes |= DELETE_HORIZON_BIT
        return assemble(
            payload,
            base_offset=int(self._base_offset),
            leader_epoch=self.leader_epoch,
            attributes=attributes,
            last_offset_delta=int(self._last_offset_delta),
            base_timestamp=int(self._base_timestamp),
            max_timestamp=int(self._max_timestamp),
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            count=int(self._count),
        )


def assemble(
    payload: bytes,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    count: int,
) -> bytes:
    """Put a header with a right length and checksum before records that are packed already."""
    covered = _AFTER_CRC.pack(
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    length = HEADER_BYTES - LOG_OVERHEAD_BYTES + len(payload)
    front = _BEFORE_CRC.pack(base_offset, length, leader_epoch, CURRENT_MAGIC)
    crc = crc32c(payload, crc32c(covered))
    assert len(front) + _CRC.size == ATTRIBUTES_AT
    return b"".join((front, _CRC.pack(crc), covered, payload))
