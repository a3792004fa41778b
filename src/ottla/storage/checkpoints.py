"""Kafka's small text files: offset checkpoints, and `partition.metadata`.

A checkpoint file is a version line ("0"), a line with the number of rows, and the rows; an empty file is an empty
checkpoint. Files are replaced atomically. A file that cannot be read as such raises `CorruptCheckpoint` with its path:
whether that ends a start or is repaired is the caller's decision.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ottla.model import ZERO_TOPIC_ID, TopicId, TopicPartition, format_uuid, parse_uuid
from ottla.storage.files import FileSystem

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

_VERSION: Final = "0"
_PARTITION_METADATA_LINES: Final = 2


class CorruptCheckpoint(ValueError):
    """A small text file that does not follow its format."""


def parse_checkpoint(text: str, path: str, columns: int) -> list[list[str]]:
    """Return the rows of a checkpoint. Raises `CorruptCheckpoint`."""
    lines = text.splitlines()
    if not lines:
        return []
    if lines[0].strip() != _VERSION:
        raise CorruptCheckpoint(f"{path} has version {lines[0]!r}, not {_VERSION}")
    expected = _parse_int(lines[1], path) if len(lines) > 1 else -1
    rows = [line.split() for line in lines[2:]]
    if expected != len(rows):
        raise CorruptCheckpoint(f"{path} announces {expected} rows and has {len(rows)}")
    for row in rows:
        if len(row) != columns:
            raise CorruptCheckpoint(f"{path} has a row of {len(row)} columns instead of {columns}")
    return rows


def format_checkpoint(rows: Sequence[Iterable[object]]) -> str:
    lines = [_VERSION, str(len(rows)), *(" ".join(str(column) for column in row) for row in rows)]
    return "\n".join(lines) + "\n"


def parse_offsets(text: str, path: str) -> dict[TopicPartition, int]:
    """Read an offset checkpoint: topic, partition, offset. The last row of a partition counts."""
    return {
        TopicPartition(topic, _parse_int(partition, path)): _parse_int(offset, path)
        for topic, partition, offset in parse_checkpoint(text, path, columns=3)
    }


def format_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    return format_checkpoint([(tp.topic, tp.partition, offset) for tp, offset in offsets.items()])


def parse_leader_epochs(text: str, path: str) -> list[tuple[int, int]]:
    """Read a `leader-epoch-checkpoint`: epoch, start offset."""
    return [
        (_parse_int(epoch, path), _parse_int(offset, path)) for epoch, offset in parse_checkpoint(text, path, columns=2)
    ]


def parse_partition_metadata(text: str, path: str) -> TopicId:
    """Read `partition.metadata`. Raises `CorruptCheckpoint`; so does the zero id, which no topic has."""
    lines = text.splitlines()
    if len(lines) != _PARTITION_METADATA_LINES:
        raise CorruptCheckpoint(f"{path} has {len(lines)} lines instead of {_PARTITION_METADATA_LINES}")
    _parse_int(_parse_entry(lines[0], "version", path), path)
    topic_id = _parse_uuid(_parse_entry(lines[1], "topic_id", path), path)
    if topic_id == ZERO_TOPIC_ID:
        raise CorruptCheckpoint(f"{path} has the zero topic id")
    return topic_id


def format_partition_metadata(topic_id: TopicId) -> str:
    """Return the two lines, without a final newline, as Kafka writes them."""
    return f"version: 0\ntopic_id: {format_uuid(topic_id)}"


def read_offsets(filesystem: FileSystem, path: str) -> dict[TopicPartition, int]:
    """Read an offset checkpoint from disk; a missing file is an empty one."""
    if not filesystem.exists(path):
        return {}
    return parse_offsets(filesystem.read(path).decode("utf-8", "replace"), path)


def write_offsets(filesystem: FileSystem, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    filesystem.replace(path, format_offsets(offsets).encode())


def _parse_entry(line: str, name: str, path: str) -> str:
    found, separator, value = line.partition(": ")
    if not separator or found != name:
        raise CorruptCheckpoint(f"{path} has the line {line!r} where {name} belongs")
    return value


def _parse_uuid(text: str, path: str) -> TopicId:
    try:
        return TopicId(parse_uuid(text))
    except ValueError as error:
        raise CorruptCheckpoint(f"{path}: {error}") from error


def _parse_int(text: str, path: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text.strip()):
        raise CorruptCheckpoint(f"{path} has {text!r} where a number belongs")
    return int(text)
