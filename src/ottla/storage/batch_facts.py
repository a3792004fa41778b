"""What a log reads from a batch that it is handed or finds on disk: header fields, and an end-transaction marker.

`records.batch.RecordBatch` is the full view; the append path wants seven fields in one call and no object.
"""

from __future__ import annotations

import struct
from typing import Final

from ottla.errors import InvalidRecord
from ottla.records.batch import RecordBatch
from ottla.storage.producer_state import EndTxnMarker

APPEND_FACTS: Final = struct.Struct(">8xi9xhi8xqqhi")
"""Batch length, attributes, last offset delta, max timestamp, producer id, producer epoch, base sequence."""
STAMP: Final = struct.Struct(">qii")
"""Base offset, batch length, leader epoch: the front of a header, outside the checksum."""

_CONTROL_KEY: Final = struct.Struct(">hh")
_MARKER_VALUE: Final = struct.Struct(">hi")
_ABORT_TYPE: Final = 0
_COMMIT_TYPE: Final = 1


def read_marker(batch: bytes | bytearray | memoryview) -> EndTxnMarker | None:
    """Return the end of a transaction that a control batch tells; None for other control records and emptied batches.

    Raises `InvalidRecord`, `CorruptMessage`.
    """
    for record in RecordBatch(batch).records():
        if record.key is None or len(record.key) < _CONTROL_KEY.size:
            raise InvalidRecord("a control record without type")
        _, control_type = _CONTROL_KEY.unpack_from(record.key)
        if control_type not in (_ABORT_TYPE, _COMMIT_TYPE):
            return None
        if record.value is None or len(record.value) < _MARKER_VALUE.size:
            raise InvalidRecord("an end-transaction marker without coordinator epoch")
        _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value)
        return EndTxnMarker(control_type == _COMMIT_TYPE, coordinator_epoch)
    return None
