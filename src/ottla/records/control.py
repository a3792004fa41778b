"""Control batches: transaction markers, and the records by which KRaft logs and snapshots speak of themselves.

A control record's key is a version and a type. Values of transaction markers are known here, being two numbers; the
KRaft ones are messages that `protocol.internal` encodes, so they come and go as bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.errors import InvalidRecord
from ottla.records.batch import RecordBatch
from ottla.records.builder import BatchBuilder
from ottla.records.record import Record


class ControlType(IntEnum):
    """What a control record says; the number is in its key."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The end of a producer's transaction in one partition (KIP-98)."""

    type: ControlType
    coordinator_epoch: int


_KEY: Final = struct.Struct(">hh")
_MARKER_VALUE: Final = struct.Struct(">hi")
_KEY_VERSION: Final = 0
_MARKER_VERSION: Final = 0
_KNOWN_TYPES: Final = {int(control_type): control_type for control_type in ControlType}


def control_key(control_type: ControlType) -> bytes:
    """Return the key of a control record."""
    return _KEY.pack(_KEY_VERSION, control_type)


def control_type_of(record: Record) -> ControlType:
    """Return what a control record says, `UNKNOWN` for a type that came after this code. Raises `InvalidRecord`."""
    key = record.key
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord("a control record needs a key of 4 bytes")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"a control record's key cannot have version {version}")
    return _KNOWN_TYPES.get(number, ControlType.UNKNOWN)


def decode_end_transaction_marker(record: Record) -> EndTransactionMarker:
    """Read a commit or abort marker; later versions may have more behind the epoch. Raises `InvalidRecord`."""
    control_type = control_type_of(record)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        raise InvalidRecord(f"{control_type.name} does not end a transaction")
    value = record.value
    if value is None or len(value) < _MARKER_VALUE.size:
        raise InvalidRecord("the end of a transaction needs a value of 6 bytes")
    version, coordinator_epoch = _MARKER_VALUE.unpack_from(value)
    if version < 0:
        raise InvalidRecord(f"the end of a transaction cannot have version {version}")
    return EndTransactionMarker(control_type, coordinator_epoch)


def marker_of(batch: RecordBatch) -> EndTransactionMarker | None:
    """Return the marker in a control batch of a transaction, None for any other batch. Raises `InvalidRecord`."""
    if not batch.is_control or not batch.has_producer_id:
        return None
    records = batch.decode()
    if not records:  # compaction leaves such a header behind
        return None
    return decode_end_transaction_marker(records[0])


def end_transaction_batch(
    marker: EndTransactionMarker, *, producer_id: int, producer_epoch: int, timestamp_ms: int
) -> bytes:
    """Build the batch that commits or aborts a producer's transaction."""
    builder = BatchBuilder(
        producer_id=producer_id, producer_epoch=producer_epoch, is_transactional=True, is_control=True
    )
    value = _MARKER_VALUE.pack(_MARKER_VERSION, marker.coordinator_epoch)
    builder.append(timestamp_ms, control_key(marker.type), value)
    return builder.build()


def kraft_control_batch(
    records: Sequence[tuple[ControlType, bytes]], *, timestamp_ms: int, base_offset: int = 0, leader_epoch: int = -1
) -> bytes:
    """Build a batch of KRaft control records (leader change, snapshot header, voters, ...) from encoded values."""
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=leader_epoch, is_control=True)
    for control_type, value in records:
        builder.append(timestamp_ms, control_key(control_type), value)
    return builder.build()
