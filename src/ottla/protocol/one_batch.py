"""The usual Produce request, one batch for one partition, read where it stands, answered without an object per field.

Most requests of a busy broker are of this form, and on single records the general codec costs more than all else. This
knows nothing but the form: versions 3 to 12, one topic by name, one partition, no transactional id, acks of 1 or all,
no tagged fields, nothing behind, and a batch that is neither compressed nor transactional. Whatever is not of it,
damaged or merely rare, is None here and goes the general way, which answers the same; a test holds both to the same
bytes. (Compressed batches are left out since a refused one is looked at twice, and inflating twice is not cheap.)
"""

from __future__ import annotations

import struct
from typing import Final, final

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64

PRODUCE: Final = 0
MIN_VERSION: Final = 3
MAX_VERSION: Final = 12
FLEXIBLE_FROM: Final = 9
LOG_START_FROM: Final = 5
RECORD_ERRORS_FROM: Final = 8

LOOKED_AT_BYTES: Final = 512
"""Header, names and the front of the batch stand within, or the request goes the general way."""
LEAST_BYTES: Final = 96
ATTRIBUTES_END: Final = 23
RARE_BITS: Final = 0x17
"""Of a batch's attributes: the codec, and whether it is part of a transaction."""

_HEAD: Final = struct.Struct(">iii")
_ROW: Final = struct.Struct(">iihqqi")
_ROW_WITH_LOG_START: Final = struct.Struct(">iihqqqi")
_ROW_WITH_RECORD_ERRORS: Final = struct.Struct(">iihqqqihi")
_FLEXIBLE_HEAD: Final = struct.Struct(">iibb")
_FLEXIBLE_ROW: Final = struct.Struct(">bihqqqbbbbib")


@final
class OneBatch:
    """Such a request: what it says, and where in its frame the batch stands."""

    __slots__ = (
        "_correlation_id",
        "_name_field",
        "acks",
        "api_version",
        "partition",
        "records_at",
        "records_end",
        "topic",
    )

    def __init__(
        self,
        api_version: i64,
        correlation_id: i64,
        acks: i64,
        name_field: bytes,
        topic: str,
        partition: i64,
        records_at: i64,
        records_end: i64,
    ) -> None:
        self.api_version = api_version
        self.acks = acks
        self.topic = topic
        self.partition = partition
        self.records_at = records_at
        self.records_end = records_end
        self._correlation_id = correlation_id
        self._name_field = name_field

    def answer(self, base_offset: int, log_append_time_ms: int, log_start_offset: int) -> bytes:
        """Return the whole frame that says that the batch was appended."""
        name = self._name_field
        version = self.api_version
        correlation_id = self._correlation_id
        partition = self.partition
        if version >= FLEXIBLE_FROM:
            row = _FLEXIBLE_ROW.pack(
                2, partition, 0, base_offset, log_append_time_ms, log_start_offset, 1, 0, 0, 0, 0, 0
            )
            size: i64 = _FLEXIBLE_HEAD.size - 4 + len(name) + len(row)
            return _FLEXIBLE_HEAD.pack(size, correlation_id, 0, 2) + name + row
        if version >= RECORD_ERRORS_FROM:
            row = _ROW_WITH_RECORD_ERRORS.pack(
                1, partition, 0, base_offset, log_append_time_ms, log_start_offset, 0, -1, 0
            )
        elif version >= LOG_START_FROM:
            row = _ROW_WITH_LOG_START.pack(1, partition, 0, base_offset, log_append_time_ms, log_start_offset, 0)
        else:
            row = _ROW.pack(1, partition, 0, base_offset, log_append_time_ms, 0)
        size = _HEAD.size - 4 + len(name) + len(row)
        return _HEAD.pack(size, correlation_id, 1) + name + row


def read_one_batch(frame: memoryview) -> OneBatch | None:
    """Return what a frame (without its size) asks when it is of the usual form, else None."""
    head = bytes(frame[:LOOKED_AT_BYTES])
    if len(head) < LEAST_BYTES or read_i16_be(head, 0) != PRODUCE:
        return None
    version = i64(read_i16_be(head, 2))
    if not MIN_VERSION <= version <= MAX_VERSION:
        return None
    body_at: i64 = 10 + max(i64(read_i16_be(head, 8)), 0)
    if body_at > len(head) - LEAST_BYTES // 2:
        return None
    if version >= FLEXIBLE_FROM:
        return _read_flexible(frame, head, version, body_at)
    return _read_plain(frame, head, version, body_at)


def _read_plain(frame: memoryview, head: bytes, version: i64, body_at: i64) -> OneBatch | None:
    if read_i16_be(head, body_at) != -1 or read_i32_be(head, body_at + 8) != 1:
        return None
    name_at = body_at + 12
    name_size = i64(read_i16_be(head, name_at))
    name_end = name_at + 2 + name_size
    records_at = name_end + 12
    if name_size < 1 or records_at + ATTRIBUTES_END > len(head) or read_i32_be(head, name_end) != 1:
        return None
    records_end = records_at + i64(read_i32_be(head, name_end + 8))
    if records_end != len(frame):
        return None
    acks = i64(read_i16_be(head, body_at + 2))
    return _usual(head, version, acks, name_at, name_at + 2, name_end, name_end + 4, records_at, records_end)


def _read_flexible(frame: memoryview, head: bytes, version: i64, body_at: i64) -> OneBatch | None:
    if head[body_at] != 0 or head[body_at + 1] != 0 or head[body_at + 8] != 2:  # no tags, no id, one topic
        return None
    name_at = body_at + 9
    name_end: i64 = name_at + head[name_at]
    if not 2 <= head[name_at] <= 0x7F or name_end + 10 + ATTRIBUTES_END > len(head) or head[name_end] != 2:
        return None
    size: i64 = 0
    shift: i64 = 0
    records_at = name_end + 5
    while True:
        byte = i64(head[records_at])
        records_at += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            return None
    records_end = records_at + size - 1
    if size < ATTRIBUTES_END or records_end + 3 != len(frame) or bytes(frame[records_end:]) != b"\0\0\0":
        return None
    acks = i64(read_i16_be(head, body_at + 2))
    return _usual(head, version, acks, name_at, name_at + 1, name_end, name_end + 1, records_at, records_end)


def _usual(
    head: bytes,
    version: i64,
    acks: i64,
    name_at: i64,
    text_at: i64,
    name_end: i64,
    partition_at: i64,
    records_at: i64,
    records_end: i64,
) -> OneBatch | None:
    """Make the request, unless its acks or its batch are not usual."""
    if acks not in (-1, 1) or records_end - records_at < ATTRIBUTES_END:
        return None
    if head[records_at + ATTRIBUTES_END - 1] & RARE_BITS:
        return None
    return OneBatch(
        version,
        i64(read_i32_be(head, 4)),
        acks,
        head[name_at:name_end],
        head[text_at:name_end].decode("utf-8", "replace"),
        i64(read_i32_be(head, partition_at)),
        records_at,
        records_end,
    )
