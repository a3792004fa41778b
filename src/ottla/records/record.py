"""Single records within a v2 batch's inflated payload: look at all, or make objects of them.

`walk_records` is what a produced batch costs: one pass that builds nothing and finds out all that the validator asks.
`decode_records` is what a consumer costs: one object per record. Both are strict about a record's structure and
indifferent to the meaning of offset deltas and attributes, as Kafka is.

A record: varint length of the rest, 1 byte attributes (unused), varlong timestamp delta, varint offset delta, varint
key length (-1: null) and key, the same for the value, varint header count, then headers of varint key length, key,
varint value length (-1: null) and value.
"""

from __future__ import annotations

from typing import Final, NoReturn, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from ottla.errors import InvalidRecord
from ottla.model import NO_SEQUENCE, NO_TIMESTAMP_MS
from ottla.records.varint import VarintError, read_varint, read_varlong, varint_size, write_varint

Headers = tuple[tuple[str, bytes | None], ...]
"""Header keys may repeat; their order is kept."""

MIN_TIMESTAMP: Final = -(1 << 63)
MAX_TIMESTAMP: Final = (1 << 63) - 1

_SAFE_DELTA: Final = 1 << 62


@final
class Record:
    """One record as a reader sees it: absolute offset and timestamp (ms since the epoch), bytes copied out."""

    __slots__ = ("headers", "key", "offset", "sequence", "timestamp", "value")

    def __init__(
        self,
        offset: i64,
        timestamp: i64,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        sequence: i64 = NO_SEQUENCE,
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers
        self.sequence = sequence

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (
            self.offset == other.offset
            and self.timestamp == other.timestamp
            and self.key == other.key
            and self.value == other.value
            and self.headers == other.headers
            and self.sequence == other.sequence
        )

    def __hash__(self) -> int:
        return hash((self.offset, self.timestamp, self.key, self.value))

    def __repr__(self) -> str:
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, "
            f"headers={self.headers!r}, sequence={self.sequence})"
        )


def add_timestamps(base: i64, delta: i64) -> i64:
    """Add as Java does: past the end of 64 bits it goes on at the other end."""
    if -_SAFE_DELTA < delta < _SAFE_DELTA and -_SAFE_DELTA < base < _SAFE_DELTA:
        return base + delta
    total = int(base) + int(delta)
    return ((total + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _refuse(index: i64, why: str) -> NoReturn:
    raise InvalidRecord(f"record {index} of the batch {why}")


@final
class RecordWalk:
    """What one pass over the records of a batch found out. Timestamps are ms since the epoch."""

    __slots__ = (
        "first_offset_delta",
        "keyless_count",
        "largest_bytes",
        "max_timestamp",
        "max_timestamp_offset_delta",
        "min_timestamp",
        "misplaced_count",
    )

    def __init__(
        self,
        max_timestamp: i64,
        max_timestamp_offset_delta: i64,
        min_timestamp: i64,
        keyless_count: i64,
        misplaced_count: i64,
        largest_bytes: i64,
        first_offset_delta: i64,
    ) -> None:
        self.max_timestamp = max_timestamp
        self.max_timestamp_offset_delta = max_timestamp_offset_delta  # of the first record that has it
        self.min_timestamp = min_timestamp
        self.keyless_count = keyless_count
        self.misplaced_count = misplaced_count  # records whose offset delta is not their index
        self.largest_bytes = largest_bytes  # the largest length field
        self.first_offset_delta = first_offset_delta


def walk_records(payload: bytes, count: i64, base_timestamp: i64, position: i64 = 0) -> RecordWalk:
    """Check the structure of exactly `count` records that fill `payload` from `position` on, and make no objects.

    Raises `InvalidRecord`.
    """
    end: i64 = len(payload)
    index: i64 = 0
    max_timestamp: i64 = MIN_TIMESTAMP
    max_offset_delta: i64 = 0
    min_timestamp: i64 = MAX_TIMESTAMP
    keyless: i64 = 0
    misplaced: i64 = 0
    largest: i64 = 0
    first_offset_delta: i64 = 0
    try:
        while index < count:
            size, position = read_varint(payload, position)
            record_end: i64 = position + size
            if size < 0 or record_end > end:
                _refuse(index, f"has a length of {size}, with {end - position} bytes left")
            timestamp_delta, position = read_varlong(payload, position + 1)
            offset_delta, position = read_varint(payload, position)
            field_size, position = read_varint(payload, position)
            if field_size >= 0:
                position += field_size
            else:
                keyless += 1
            field_size, position = read_varint(payload, position)
            if field_size > 0:
                position += field_size
            header_count, position = read_varint(payload, position)
            if header_count != 0:
                position = _skip_headers(payload, position, header_count, index)
            if position != record_end:
                _refuse(index, f"does not end where its length says, but {position - record_end} bytes further")
            timestamp = add_timestamps(base_timestamp, timestamp_delta)
            if index == 0:
                first_offset_delta = offset_delta
            if timestamp > max_timestamp:
                max_timestamp = timestamp
                max_offset_delta = offset_delta
            if timestamp < min_timestamp:
                min_timestamp = timestamp
            if offset_delta != index:
                misplaced += 1
            if size > largest:
                largest = size
            index += 1
    except IndexError:
        _refuse(index, "is cut short")
    except VarintError as error:
        _refuse(index, f"has {error}")
    if position != end:
        raise InvalidRecord(f"{end - position} bytes are left after the {count} records that the batch announces")
    if count <= 0:
        max_timestamp = min_timestamp = NO_TIMESTAMP_MS
    return RecordWalk(max_timestamp, max_offset_delta, min_timestamp, keyless, misplaced, largest, first_offset_delta)


def _skip_headers(payload: bytes, position: i64, header_count: i64, index: i64) -> i64:
    if header_count < 0:
        _refuse(index, f"has {header_count} headers")
    done: i64 = 0
    while done < header_count:
        key_size, position = read_varint(payload, position)
        if key_size < 0:
            _refuse(index, "has a header without a key")
        value_size, position = read_varint(payload, position + key_size)
        if value_size > 0:
            position += value_size
        done += 1
    return position


def decode_records(
    payload: bytes,
    count: i64,
    *,
    base_offset: i64,
    base_timestamp: i64,
    base_sequence: i64 = NO_SEQUENCE,
    has_one_time: bool = False,
    is_strict: bool = False,
) -> list[Record]:
    """Make an object of each of the `count` records in `payload`.

    With `has_one_time` every record has the base timestamp: the maximum of a batch marked LogAppendTime, whatever that
    is, since a header can hold any number. Kafka's broker takes any negative length for null; `is_strict` refuses all
    but -1, as consumers do. Raises `InvalidRecord`.
    """
    end: i64 = len(payload)
    position: i64 = 0
    index: i64 = 0
    records: list[Record] = []
    try:
        while index < count:
            size, position = read_varint(payload, position)
            record_end: i64 = position + size
            if size < 0 or record_end > end:
                _refuse(index, f"has a length of {size}, with {end - position} bytes left")
            timestamp_delta, position = read_varlong(payload, position + 1)
            offset_delta, position = read_varint(payload, position)
            key: bytes | None = None
            value: bytes | None = None
            headers: Headers = ()
            field_size, position = read_varint(payload, position)
            if field_size >= 0:
                key = payload[position : position + field_size]
                position += field_size
            elif is_strict and field_size != -1:
                _refuse(index, f"has a key of {field_size} bytes")
            field_size, position = read_varint(payload, position)
            if field_size >= 0:
                value = payload[position : position + field_size]
                position += field_size
            elif is_strict and field_size != -1:
                _refuse(index, f"has a value of {field_size} bytes")
            header_count, position = read_varint(payload, position)
            if header_count != 0:
                headers, position = _decode_headers(payload, position, header_count, index)
            if position != record_end:
                _refuse(index, f"does not end where its length says, but {position - record_end} bytes further")
            timestamp = base_timestamp if has_one_time else add_timestamps(base_timestamp, timestamp_delta)
            sequence = NO_SEQUENCE if base_sequence < 0 else add_sequence(base_sequence, offset_delta)
            records.append(Record(base_offset + offset_delta, timestamp, key, value, headers, sequence))
            index += 1
    except IndexError:
        _refuse(index, "is cut short")
    except VarintError as error:
        _refuse(index, f"has {error}")
    if position != end:
        raise InvalidRecord(f"{end - position} bytes are left after the {count} records that the batch announces")
    return records


def _decode_headers(payload: bytes, position: i64, header_count: i64, index: i64) -> tuple[Headers, i64]:
    if header_count < 0:
        _refuse(index, f"has {header_count} headers")
    headers: list[tuple[str, bytes | None]] = []
    done: i64 = 0
    while done < header_count:
        size, position = read_varint(payload, position)
        if size < 0:
            _refuse(index, "has a header without a key")
        key = payload[position : position + size].decode("utf-8", "replace")
        value: bytes | None = None
        size, position = read_varint(payload, position + size)
        if size >= 0:
            value = payload[position : position + size]
            position += size
        headers.append((key, value))
        done += 1
    return tuple(headers), position


def add_sequence(base_sequence: i64, increment: i64) -> i64:
    """Add to a producer's sequence number, which goes on at 0 after 2^31 - 1 (KIP-98)."""
    total: i64 = base_sequence + increment
    return total if total < 1 << 31 else total - (1 << 31)


def record_body_size(
    timestamp_delta: i64, offset_delta: i64, key: bytes | None, value: bytes | None, headers: Headers
) -> i64:
    """Size in bytes of a record without its length prefix."""
    size: i64 = 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + varint_size(len(headers))
    size += _field_size(key) + _field_size(value)
    for header_key, header_value in headers:
        size += _field_size(header_key.encode()) + _field_size(header_value)
    return size


def _field_size(field: bytes | None) -> i64:
    if field is None:
        return 1
    size: i64 = len(field)
    return varint_size(size) + size


def write_record(
    out: BytesWriter, timestamp_delta: i64, offset_delta: i64, key: bytes | None, value: bytes | None, headers: Headers
) -> None:
    """Append one record, length prefix first."""
    write_varint(out, record_body_size(timestamp_delta, offset_delta, key, value, headers))
    out.append(0)
    write_varint(out, timestamp_delta)
    write_varint(out, offset_delta)
    _write_field(out, key)
    _write_field(out, value)
    write_varint(out, len(headers))
    for header_key, header_value in headers:
        _write_field(out, header_key.encode())
        _write_field(out, header_value)


def _write_field(out: BytesWriter, field: bytes | None) -> None:
    if field is None:
        out.append(1)  # -1 as a varint
        return
    write_varint(out, len(field))
    out.write(field)
