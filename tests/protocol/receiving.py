"""Bytes that come in as from a socket."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.protocol.connection import FrameReader


def received(reader: FrameReader, data: bytes) -> Iterator[int]:
    """Give a reader bytes, at a time no more than it has room for; yields how many are left each time."""
    left = memoryview(data)
    while left:
        buffer = reader.get_buffer()
        size_bytes = min(len(buffer), len(left))
        assert size_bytes
        buffer[:size_bytes] = left[:size_bytes]
        left = left[size_bytes:]
        reader.buffer_updated(size_bytes)
        yield len(left)
