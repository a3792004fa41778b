"""`SegmentList`: the segments of one log in the order of their offsets, and which of them have indexes in memory.

The last one is the active one; there always is one. Decides nothing about when segments come and go: that is the log's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from ottla.engine import AbortedTransaction
from ottla.storage.segment import Segment

_WARM_SEGMENTS: Final = 4
"""Old segments of one log whose indexes may stay in memory."""


class SegmentList:
    __slots__ = ("_bases", "_warm", "all")

    def __init__(self, segments: list[Segment]) -> None:
        self.all = segments
        """To be read by others, and changed here."""
        self._bases = [segment.base_offset for segment in segments]
        self._warm: list[Segment] = []

    @property
    def active(self) -> Segment:
        return self.all[-1]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.all)

    # ---- finding

    def holding(self, offset: int) -> Iterator[Segment]:
        """Yield the segment that holds `offset` and those after it, with their indexes at hand."""
        if offset >= self._bases[-1]:
            yield self.active
            return
        for slot in range(self._slot(offset), len(self.all)):
            segment = self.all[slot]
            self.keep_warm(segment)
            yield segment

    def _slot(self, offset: int) -> int:
        return max(bisect_right(self._bases, offset) - 1, 0)

    def keep_warm(self, segment: Segment) -> None:
        """Remember a segment whose indexes are about to be loaded; those of the longest unused go."""
        active = self.active
        if segment.has_indexes or segment is active:
            return
        if len(self._warm) >= _WARM_SEGMENTS:
            coldest = self._warm.pop(0)
            if coldest is not active:
                coldest.unload_indexes()
        self._warm.append(segment)

    @property
    def has_aborted(self) -> bool:
        """True where any transaction was aborted."""
        return any(len(segment.txn_index) for segment in self.all)

    def aborted_transactions(self, first_offset: int, up_to_offset: int) -> Sequence[AbortedTransaction]:
        """Return the aborted transactions that touch [first_offset, up_to_offset), in the order of their markers."""
        aborted: list[AbortedTransaction] = []
        for slot in range(self._slot(first_offset), len(self.all)):
            collected = self.all[slot].txn_index.collect(first_offset, up_to_offset)
            aborted += [AbortedTransaction(txn.producer_id, txn.first_offset) for txn in collected.aborted]
            if collected.is_complete:
                break
        return aborted

    # ---- coming and going

    def add(self, segment: Segment) -> None:
        """Begin a new active segment."""
        self.all.append(segment)
        self._bases.append(segment.base_offset)

    def drop_active(self) -> Segment:
        """Take the active segment away; the one before it is active again."""
        self._bases.pop()
        return self._let_go(self.all.pop())

    def replace(self, old: Sequence[Segment], new: Sequence[Segment]) -> None:
        """Put segments, or none, in the place of others that follow each other."""
        first = self.all.index(old[0])
        self.all[first : first + len(old)] = new
        self._bases[:] = [segment.base_offset for segment in self.all]
        for segment in old:
            self._let_go(segment)

    def _let_go(self, segment: Segment) -> Segment:
        if segment in self._warm:
            self._warm.remove(segment)
        segment.retire()
        return segment
