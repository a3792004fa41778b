"""What a consumer hands out: single records, or batches of them as they were fetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.model import TopicPartition
from ottla.records.record import Headers, Record


class ConsumerRecord(NamedTuple):
    """One record; `key` and `value` are bytes or None unless the consumer has deserializers."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Any
    value: Any
    headers: Headers


@dataclass(frozen=True, slots=True)
class ConsumerBatch:
    """Records of one partition in order of their offsets, never empty, keys and values as bytes.

    `next_offset` is where reading goes on; it may lie beyond the last record, as some records are not for consumers.
    """

    partition: TopicPartition
    records: Sequence[Record]
    next_offset: int
    leader_epoch: int
    high_watermark: int
