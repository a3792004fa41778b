"""What a produced batch must be before it may enter a log, and what the log changes in it.

The rules are Kafka's, in Kafka's order, so that the first rule that fails gives the answer that Kafka gives:

1. the request's: exactly one batch, of magic 2 (`check_request`; junk that cannot be a second batch is cut off);
2. the log's: base offset 0, size, checksum;
3. the validator's: offsets and count agree, no control batch from a client, a sequence with a producer id;
4. the records': structure, keys on a compacted topic, timestamps, sizes.

A batch that keeps its codec is walked once, without building records, and changed in place; one that changes its codec
is decoded and built again. What depends on the log (sequences, epochs, transactions, segment size) is storage's. Where
Kafka fails without an error of its own, or keeps what no consumer can read, the answer here is `InvalidRecord` or
`UnsupportedCompressionType`; `docs/differences.md` lists these.
"""

from __future__ import annotations

import struct
from typing import Final, final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from ottla.errors import (
    CorruptMessage,
    InvalidRecord,
    MessageTooLarge,
    UnsupportedCompressionType,
)
from ottla.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP_MS, AppendOrigin, TimestampType
from ottla.records.batch import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    CODEC_BITS,
    CONTROL_BIT,
    CRC_AT,
    CURRENT_MAGIC,
    HEADER_BYTES,
    KNOWN_ATTRIBUTE_BITS,
    LAST_OFFSET_DELTA_AT,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    RECORD_COUNT_AT,
    RECORDS_AT,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    RecordBatch,
    next_batch_size,
    size_from_front,
)
from ottla.records.builder import BatchBuilder
from ottla.records.compression import DEFAULT_LEVELS, Codec, inflate
from ottla.records.control import marker_of
from ottla.records.crc32c import crc32c
from ottla.records.legacy import split_any
from ottla.records.record import Record, RecordWalk, decode_records, walk_records
from ottla.records.rules import ProduceRules, check_each_record

__all__ = ["ProduceRules", "ValidatedBatch", "check_request", "has_transactional_batch", "validate_produced"]

_CLIENT: Final = AppendOrigin.CLIENT
_NONE: Final = 0
_ZSTD: Final = 4
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = struct.Struct(">h")
_TIMESTAMP: Final = struct.Struct(">q")


@final
class ValidatedBatch:
    """A batch that may be appended, and what a log needs to know of it.

    `buffer` is exactly one writable batch: the memory that came in, or a new one where the records were packed again
    (`is_rebuilt`). Its base offset and leader epoch are still to be stamped. `log_append_time_ms` is -1 where records
    keep their own times; `max_timestamp_offset_delta` belongs to the first record with the largest timestamp.
    """

    __slots__ = (
        "base_sequence",
        "buffer",
        "count",
        "is_control",
        "is_rebuilt",
        "is_transactional",
        "last_offset_delta",
        "log_append_time_ms",
        "max_timestamp_ms",
        "max_timestamp_offset_delta",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        buffer: memoryview,
        header: bytes,
        *,
        max_timestamp_ms: i64,
        max_timestamp_offset_delta: i64,
        log_append_time_ms: i64,
        is_rebuilt: bool,
    ) -> None:
        attributes = i64(read_i16_be(header, ATTRIBUTES_AT))
        self.buffer = buffer
        self.last_offset_delta = i64(read_i32_be(header, LAST_OFFSET_DELTA_AT))
        self.count = i64(read_i32_be(header, RECORD_COUNT_AT))
        self.max_timestamp_ms = max_timestamp_ms
        self.max_timestamp_offset_delta = max_timestamp_offset_delta
        self.producer_id = read_i64_be(header, PRODUCER_ID_AT)
        self.producer_epoch = i64(read_i16_be(header, PRODUCER_EPOCH_AT))
        self.base_sequence = i64(read_i32_be(header, BASE_SEQUENCE_AT))
        self.is_transactional = attributes & TRANSACTIONAL_BIT != 0
        self.is_control = attributes & CONTROL_BIT != 0
        self.log_append_time_ms = log_append_time_ms
        self.is_rebuilt = is_rebuilt


def has_transactional_batch(records: bytes | bytearray | memoryview) -> bool:
    """Return whether the first batch of a partition's records is transactional; the first thing a broker asks.

    Raises `CorruptMessage` where no batch can start, which fails the whole request, not the partition alone.
    """
    front = bytes(records[: ATTRIBUTES_AT + 2])
    if size_from_front(front, len(records)) < 0 or front[MAGIC_AT] != CURRENT_MAGIC:
        return False
    return front[ATTRIBUTES_AT + 1] & TRANSACTIONAL_BIT != 0


def check_request(view: memoryview, is_zstd_allowed: bool) -> i64:
    """Return the size of the one batch of magic 2 that a Produce request may carry for a partition.

    What follows it is ignored when it is too short to be a batch. Raises `InvalidRecord`, `CorruptMessage` and, for
    zstd before Produce version 7 (KIP-110), `UnsupportedCompressionType`.
    """
    return _check_one_batch(view, bytes(view[: ATTRIBUTES_AT + 2]), is_zstd_allowed)


def _check_one_batch(view: memoryview, front: bytes, is_zstd_allowed: bool) -> i64:
    """`check_request`, for whoever has the first bytes copied out already."""
    size = size_from_front(front, len(view))
    if size < 0:
        raise InvalidRecord("the request has no whole record batch for the partition")
    if front[MAGIC_AT] != CURRENT_MAGIC:
        raise InvalidRecord("the request has records of an older format than record batches (magic 2)")
    if not is_zstd_allowed and front[ATTRIBUTES_AT + 1] & CODEC_BITS == _ZSTD:
        raise UnsupportedCompressionType("zstd needs version 7 of Produce")
    if size < len(view) and next_batch_size(view, size) >= 0:
        raise InvalidRecord("the request has more than one record batch for the partition")
    return size


def _check_own_set(view: memoryview) -> i64:
    """Return the size of the one batch that a coordinator appends; all that stands there has to be whole."""
    batches = list(split_any(view))
    if not all(batch.is_crc_valid() for batch in batches):
        raise CorruptMessage("a record batch fails its checksum")
    if len(batches) != 1 or batches[0].magic != CURRENT_MAGIC:
        raise InvalidRecord(f"expected one record batch of magic 2, found {len(batches)} batches")
    return batches[0].size_in_bytes


def validate_produced(
    records: bytearray | memoryview,
    rules: ProduceRules,
    now_ms: i64,
    *,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    is_zstd_allowed: bool = True,
) -> ValidatedBatch:
    """Check the records that a leader is to append and make them what the log will keep, all but offset and epoch.

    `records` is writable and is changed in place. `origin` is CLIENT or COORDINATOR. Raises `CorruptMessage`,
    `MessageTooLarge`, `InvalidRecord`, `UnsupportedCompressionType`, or `RecordValidationFailed` with the code of
    `InvalidRecord` or `InvalidTimestamp` where single records are to blame.
    """
    view = records if isinstance(records, memoryview) else memoryview(records)
    is_client = origin is _CLIENT
    batch = _copy_out(view, rules)
    size = _check_one_batch(view, batch, is_zstd_allowed) if is_client else _check_own_set(view)
    if size != len(view):
        view = view[:size]
        batch = _copy_out(view, rules)
    if size < HEADER_BYTES:
        raise CorruptMessage(f"a record batch has at least {HEADER_BYTES} bytes, this one {size}")
    if is_client and read_i64_be(batch, BASE_OFFSET_AT) != 0:
        raise InvalidRecord(f"a produced batch has base offset 0, this one {read_i64_be(batch, BASE_OFFSET_AT)}")
    _check_size(size, rules)
    if crc32c(view[ATTRIBUTES_AT:]) != i64(read_i32_be(batch, CRC_AT)) & 0xFFFFFFFF:
        raise CorruptMessage("a record batch fails its checksum")
    _check_header(view, batch, is_client)
    return _validate_records(view, batch, rules, now_ms)


def _copy_out(view: memoryview, rules: ProduceRules) -> bytes:
    """Return the batch as bytes, which are faster to look at; only its header when it is too large to be taken."""
    return bytes(view) if len(view) <= rules.max_message_bytes else bytes(view[:HEADER_BYTES])


def _check_size(size: i64, rules: ProduceRules) -> None:
    if size > rules.max_message_bytes:
        raise MessageTooLarge(f"the batch has {size} bytes, the topic takes at most {rules.max_message_bytes}")


def _check_header(view: memoryview, header: bytes, is_client: bool) -> None:
    """Check that a header makes sense in itself, beyond its checksum."""
    count = i64(read_i32_be(header, RECORD_COUNT_AT))
    if count < 0:
        raise InvalidRecord(f"a record batch cannot have {count} records")
    if not is_client:
        marker_of(RecordBatch(view))
        return
    last_offset_delta = i64(read_i32_be(header, LAST_OFFSET_DELTA_AT))
    if count == 0 or last_offset_delta != count - 1:
        raise InvalidRecord(f"a batch of {count} records cannot have the last offset delta {last_offset_delta}")
    if i64(read_i16_be(header, ATTRIBUTES_AT)) & CONTROL_BIT:
        raise InvalidRecord("clients may not write control batches")
    if read_i64_be(header, PRODUCER_ID_AT) > NO_PRODUCER_ID and i64(read_i32_be(header, BASE_SEQUENCE_AT)) < 0:
        raise InvalidRecord(f"producer {read_i64_be(header, PRODUCER_ID_AT)} sent a batch without a sequence number")


def _validate_records(view: memoryview, batch: bytes, rules: ProduceRules, now_ms: i64) -> ValidatedBatch:
    attributes = i64(read_i16_be(batch, ATTRIBUTES_AT))
    source: i64 = attributes & CODEC_BITS
    target: i64 = source if rules.codec is None else int(rules.codec)
    if source == _NONE and attributes & CONTROL_BIT:
        target = _NONE  # markers stay readable for all that look for them
    payload, records_at = batch, i64(RECORDS_AT)
    if source != _NONE:
        payload, records_at = inflate(Codec.of(source), view[RECORDS_AT:], rules.max_inflated_bytes), 0
    count = i64(read_i32_be(batch, RECORD_COUNT_AT))
    walk = walk_records(payload, count, read_i64_be(batch, BASE_TIMESTAMP_AT), records_at)
    if source != _NONE and walk.largest_bytes > rules.max_record_bytes:
        raise InvalidRecord(
            f"a record of {walk.largest_bytes} bytes is in the batch, the topic takes at most {rules.max_record_bytes}"
        )
    if attributes & TIMESTAMP_TYPE_BIT:
        _spread_append_time(walk, batch)
    if _has_doubtful_records(walk, attributes, rules, now_ms):
        is_marked: bool = attributes & TIMESTAMP_TYPE_BIT != 0
        check_each_record(_decode(payload[records_at:], batch), rules, int(now_ms), is_marked_append_time=is_marked)
    if source != target:
        return _rebuild(payload[records_at:], batch, Codec.of(target), rules, now_ms)
    if source != _NONE and (walk.misplaced_count or read_i64_be(batch, BASE_OFFSET_AT) != 0):
        raise InvalidRecord("the offsets in the batch do not count up from 0")
    return _finish_in_place(view, batch, walk, rules, now_ms)


def _spread_append_time(walk: RecordWalk, header: bytes) -> None:
    """All records of a batch marked LogAppendTime have the header's maximum as their time."""
    append_time = read_i64_be(header, MAX_TIMESTAMP_AT)
    walk.max_timestamp = append_time
    walk.min_timestamp = append_time


def _has_doubtful_records(walk: RecordWalk, attributes: i64, rules: ProduceRules, now_ms: i64) -> bool:
    """Return whether any record could break a rule of keys or times, so that each has to be looked at."""
    if rules.is_compacted and walk.keyless_count:
        return True
    if rules.is_append_time:
        return attributes & TIMESTAMP_TYPE_BIT != 0
    if walk.min_timestamp < 0:  # none, or so far off that differences leave 64 bits
        return True
    return walk.max_timestamp - now_ms > rules.after_max_ms or now_ms - walk.min_timestamp > rules.before_max_ms


def _decode(payload: bytes, header: bytes) -> list[Record]:
    is_append_time = i64(read_i16_be(header, ATTRIBUTES_AT)) & TIMESTAMP_TYPE_BIT != 0
    return decode_records(
        payload,
        i64(read_i32_be(header, RECORD_COUNT_AT)),
        base_offset=0,
        base_timestamp=read_i64_be(header, MAX_TIMESTAMP_AT if is_append_time else BASE_TIMESTAMP_AT),
        has_one_time=is_append_time,
    )


def _finish_in_place(
    view: memoryview, header: bytes, walk: RecordWalk, rules: ProduceRules, now_ms: i64
) -> ValidatedBatch:
    """Set the header's timestamp type and maximum to what the topic and the records say.

    Only where they differ is the header written, and the checksum with it; that also clears reserved attribute bits.
    """
    max_timestamp: i64 = now_ms if rules.is_append_time else walk.max_timestamp
    if max_timestamp < NO_TIMESTAMP_MS:
        max_timestamp = NO_TIMESTAMP_MS
    attributes = i64(read_i16_be(header, ATTRIBUTES_AT))
    is_marked: bool = attributes & TIMESTAMP_TYPE_BIT != 0
    if is_marked != rules.is_append_time or read_i64_be(header, MAX_TIMESTAMP_AT) != max_timestamp:
        wanted = TIMESTAMP_TYPE_BIT if rules.is_append_time else 0
        attributes = attributes & KNOWN_ATTRIBUTE_BITS & ~TIMESTAMP_TYPE_BIT | wanted
        _ATTRIBUTES.pack_into(view, ATTRIBUTES_AT, attributes)
        _TIMESTAMP.pack_into(view, MAX_TIMESTAMP_AT, max_timestamp)
        _CRC.pack_into(view, CRC_AT, crc32c(view[ATTRIBUTES_AT:]))
    return ValidatedBatch(
        view,
        header,
        max_timestamp_ms=max_timestamp,
        max_timestamp_offset_delta=(
            walk.first_offset_delta if rules.is_append_time else walk.max_timestamp_offset_delta
        ),
        log_append_time_ms=now_ms if rules.is_append_time else NO_TIMESTAMP_MS,
        is_rebuilt=False,
    )


def _check_producer(header: bytes) -> None:
    """Refuse what no builder of batches can make: Kafka's own gives up there without an error code."""
    attributes = i64(read_i16_be(header, ATTRIBUTES_AT))
    if read_i64_be(header, PRODUCER_ID_AT) == NO_PRODUCER_ID:
        if attributes & TRANSACTIONAL_BIT:
            raise InvalidRecord("a transactional batch without a producer id")
        return
    if read_i16_be(header, PRODUCER_EPOCH_AT) == NO_PRODUCER_EPOCH:
        raise InvalidRecord("a batch with a producer id and no producer epoch")
    if read_i32_be(header, BASE_SEQUENCE_AT) < 0 and not attributes & CONTROL_BIT:
        raise InvalidRecord("a batch with a producer id and no sequence number")


def _rebuild(payload: bytes, header: bytes, codec: Codec, rules: ProduceRules, now_ms: i64) -> ValidatedBatch:
    """Pack the records with the topic's codec, at offsets that count up from 0."""
    _check_producer(header)
    attributes = i64(read_i16_be(header, ATTRIBUTES_AT))
    builder = BatchBuilder(
        codec=codec,
        level=rules.level if rules.level is not None else DEFAULT_LEVELS.get(codec),
        timestamp_type=TimestampType.LOG_APPEND_TIME if rules.is_append_time else TimestampType.CREATE_TIME,
        producer_id=read_i64_be(header, PRODUCER_ID_AT),
        producer_epoch=read_i16_be(header, PRODUCER_EPOCH_AT),
        base_sequence=read_i32_be(header, BASE_SEQUENCE_AT),
        is_transactional=attributes & TRANSACTIONAL_BIT != 0,
        is_control=attributes & CONTROL_BIT != 0,
    )
    max_timestamp: i64 = NO_TIMESTAMP_MS
    max_offset_delta: i64 = 0
    for record in _decode(payload, header):
        if record.timestamp < NO_TIMESTAMP_MS:
            raise InvalidRecord(f"a record has the timestamp {record.timestamp}")
        offset_delta = builder.append(record.timestamp, record.key, record.value, record.headers)
        if record.timestamp > max_timestamp:
            max_timestamp = record.timestamp
            max_offset_delta = offset_delta
    if rules.is_append_time:
        max_timestamp = now_ms
        max_offset_delta = 0
        builder.set_append_time(now_ms)
    view = memoryview(bytearray(builder.build()))
    _check_size(len(view), rules)
    return ValidatedBatch(
        view,
        bytes(view[:HEADER_BYTES]),
        max_timestamp_ms=max_timestamp,
        max_timestamp_offset_delta=max_offset_delta,
        log_append_time_ms=now_ms if rules.is_append_time else NO_TIMESTAMP_MS,
        is_rebuilt=True,
    )
