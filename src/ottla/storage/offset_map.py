"""`OffsetMap`: the newest offset of each key in the part of a log that is to be compacted, within a bound of memory.

A table with open addressing, 24 bytes a place, as Kafka's: 128 bits that stand for the key, and its offset. It grows
with the keys, so that a short log needs little, and never beyond the bound, with the old table that is there until the
keys have moved.

The bits are Python's own hash, whose secret differs from process to process, so that nobody can make keys that meet,
and XXH3, with which keys that meet by chance are as rare as with Kafka's MD5.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i64_be
from librt.vecs import append, vec
from mypy_extensions import i64
from xxhash import xxh3_64_digest

from ottla.model import NO_OFFSET

ENTRY_BYTES: Final = 24
"""A place in the table: three numbers of 64 bits."""
_NUMBERS: Final = 3
_SMALL: Final = 1024
_GROWTH: Final = 4
"""With small steps the table before the last one would be a large part of the bound."""
_POSITIVE: Final = 2**63 - 1
_FREE: Final[i64] = NO_OFFSET


class OffsetMap:
    """Keys to offsets. `latest_offset` is how far the log has been read into the map."""

    __slots__ = ("_count", "_limit", "_size", "_sizes", "_table", "latest_offset")

    def __init__(self, memory_bytes: int) -> None:
        self.latest_offset: i64 = NO_OFFSET
        largest = max(memory_bytes * _GROWTH // (_GROWTH + 1) // ENTRY_BYTES, 2)
        self._sizes = [largest]
        """How many places the next tables have, the largest one first."""
        while self._sizes[-1] > _SMALL:
            self._sizes.append(self._sizes[-1] // _GROWTH)
        self._count: i64 = 0
        self._size: i64 = self._sizes.pop()
        self._limit: i64 = _limit(self._size)
        self._table: vec[i64] = _new_table(self._size)

    def __len__(self) -> int:
        return int(self._count)

    @property
    def is_full(self) -> bool:
        """True when the memory is used up; the first key goes in, however little there is."""
        return self._count >= self._limit and not self._sizes

    def put(self, key: bytes, offset: i64) -> None:
        """Note an offset of a key, in place of the one that it had. Only while the map is not full."""
        if self._count >= self._limit:
            self._grow()
        table = self._table
        first: i64 = hash(key)
        second = read_i64_be(xxh3_64_digest(key), 0)
        place = _find(table, self._size, first, second)
        if table[place + 2] == _FREE:
            self._count += 1
            table[place] = first
            table[place + 1] = second
        table[place + 2] = offset

    def reach(self, offset: i64) -> None:
        """Take note that the log has been read up to an offset, if it had not been."""
        if offset > self.latest_offset:
            self.latest_offset = offset

    def get(self, key: bytes) -> i64:
        """Return the newest known offset of a key, -1 when there is none."""
        first: i64 = hash(key)
        table = self._table
        return table[_find(table, self._size, first, read_i64_be(xxh3_64_digest(key), 0)) + 2]

    def _grow(self) -> None:
        """Move into the next larger table."""
        assert self._sizes, "the map is full"
        old, end = self._table, self._size * _NUMBERS
        size: i64 = self._sizes.pop()
        table = _new_table(size)
        place: i64 = 0
        while place < end:
            if old[place + 2] != _FREE:
                found = _find(table, size, old[place], old[place + 1])
                table[found] = old[place]
                table[found + 1] = old[place + 1]
                table[found + 2] = old[place + 2]
            place += _NUMBERS
        self._table, self._size, self._limit = table, size, _limit(size)


def _limit(size: i64) -> i64:
    """How many keys a table of so many places takes: with more of them the search for one gets long."""
    return max(size * 3 // 4, 1)


def _new_table(size: i64) -> vec[i64]:
    table = vec[i64](capacity=size * _NUMBERS)
    place: i64 = 0
    while place < size * _NUMBERS:
        table = append(table, _FREE)
        place += 1
    return table


def _find(table: vec[i64], size: i64, first: i64, second: i64) -> i64:
    """Return where a key stands, or the free place that it would get."""
    end = size * _NUMBERS
    place: i64 = (first & _POSITIVE) % size * _NUMBERS
    while table[place + 2] != _FREE and (table[place] != first or table[place + 1] != second):
        place += _NUMBERS
        if place == end:
            place = 0
    return place
