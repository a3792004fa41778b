"""What the name of a deleted partition's directory tells, and what stands in it.

A deletion renames directories at once, so that a new topic may take the name, and its record reaches the disk a little
later. After a crash in between the topic is there, and `LogManager.settle_deleted` gives it its directories back.

We put the topic's id into the name; Kafka puts a random number there, but its `partition.metadata` has the id, too.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ottla.model import TopicId
from ottla.storage.checkpoints import PARTITION_METADATA, CorruptCheckpoint, parse_partition_metadata
from ottla.storage.directory import DELETE_SUFFIX
from ottla.storage.files import FileSystem

_NAME: Final = rf".*-(?P<partition>[0-9]+)\.(?P<id>[0-9a-f]{{32}}){DELETE_SUFFIX}"


class DiscardedPartition(NamedTuple):
    """Whose directory waits for removal."""

    topic_id: TopicId
    partition: int


def read_discarded(filesystem: FileSystem, path: str) -> DiscardedPartition | None:
    """Return whose directory this was; None for a name that says nothing. Raises `OSError`."""
    match = re.fullmatch(_NAME, path.rpartition("/")[2])
    if match is None:
        return None
    metadata = f"{path}/{PARTITION_METADATA}"
    try:
        topic_id = parse_partition_metadata(filesystem.read(metadata).decode("utf-8", "replace"), metadata)
    except (FileNotFoundError, CorruptCheckpoint):
        topic_id = TopicId(bytes.fromhex(match["id"]))
    return DiscardedPartition(topic_id, int(match["partition"]))
