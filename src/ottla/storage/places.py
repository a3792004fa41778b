"""`Places`: the log directories of this machine, and which partition lies where.

Finds what is there at a start, has new partitions made where they were wanted or the fewest are, and gives those that
go away another name. Knows directories and small files only; opening logs, and who must hear when one goes, is
`manager`'s.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.errors import InvalidReplicaAssignment, KafkaStorageError, LogDirNotFound, UnknownTopicOrPartition
from ottla.model import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.storage.checkpoints import PARTITION_METADATA, format_partition_metadata
from ottla.storage.directory import STRAY_SUFFIX, DirectoryError, LogDirectory, open_directories
from ottla.storage.discarded import DiscardedPartition, read_discarded
from ottla.storage.files import FileSystem
from ottla.storage.future_log import FoundFuture, settle_futures
from ottla.storage.place import Place
from ottla.storage.place_finder import PlaceFinder

_log = logging.getLogger(__name__)


class Places:
    """Every partition's `Place`. `open` comes first, then `find`, then `begin`."""

    __slots__ = (
        "_by_partition",
        "_default_config",
        "_directory_paths",
        "_filesystem",
        "_metadata_path",
        "_preferred",
        "directories",
        "every_directory",
    )

    def __init__(self, config: BrokerConfig, filesystem: FileSystem) -> None:
        self.directories: Sequence[LogDirectory] = ()
        self.every_directory: Sequence[LogDirectory] = ()
        """`directories`, and `metadata.log.dir` where that is none of them."""
        self._directory_paths = config.log_dirs
        self._metadata_path = config.text("metadata.log.dir")
        self._default_config = LogConfig.resolve(config, {}, {})
        self._filesystem = filesystem
        self._by_partition: dict[TopicPartition, Place] = {}
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        """Where partitions shall be made that are not there yet."""

    # ---- a start

    def open(self) -> None:
        """Lock the log directories and read who they belong to. Raises `DirectoryError`."""
        paths = dict.fromkeys([*self._directory_paths, *([self._metadata_path] if self._metadata_path else [])])
        self.every_directory = open_directories(self._filesystem, paths)
        self.directories = self.every_directory[: len(set(self._directory_paths))]

    def find(self) -> None:
        """Find the partitions; nothing is changed. Raises `DirectoryError`, `CorruptCheckpoint`."""
        for directory in self.every_directory:
            directory.read_clean_shutdown()
        self._find_partitions()

    def begin(self) -> list[FoundFuture]:
        """Take the directories over; returns the logs that were on their way to another one. Raises as `find`.

        From now on directories are changed: that an earlier broker stopped cleanly is true no more.
        """
        futures: list[FoundFuture] = []
        for directory in self.every_directory:
            directory.store_claim()
            directory.remove_clean_shutdown()
        if any(directory.futures() for directory in self.directories):
            try:
                futures = settle_futures(self._filesystem, self.directories)
            except OSError as error:
                raise DirectoryError(f"logs that were moving cannot be looked at: {error}") from error
            self._find_partitions()
        for directory in {place.directory for place in self._by_partition.values() if place.is_from_jafka}:
            directory.forget_jafka_shutdown()
        return futures

    def _find_partitions(self) -> None:
        self._by_partition.clear()
        for directory in self.directories:
            directory.partition_count = 0
            for partition, place in PlaceFinder(self._filesystem, directory, self._default_config).find_all():
                self._add(partition, place)

    def _add(self, partition: TopicPartition, place: Place) -> None:
        """Raises `DirectoryError` for a partition that lies somewhere else, too."""
        if partition in self._by_partition:
            other = self._by_partition[partition].directory.path
            raise DirectoryError(
                f"{partition} lies in both {other} and {place.directory.path}; move one of the two folders away, that "
                "of a disk that failed or was put back"
            )
        self._by_partition[partition] = place
        place.directory.partition_count += 1

    def settle_deleted(self, find_topic: Callable[[TopicId, int], str | None] | None = None) -> Iterator[str]:
        """Yield the directories of deleted topics that are to be removed.

        `find_topic` names the topic that has an id and a partition: where one is there after all, as its deletion was
        not on disk before a crash, its directory gets its name back. Raises `OSError`.
        """
        for directory in self.directories:
            for path in directory.discarded():
                found = None if find_topic is None else read_discarded(self._filesystem, path)
                topic = None if found is None or find_topic is None else find_topic(*found)
                if found is None or topic is None or not self._take_back(directory, path, topic, found):
                    yield path

    def _take_back(self, directory: LogDirectory, path: str, topic: str, found: DiscardedPartition) -> bool:
        """Give a partition its directory back; False where it has another one."""
        partition = TopicPartition(topic, found.partition)
        place = self._by_partition.get(partition)
        if place is not None:
            if place.topic_id == found.topic_id:
                return False
            self.move_away(partition, STRAY_SUFFIX)
        self._filesystem.rename(path, directory.partition_path(partition))
        self._filesystem.sync_directory(directory.path)
        finder = PlaceFinder(self._filesystem, directory, self._default_config)
        self._add(partition, finder.find(partition))
        _log.warning("%s was being deleted when the broker ended, and is there again", partition)
        return True

    # ---- partitions

    @property
    def by_partition(self) -> Mapping[TopicPartition, Place]:
        """Where every partition lies; live."""
        return self._by_partition

    def place(self, partition: TopicPartition) -> Place:
        """Return what is known of a partition. Raises `UnknownTopicOrPartition`."""
        place = self._by_partition.get(partition)
        if place is None:
            raise UnknownTopicOrPartition(f"{partition} has no log here")
        return place

    def add_new(self, partition: TopicPartition, topic_id: TopicId, config: LogConfig) -> None:
        """Give a new partition a place where it was wanted, or where the fewest are; `make` makes it."""
        candidates = [candidate for candidate in self.directories if not candidate.is_cordoned] or self.directories
        fewest = min(candidates, key=lambda candidate: candidate.partition_count)
        place = Place(self._preferred.pop(partition, fewest), topic_id, config)
        place.is_new = True
        place.is_made = False
        self._add(partition, place)

    def make(self, partition: TopicPartition) -> None:
        """Make the directory of a partition where it has none yet; its first flush syncs it.

        Raises `UnknownTopicOrPartition`, `OSError`.
        """
        place = self.place(partition)
        if not place.is_made:
            self.make_directory(place.directory.partition_path(partition), place.topic_id)
            place.is_made = True

    def forget(self, partition: TopicPartition) -> None:
        """Take note that a partition has no place any more."""
        self._by_partition.pop(partition).directory.partition_count -= 1

    def make_directory(self, path: str, topic_id: TopicId) -> None:
        """Make a partition's directory, with its `partition.metadata`. Raises `OSError`."""
        self._filesystem.make_directory(path)
        self._write_topic_id(path, topic_id)

    def complete(self, partition: TopicPartition, topic_id: TopicId) -> None:
        """Take note that a partition that was found belongs to this topic. Raises `OSError`."""
        place = self.place(partition)
        place.is_from_jafka = False
        if place.topic_id == ZERO_TOPIC_ID:
            self._write_topic_id(place.directory.partition_path(partition), topic_id)
            place.topic_id = topic_id

    def _write_topic_id(self, path: str, topic_id: TopicId) -> None:
        data = format_partition_metadata(topic_id).encode()
        self._filesystem.replace(f"{path}/{PARTITION_METADATA}", data, durable=False)

    def move_away(self, partition: TopicPartition, suffix: str) -> str:
        """Forget a partition and give its directory a name with this suffix; returns the path. Nobody has it open.

        Raises `UnknownTopicOrPartition`, `KafkaStorageError`.
        """
        place = self.place(partition)
        target = place.directory.discarded_path(partition, place.topic_id, suffix)
        if place.is_made:
            try:
                self._filesystem.remove_tree(target)
                self._filesystem.rename(place.directory.partition_path(partition), target)
            except FileNotFoundError:
                _log.warning("%s: its directory was gone already", partition)
            except OSError as error:
                raise KafkaStorageError(f"{partition} cannot be removed: {error}") from error
        self.forget(partition)
        return target

    def note_moved(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Take note that a partition lies in another directory now."""
        place = self.place(partition)
        place.directory.partition_count -= 1
        directory.partition_count += 1
        place.directory = directory

    def directory_at(self, path: str) -> LogDirectory:
        """Return a directory that partitions may be put into. Raises `LogDirNotFound`, `InvalidReplicaAssignment`."""
        for directory in self.directories:
            if directory.path == path:
                if directory.is_cordoned:
                    raise InvalidReplicaAssignment(f"Log directory {path} is cordoned")
                return directory
        raise LogDirNotFound(f"{path} is no log directory of this broker.")

    def prefer(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Have a partition that is not there yet made in this directory."""
        self._preferred[partition] = directory
