"""Log directories: lock, identity, clean-shutdown file, names of partitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.model import TopicPartition, parse_uuid
from ottla.storage.directory import (
    DirectoryError,
    LogDirectory,
    MetaProperties,
    format_meta_properties,
    open_directories,
    parse_clean_shutdown,
    parse_meta_properties,
)
from ottla.storage.files import LocalFileSystem

FILES = LocalFileSystem()
META = MetaProperties("k5RKJbOto3WZGHZ0ccWj8w", 1, parse_uuid("v3zSv1bYQk6LSlRop1pdSA"))
WRITTEN_BY_KAFKA = """#
#Mon Nov 30 04:40:50 UTC 2026
node.id=1
directory.id=v3zSv1bYQk6LSlRop1pdSA
version=1
cluster.id=k5RKJbOto3WZGHZ0ccWj8w
"""


def open_directory(path: Path) -> LogDirectory:
    (directory,) = open_directories(FILES, [str(path)])
    return directory


def test_meta_properties_of_kafka_are_read() -> None:
    assert parse_meta_properties(WRITTEN_BY_KAFKA, "meta.properties") == META


def test_meta_properties_come_back() -> None:
    assert parse_meta_properties(format_meta_properties(META), "meta.properties") == META


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "version"),
        ("version=1\nnode.id=1\n", "cluster.id"),
        ("version=0\nnode.id=1\ncluster.id=x\n", "version 0"),
        ("version=1\nnode.id=one\ncluster.id=x\n", "one"),
        ("version=1\nnode.id=1\ncluster.id=x\ndirectory.id=zz\n", "zz"),
    ],
)
def test_damaged_meta_properties_are_refused_by_name(text: str, why: str) -> None:
    with pytest.raises(DirectoryError, match=f"meta.properties.*{why}"):
        parse_meta_properties(text, "meta.properties")


def test_second_broker_on_a_directory_is_told_so(tmp_path: Path) -> None:
    first = open_directory(tmp_path)
    with pytest.raises(DirectoryError, match=r"in use by another broker .* take another directory \(--data DIR"):
        open_directory(tmp_path)
    first.release()
    open_directory(tmp_path).release()


def test_new_directory_is_made_and_has_no_owner(tmp_path: Path) -> None:
    directory = open_directory(tmp_path / "new" / "data")
    assert directory.meta is None
    directory.format(META)
    directory.release()
    assert open_directory(tmp_path / "new" / "data").meta == META


def test_formatted_directory_is_not_formatted_again(tmp_path: Path) -> None:
    directory = open_directory(tmp_path)
    directory.format(META)
    with pytest.raises(DirectoryError, match="formatted"):
        directory.format(META)


def test_directories_of_two_brokers_are_refused_and_unlocked(tmp_path: Path) -> None:
    for name, node_id in (("a", 1), ("b", 2)):
        directory = open_directory(tmp_path / name)
        directory.format(MetaProperties("cluster", node_id, None))
        directory.release()
    with pytest.raises(DirectoryError, match="different brokers"):
        open_directories(FILES, [str(tmp_path / "a"), str(tmp_path / "b")])
    open_directory(tmp_path / "a").release()


def test_file_in_place_of_a_directory_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(DirectoryError, match="cannot be used"):
        open_directory(tmp_path / "data")


@pytest.mark.parametrize(
    ("data", "epoch"),
    [(b'{"version":0,"brokerEpoch":85}', 85), (b"", -1), (b"[]", -1), (b'{"version":0}', -1), (b"\xff", -1)],
)
def test_clean_shutdown_file_counts_whatever_it_holds(tmp_path: Path, data: bytes, epoch: int) -> None:
    assert parse_clean_shutdown(data) == epoch
    (tmp_path / ".kafka_cleanshutdown").write_bytes(data)
    directory = open_directory(tmp_path)
    assert directory.read_clean_shutdown()
    assert directory.broker_epoch == epoch
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == data
    directory.remove_clean_shutdown()
    assert directory.was_clean
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert not directory.read_clean_shutdown()


def test_clean_shutdown_file_is_written_as_kafka_does(tmp_path: Path) -> None:
    open_directory(tmp_path).write_clean_shutdown(85)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":85}'


def test_partitions_are_the_directories_named_like_one(tmp_path: Path) -> None:
    uuid = "0" * 32
    for name in (
        "t-0",
        "a-b.c_d-12",
        "__cluster_metadata-0",
        f"t-1.{uuid}-delete",
        f"t-2.{uuid}-future",
        f"t-3.{uuid}-stray",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / "a-file-0").write_text("")
    directory = open_directory(tmp_path)
    assert sorted(directory.partitions()) == [TopicPartition("a-b.c_d", 12), TopicPartition("t", 0)]
    assert directory.discarded() == [str(tmp_path / f"t-1.{uuid}-delete")]


def test_folder_that_is_no_partition_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    with pytest.raises(DirectoryError, match=r"photos is not named like a partition .* move it out of"):
        open_directory(tmp_path).partitions()
