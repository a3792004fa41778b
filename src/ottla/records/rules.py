"""What a topic asks of produced records, and which of a batch's records break it.

The rules for single records: a key on a compacted topic, and a timestamp within the topic's limits. `validation` comes
here only when its walk has seen that some record could break one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn, final

from mypy_extensions import i64

from ottla.config.log_config import LogConfig
from ottla.errors import InvalidRecord, InvalidTimestamp, KafkaError, RecordValidationFailed
from ottla.model import NO_TIMESTAMP_MS, TimestampType
from ottla.records.compression import MAX_INFLATED_BYTES, Codec
from ottla.records.record import Record

_SHOWN_RECORD_ERRORS: Final = 3

INFLATED_TIMES: Final = 64
"""How many times the largest batch a batch may inflate to: more than producers make, and a bomb is over in a moment."""
LEAST_INFLATED_BYTES: Final = 64 * 1024 * 1024
"""What a batch may inflate to on any topic: twice what a producer buffers by default."""


def max_inflated_bytes(max_message_bytes: int) -> int:
    """What a batch may inflate to on a topic that takes batches of `max_message_bytes`."""
    return min(MAX_INFLATED_BYTES, max(LEAST_INFLATED_BYTES, INFLATED_TIMES * max_message_bytes))


@final
class ProduceRules:
    """What one topic asks of produced batches. Built once for a `LogConfig`, not for a request.

    `codec` None keeps what the producer chose; `max_record_bytes` bounds single records of compressed batches
    (`max.decompressed.message.bytes`), `max_inflated_bytes` a whole batch.
    """

    __slots__ = (
        "after_max_ms",
        "before_max_ms",
        "codec",
        "is_append_time",
        "is_compacted",
        "level",
        "max_inflated_bytes",
        "max_message_bytes",
        "max_record_bytes",
    )

    def __init__(
        self,
        *,
        max_message_bytes: i64 = 1_048_588,
        max_record_bytes: i64 = 2_147_483_639,
        codec: Codec | None = None,
        level: int | None = None,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        before_max_ms: i64 = (1 << 63) - 1,
        after_max_ms: i64 = 3_600_000,
        is_compacted: bool = False,
        max_inflated_bytes: int = MAX_INFLATED_BYTES,
    ) -> None:
        self.max_message_bytes = max_message_bytes
        self.max_record_bytes = max_record_bytes
        self.codec = codec
        self.level = level
        self.is_append_time = timestamp_type == TimestampType.LOG_APPEND_TIME
        self.before_max_ms = before_max_ms
        self.after_max_ms = after_max_ms
        self.is_compacted = is_compacted
        self.max_inflated_bytes = max_inflated_bytes

    @classmethod
    def from_config(cls, config: LogConfig) -> ProduceRules:
        codec = None if config.compression_type == "producer" else Codec.named(config.compression_type)
        levels = {
            Codec.GZIP: config.compression_gzip_level,
            Codec.LZ4: config.compression_lz4_level,
            Codec.ZSTD: config.compression_zstd_level,
        }
        return cls(
            max_message_bytes=config.max_message_bytes,
            max_record_bytes=config.max_decompressed_message_bytes,
            codec=codec,
            level=None if codec is None else levels.get(codec),
            timestamp_type=config.message_timestamp_type,
            before_max_ms=config.message_timestamp_before_max_ms,
            after_max_ms=config.message_timestamp_after_max_ms,
            is_compacted=config.is_compacted,
            max_inflated_bytes=max_inflated_bytes(config.max_message_bytes),
        )


def check_each_record(
    records: Sequence[Record], rules: ProduceRules, now_ms: int, *, is_marked_append_time: bool
) -> None:
    """Raise `RecordValidationFailed` with all records that break a rule; nothing when none does.

    `is_marked_append_time` tells that the producer set the batch's bit for LogAppendTime, which is not its to set.
    """
    record_errors: list[tuple[int, str | None]] = []
    is_any_timestamp = False
    for index, record in enumerate(records):
        if rules.is_compacted and record.key is None:
            record_errors.append((index, "a record without a key cannot be kept by a compacted topic"))
            continue
        complaint = _timestamp_complaint(int(record.timestamp), is_marked_append_time, rules, now_ms)
        if complaint is not None:
            record_errors.append((index, complaint))
            is_any_timestamp = True
    if record_errors:
        _refuse_records(record_errors, is_any_timestamp)


def _timestamp_complaint(timestamp: int, is_marked_append_time: bool, rules: ProduceRules, now_ms: int) -> str | None:
    if not rules.is_append_time and timestamp != NO_TIMESTAMP_MS:
        if _java_difference(timestamp, now_ms) > rules.after_max_ms:
            return f"timestamp {timestamp} is more than {rules.after_max_ms} ms after {now_ms}"
        if _java_difference(now_ms, timestamp) > rules.before_max_ms:
            return f"timestamp {timestamp} is more than {rules.before_max_ms} ms before {now_ms}"
        return None
    return "a producer cannot set the append time" if is_marked_append_time else None


def _java_difference(left: int, right: int) -> int:
    """Subtract within 64 bits as Java does; absurd timestamps get Kafka's answers that way."""
    return ((left - right + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _refuse_records(record_errors: list[tuple[int, str | None]], is_any_timestamp: bool) -> NoReturn:
    shown = "; ".join(f"record {index}: {text}" for index, text in record_errors[:_SHOWN_RECORD_ERRORS])
    message = f"{len(record_errors)} records are refused: {shown}"
    error: KafkaError = InvalidTimestamp(message) if is_any_timestamp else InvalidRecord(message)
    raise RecordValidationFailed(error, record_errors)
