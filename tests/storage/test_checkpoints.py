"""Checkpoint files and `partition.metadata`: which texts Kafka takes, and what it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.model import TopicId, TopicPartition, format_uuid, parse_uuid
from ottla.storage.checkpoints import (
    CorruptCheckpoint,
    format_offsets,
    format_partition_metadata,
    parse_leader_epochs,
    parse_offsets,
    parse_partition_metadata,
    read_offsets,
    write_offsets,
)
from ottla.storage.files import LocalFileSystem
from tests.storage.harness import golden_lines

CASES = list(golden_lines("indexes"))


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [case for case in CASES if case["kind"] == kind]


@pytest.mark.parametrize("case", of_kind("offsetCheckpoint"), ids=lambda case: case["id"])
def test_offset_checkpoint_is_written_as_kafka_does(case: dict[str, Any]) -> None:
    offsets = {TopicPartition(topic, partition): offset for topic, partition, offset in case["entries"]}
    assert format_offsets(offsets) == case["text"]


@pytest.mark.parametrize("case", of_kind("offsetCheckpointRead"), ids=lambda case: repr(case["text"]))
def test_offset_checkpoint_is_read_as_kafka_does(case: dict[str, Any]) -> None:
    if case["verdict"] != "ok":
        with pytest.raises(CorruptCheckpoint, match="the-file"):
            parse_offsets(case["text"], "the-file")
        return
    found = parse_offsets(case["text"], "the-file")
    assert [[tp.topic, tp.partition, offset] for tp, offset in found.items()] == case["entries"]


@pytest.mark.parametrize("case", of_kind("leaderEpochCheckpointRead"), ids=lambda case: repr(case["text"]))
def test_leader_epoch_checkpoint_is_read_as_kafka_does(case: dict[str, Any]) -> None:
    if case["verdict"] != "ok":
        with pytest.raises(CorruptCheckpoint, match="the-file"):
            parse_leader_epochs(case["text"], "the-file")
        return
    assert [list(entry) for entry in parse_leader_epochs(case["text"], "the-file")] == case["entries"]


@pytest.mark.parametrize("case", of_kind("partitionMetadataRead"), ids=lambda case: repr(case["text"]))
def test_partition_metadata_is_read_as_kafka_does(case: dict[str, Any]) -> None:
    if case["verdict"] != "ok":
        with pytest.raises(CorruptCheckpoint, match="the-file"):
            parse_partition_metadata(case["text"], "the-file")
        return
    assert format_uuid(parse_partition_metadata(case["text"], "the-file")) == case["topicId"]


def test_partition_metadata_has_no_final_newline() -> None:
    topic_id = TopicId(parse_uuid("lHpmmbnBTam502MllORY6A"))
    assert format_partition_metadata(topic_id) == "version: 0\ntopic_id: lHpmmbnBTam502MllORY6A"


def test_missing_checkpoint_is_empty(tmp_path: Path) -> None:
    assert read_offsets(LocalFileSystem(), str(tmp_path / "nothing")) == {}


def test_written_checkpoint_comes_back(tmp_path: Path) -> None:
    files, path = LocalFileSystem(), str(tmp_path / "recovery-point-offset-checkpoint")
    offsets = {TopicPartition("t", 0): 5, TopicPartition("u.v-w", 12): 2**40}
    write_offsets(files, path, offsets)
    assert read_offsets(files, path) == offsets
