"""A Produce request's partitions, each once: what becomes of those that it names more than once.

No client of Kafka's sends such a request. As in Kafka 4.4, the last records count that a request can hold for a
partition, and are appended; but if any others stand there, the last of those say what the answer is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, final

from ottla.errors import KafkaError
from ottla.protocol.messages.produce import PartitionProduceData, TopicProduceData
from ottla.records.validation import check_request

_TopicKey = tuple[str, bytes]
"""Name and id, of which the request's version has one."""


def is_sound(records: memoryview, is_zstd_allowed: bool) -> bool:
    """Whether a request could hold these records for a partition; what else is wrong with them the log finds out."""
    try:
        check_request(records, is_zstd_allowed)
    except KafkaError:
        return False
    return True


@final
class OnceEach:
    """Takes in a request's rows, and gives them back with every topic and partition once, where it came first."""

    __slots__ = ("_is_zstd_allowed", "_rows", "_unsound")

    def __init__(self, is_zstd_allowed: bool) -> None:
        self._is_zstd_allowed = is_zstd_allowed
        self._rows: dict[_TopicKey, dict[int, PartitionProduceData]] = {}
        self._unsound: dict[tuple[_TopicKey, int], PartitionProduceData] = {}

    def add(self, topic: TopicProduceData, rows: Sequence[PartitionProduceData]) -> None:
        """Take in some of a topic's rows, all others of the request before and behind them."""
        key = (topic.name, topic.topic_id)
        kept = self._rows.setdefault(key, {})
        for data in rows:
            earlier = kept.setdefault(data.index, data)
            if earlier is not data:
                self._repeat(key, kept, earlier, data)

    def _repeat(
        self,
        key: _TopicKey,
        kept: dict[int, PartitionProduceData],
        earlier: PartitionProduceData,
        data: PartitionProduceData,
    ) -> None:
        place = (key, data.index)
        if not self._is_sound(data):
            self._unsound[place] = data
            return
        if not self._is_sound(earlier):
            self._unsound.setdefault(place, earlier)
        kept[data.index] = data

    def _is_sound(self, data: PartitionProduceData) -> bool:
        return data.records is not None and is_sound(cast(memoryview, data.records), self._is_zstd_allowed)

    def topics(self) -> list[TopicProduceData]:
        """The request with what is to be appended."""
        return [
            TopicProduceData(name=name, topic_id=topic_id, partition_data=list(rows.values()))
            for (name, topic_id), rows in self._rows.items()
        ]

    def answered_for(self, topic: TopicProduceData, data: PartitionProduceData) -> PartitionProduceData | None:
        """Return the row that the answer is about instead, None nearly always."""
        if not self._unsound:
            return None
        return self._unsound.get(((topic.name, topic.topic_id), data.index))
