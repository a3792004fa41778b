"""Which partition a record goes to: the partition of its key, or one that sticks for a while.

Equal to what Kafka's producer does by itself since 3.3 (KIP-794): a key decides by murmur2 over all partitions, also
those without a leader, so that it always means the same one. Without a key a partition is drawn among those with a
leader and kept until `stick_bytes` went there, so that batches fill; the draw favours partitions with fewer batches
waiting. Randomness is handed in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Protocol

from ottla.records.hashing import partition_for_key

__all__ = ["Partitioner", "StickyChoice", "choose_partition", "partition_for_key"]


class Partitioner(Protocol):
    """A custom rule. It is asked for every record that does not name its partition."""

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partition_count: int) -> int: ...


def choose_partition(partitions: Sequence[int], waiting: Sequence[int], random: Callable[[], float]) -> int:
    """Draw one of `partitions`, weighted so that those with fewer `waiting` batches are likelier (KIP-794).

    A partition's weight is the longest queue plus one, minus its own queue. `random` gives numbers in [0, 1).
    """
    longest = max(waiting) + 1
    heights = list(accumulate(longest - queue for queue in waiting))
    return partitions[bisect_right(heights, int(random() * heights[-1]))]


class StickyChoice:
    """The keyless records' partition of one topic, until it has had its share."""

    __slots__ = ("_given_bytes", "_random", "_stick_bytes", "partition")

    def __init__(self, stick_bytes: int, random: Callable[[], float]) -> None:
        self.partition = -1
        self._given_bytes = 0
        self._stick_bytes = stick_bytes
        self._random = random

    def draw(self, partitions: Sequence[int], waiting: Sequence[int]) -> int:
        """Take a new partition; `partitions` must not be empty."""
        self._given_bytes = 0
        self.partition = choose_partition(partitions, waiting, self._random)
        return self.partition

    def count(self, size_bytes: int, *, batch_is_full: bool) -> bool:
        """Count bytes that went to the partition. True when it is time to draw again.

        Past its share a partition still keeps a batch that is not full, so that small batches are not left behind,
        but never beyond twice the share.
        """
        self._given_bytes += size_bytes
        given = self._given_bytes
        return given >= self._stick_bytes and (batch_is_full or given >= 2 * self._stick_bytes)
