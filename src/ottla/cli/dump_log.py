"""`ottla dump-log`: what stands in the files of a log directory, as rows or as JSON. With `ottla storage`, the only
commands that read files; no broker is asked.

    ottla dump-log ottla-data/orders-0/00000000000000000000.log
    ottla dump-log --records ottla-data/__consumer_offsets-7 --json
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Any, Final

import click

from ottla.cli.options import examples
from ottla.cli.output import print_json, print_line
from ottla.model import format_uuid
from ottla.protocol.internal.framing import (
    CoordinatorRecord,
    RawCoordinatorRecord,
    RawRecord,
    decode_group_record,
    decode_metadata_record,
    decode_share_record,
    decode_transaction_record,
)
from ottla.protocol.primitives import DecodeError
from ottla.protocol.schema import Struct
from ottla.records.record import Record
from ottla.storage.dump import NothingToShow, RecordReader, Row, dump_file, plain_record
from ottla.storage.files import LocalFileSystem

_SHOWN: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", "checkpoint", ".metadata", "quorum-state")
"""How the files of a directory end that are shown."""

_UUID_BYTES: Final = 16
_COORDINATOR_LOGS: Final[dict[str, Callable[[bytes, bytes | None], CoordinatorRecord | RawCoordinatorRecord]]] = {
    "__consumer_offsets": decode_group_record,
    "__transaction_state": decode_transaction_record,
    "__share_group_state": decode_share_record,
}


@click.command(
    "dump-log",
    epilog=examples(
        "ottla dump-log ottla-data/orders-0/00000000000000000000.log",
        "ottla dump-log --records ottla-data/__cluster_metadata-0 --json",
    ),
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--records", "with_records", is_flag=True, help="Also the records of each batch.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def dump_log(paths: tuple[Path, ...], with_records: bool, as_json: bool) -> None:
    """Show what files hold: segments, indexes, producer snapshots, metadata snapshots, checkpoints.

    Of a directory all files are shown. Records of the broker's own topics are decoded. Damage ends it with 1.
    """
    is_damaged = False
    for path in (found for given in paths for found in _files(given)):
        rows = dump_file(LocalFileSystem(), str(path), record_reader(path) if with_records else None)
        try:
            first = next(rows, None)
        except NothingToShow as error:
            raise click.UsageError(str(error)) from None
        if not as_json:
            print_line(f"# {path}")
        for row in chain(() if first is None else (first,), rows):
            is_damaged = is_damaged or "problem" in row or row.get("is_valid") is False
            _print_row(path, row, as_json)
    if is_damaged:
        raise click.exceptions.Exit(1)


def _files(path: Path) -> Iterator[Path]:
    """Yield a file itself, or of a directory the files that can be shown."""
    if not path.is_dir():
        yield path
        return
    found = sorted(one for one in path.iterdir() if one.name.endswith(_SHOWN) and one.is_file())
    if not found:
        raise click.ClickException(f"{path} has no files that can be shown; name the directory of a partition")
    yield from found


def _print_row(path: Path, row: Row, as_json: bool) -> None:
    if as_json:
        print_json({"file": str(path), **row})
        return
    indent = "  " if "offset" in row and "position" not in row and "timestamp" in row else ""
    print_line(indent + " ".join(f"{name}={_show(value)}" for name, value in row.items() if value is not None))


def _show(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def record_reader(path: Path) -> RecordReader:
    """Return what reads the records of a file's topic, by the name of its directory."""
    topic = path.absolute().parent.name.rpartition("-")[0]
    if topic == "__cluster_metadata":
        return read_metadata_record
    decode = _COORDINATOR_LOGS.get(topic)
    return plain_record if decode is None else lambda record: read_coordinator_record(record, decode)


def read_metadata_record(record: Record) -> Row:
    try:
        decoded = decode_metadata_record(record.value or b"")
    except DecodeError as error:
        return {"problem": str(error)}
    if isinstance(decoded, RawRecord):
        return {"type": decoded.record_type, "version": decoded.version, "data": decoded.data.hex()}
    return {"type": type(decoded).__name__, "data": to_plain(decoded)}


def read_coordinator_record(
    record: Record, decode: Callable[[bytes, bytes | None], CoordinatorRecord | RawCoordinatorRecord]
) -> Row:
    try:
        decoded = decode(record.key or b"", record.value)
    except DecodeError as error:
        return {"problem": str(error)}
    if isinstance(decoded, RawCoordinatorRecord):
        value = None if decoded.value is None else decoded.value.hex()
        return {"type": decoded.record_type, "key": decoded.key.hex(), "value": value}
    return {
        "type": type(decoded.key).__name__.removesuffix("Key"),
        "key": to_plain(decoded.key),
        "value": None if decoded.value is None else to_plain(decoded.value),
    }


def to_plain(value: Any) -> Any:
    """Return a decoded message as what JSON knows: ids as text, other bytes as base64."""
    if isinstance(value, Struct):
        return {field.name: to_plain(getattr(value, field.name)) for field in type(value).SCHEMA.fields}
    if isinstance(value, bytes | memoryview):
        data = bytes(value)
        return format_uuid(data) if len(data) == _UUID_BYTES else base64.b64encode(data).decode()
    if isinstance(value, list | tuple):
        return [to_plain(one) for one in value]
    return value.name if isinstance(value, Enum) else value
