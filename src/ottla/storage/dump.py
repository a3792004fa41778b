"""Rows that show what a file of a log directory holds, for tools and people. Reads only; changes nothing.

One kind of row per kind of file: batches and their records for `.log` and the metadata log's `.checkpoint`, entries for
`.index`, `.timeindex` and `.txnindex`, producers for `.snapshot`, lines for the small text files. What a record of the
broker's own logs says is not known here: whoever can read it hands in a `RecordReader`.

Damage is a row, too: `{"problem": ...}`, after which a `.log` is not read on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ottla.errors import KafkaError
from ottla.records.batch import RecordBatch
from ottla.records.control import ControlType, control_type_of, marker_of
from ottla.records.legacy import LegacyBatch
from ottla.records.record import Record
from ottla.storage.files import File, FileSystem
from ottla.storage.index import CorruptIndex, OffsetIndex, TimeIndex
from ottla.storage.producer_state import CorruptSnapshot, ProducerState, decode_snapshot
from ottla.storage.segment import (
    CURRENT_MAGIC,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    walk_batches,
)
from ottla.storage.txn_index import TransactionIndex

Row = dict[str, Any]
RecordReader = Callable[[Record], Row]
"""Says what a record means; for records that it cannot read, why not."""

METADATA_SNAPSHOT_SUFFIX: Final = ".checkpoint"
_ANY_SIZE: Final = 2**31 - 1


class NothingToShow(ValueError):
    """A file of a kind that has no rows."""


def dump_file(filesystem: FileSystem, path: str, read_record: RecordReader | None = None) -> Iterator[Row]:
    """Yield the rows of a file. Raises `OSError`, `NothingToShow`."""
    name = path.rpartition("/")[2]
    if name.endswith((LOG_SUFFIX, METADATA_SNAPSHOT_SUFFIX)):
        yield from dump_log(filesystem, path, read_record)
    elif name.endswith(SNAPSHOT_SUFFIX):
        yield from dump_producers(filesystem, path)
    elif name.endswith((OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)):
        yield from dump_index(filesystem, path)
    elif name.endswith(("-checkpoint", ".metadata", ".properties", "quorum-state", "cleanshutdown")):
        for line in filesystem.read(path).decode("utf-8", "replace").splitlines():
            yield {"line": line}
    else:
        raise NothingToShow(f"{path} is of no kind that can be shown")


# ---- logs


def dump_log(filesystem: FileSystem, path: str, read_record: RecordReader | None) -> Iterator[Row]:
    """Yield a row for each batch, and with `read_record` one for each of its records behind it."""
    file = filesystem.open(path)
    try:
        yield from _batch_rows(file, read_record)
    finally:
        file.close()


def _batch_rows(file: File, read_record: RecordReader | None) -> Iterator[Row]:
    size_bytes, end = file.size(), 0
    try:
        for span in walk_batches(file, 0, size_bytes):
            data = file.pread(span.size_bytes, span.position)
            batch = RecordBatch(data) if span.magic >= CURRENT_MAGIC else LegacyBatch(data)
            yield describe_batch(batch, span.position)
            end = span.position + span.size_bytes
            if read_record is not None:
                for record in batch.records():
                    yield _record_row(batch, record, read_record)
    except (KafkaError, ValueError) as error:
        yield {"position": end, "problem": str(error)}
        return
    if end < size_bytes:
        yield {"position": end, "problem": f"{size_bytes - end} bytes that are no whole batch"}


def describe_batch(batch: RecordBatch | LegacyBatch, position: int) -> Row:
    row: Row = {
        "position": position,
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "size": batch.size_in_bytes,
        "magic": batch.magic,
        "codec": batch.codec.name.lower(),
        "max_timestamp": batch.max_timestamp,
        "crc": batch.crc,
        "is_valid": batch.is_crc_valid(),
    }
    if isinstance(batch, RecordBatch):
        row |= {
            "count": batch.count,
            "leader_epoch": batch.partition_leader_epoch,
            "timestamp_type": batch.timestamp_type.name,
            "is_transactional": batch.is_transactional,
            "is_control": batch.is_control,
            "delete_horizon": batch.delete_horizon_ms,
        }
        if batch.has_producer_id:
            row |= {
                "producer_id": batch.producer_id,
                "producer_epoch": batch.producer_epoch,
                "base_sequence": batch.base_sequence,
                "last_sequence": batch.last_sequence,
            }
    return row


def _record_row(batch: RecordBatch | LegacyBatch, record: Record, read_record: RecordReader) -> Row:
    row: Row = {"offset": record.offset, "timestamp": record.timestamp}
    if isinstance(batch, RecordBatch) and batch.is_control:
        return row | _control_row(batch, record)
    return row | read_record(record)


def _control_row(batch: RecordBatch, record: Record) -> Row:
    kind = control_type_of(record)
    row: Row = {"control": kind.name}
    if kind in (ControlType.ABORT, ControlType.COMMIT):
        marker = marker_of(batch)
        row["coordinator_epoch"] = None if marker is None else marker.coordinator_epoch
    return row


def plain_record(record: Record) -> Row:
    """The `RecordReader` of topics whose records are their users' own: text where it is text, else hex."""
    row: Row = {"key": _readable(record.key), "value": _readable(record.value)}
    if record.headers:
        row["headers"] = [[_readable_text(name), _readable(value)] for name, value in record.headers]
    return row


def _readable(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "0x" + data.hex()
    return text if text.isprintable() else "0x" + data.hex()


def _readable_text(name: object) -> str:
    return (
        name
        if isinstance(name, str)
        else bytes(name).decode("utf-8", "replace")
        if isinstance(name, bytes)
        else str(name)
    )


# ---- what stands beside them


def dump_producers(filesystem: FileSystem, path: str) -> Iterator[Row]:
    try:
        states = decode_snapshot(filesystem.read(path))
    except CorruptSnapshot as error:
        yield {"problem": str(error)}
        return
    for state in states:
        yield _describe_producer(state)


def _describe_producer(state: ProducerState) -> Row:
    newest = state.batches[-1] if state.batches else None
    return {
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "coordinator_epoch": state.coordinator_epoch,
        "last_sequence": state.last_sequence,
        "last_offset": None if newest is None else newest.last_offset,
        "last_timestamp": state.last_timestamp_ms,
        "current_txn_first_offset": state.current_txn_first_offset,
    }


def dump_index(filesystem: FileSystem, path: str) -> Iterator[Row]:
    """Yield the entries of an index of any of the three kinds."""
    base_offset = _base_offset(path)
    index: OffsetIndex | TimeIndex | TransactionIndex
    if path.endswith(TXN_INDEX_SUFFIX):
        index = TransactionIndex(filesystem, path, base_offset)
    elif path.endswith(TIME_INDEX_SUFFIX):
        index = TimeIndex(filesystem, path, base_offset, _ANY_SIZE)
    else:
        index = OffsetIndex(filesystem, path, base_offset, _ANY_SIZE)
    problem: str | None = None
    try:
        index.load()
    except CorruptIndex as error:
        problem = str(error)
    entries = list(index) if isinstance(index, TransactionIndex) else index.entries()
    for entry in entries:
        yield entry._asdict()
    if problem is not None:
        yield {"problem": problem}


def _base_offset(path: str) -> int:
    stem = path.rpartition("/")[2].partition(".")[0]
    return int(stem) if stem.isdecimal() else 0
