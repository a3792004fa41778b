"""The map of keys that compaction goes by: newest offsets, and a bound of memory."""

from __future__ import annotations

import tracemalloc
from hashlib import md5

import pytest

from ottla.storage.offset_map import LONGEST_KEY_BYTES, OffsetMap


@pytest.mark.parametrize("size", [0, 1, 15, 16, LONGEST_KEY_BYTES, LONGEST_KEY_BYTES + 1, 10_000])
def test_newest_offset_of_a_key_counts_whatever_its_length(size: int) -> None:
    offsets = OffsetMap(1 << 20)
    key, other = b"k" * size, b"o" * size + b"o"
    offsets.put(key, 1)
    offsets.put(other, 2)
    offsets.put(key, 3)
    assert (offsets.get(key), offsets.get(other), offsets.get(b"unknown")) == (3, 2, -1)
    assert len(offsets) == 2


def test_a_key_that_is_another_ones_digest_is_a_key_of_its_own() -> None:
    offsets = OffsetMap(1 << 20)
    long = b"k" * 100
    offsets.put(long, 1)
    offsets.put(md5(long, usedforsecurity=False).digest(), 2)
    assert offsets.get(long) == 1


def test_one_key_goes_in_however_little_memory_there_is() -> None:
    offsets = OffsetMap(0)
    assert not offsets.is_full
    offsets.put(b"k", 1)
    assert offsets.is_full


@pytest.mark.parametrize("size", [8, 36, 200])
def test_memory_is_bounded_as_asked(size: int) -> None:
    """Within a quarter, and not far below it either: fewer keys mean more passes."""
    memory_bytes = 8 << 20
    tracemalloc.start()
    try:
        offsets = OffsetMap(memory_bytes)
        number = 0
        while not offsets.is_full:
            offsets.put(str(number).zfill(size).encode(), 1_000_000 + number)
            number += 1
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert memory_bytes / 2 < used < memory_bytes * 1.25
