"""The map of keys that compaction goes by: newest offsets, and a bound of memory."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest

from ottla.storage.offset_map import ENTRY_BYTES, OffsetMap


@pytest.mark.parametrize("size", [0, 1, 15, 16, 10_000])
def test_newest_offset_of_a_key_counts_whatever_its_length(size: int) -> None:
    offsets = OffsetMap(1 << 20)
    key, other = b"k" * size, b"o" * size + b"o"
    offsets.put(key, 1)
    offsets.put(other, 2)
    offsets.put(key, 3)
    assert (offsets.get(key), offsets.get(other), offsets.get(b"unknown")) == (3, 2, -1)
    assert len(offsets) == 2


def test_it_knows_what_a_dictionary_would() -> None:
    dice, known = Random(5), dict[bytes, int]()
    offsets = OffsetMap(1 << 20)
    for offset in range(30_000):
        key = b"%d" % dice.randrange(9_000)
        offsets.put(key, offset)
        known[key] = offset
    assert len(offsets) == len(known)
    assert [offsets.get(b"%d" % number) for number in range(9_100)] == [
        known.get(b"%d" % number, -1) for number in range(9_100)
    ]


def test_one_key_goes_in_however_little_memory_there_is() -> None:
    offsets = OffsetMap(0)
    assert not offsets.is_full
    offsets.put(b"k", 1)
    assert offsets.is_full


@pytest.mark.parametrize("memory_bytes", [100_000, 1 << 20])
def test_memory_is_bounded_as_asked(memory_bytes: int) -> None:
    """While it grows, too; and not far below it either: fewer keys mean more passes."""
    tracemalloc.start()
    try:
        offsets = OffsetMap(memory_bytes)
        number = 0
        while not offsets.is_full:
            offsets.put(b"%d" % number, number)
            number += 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert memory_bytes * 0.7 < peak < memory_bytes * 1.02 + 2_000
    assert number * ENTRY_BYTES > memory_bytes * 0.55
    assert all(offsets.get(b"%d" % known) == known for known in range(0, number, 97))
