"""`PlaceFinder`: from the directories of partitions, and the checkpoints beside them, to a `Place` for each.

Reads names and small files only; no log is opened.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from ottla.config.log_config import LogConfig
from ottla.config.topic_settings import JAFKA_FORMAT
from ottla.model import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.storage.checkpoints import PARTITION_METADATA, CorruptCheckpoint, parse_partition_metadata
from ottla.storage.directory import LogDirectory
from ottla.storage.files import FileSystem
from ottla.storage.place import Place

_log = logging.getLogger(__name__)


class PlaceFinder:
    """Finds what lies in one log directory. Topics' settings are not known yet: the broker's defaults hold."""

    __slots__ = ("_config", "_directory", "_filesystem", "_log_start_offsets", "_recovery_points")

    def __init__(self, filesystem: FileSystem, directory: LogDirectory, config: LogConfig) -> None:
        """Read the checkpoints. Raises `CorruptCheckpoint`."""
        self._filesystem = filesystem
        self._directory = directory
        self._config = config
        self._recovery_points = _read_recovery_points(directory)
        self._log_start_offsets = directory.read_log_start_offsets()

    def find_all(self) -> Iterator[tuple[TopicPartition, Place]]:
        """Yield every partition that has a directory here. Raises `DirectoryError`."""
        for partition in self._directory.partitions():
            yield partition, self.find(partition)

    def find(self, partition: TopicPartition) -> Place:
        """Return what is known of a partition that has a directory here."""
        directory = self._directory
        place = Place(directory, self._read_topic_id(partition), self._config)
        place.is_clean = directory.was_clean
        place.recovery_point = self._recovery_points.get(partition, 0)
        place.log_start_offset = self._log_start_offsets.get(partition, 0)
        if place.topic_id == ZERO_TOPIC_ID and directory.is_from_jafka(str(partition)):
            place.config = self._config._replace(ottla_format=JAFKA_FORMAT)
            place.is_clean, place.is_from_jafka = False, True
        return place

    def _read_topic_id(self, partition: TopicPartition) -> TopicId:
        """Read `partition.metadata`; a missing or damaged one is the zero id, which `LogManager.create` replaces."""
        path = f"{self._directory.partition_path(partition)}/{PARTITION_METADATA}"
        try:
            text = self._filesystem.read(path).decode("utf-8", "replace")
            return parse_partition_metadata(text, path)
        except (FileNotFoundError, CorruptCheckpoint):
            return ZERO_TOPIC_ID


def _read_recovery_points(directory: LogDirectory) -> Mapping[TopicPartition, int]:
    try:
        return directory.read_recovery_points()
    except CorruptCheckpoint as error:  # checking more than needed is never wrong
        _log.warning("%s; every log is checked from its start where one is", error)
        return {}
