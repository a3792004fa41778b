"""A committed offset as it usually stands in `__consumer_offsets`, read where it stands.

A start may have to read a million of them, and building a key and a value message for each costs more than all else.
This knows key version 0 with value versions 3 and 4 (metadata below 127 bytes, no tag but the topic's id), which is
what Kafka 2.1 and later write. Whatever is not of that form, damaged or merely rare, is None here and goes the general
way (`framing.decode_group_record`), which reads the same; a test holds both to the same values.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

OFFSET_COMMIT: Final = 1
LEADER_EPOCH_VERSION: Final = 3
TOPIC_ID_VERSION: Final = 4
ZERO_TOPIC_ID: Final = bytes(16)

KEY_BYTES: Final = 10
"""Of a key with empty names: record type, two sizes, partition."""
NAME_AT: Final = 4
METADATA_SIZE_AT: Final = 14
"""Behind version, offset and leader epoch."""
PLAIN_BYTES: Final = 24
"""Of a value with empty metadata, whose size takes two bytes in version 3, in version 4 one as does that of tags."""
TOPIC_ID_BYTES: Final = 18
"""The topic's id as a tagged field: its tag, its size, itself."""
LONG_METADATA_BYTES: Final = 127
"""From here on its size, which counts from 1, takes two bytes."""

StoredOffset = tuple[str, str, int, int, int, str, int, bytes]
"""Group, topic, partition, offset, leader epoch, metadata, time of the commit in ms since the epoch, topic id."""


def read_stored_offset(key: bytes, value: bytes) -> StoredOffset | None:
    """Return what a record says when it is of the usual form, else None."""
    key_size: i64 = len(key)
    value_size: i64 = len(value)
    if key_size < KEY_BYTES or value_size < PLAIN_BYTES or read_i16_be(key, 0) != OFFSET_COMMIT:
        return None
    group_end: i64 = NAME_AT + i64(read_i16_be(key, 2))
    if group_end < NAME_AT or group_end + 6 > key_size:
        return None
    topic_at: i64 = group_end + 2
    topic_end: i64 = topic_at + i64(read_i16_be(key, group_end))
    if topic_end < topic_at or topic_end + 4 != key_size:
        return None
    version = i64(read_i16_be(value, 0))
    topic_id = ZERO_TOPIC_ID
    if version == LEADER_EPOCH_VERSION:
        metadata_at: i64 = METADATA_SIZE_AT + 2
        metadata_end: i64 = metadata_at + i64(read_i16_be(value, METADATA_SIZE_AT))
        if metadata_end < metadata_at or metadata_end + 8 != value_size:
            return None
    elif version == TOPIC_ID_VERSION:
        metadata_at = METADATA_SIZE_AT + 1
        metadata_end = metadata_at + i64(value[METADATA_SIZE_AT]) - 1
        tags_at: i64 = metadata_end + 8
        if not metadata_at <= metadata_end < metadata_at + LONG_METADATA_BYTES or tags_at >= value_size:
            return None
        tags = i64(value[tags_at])
        if tags == 1 and tags_at + 1 + TOPIC_ID_BYTES == value_size and read_i16_be(value, tags_at + 1) == 16:
            topic_id = value[tags_at + 3 :]
        elif tags != 0 or tags_at + 1 != value_size:
            return None
    else:
        return None
    return (
        key[NAME_AT:group_end].decode("utf-8", "replace"),
        key[topic_at:topic_end].decode("utf-8", "replace"),
        read_i32_be(key, topic_end),
        read_i64_be(value, 2),
        read_i32_be(value, 10),
        value[metadata_at:metadata_end].decode("utf-8", "replace"),
        read_i64_be(value, metadata_end),
        topic_id,
    )
