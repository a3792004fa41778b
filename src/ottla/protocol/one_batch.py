"""The usual Produce request, one batch for one partition, read where it stands, answered without an object per field.

Most requests of a busy broker are of this form, and on single records the general codec costs more than all else. This
knows nothing but the form: versions 3 to 12, one topic by name, one partition, no transactional id, acks of 1 or all,
no tagged fields, nothing behind, and a batch that is neither compressed nor transactional. Whatever is not of it,
damaged or merely rare, is None here and goes the general way, which answers the same; a test holds both to the same
bytes. (Compressed batches are left out since a refused one is looked at twice, and inflating twice is not cheap.)
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

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

PLAIN_BYTES: Final = 34
"""An answer without its size, name and log start, and what follows that: correlation id, counts, partition, error,
offset and time."""
THROTTLE_TAIL: Final = bytes(4)
RECORD_ERRORS_TAIL: Final = b"\0\0\0\0\xff\xff\0\0\0\0"
"""No record errors, no error message, no throttle time."""
TAGLESS_ONE: Final = 0x0002
COMPACT_ONE: Final = 2
FLEXIBLE_TAIL: Final = b"\1\0\0\0\0\0\0\0\0"
"""No record errors, no error message, no tags; no tags of the topic; no throttle time; no tags of the answer."""
FLEXIBLE_BYTES: Final = 46


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

    def is_like(self, other: OneBatch) -> bool:
        """True when both are for the same partition under the same promise."""
        return self.partition == other.partition and self.acks == other.acks and self.topic == other.topic

    def answer(self, base_offset: i64, log_append_time_ms: i64, log_start_offset: i64) -> bytes:
        """Return the whole frame that says that the batch was appended."""
        version = self.api_version
        is_flexible = version >= FLEXIBLE_FROM
        out = BytesWriter()
        write_i32_be(out, i32(self._answer_bytes()))
        write_i32_be(out, i32(self._correlation_id))
        if is_flexible:
            write_i16_be(out, TAGLESS_ONE)
        else:
            write_i32_be(out, 1)
        out.write(self._name_field)
        if is_flexible:
            out.append(COMPACT_ONE)
        else:
            write_i32_be(out, 1)
        write_i32_be(out, i32(self.partition))
        write_i16_be(out, 0)
        write_i64_be(out, base_offset)
        write_i64_be(out, log_append_time_ms)
        if version >= LOG_START_FROM:
            write_i64_be(out, log_start_offset)
        if is_flexible:
            out.write(FLEXIBLE_TAIL)
        else:
            out.write(RECORD_ERRORS_TAIL if version >= RECORD_ERRORS_FROM else THROTTLE_TAIL)
        return out.getvalue()

    def _answer_bytes(self) -> i64:
        """The size that stands before the answer."""
        name_bytes: i64 = len(self._name_field)
        if self.api_version >= FLEXIBLE_FROM:
            return name_bytes + FLEXIBLE_BYTES
        if self.api_version >= RECORD_ERRORS_FROM:
            return name_bytes + PLAIN_BYTES + 8 + len(RECORD_ERRORS_TAIL)
        return name_bytes + PLAIN_BYTES + len(THROTTLE_TAIL) + (8 if self.api_version >= LOG_START_FROM else 0)


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
