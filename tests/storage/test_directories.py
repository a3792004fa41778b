"""Directories that Apache Kafka wrote, opened by the log manager: every batch, offset and record is there."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.engine import ReadLimit
from ottla.model import TopicId, TopicPartition, parse_uuid
from ottla.records.batch import RecordBatch, split_batches
from ottla.storage.manager import LogManager
from ottla.testing.clock import ManualClock
from tests.storage.harness import GOLDEN, make_manager, take_bytes

CASES = (
    "compacted",
    "groups",
    "metadata",
    "multi-dir",
    "older",
    "plain",
    "timestamps",
    "torn",
    "transactions",
    "two-nodes",
    "unclean",
    "upgrade-levels-3.9-iv0",
    "upgrade-levels-4.0-iv3",
)
ADOPTED = {("torn", TopicPartition("compacted-later", 0))}
"""Its `partition.metadata` was deleted: Kafka puts the records aside and begins anew, we keep them."""
CUT_TIME_INDEX = ("torn", TopicPartition("gz", 0))
"""Its time index was cut to 5 bytes: Kafka then looks for some times in the wrong segment and finds nothing."""
LONG_VALUE_BYTES = 160


def expectation(case: str) -> dict[str, Any]:
    with gzip.open(GOLDEN / "directories" / f"{case}.json.gz", "rt") as file:
        found: dict[str, Any] = json.load(file)
    return found


def partitions_of(expected: dict[str, Any]) -> Iterator[tuple[TopicPartition, TopicId, dict[str, Any]]]:
    for topic, facts in expected["topics"].items():
        for number, partition in facts["partitions"].items():
            yield TopicPartition(topic, int(number)), TopicId(parse_uuid(facts["id"])), partition


def log_directories(directory: Path) -> list[Path]:
    """The log directories of a case's broker; the other node's is no business of ours."""
    return sorted(path for path in directory.glob("kafka-logs*") if not path.name.endswith("-controller"))


def manager_for(directories: list[Path], expected: dict[str, Any]) -> LogManager:
    settings: dict[str, str] = {
        name: value
        for name, value in expected["properties_that_differ_from_default"].items()
        if name.startswith(("log.index", "log.segment", "producer.id"))
    }
    settings["log.dirs"] = ",".join(map(str, directories))
    manager = make_manager(directories[0], clock=ManualClock(expected["as_of_ms"]), properties=settings)
    manager.open()
    broker = BrokerConfig.from_properties(settings)
    topics = expected["topics"]
    manager.load(lambda topic: LogConfig.resolve(broker, {}, topics[topic]["configs"]))
    return manager


@pytest.fixture(scope="module", params=CASES)
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, LogManager, list[Path]]:
    """One manager on an unpacked copy serves all questions of a case."""
    case: str = request.param
    directory = tmp_path_factory.mktemp(case)
    with tarfile.open(GOLDEN / "directories" / f"{case}.tar.gz") as archive:
        archive.extractall(directory, filter="fully_trusted")
    directories = log_directories(directory)
    return case, manager_for(directories, expectation(case)), directories


def read_all(manager: LogManager, partition: TopicPartition) -> list[RecordBatch]:
    offsets = manager.offsets(partition)
    offset, batches = offsets.log_start_offset, []
    while offset < offsets.high_watermark:
        limit = ReadLimit(30_000, offsets.high_watermark, at_least_one_batch=True)
        found = list(split_batches(take_bytes(manager.read(partition, offset, limit))))
        assert found, (partition, offset)
        batches += found
        offset = found[-1].next_offset
    return batches


def describe_batch(batch: RecordBatch) -> tuple[int, int, int, int, int, str]:
    return batch.base_offset, batch.last_offset, batch.size_in_bytes, batch.crc, batch.count, batch.codec.name.lower()


def describe_row(row: dict[str, Any]) -> tuple[int, int, int, int, int, str]:
    return row["base_offset"], row["last_offset"], row["size"], row["crc"], row["count"], row["codec"]


def test_partitions_have_the_topic_ids_of_their_metadata_files(opened: tuple[str, LogManager, list[Path]]) -> None:
    case, manager, _ = opened
    expected = {
        partition: topic_id
        for partition, topic_id, _ in partitions_of(expectation(case))
        if (case, partition) not in ADOPTED
    }
    found = {tp: topic_id for tp, topic_id in manager.partitions().items() if (case, tp) not in ADOPTED}
    assert found == expected


def test_offsets_and_batches_are_kafkas(opened: tuple[str, LogManager, list[Path]]) -> None:
    case, manager, _ = opened
    for partition, _, facts in partitions_of(expectation(case)):
        if (case, partition) in ADOPTED:
            assert manager.offsets(partition).log_end_offset > 0
            continue
        offsets = manager.offsets(partition)
        assert offsets.log_start_offset == facts["log_start_offset"], partition
        assert offsets.high_watermark == offsets.log_end_offset == facts["high_watermark"], partition
        assert offsets.last_stable_offset == facts["last_stable_offset"], partition
        rows = facts.get("batches", facts["files"]["batches"])
        rows = [row for row in rows if row["last_offset"] >= offsets.log_start_offset]
        found = [describe_batch(batch) for batch in read_all(manager, partition)]
        assert found == [describe_row(row) for row in rows], partition


def test_records_are_those_that_a_consumer_got(opened: tuple[str, LogManager, list[Path]]) -> None:
    case, manager, _ = opened
    for partition, _, facts in partitions_of(expectation(case)):
        if (case, partition) in ADOPTED:
            continue
        batches = [batch for batch in read_all(manager, partition) if not batch.is_control]
        found = [
            (record.offset, record.timestamp, record.key, digest(record.value))
            for batch in batches
            for record in batch.records()
            if record.offset >= facts["log_start_offset"]
        ]
        assert found == [describe_record(row) for row in facts["records"]], partition


def digest(value: bytes | None) -> str | None:
    if value is None:
        return None
    return hashlib.sha256(value).hexdigest() if len(value) > LONG_VALUE_BYTES else value.hex()


def describe_record(row: dict[str, Any]) -> tuple[int, int, bytes | None, str | None]:
    key = row.get("k")
    return row["o"], row["ts"], None if key is None else bytes.fromhex(key), row.get("v_sha256", row.get("v"))


def is_found_by_us(case: str, manager: LogManager, partition: TopicPartition) -> bool:
    """Kafka finds no time in a log whose first segment lies below the log start: it looks nowhere else."""
    log = manager.log(partition)
    has_segment_below_start = len(log.segments) > 1 and log.segments[1].base_offset <= log.log_start_offset
    return has_segment_below_start or (case, partition) == CUT_TIME_INDEX


def test_list_offsets_answers_are_kafkas(opened: tuple[str, LogManager, list[Path]]) -> None:
    """Epochs of the special timestamps are those after one more start of Kafka's, so they are left out."""
    case, manager, _ = opened
    for name, answers in expectation(case)["list_offsets"].items():
        topic, _, number = name.rpartition("-")
        partition = TopicPartition(topic, int(number))
        if (case, partition) in ADOPTED:
            continue
        for asked, (offset, timestamp_ms, leader_epoch) in answers.items():
            if asked.endswith("_read_committed"):
                continue  # the broker's own step: it lowers the answer to the last stable offset
            if 0 <= offset < manager.offsets(partition).log_start_offset:
                continue  # Kafka names records that were deleted; we find times only in what is left
            found = manager.offset_for_timestamp(partition, int(asked))
            if found is not None and offset < 0 <= found.offset and is_found_by_us(case, manager, partition):
                continue
            if found is None:
                assert (offset, timestamp_ms) == (-1, -1), (name, asked)
                continue
            assert (found.offset, found.timestamp_ms) == (offset, timestamp_ms), (name, asked)
            if int(asked) >= 0:
                assert found.leader_epoch == leader_epoch, (name, asked)


def test_producers_are_those_that_kafka_knows(opened: tuple[str, LogManager, list[Path]]) -> None:
    case, manager, _ = opened
    for name, rows in expectation(case)["producers"].items():
        topic, _, number = name.rpartition("-")
        partition = TopicPartition(topic, int(number))
        if (case, partition) in ADOPTED:
            continue
        producers = manager.log(partition).producers
        found = {(state.producer_id, state.producer_epoch, state.last_sequence) for state in producers}
        assert found == {(row["producer_id"], row["producer_epoch"], row["last_sequence"]) for row in rows}, name


def test_directory_is_the_same_after_a_clean_stop_and_start(opened: tuple[str, LogManager, list[Path]]) -> None:
    """The last test of the module: it closes the manager that the others share."""
    case, manager, paths = opened
    expected = expectation(case)
    before = {
        partition: [describe_batch(batch) for batch in read_all(manager, partition)]
        for partition in manager.partitions()
    }
    offsets = {partition: manager.offsets(partition) for partition in manager.partitions()}
    manager.close(broker_epoch=7)

    again = manager_for(paths, expected)

    assert all(directory.was_clean for directory in again.directories)
    assert again.directories[0].broker_epoch == 7
    for partition, batches in before.items():
        assert again.offsets(partition) == offsets[partition], partition
        assert [describe_batch(batch) for batch in read_all(again, partition)] == batches, partition
    again.close()


def test_recovered_files_have_the_sizes_that_kafkas_recovery_leaves(tmp_path: Path) -> None:
    with tarfile.open(GOLDEN / "directories" / "torn.tar.gz") as archive:
        archive.extractall(tmp_path, filter="fully_trusted")
    expected = expectation("torn")
    manager_for([tmp_path / "kafka-logs"], expected).close()

    for name, size in expected["directory_after_recovery_and_clean_stop"]["files"].items():
        folder, _, file = name.partition("/")
        if folder.startswith(("__cluster_metadata", "compacted-later")) or not file.endswith((".log", "index")):
            continue
        assert (tmp_path / "kafka-logs" / name).stat().st_size == size, name
