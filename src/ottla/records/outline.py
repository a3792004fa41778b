"""Records without their values and headers: what compaction asks of most of them; and a few of them whole.

In an outline a value is empty where there is one, None where it is null; there are no headers. What is skipped is not
looked into: the checksum vouches for it.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from ottla.errors import InvalidRecord
from ottla.model import TimestampType
from ottla.records.batch import HEADER_BYTES, RecordBatch
from ottla.records.compression import Codec
from ottla.records.record import Record, add_timestamps, decode_records
from ottla.records.varint import VarintError, read_varint, read_varlong

_SOME_VALUE: Final = b""


def outline_batch(batch: RecordBatch, data: bytes, position: i64) -> list[Record]:
    """Return the outlines of a batch that stands in `data` at a position. Raises as `RecordBatch.decode`."""
    if batch.codec == Codec.NONE:
        return outline_records(
            data,
            position + HEADER_BYTES,
            position + batch.size_in_bytes,
            batch.count,
            base_offset=batch.base_offset,
            base_timestamp=batch.base_timestamp,
        )
    payload = batch.payload()
    return outline_records(
        payload, 0, len(payload), batch.count, base_offset=batch.base_offset, base_timestamp=batch.base_timestamp
    )


def outline_records(
    payload: bytes, position: i64, end: i64, count: i64, *, base_offset: i64, base_timestamp: i64
) -> list[Record]:
    """Return the outlines of `count` records that fill `payload` from `position` to `end`. Raises `InvalidRecord`."""
    records: list[Record] = []
    index: i64 = 0
    try:
        while index < count:
            size, position = read_varint(payload, position)
            record_end: i64 = position + size
            if size < 0 or record_end > end:
                raise InvalidRecord(f"record {index} of the batch has a length of {size}")
            timestamp_delta, position = read_varlong(payload, position + 1)
            offset_delta, position = read_varint(payload, position)
            key: bytes | None = None
            field_size, position = read_varint(payload, position)
            if field_size >= 0:
                key = payload[position : position + field_size]
                position += field_size
            field_size, position = read_varint(payload, position)
            if position + field_size > record_end:
                raise InvalidRecord(f"record {index} of the batch has a value that is longer than itself")
            value: bytes | None = _SOME_VALUE if field_size >= 0 else None
            timestamp = add_timestamps(base_timestamp, timestamp_delta)
            records.append(Record(base_offset + offset_delta, timestamp, key, value))
            position = record_end
            index += 1
    except IndexError:
        raise InvalidRecord(f"record {index} of the batch is cut short") from None
    except VarintError as error:
        raise InvalidRecord(f"record {index} of the batch has {error}") from None
    if position != end:
        raise InvalidRecord(f"{end - position} bytes are left after the {count} records that the batch announces")
    return records


def pick_records(batch: RecordBatch, indexes: list[int]) -> list[Record]:
    """Return the records at some rising indexes, whole; the others are not decoded. Raises as `RecordBatch.decode`."""
    payload = batch.payload()
    base_offset = batch.base_offset
    is_append_time = batch.timestamp_type == TimestampType.LOG_APPEND_TIME
    base_timestamp = batch.max_timestamp if is_append_time else batch.base_timestamp
    records: list[Record] = []
    position: i64 = 0
    passed: i64 = 0
    try:
        for index in indexes:
            while passed < index:
                size, position = read_varint(payload, position)
                position += size
                passed += 1
            size, end = read_varint(payload, position)
            end += size
            records += decode_records(
                payload[position:end],
                1,
                base_offset=base_offset,
                base_timestamp=base_timestamp,
                has_one_time=is_append_time,
            )
            position = end
            passed += 1
    except (IndexError, VarintError):
        raise InvalidRecord(f"record {passed} of the batch is cut short") from None
    return records
