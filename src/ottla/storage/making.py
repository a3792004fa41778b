"""`Making`: gives new partitions their directories, a few at once and many in turns of the loop.

A directory with its small file costs hundreds of microseconds, so that one topic of thousands of partitions would keep
everybody waiting for seconds. Who needs a directory that is not there yet has it made there and then (`Places.make`);
what a stop leaves unmade is made by the next start, which finds the topic in the metadata.
"""

from __future__ import annotations

import logging
from typing import Final

from ottla.errors import UnknownTopicOrPartition
from ottla.model import TopicPartition
from ottla.storage.host import LogHost
from ottla.storage.places import Places

AT_ONCE: Final = 32
"""So many are made before whoever asked for them is answered."""
TURN_SECONDS: Final = 0.01

_log = logging.getLogger(__name__)


class Making:
    """Which partitions still wait for their directory."""

    __slots__ = ("_host", "_made", "_places", "_waiting")

    def __init__(self, places: Places, host: LogHost) -> None:
        self._places = places
        self._host = host
        self._waiting: dict[TopicPartition, None] = {}  # a dict as an ordered set
        self._made = 0  # since the last turn that left none waiting

    def begin(self, partition: TopicPartition) -> None:
        """Make the directory of a new partition, now or in one of the next turns. Raises `OSError` where it is now."""
        if self._made < AT_ONCE:
            self._made += 1
            if self._made == AT_ONCE:
                self._host.offload.call_soon(self._next_turn)
            self._places.make(partition)
        else:
            self._waiting[partition] = None

    def _next_turn(self) -> None:
        """Make what one turn has time for."""
        ends = self._host.clock.monotonic() + TURN_SECONDS
        try:
            while self._waiting and self._host.clock.monotonic() < ends:
                partition = next(iter(self._waiting))
                del self._waiting[partition]
                self._make(partition)
        finally:
            if self._waiting:
                self._host.offload.call_soon(self._next_turn)
            else:
                self._made = 0

    def _make(self, partition: TopicPartition) -> None:
        try:
            self._places.make(partition)
        except UnknownTopicOrPartition:  # it was deleted meanwhile
            pass
        except OSError as error:  # whoever asks for its log tries again
            _log.error("%s cannot be created: %s", partition, error)
