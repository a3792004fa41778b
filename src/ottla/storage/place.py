"""`Place`: where a partition lies, and what is known of it before its log is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ottla.config.log_config import LogConfig
from ottla.model import TopicId, TopicPartition
from ottla.storage.checkpointing import Checkpoint
from ottla.storage.checkpoints import HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS
from ottla.storage.directory import LogDirectory
from ottla.storage.log import PartitionLog


class Place:
    """One partition's entry. Its numbers are those of the checkpoints until the log is open."""

    __slots__ = (
        "config",
        "directory",
        "has_old_segments",
        "is_clean",
        "is_from_jafka",
        "is_looked_at",
        "is_made",
        "is_new",
        "is_told_of",
        "log_start_offset",
        "recovery_point",
        "topic_id",
    )

    def __init__(self, directory: LogDirectory, topic_id: TopicId, config: LogConfig) -> None:
        self.directory = directory
        self.topic_id = topic_id
        self.config = config
        self.is_clean = True
        self.is_new = False
        self.is_made = True
        """False as long as there is no directory yet, see `making`."""
        self.is_from_jafka = False
        """True where Jafka's own server left the log, and no topic was made of it yet."""
        self.is_told_of = False
        """True once the log could not be opened, and that was said."""
        self.is_looked_at = False
        self.has_old_segments = False
        """True when there was more than one segment at the start. Known once `is_looked_at`."""
        self.recovery_point = 0
        self.log_start_offset = 0


def collect_checkpoints(
    directories: Sequence[LogDirectory],
    places: Mapping[TopicPartition, Place],
    logs: Mapping[TopicPartition, PartitionLog],
    destination_of: Callable[[TopicPartition], LogDirectory | None],
) -> list[Checkpoint]:
    """Return the checkpoints as they should be; where a log is moving to, too, its start must be known."""
    checkpoints: list[Checkpoint] = []
    for directory in directories:
        recovery_points: dict[TopicPartition, int] = {}
        log_start_offsets: dict[TopicPartition, int] = {}
        high_watermarks: dict[TopicPartition, int] = {}
        for partition, place in places.items():
            is_here = place.directory is directory
            if not is_here and destination_of(partition) is not directory:
                continue
            log = logs.get(partition)
            if log is not None:
                place.recovery_point = log.flushed_offset
                place.log_start_offset = log.log_start_offset if log.is_start_within_segment else 0
            if place.log_start_offset:
                log_start_offsets[partition] = place.log_start_offset
            if is_here:
                recovery_points[partition] = place.recovery_point
                high_watermarks[partition] = place.recovery_point if log is None else log.high_watermark
        checkpoints += [
            Checkpoint(directory, RECOVERY_POINTS, recovery_points),
            Checkpoint(directory, LOG_START_OFFSETS, log_start_offsets),
            Checkpoint(directory, HIGH_WATERMARKS, high_watermarks),
        ]
    return checkpoints
