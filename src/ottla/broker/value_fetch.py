"""`ValueFetch`: a fetch for dialects that hand out values: collects them from an offset on, and waits for more.

Values are collected a stretch at a time, each in a turn of the loop of its own. What was there before a wait is not
held meanwhile but counted, and read again when there is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ottla.broker.broker import Broker
from ottla.broker.fetch_sessions import FetchEntry
from ottla.broker.fetching import FetchPlan
from ottla.broker.partition import PartitionRead
from ottla.broker.purgatory import Waiting
from ottla.broker.visible import STRETCH_BYTES, read_values
from ottla.clock import Timer
from ottla.errors import KafkaError
from ottla.model import ZERO_TOPIC_ID, TopicPartition

LAST_OFFSET: Final = (1 << 63) - 1
VALUE_OVERHEAD_BYTES: Final = 4


class ValueFetch:
    """One fetch. `on_done` is called once, maybe before `__init__` returns: with how many values there are, encoded.

    `encode` turns values into bytes that are put one behind the other. There are about `max_bytes` of them, counting 4
    for each value besides, and at least one value if there is any.
    """

    def __init__(
        self,
        broker: Broker,
        partition: TopicPartition,
        start_offset: int,
        *,
        max_bytes: int,
        min_count: int,
        max_wait_ms: int,
        encode: Callable[[Sequence[bytes]], bytes],
        on_done: Callable[[int, bytes | KafkaError], None],
    ) -> None:
        """Begin. A start below the first record is the first record, one beyond the end has no values."""
        self._broker = broker
        self._partition = partition
        self._start_offset = min(start_offset, LAST_OFFSET)
        self._max_bytes = min(max_bytes, broker.config.fetch_max_bytes)
        self._min_count = min_count
        self._deadline = broker.clock.monotonic() + max_wait_ms / 1000
        self._encode = encode
        self._on_done = on_done
        self._waiting: Waiting[TopicPartition] | None = None
        self._turn: Timer | None = None
        self._count_before = 0
        """Values that were there before the wait."""
        self._collect()

    def hurry(self) -> None:
        """Answer with what there is."""
        self._deadline = 0.0
        if self._waiting is not None:
            self._waiting.finish_now()

    def cancel(self) -> None:
        """Nobody waits any more."""
        if self._waiting is not None:
            self._waiting.cancel()
        if self._turn is not None:
            self._turn.cancel()

    def _collect(self) -> None:
        self._count_before = 0
        self._count = 0
        self._parts: list[bytes] = []
        self._left_bytes = self._max_bytes
        self._offset = self._start_offset
        self._step()

    def _step(self) -> None:
        """Take a stretch; then comes the next one, or a wait, or the answer."""
        self._turn = None
        try:
            is_more = self._take_stretch()
        except KafkaError as error:
            self._on_done(0, error)
            return
        if is_more:
            self._turn = self._broker.timers.call_at(self._broker.clock.monotonic(), self._step)
        elif not self._begin_wait():
            if self._count_before:
                self._deadline = 0.0
                self._collect()
            else:
                self._on_done(self._count, b"".join(self._parts))

    def _take_stretch(self) -> bool:
        """Add the values of a stretch; returns whether another one is there and wanted.

        Raises where there is none, `CorruptMessage` and the like for damage that no value stands before.
        """
        partition = self._broker.partition(self._partition.topic, self._partition.partition)
        offsets = partition.offsets()
        self._offset = max(self._offset, offsets.log_start_offset)
        if self._offset >= offsets.high_watermark:
            return False
        stretch = read_values(partition, self._offset)
        self._add(stretch.values)
        if stretch.problem is not None and not self._count:
            raise stretch.problem
        if stretch.problem is not None or stretch.next_offset <= self._offset:
            self._left_bytes = 0
        self._offset = stretch.next_offset
        return self._left_bytes > 0 and self._offset < offsets.high_watermark

    def _add(self, values: list[bytes]) -> None:
        """Add as many values as there is room for, at least the first of all."""
        taken = 0
        for value in values:
            self._left_bytes -= VALUE_OVERHEAD_BYTES + len(value)
            if self._left_bytes < 0 and self._count + taken:
                break
            taken += 1
        self._count += taken
        self._parts.append(self._encode(values[:taken]))

    def _begin_wait(self) -> bool:
        """Wait for more, if there is too little, room and time; False where nothing is to be waited for."""
        count = self._count_before + self._count
        wait_ms = round((self._deadline - self._broker.clock.monotonic()) * 1000)
        if count >= self._min_count or self._left_bytes <= 0 or wait_ms <= 0:
            return False
        entry = FetchEntry(self._partition.topic, ZERO_TOPIC_ID, self._partition.partition, self._offset, STRETCH_BYTES)
        found = self._broker.fetch(FetchPlan([entry], wait_ms, 1, STRETCH_BYTES), self._wake)
        if not isinstance(found, Waiting):  # an offset beyond the end
            _release(found)
            return False
        self._waiting = found
        self._count_before = count
        self._count = 0
        self._parts = []
        return True

    def _wake(self, reads: list[PartitionRead]) -> None:
        _release(reads)
        self._waiting = None
        self._step()


def _release(reads: Sequence[PartitionRead]) -> None:
    for read in reads:
        read.release()
