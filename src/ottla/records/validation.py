"""What a produced batch must be before it may enter a log, and what the log changes in it.

The rules are Kafka's, in Kafka's order, so that the first rule that fails gives the answer that Kafka gives. A batch
that keeps its codec is walked once, without building records, and changed in place; one that changes its codec is
decoded and built again. What depends on the log (sequences, epochs, transactions, segment size) is storage's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ottla.config.log_config import LogConfig
from ottla.model import AppendOrigin, TimestampType
from ottla.records.compression import MAX_INFLATED_BYTES, Codec


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRules:
    """What one topic asks of produced batches. Built once for a `LogConfig`, not for a request."""

    max_message_bytes: int = 1_048_588
    max_record_bytes: int = 2_147_483_639
    """Largest single record of a compressed batch (`max.decompressed.message.bytes`)."""
    codec: Codec | None = None
    """None keeps what the producer chose."""
    level: int | None = None
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    before_max_ms: int = (1 << 63) - 1
    after_max_ms: int = 3_600_000
    is_compacted: bool = False
    max_inflated_bytes: int = MAX_INFLATED_BYTES

    @classmethod
    def from_config(cls, config: LogConfig) -> ProduceRules:
        return cls(
            max_message_bytes=config.max_message_bytes,
            max_record_bytes=config.max_decompressed_message_bytes,
            timestamp_type=config.message_timestamp_type,
            before_max_ms=config.message_timestamp_before_max_ms,
            after_max_ms=config.message_timestamp_after_max_ms,
            is_compacted="compact" in config.cleanup_policy,
        )


@final
@dataclass(frozen=True, slots=True)
class ValidatedBatch:
    """A batch that may be appended, and what a log needs to know of it."""

    buffer: bytearray | memoryview
    """Exactly one writable batch: the memory that came in, or a new one where the records were packed again."""
    last_offset_delta: int
    count: int
    max_timestamp_ms: int
    max_timestamp_offset_delta: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    log_append_time_ms: int
    """The time that the log gave to all records, or -1 when they keep their own."""
    is_rebuilt: bool


def validate_produced(
    records: bytearray | memoryview,
    rules: ProduceRules,
    now_ms: int,
    *,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    is_zstd_allowed: bool = True,
) -> ValidatedBatch: ...
