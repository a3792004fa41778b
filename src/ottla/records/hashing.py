"""The hashes that decide where things go: keys to partitions, groups and transactional ids to coordinators.

Both must equal Java's, or two clients would put one key into two partitions.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_le
from mypy_extensions import i64

_MASK: Final = 0xFFFFFFFF
_MULTIPLIER: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C


def murmur2(data: bytes) -> int:
    """Return the signed 32-bit hash by which producers choose a partition."""
    size: i64 = len(data)
    value: i64 = (_SEED ^ size) & _MASK
    position: i64 = 0
    while position + 4 <= size:
        word = i64(read_i32_le(data, position)) & _MASK
        word = word * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        value = value * _MULTIPLIER & _MASK ^ word
        position += 4
    left: i64 = size - position
    if left > 0:
        shift: i64 = 0
        while position < size:
            value ^= data[position] << shift
            shift += 8
            position += 1
        value = value * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    value ^= value >> 15
    return int(value if value < 1 << 31 else value - (1 << 32))


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Return the partition that Kafka's default partitioner chooses for a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def java_string_hash(text: str) -> int:
    """Return what Java's `String.hashCode` gives: signed 32 bits over UTF-16 code units."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & _MASK
    return value if value < 1 << 31 else value - (1 << 32)


def coordinator_partition(key: str, partition_count: int) -> int:
    """Return the partition of `__consumer_offsets`, `__transaction_state` or `__share_group_state` that owns a key.

    Java's absolute value of the smallest integer is 0 here, as in Kafka.
    """
    value = java_string_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % partition_count


def share_partition_key(group_id: str, topic_id_text: str, partition: int) -> str:
    """Return the key by which a share partition's state finds its coordinator (KIP-932)."""
    return f"{group_id}:{topic_id_text}:{partition}"
