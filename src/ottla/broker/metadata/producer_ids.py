"""Producer ids: handed out one by one from blocks of 1,000 that are recorded before they are used.

A block that was begun and not finished when the broker stopped is never returned to: ids may be lost, not repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.image import MetadataView
from ottla.broker.metadata.records import ProducerIdsRecord
from ottla.errors import UnknownServerError

PRODUCER_IDS_PER_BLOCK: Final = 1_000
_LAST_PRODUCER_ID: Final = 2**63 - 1


class ProducerIdBlock(NamedTuple):
    """Ids from `first_id` up to but not including `end_id`."""

    first_id: int
    end_id: int


def decide_producer_id_block(view: MetadataView, *, broker_epoch: int) -> Decision[ProducerIdBlock]:
    """Give this broker the next block."""
    first_id = view.next_producer_id
    if first_id > _LAST_PRODUCER_ID - PRODUCER_IDS_PER_BLOCK:
        raise UnknownServerError("All producer ids that 64 bits allow have been given out.")
    block = ProducerIdBlock(first_id, first_id + PRODUCER_IDS_PER_BLOCK)
    record = ProducerIdsRecord(broker_id=view.node_id, broker_epoch=broker_epoch, next_producer_id=block.end_id)
    return Decision([record], block)


class ProducerIds:
    """Hands out this broker's producer ids. `next_block` records and returns a new block when one is used up."""

    __slots__ = ("_end_id", "_next_block", "_next_id")

    def __init__(self, next_block: Callable[[], ProducerIdBlock]) -> None:
        self._next_block = next_block
        self._next_id = self._end_id = 0

    def next_id(self) -> int:
        """Return an id that no producer of this cluster ever had."""
        if self._next_id == self._end_id:
            self._next_id, self._end_id = self._next_block()
        producer_id = self._next_id
        self._next_id += 1
        return producer_id
