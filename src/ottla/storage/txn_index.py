"""`TransactionIndex`: the aborted transactions whose markers lie in one segment.

A `.txnindex` file exists only when there is an entry. Entries are 34 bytes, big-endian: version 0 (2 bytes), producer
id, first offset, last offset (the abort marker's), last stable offset as of the marker. They stand in the order of
their last offsets, which is why a scan may stop at the first one whose last stable offset reaches past the range.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.storage.files import FileSystem
from ottla.storage.index import CorruptIndex

_ENTRY: Final = struct.Struct(">hqqqq")
_VERSION: Final = 0


class AbortedTxn(NamedTuple):
    """One aborted transaction of a segment."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class CollectedTxns(NamedTuple):
    """Aborted transactions that touch a range, and whether later segments need not be asked."""

    aborted: list[AbortedTxn]
    is_complete: bool


class TransactionIndex:
    """The aborted transactions of one segment; few, so they are kept as they are and written at once."""

    __slots__ = ("_entries", "_filesystem", "_start_offset", "is_short", "path")

    def __init__(self, filesystem: FileSystem, path: str, start_offset: int) -> None:
        self.path = path
        self._filesystem = filesystem
        self._start_offset = start_offset
        self.is_short = False
        """True when the loaded file was cut, or is empty: files are made for what is in them."""
        self._entries: list[AbortedTxn] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[AbortedTxn]:
        return iter(self._entries)

    def append(self, aborted: AbortedTxn) -> None:
        """Add the transaction of a marker. Raises `ValueError` when its last offset does not rise."""
        if self._entries and aborted.last_offset <= self._entries[-1].last_offset:
            raise ValueError(f"{self.path}: last offset {aborted.last_offset} is not above the previous one")
        self._entries.append(aborted)
        self._store()

    def collect(self, fetch_offset: int, upper_bound_offset: int) -> CollectedTxns:
        """Return what a read of [fetch_offset, upper_bound_offset) must know."""
        found: list[AbortedTxn] = []
        for aborted in self._entries:
            if aborted.last_offset >= fetch_offset and aborted.first_offset < upper_bound_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_bound_offset:
                return CollectedTxns(found, is_complete=True)
        return CollectedTxns(found, is_complete=False)

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose markers lie at or above `offset`."""
        kept = [aborted for aborted in self._entries if aborted.last_offset < offset]
        if len(kept) != len(self._entries):
            self._entries = kept
            self._store()

    def sync(self) -> bool:
        """Bring the entries to disk; False when there are none."""
        if self._entries:
            self._filesystem.sync_file(self.path)
        return bool(self._entries)

    def clear(self) -> None:
        self._entries.clear()
        self._filesystem.remove(self.path)

    def load(self) -> None:
        """Read the file, if there is one; half an entry at the end is left out, see `is_short`.

        Raises `CorruptIndex` for an unknown version or a transaction that ends before the segment begins.
        """
        self._entries.clear()
        self.is_short = False
        if not self._filesystem.exists(self.path):
            return
        data = self._filesystem.read(self.path)
        whole = data[: len(data) - len(data) % _ENTRY.size]
        self.is_short = len(data) != len(whole) or not whole
        for version, producer_id, first_offset, last_offset, last_stable_offset in _ENTRY.iter_unpack(whole):
            if version > _VERSION or version < 0:
                raise CorruptIndex(f"{self.path} has an entry of version {version}")
            self._entries.append(AbortedTxn(producer_id, first_offset, last_offset, last_stable_offset))
        self.check_sane()

    def check_sane(self) -> None:
        """Raise `CorruptIndex` for a transaction that ends before the segment begins, or before it began."""
        for aborted in self._entries:
            if aborted.last_offset < self._start_offset or aborted.last_offset <= aborted.first_offset:
                raise CorruptIndex(
                    f"{self.path} has a transaction from {aborted.first_offset} to {aborted.last_offset}"
                )

    def _store(self) -> None:
        self._filesystem.write(self.path, b"".join(_ENTRY.pack(_VERSION, *aborted) for aborted in self._entries))
