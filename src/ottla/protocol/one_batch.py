"""The usual Produce request, one batch for one partition, read where it stands, answered without an object per field.

Most requests of a busy broker are of this form, and on single records the general codec costs more than all else. This
knows nothing but the form: versions 3 to 13, one topic, one partition, no transactional id, acks of 1 or all, no tagged
fields, nothing behind, and a batch that is neither compressed nor transactional. Whatever is not of it,
damaged or merely rare, is None here and goes the general way, which answers the same; a test holds both to the same
bytes. (Compressed batches are left out since a refused one is looked at twice, and inflating twice is not cheap.)
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from ottla.model import TopicId
from ottla.protocol.connection import FrameReader

PRODUCE: Final = 0
MIN_VERSION: Final = 3
MAX_VERSION: Final = 13
FLEXIBLE_FROM: Final = 9
TOPIC_ID_FROM: Final = 13
"""From here on a topic goes by its id."""
TOPIC_ID_BYTES: Final = 16
LOG_START_FROM: Final = 5
RECORD_ERRORS_FROM: Final = 8

LEAST_BYTES: Final = 100
"""No such request is shorter, with its size."""
API_KEY_AT: Final = 4
API_VERSION_AT: Final = 6
CORRELATION_ID_AT: Final = 8
CLIENT_ID_AT: Final = 12
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
NO_TAGS: Final = b"\0\0\0"
"""What ends a flexible request: no tags of the partition, the topic and the request."""


@final
class OneBatch:
    """Such a request: what it says, and where the batch stands among what the reader has received (`FrameReader.view`).

    `frame_bytes` is its size with the size field.
    """

    __slots__ = (
        "_correlation_id",
        "_text_at",
        "_topic_field",
        "acks",
        "api_version",
        "frame_bytes",
        "partition",
        "records_at",
        "records_end",
    )

    def __init__(
        self,
        api_version: i64,
        correlation_id: i64,
        acks: i64,
        topic_field: bytes,
        text_at: i64,
        partition: i64,
        frame_bytes: i64,
        records_at: i64,
        records_end: i64,
    ) -> None:
        self.api_version = api_version
        self.acks = acks
        self.partition = partition
        self.frame_bytes = frame_bytes
        self.records_at = records_at
        self.records_end = records_end
        self._correlation_id = correlation_id
        self._topic_field = topic_field
        self._text_at = text_at

    @property
    def topic_id(self) -> TopicId | None:
        """The topic's id; None where it goes by its name."""
        return TopicId(self._topic_field) if self.api_version >= TOPIC_ID_FROM else None

    @property
    def topic(self) -> str | None:
        """The topic's name; None where it goes by its id, and for bytes that are no text."""
        if self.api_version >= TOPIC_ID_FROM:
            return None
        try:
            return self._topic_field[self._text_at :].decode("utf-8")
        except UnicodeDecodeError:
            return None

    def is_like(self, other: OneBatch) -> bool:
        """True when both are for the same partition under the same promise."""
        return (
            self.partition == other.partition
            and self.acks == other.acks
            and self.api_version == other.api_version
            and self._topic_field == other._topic_field
        )

    def write_answer(self, out: BytesWriter, base_offset: i64, log_append_time_ms: i64, log_start_offset: i64) -> None:
        """Append the whole frame that says that the batch was appended."""
        version = self.api_version
        is_flexible = version >= FLEXIBLE_FROM
        write_i32_be(out, i32(self._answer_bytes()))
        write_i32_be(out, i32(self._correlation_id))
        if is_flexible:
            write_i16_be(out, TAGLESS_ONE)
        else:
            write_i32_be(out, 1)
        out.write(self._topic_field)
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

    def _answer_bytes(self) -> i64:
        """The size that stands before the answer."""
        name_bytes: i64 = len(self._topic_field)
        if self.api_version >= FLEXIBLE_FROM:
            return name_bytes + FLEXIBLE_BYTES
        if self.api_version >= RECORD_ERRORS_FROM:
            return name_bytes + PLAIN_BYTES + 8 + len(RECORD_ERRORS_TAIL)
        return name_bytes + PLAIN_BYTES + len(THROTTLE_TAIL) + (8 if self.api_version >= LOG_START_FROM else 0)


def read_one_batch(reader: FrameReader, behind_bytes: i64 = 0) -> OneBatch | None:
    """Return what the reader's next frame, or the one so many bytes behind, asks when it is of the usual form.

    Else None, also when there is no whole frame.
    """
    front = reader.front(behind_bytes)
    if len(front) < LEAST_BYTES or read_i16_be(front, API_KEY_AT) != PRODUCE:
        return None
    version = i64(read_i16_be(front, API_VERSION_AT))
    if not MIN_VERSION <= version <= MAX_VERSION:
        return None
    body_at: i64 = CLIENT_ID_AT + 2 + max(i64(read_i16_be(front, CLIENT_ID_AT)), 0)
    if body_at > len(front) - LEAST_BYTES // 2:
        return None
    if version < FLEXIBLE_FROM:
        return _read_plain(front, version, body_at, behind_bytes)
    asked = _read_flexible(front, version, body_at, behind_bytes)
    if asked is None or bytes(reader.view(asked.records_end, asked.records_end + len(NO_TAGS))) != NO_TAGS:
        return None
    return asked


def _read_plain(front: bytes, version: i64, body_at: i64, behind_bytes: i64) -> OneBatch | None:
    if read_i16_be(front, body_at) != -1 or read_i32_be(front, body_at + 8) != 1:
        return None
    name_at = body_at + 12
    name_size = i64(read_i16_be(front, name_at))
    name_end = name_at + 2 + name_size
    records_at = name_end + 12
    if name_size < 1 or records_at + ATTRIBUTES_END > len(front) or read_i32_be(front, name_end) != 1:
        return None
    records_end = records_at + i64(read_i32_be(front, name_end + 8))
    if records_end != _frame_bytes(front):
        return None
    acks = i64(read_i16_be(front, body_at + 2))
    return _usual(front, version, acks, front[name_at:name_end], 2, name_end + 4, records_at, records_end, behind_bytes)


def _read_flexible(front: bytes, version: i64, body_at: i64, behind_bytes: i64) -> OneBatch | None:
    if front[body_at] != 0 or front[body_at + 1] != 0 or front[body_at + 8] != 2:  # no tags, no id, one topic
        return None
    topic_at = body_at + 9
    topic_bytes: i64 = TOPIC_ID_BYTES if version >= TOPIC_ID_FROM else i64(front[topic_at])
    topic_end = topic_at + topic_bytes
    if not 2 <= topic_bytes <= 0x7F or topic_end + 10 + ATTRIBUTES_END > len(front) or front[topic_end] != 2:
        return None
    size: i64 = 0
    shift: i64 = 0
    records_at = topic_end + 5
    while True:
        byte = i64(front[records_at])
        records_at += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            return None
    records_end = records_at + size - 1
    if size < ATTRIBUTES_END or records_end + len(NO_TAGS) != _frame_bytes(front):
        return None
    acks = i64(read_i16_be(front, body_at + 2))
    return _usual(
        front, version, acks, front[topic_at:topic_end], 1, topic_end + 1, records_at, records_end, behind_bytes
    )


def _frame_bytes(front: bytes) -> i64:
    """The size of a frame, with the size field."""
    return i64(read_i32_be(front, 0)) + 4


def _usual(
    front: bytes,
    version: i64,
    acks: i64,
    topic_field: bytes,
    text_at: i64,
    partition_at: i64,
    records_at: i64,
    records_end: i64,
    behind_bytes: i64,
) -> OneBatch | None:
    """Make the request, unless its acks or its batch are not usual."""
    if acks not in (-1, 1) or records_end - records_at < ATTRIBUTES_END:
        return None
    if front[records_at + ATTRIBUTES_END - 1] & RARE_BITS:
        return None
    return OneBatch(
        version,
        i64(read_i32_be(front, CORRELATION_ID_AT)),
        acks,
        topic_field,
        text_at,
        i64(read_i32_be(front, partition_at)),
        _frame_bytes(front),
        behind_bytes + records_at,
        behind_bytes + records_end,
    )
