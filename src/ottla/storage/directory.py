"""`LogDirectory`: one entry of `log.dirs` and the files that belong to it as a whole.

* `.lock`: held while a broker runs (see `file_locks`); a second one, ours or Kafka's, is told so.
* `meta.properties` (version 1): cluster, node and directory id. A directory without it is not formatted yet.
* `.kafka_cleanshutdown`: written last at a clean stop, removed before anything else is changed. Kafka's contents are
  `{"version":0,"brokerEpoch":N}`; an empty one counts too.
* the offset checkpoints of its partitions, see `checkpoints`.

Partition directories are named `topic-partition`; those that end in `-delete` wait for removal, those in `-future`
are copies that move to another log directory (`future_log`), those in `-stray` are left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from ottla.errors import InvalidTopicException
from ottla.model import METADATA_TOPIC, TopicPartition, format_uuid, parse_uuid
from ottla.storage.checkpoints import (
    CLEANER_OFFSETS,
    LOG_START_OFFSETS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    read_offsets,
    write_offsets,
)
from ottla.storage.files import FileSystem, Lock

META_PROPERTIES: Final = "meta.properties"
LOCK_FILE: Final = ".lock"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
DELETE_SUFFIX: Final = "-delete"
STRAY_SUFFIX: Final = "-stray"
FUTURE_SUFFIX: Final = "-future"
JAFKA_SUFFIX: Final = ".jafka"
JAFKA_CLEAN_SHUTDOWN: Final = ".jafka_cleanshutdown"

NO_BROKER_EPOCH: Final = -1
_META_VERSION: Final = 1
_MAX_NAME_BYTES: Final = 255
_NAMED: Final = 3
"""So many partitions are named in a refusal."""
_LEFT_ALONE: Final = r".*-[0-9]+\.[0-9a-f]{32}-(?:delete|future|stray)|.*\.[0-9a-f]{32}-stray"
_FUTURE_DIRECTORY: Final = r"(?P<topic>.+)-(?P<partition>[0-9]+)\.[0-9a-f]{32}-future"
_PARTITION_DIRECTORY: Final = r"(?P<topic>.+)-(?P<partition>[0-9]+)"


class DirectoryError(Exception):
    """A log directory that cannot be used; the message says which and why, in one line."""


class MetaProperties(NamedTuple):
    """Who a directory belongs to. `cluster_id` is text; `directory_id` is 16 bytes, None in old directories."""

    cluster_id: str
    node_id: int
    directory_id: bytes | None


class LogDirectory:
    """One log directory. `was_clean` tells how the last broker left it."""

    __slots__ = (
        "_filesystem",
        "_is_stored",
        "_lock",
        "broker_epoch",
        "is_cordoned",
        "meta",
        "partition_count",
        "path",
        "was_clean",
    )

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self.path = path
        self.meta: MetaProperties | None = None
        self.was_clean = False
        self.broker_epoch = NO_BROKER_EPOCH
        """The epoch that the last broker wrote into its clean-shutdown file, -1 when unknown."""
        self.partition_count = 0
        """Partitions that the manager keeps here."""
        self.is_cordoned = False
        """True when the manager takes no new ones here (`cordoned.log.dirs`)."""
        self._filesystem = filesystem
        self._is_stored = True
        """Whether `meta` is what the disk says."""
        self._lock: Lock | None = None

    def open(self) -> None:
        """Make the directory if it is missing, lock it, and read who it belongs to. Raises `DirectoryError`."""
        try:
            self._filesystem.make_directory(self.path)
            self._lock = self._filesystem.lock(self._file(LOCK_FILE))
        except OSError as error:
            raise DirectoryError(f"{self.path} cannot be used: {error.strerror}") from error
        if self._lock is None:
            raise DirectoryError(
                f"{self.path} is in use by another broker (its {LOCK_FILE} is held); "
                "stop that one, or take another directory (--data DIR, log.dirs)"
            )
        try:
            self.meta = self._read_meta()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Give up the lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def format(self, meta: MetaProperties) -> None:
        """`claim` the directory, and write that down."""
        self.claim(meta)
        self.store_claim()

    def claim(self, meta: MetaProperties) -> None:
        """Take `meta` for the identity of a new directory, of which the disk hears with `store_claim`.

        One that Jafka's own server left is taken over. Raises `DirectoryError` when it belongs to someone already.
        """
        if self.meta is not None:
            raise DirectoryError(f"{self.path} is formatted already")
        names = [name for name in self._filesystem.list(self.path) if re.fullmatch(_PARTITION_DIRECTORY, name)]
        if not all(self.is_from_jafka(name) for name in names):
            raise DirectoryError(
                f"{self.path} holds partitions, but its {META_PROPERTIES} is gone; restore it (node.id, cluster.id, "
                "directory.id, version=1), or begin with an empty directory"
            )
        self.meta = meta
        self._is_stored = False

    def store_claim(self) -> None:
        """Write `meta.properties` where that is new. Raises `OSError`."""
        if self.meta is not None and not self._is_stored:
            self._filesystem.replace(self._file(META_PROPERTIES), format_meta_properties(self.meta).encode())
            self._is_stored = True

    def read_clean_shutdown(self) -> bool:
        """Read the clean-shutdown file; True when it is there."""
        path = self._file(CLEAN_SHUTDOWN)
        self.was_clean = self._filesystem.exists(path)
        if self.was_clean:
            self.broker_epoch = parse_clean_shutdown(self._filesystem.read(path))
        return self.was_clean

    def remove_clean_shutdown(self) -> None:
        """Remove the clean-shutdown file that was read: from now on the directory changes."""
        if self.was_clean:
            self._filesystem.remove(self._file(CLEAN_SHUTDOWN))
            self._filesystem.sync_directory(self.path)

    def write_clean_shutdown(self, broker_epoch: int) -> None:
        """State that everything is on disk. Nothing may be written after it."""
        text = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
        self._filesystem.replace(self._file(CLEAN_SHUTDOWN), text.encode())

    def partition_path(self, partition: TopicPartition) -> str:
        return f"{self.path}/{partition}"

    def discarded_path(self, partition: TopicPartition, topic_id: bytes, suffix: str) -> str:
        """Return the name that takes a partition's directory out of the way, within a file name's 255 bytes."""
        ending = f"-{partition.partition}.{topic_id.hex()}{suffix}"
        return self._file(partition.topic[: _MAX_NAME_BYTES - len(ending)] + ending)

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that have a directory, without the metadata log's.

        Raises `DirectoryError` for a folder that can be no partition, as Kafka does: it may be somebody's data.
        """
        found = []
        for name in self._filesystem.list(self.path):
            if re.fullmatch(_LEFT_ALONE, name) or not self._filesystem.is_directory(self._file(name)):
                continue
            match = re.fullmatch(_PARTITION_DIRECTORY, name)
            if match is None:
                raise DirectoryError(
                    f"{self._file(name)} is not named like a partition (topic-number); move it out of {self.path}"
                )
            if match["topic"] != METADATA_TOPIC:
                found.append(TopicPartition(match["topic"], int(match["partition"])))
        return found

    def future_path(self, partition: TopicPartition, unique: bytes) -> str:
        """Return the name of a copy that is to become a log. Raises `InvalidTopicException` for long topics."""
        name = f"{partition}.{unique.hex()}{FUTURE_SUFFIX}"
        if len(name) > _MAX_NAME_BYTES:  # Kafka's rule and words, see KAFKA-4893
            raise InvalidTopicException("The topic name is too long.")
        return self._file(name)

    def futures(self) -> list[tuple[TopicPartition, str]]:
        """Return the copies that are to become partitions' logs, with their paths."""
        matches = [re.fullmatch(_FUTURE_DIRECTORY, name) for name in self._filesystem.list(self.path)]
        return [
            (TopicPartition(match["topic"], int(match["partition"])), self._file(match[0]))
            for match in matches
            if match
        ]

    def is_from_jafka(self, name: str) -> bool:
        """Say whether a partition's directory was left by Jafka's own server, and nobody else has used it."""
        names = self._filesystem.list(self._file(name))
        is_ours = any(one.endswith(".log") for one in names) or PARTITION_METADATA in names
        return not is_ours and any(one.endswith(JAFKA_SUFFIX) for one in names)

    def forget_jafka_shutdown(self) -> None:
        """Remove what tells Jafka's server that it was the last here, and need not look for damage."""
        self._filesystem.remove(self._file(JAFKA_CLEAN_SHUTDOWN))

    def discarded(self) -> list[str]:
        """Return the paths of partition directories that wait for removal."""
        return [self._file(name) for name in self._filesystem.list(self.path) if name.endswith(DELETE_SUFFIX)]

    def read_recovery_points(self) -> dict[TopicPartition, int]:
        return read_offsets(self._filesystem, self._file(RECOVERY_POINTS))

    def read_log_start_offsets(self) -> dict[TopicPartition, int]:
        return read_offsets(self._filesystem, self._file(LOG_START_OFFSETS))

    def read_clean_offsets(self) -> dict[TopicPartition, int]:
        return read_offsets(self._filesystem, self._file(CLEANER_OFFSETS))

    def write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        write_offsets(self._filesystem, self._file(name), offsets)

    def _file(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _read_meta(self) -> MetaProperties | None:
        path = self._file(META_PROPERTIES)
        if not self._filesystem.exists(path):
            return None
        return parse_meta_properties(self._filesystem.read(path).decode("utf-8", "replace"), path)


def parse_meta_properties(text: str, path: str) -> MetaProperties:
    """Read `meta.properties`. Raises `DirectoryError`."""
    entries: dict[str, str] = {}
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            key, _, value = line.partition("=")
            entries[key.strip()] = value.strip()
    try:
        version = int(entries["version"])
        node_id = int(entries["node.id"])
        cluster_id = entries["cluster.id"]
        directory_id = parse_uuid(entries["directory.id"]) if "directory.id" in entries else None
    except KeyError as error:
        raise DirectoryError(f"{path} has no {error.args[0]}") from error
    except ValueError as error:
        raise DirectoryError(f"{path}: {error}") from error
    if version != _META_VERSION:
        raise DirectoryError(f"{path} has version {version}, not {_META_VERSION}")
    return MetaProperties(cluster_id, node_id, directory_id)


def format_meta_properties(meta: MetaProperties) -> str:
    lines = [f"node.id={meta.node_id}"]
    if meta.directory_id is not None:
        lines.append(f"directory.id={format_uuid(meta.directory_id)}")
    lines += [f"version={_META_VERSION}", f"cluster.id={meta.cluster_id}"]
    return "\n".join(lines) + "\n"


def parse_clean_shutdown(data: bytes) -> int:
    """Return the broker epoch of a clean-shutdown file; -1 for one that is empty or of another kind."""
    try:
        content = json.loads(data)
        return int(content["brokerEpoch"])
    except (ValueError, TypeError, KeyError):
        return NO_BROKER_EPOCH


def open_directories(filesystem: FileSystem, paths: Iterable[str]) -> list[LogDirectory]:
    """Open all log directories or none. Raises `DirectoryError`."""
    opened: list[LogDirectory] = []
    try:
        for path in paths:
            directory = LogDirectory(filesystem, path)
            directory.open()
            opened.append(directory)
        _check_one_owner(opened)
    except BaseException:
        for directory in opened:
            directory.release()
        raise
    return opened


def check_known(directories: Iterable[LogDirectory], known: Collection[bytes]) -> None:
    """Raise `DirectoryError` for one with partitions whose id is not among those that the metadata knows.

    Kafka waits for ever then: nobody has told it that the partitions are there.
    """
    for directory in directories:
        if not known or not directory.partition_count or (directory.meta and directory.meta.directory_id in known):
            continue
        found = directory.meta.directory_id if directory.meta is not None else None
        has = "no directory.id" if found is None else f"directory.id={format_uuid(found)}"
        ids = " or ".join(format_uuid(one) for one in known)
        raise DirectoryError(f"{directory.path}/{META_PROPERTIES} has {has}, where the cluster's metadata knows {ids}")


def check_none_lost(
    directories: Iterable[LogDirectory], known: Collection[bytes], without_log: Iterable[TopicPartition]
) -> None:
    """Raise `DirectoryError` where one that the metadata knows is not here, and neither are logs that there must be.

    A disk that is not mounted is an empty folder, in which the partitions would begin anew.
    """
    lost = set(known) - {found.meta.directory_id for found in directories if found.meta is not None}
    missing = sorted(str(partition) for partition in without_log) if lost else []
    if missing:
        names = ", ".join(missing[:_NAMED]) + (", ..." if len(missing) > _NAMED else "")
        ids = " or ".join(format_uuid(one) for one in sorted(lost))
        raise DirectoryError(
            f"the log directory with directory.id={ids} is not there, and {len(missing)} partitions are without their "
            f"logs ({names}); bring it back, or, if what it had is lost, give an empty one that directory.id in a copy "
            f"of another one's {META_PROPERTIES}"
        )


def _check_one_owner(directories: list[LogDirectory]) -> None:
    owners = {(found.meta.cluster_id, found.meta.node_id) for found in directories if found.meta is not None}
    if len(owners) > 1:
        paths = ", ".join(directory.path for directory in directories)
        raise DirectoryError(f"the log directories {paths} belong to different brokers: {sorted(owners)}")
