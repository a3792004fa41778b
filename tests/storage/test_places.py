"""Which directory a partition gets, and what is left where it goes away."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.errors import InvalidReplicaAssignment, LogDirNotFound, UnknownTopicOrPartition
from ottla.model import TopicId, TopicPartition
from ottla.storage.directory import DELETE_SUFFIX
from ottla.storage.files import LocalFileSystem
from ottla.storage.places import Places

TOPIC_ID = TopicId(bytes(range(16)))


def open_places(tmp_path: Path, **settings: str) -> Places:
    paths = ",".join(str(tmp_path / name) for name in ("one", "two"))
    places = Places(BrokerConfig.from_properties({"log.dirs": paths, **settings}), LocalFileSystem())
    places.open()
    places.find()
    assert places.begin() == []
    return places


def partition(number: int) -> TopicPartition:
    return TopicPartition("topic", number)


def make(places: Places, number: int) -> str:
    """Make a partition and return the name of its directory's place."""
    places.add_new(partition(number), TOPIC_ID, LogConfig())
    places.make(partition(number))
    return Path(places.place(partition(number)).directory.path).name


def test_a_partition_is_made_where_it_was_wanted_else_where_the_fewest_are(tmp_path: Path) -> None:
    places = open_places(tmp_path)
    for number in (0, 1):
        places.prefer(partition(number), places.directory_at(str(tmp_path / "two")))

    assert [make(places, number) for number in range(5)] == ["two", "two", "one", "one", "one"]
    assert (tmp_path / "two" / "topic-1" / "partition.metadata").exists()


def test_a_cordoned_directory_gets_nothing_new_as_long_as_there_is_another(tmp_path: Path) -> None:
    places = open_places(tmp_path)
    places.directories[0].is_cordoned = True

    assert [make(places, number) for number in range(2)] == ["two", "two"]
    with pytest.raises(InvalidReplicaAssignment):
        places.directory_at(str(tmp_path / "one"))
    places.directories[1].is_cordoned = True
    assert make(places, 2) == "one"


def test_a_directory_that_is_not_ours_is_said_so(tmp_path: Path) -> None:
    places = open_places(tmp_path)
    with pytest.raises(LogDirNotFound):
        places.directory_at(str(tmp_path / "three"))


def test_a_directory_for_metadata_alone_gets_no_partitions(tmp_path: Path) -> None:
    places = open_places(tmp_path, **{"metadata.log.dir": str(tmp_path / "meta")})

    assert [Path(one.path).name for one in places.every_directory] == ["one", "two", "meta"]
    assert {make(places, number) for number in range(6)} == {"one", "two"}


def test_what_is_moved_away_is_unknown_and_another_may_come_in_its_place(tmp_path: Path) -> None:
    places = open_places(tmp_path)
    make(places, 0)

    gone = Path(places.move_away(partition(0), DELETE_SUFFIX))

    assert gone.exists()
    assert gone.name.endswith(DELETE_SUFFIX)
    assert partition(0) not in places.by_partition
    with pytest.raises(UnknownTopicOrPartition):
        places.place(partition(0))
    assert make(places, 0) == "one"
