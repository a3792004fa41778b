"""The hash by which a consumer group sees that its topics have changed, stored in the group's epoch record (KIP-1101).

Equal to Kafka's, so that a group goes on without a new epoch when its log moves from one to the other: XXH3 over each
topic's id, name and partitions with the racks of their replicas, then over these hashes in the order of topic names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

import xxhash

LAYOUT: Final = 0
"""The first byte that is hashed; another layout would have another."""
NO_TOPICS: Final = 0
_INT: Final = struct.Struct("<i")
_LONG: Final = struct.Struct("<Q")


def hash_topic(topic_id: bytes, name: str, partition_racks: Sequence[Sequence[str]]) -> int:
    """Return the hash of a topic; `partition_racks` has, for each partition, the known racks of its replicas."""
    most, least = topic_id[:8], topic_id[8:]
    parts = [bytes([LAYOUT]), most[::-1], least[::-1], _text(name), _INT.pack(len(partition_racks))]
    for partition, racks in enumerate(partition_racks):
        parts.append(_INT.pack(partition))
        for rack in sorted(racks):
            parts += [_INT.pack(len(rack.encode("utf-16-le")) // 2), _text(rack)]
    return int(xxhash.xxh3_64_intdigest(b"".join(parts)))


def hash_group(topics: Iterable[tuple[str, int]]) -> int:
    """Return the hash of a group, signed as it is stored, from the names and hashes of its topics that exist."""
    hashes = [topic_hash for _, topic_hash in sorted(topics)]
    if not hashes:
        return NO_TOPICS
    digest = int(xxhash.xxh3_64_intdigest(b"".join(map(_LONG.pack, hashes))))
    return digest - (digest >> 63 << 64)


def _text(text: str) -> bytes:
    """A text as Java hashes one: its UTF-16 code units, then how many."""
    encoded = text.encode("utf-16-le")
    return encoded + _INT.pack(len(encoded) // 2)
