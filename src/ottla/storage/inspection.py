"""A log directory without its broker: what is in it, and one partition made whole on demand.

Used by tools. Repairing is the recovery of a start (`recovery.load_log` from offset 0), on one partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ottla.clock import SystemClock
from ottla.config.log_config import LogConfig
from ottla.engine import Sync
from ottla.model import METADATA_TOPIC, TopicPartition, format_uuid
from ottla.storage.checkpoints import (
    PARTITION_METADATA,
    RECOVERY_POINTS,
    CorruptCheckpoint,
    parse_partition_metadata,
    read_offsets,
)
from ottla.storage.directory import (
    CLEAN_SHUTDOWN,
    JAFKA_SUFFIX,
    META_PROPERTIES,
    DirectoryError,
    LogDirectory,
    parse_meta_properties,
)
from ottla.storage.files import FileSystem
from ottla.storage.host import LogHost
from ottla.storage.jafka_log import JafkaLogSettings
from ottla.storage.jafka_topic_log import JafkaTopicLog
from ottla.storage.log import PartitionLog
from ottla.storage.open_files import OpenFiles
from ottla.storage.recovery import LoadPoint, load_log
from ottla.storage.segment import LOG_SUFFIX, SNAPSHOT_SUFFIX
from ottla.storage.verify import verify_partition

_NEVER_MS = 2**31 - 1


class InlineOffload:
    """An `engine.Offload` for tools, in which nothing blocks anybody: all is done at once."""

    def submit(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        work()
        done(None)

    def sync(self, syncs: Sequence[Sync]) -> None:
        for file, done in syncs:
            self.submit(file.sync, done)

    def call_soon(self, callback: Callable[[], None]) -> None:
        callback()


def partition_directories(filesystem: FileSystem, directory: str) -> list[str]:
    """Return the paths of all partitions by topic and number, the metadata log's too. Raises `DirectoryError`."""
    found = LogDirectory(filesystem, directory)
    partitions = found.partitions()
    metadata = TopicPartition(METADATA_TOPIC, 0)
    if filesystem.exists(found.partition_path(metadata)):
        partitions.append(metadata)
    return [found.partition_path(partition) for partition in sorted(partitions)]


def describe_directory(filesystem: FileSystem, directory: str) -> dict[str, Any]:
    """Return whose directory it is, how it was left, and a row for each partition. Raises `OSError`."""
    facts: dict[str, Any] = {"directory": directory}
    try:
        meta = parse_meta_properties(filesystem.read(f"{directory}/{META_PROPERTIES}").decode(), META_PROPERTIES)
        facts |= {"cluster_id": meta.cluster_id, "node_id": meta.node_id}
        facts["directory_id"] = None if meta.directory_id is None else format_uuid(meta.directory_id)
    except (FileNotFoundError, DirectoryError) as error:
        facts["problem"] = str(error)
    facts["was_left_cleanly"] = filesystem.exists(f"{directory}/{CLEAN_SHUTDOWN}")
    try:
        recovery_points = read_offsets(filesystem, f"{directory}/{RECOVERY_POINTS}")
    except CorruptCheckpoint as error:
        recovery_points = {}
        facts["problem"] = str(error)
    facts["partitions"] = [
        _describe_partition(filesystem, path, recovery_points) for path in partition_directories(filesystem, directory)
    ]
    return facts


def _describe_partition(
    filesystem: FileSystem, path: str, recovery_points: dict[TopicPartition, int]
) -> dict[str, Any]:
    name = path.rpartition("/")[2]
    topic, _, number = name.rpartition("-")
    files = filesystem.list(path)
    suffix = LOG_SUFFIX if any(file.endswith(LOG_SUFFIX) for file in files) else JAFKA_SUFFIX
    logs = sorted(file for file in files if file.endswith(suffix))
    try:
        metadata = f"{path}/{PARTITION_METADATA}"
        topic_id = format_uuid(parse_partition_metadata(filesystem.read(metadata).decode("utf-8", "replace"), metadata))
    except (FileNotFoundError, CorruptCheckpoint):
        topic_id = None
    return {
        "partition": name,
        "topic_id": topic_id,
        "segments": len(logs),
        "bytes": sum(filesystem.size(f"{path}/{file}") for file in logs),
        "first_offset": int(logs[0].removesuffix(suffix)) if logs else 0,
        "recovery_point": recovery_points.get(TopicPartition(topic, int(number))),
    }


def repair_partition(filesystem: FileSystem, path: str) -> int:
    """Check a partition from its start, make indexes and the like anew, and cut it off at the first damaged batch.

    Returns how many bytes were cut off. Nobody else may use the directory. Raises `KafkaStorageError`, `OSError`.
    """
    topic, _, number = path.rpartition("/")[2].rpartition("-")
    for finding in verify_partition(filesystem, path):
        if finding.path.endswith(SNAPSHOT_SUFFIX):
            filesystem.remove(finding.path)
    host = LogHost(
        clock=SystemClock(),
        filesystem=filesystem,
        offload=InlineOffload(),
        open_files=OpenFiles(filesystem),
        schedule_flush=lambda log: None,
        syncs_appends=False,
    )
    partition = TopicPartition(topic, int(number))
    log = _load_jafka_log(host, partition, path) if _is_jafka(filesystem, path) else _load_log(host, partition, path)
    work = log.begin_flush()
    work.run()
    log.end_flush(work, None)
    log.close()
    return log.cut_bytes


def _is_jafka(filesystem: FileSystem, path: str) -> bool:
    names = filesystem.list(path)
    return any(name.endswith(JAFKA_SUFFIX) for name in names) and not any(name.endswith(LOG_SUFFIX) for name in names)


def _load_log(host: LogHost, partition: TopicPartition, path: str) -> PartitionLog:
    point = LoadPoint(is_clean=False, recovery_point=0, log_start_offset=0)
    return load_log(host, partition, path, LogConfig(), point, _NEVER_MS)


def _load_jafka_log(host: LogHost, partition: TopicPartition, path: str) -> JafkaTopicLog:
    return JafkaTopicLog(host, partition, path, LogConfig(), JafkaLogSettings(), is_clean=False)
