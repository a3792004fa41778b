"""Logs that move to another log directory: nobody notices, and wherever it ends in the middle, nothing is lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.engine import ReadLimit, Ticket
from ottla.errors import (
    InvalidReplicaAssignment,
    InvalidTopicException,
    KafkaStorageError,
    LogDirNotFound,
    OutOfOrderSequenceNumber,
)
from ottla.model import TopicId, TopicPartition
from ottla.storage.files import LocalFileSystem
from ottla.storage.future_log import WHOLE_MARK
from ottla.storage.moves import RATE
from tests.storage.harness import TOPIC_ID, TP, Kept, make_batch, start_manager, take_bytes

SEGMENT_BYTES = 1000
DELAY_MS = 60_000


def log_config(**settings: Any) -> LogConfig:
    return LogConfig(**{"internal_segment_bytes": SEGMENT_BYTES, "file_delete_delay_ms": DELAY_MS, **settings})


class TwoDirectories:
    """A manager with two log directories and one log, which begins in the first."""

    def __init__(self, root: Path, *, rate: int | None = None, log: dict[str, Any] | None = None, **kept: Any) -> None:
        self.here, self.there = root / "here", root / "there"
        properties = {"log.dirs": f"{self.here},{self.there}"}
        self.kept = Kept(root, properties=properties, **kept)
        self.manager = self.kept.manager
        self.settings = BrokerConfig.from_properties(properties)
        if rate is not None:
            self.set_rate(rate)
        self.manager.keep_in(TP, str(self.here))
        self.manager.create(TP, TOPIC_ID, log_config(**(log or {})))

    def set_rate(self, bytes_per_second: int) -> None:
        self.manager.configure_housekeeping(self.settings.with_changes({RATE: str(bytes_per_second)}))

    def cordon(self, paths: str) -> None:
        self.manager.configure_housekeeping(self.settings.with_changes({"cordoned.log.dirs": paths}))

    def append(self, count: int = 1, **batch: Any) -> list[Ticket]:
        return [
            self.manager.begin_append(TP, make_batch(value=b"%0100d" % number, **batch), leader_epoch=3)
            for number in range(count)
        ]

    def move(self, to: Path | None = None) -> None:
        self.manager.keep_in(TP, str(to or self.there))

    def run(self, seconds: float = 1) -> None:
        for _ in range(int(seconds * 10)):
            self.kept.advance(0.1)

    def read(self) -> bytes:
        offsets = self.manager.offsets(TP)
        data, offset = b"", offsets.log_start_offset
        while offset < offsets.log_end_offset:
            piece = take_bytes(self.manager.read(TP, offset, ReadLimit(1, offsets.log_end_offset, True)))
            data += piece
            offset = int.from_bytes(piece[:8], "big") + int.from_bytes(piece[23:27], "big") + 1
        return data

    def names(self) -> tuple[list[str], list[str]]:
        """Return the ends of the directories' names, here and there."""
        return partition_names(self.here), partition_names(self.there)

    def futures(self) -> list[tuple[str, int]]:
        return [
            (Path(facts.path).name, future.offset_lag)
            for facts in self.manager.describe_directories()
            for future in facts.futures
        ]


def partition_names(directory: Path) -> list[str]:
    names = [name for name in os.listdir(directory) if name.startswith("t-")]
    return sorted(name.rpartition("-")[2] if "." in name else name for name in names)


def test_a_log_moves_while_it_is_used(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path)
    both.append(30)
    before = both.read()
    both.move()
    both.append(5)
    both.run()
    both.append(20)
    assert both.read()[: len(before)] == before
    assert both.manager.offsets(TP).log_end_offset == 55
    assert both.names() == (["delete"], ["t-0"])
    assert both.manager.directory_of(TP).path == str(both.there)
    both.run(DELAY_MS / 1000 + 1)
    assert both.names() == ([], ["t-0"])


def test_a_cordoned_directory_takes_no_new_logs(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path)
    both.append(1)
    second, third = TopicPartition("t", 1), TopicPartition("t", 2)
    both.cordon(str(both.there))  # where fewer are
    both.manager.create(second, TOPIC_ID, log_config())
    assert both.names() == (["t-0", "t-1"], [])
    for partition in (TP, TopicPartition("later", 0)):
        with pytest.raises(InvalidReplicaAssignment):
            both.manager.keep_in(partition, str(both.there))
    assert [facts.is_cordoned for facts in both.manager.describe_directories()] == [False, True]
    both.cordon("")
    both.manager.create(third, TOPIC_ID, log_config())
    assert both.names() == (["t-0", "t-1"], ["t-2"])


def test_what_is_there_after_a_start_is_what_was_there(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path)
    both.append(30)
    both.move()
    both.run()
    both.append(3)
    expected = both.read()
    both.manager.close()
    again = start_manager(tmp_path, properties={"log.dirs": f"{both.here},{both.there}"})
    both.manager = again
    assert both.read() == expected
    assert again.latest_leader_epoch(TP) == 3


def test_producers_are_known_as_before(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path)
    for sequence in range(12):
        both.append(producer_id=7, producer_epoch=0, base_sequence=sequence)
    both.move()
    both.run()
    (repeated,) = both.append(producer_id=7, producer_epoch=0, base_sequence=11)
    assert repeated.is_duplicate
    with pytest.raises(OutOfOrderSequenceNumber):
        both.append(producer_id=7, producer_epoch=0, base_sequence=2)
    both.append(producer_id=7, producer_epoch=0, base_sequence=12)


@pytest.mark.parametrize("is_under_way", [False, True])
def test_what_waits_for_a_flush_gets_it_in_the_new_directory(tmp_path: Path, is_under_way: bool) -> None:
    both = TwoDirectories(tmp_path, fsync=True)
    (waiting,) = both.append()
    if is_under_way:
        both.kept.offload.run_loop()
    both.move()
    assert both.manager.log(TP).directory.startswith(str(both.there))
    (later,) = both.append()
    assert [ticket.is_durable for ticket in (waiting, later)] == [False, False]
    both.run()
    assert [ticket.is_durable for ticket in (waiting, later)] == [True, True]
    assert waiting.error is None
    assert both.names() == (["delete"], ["t-0"])


def test_a_reader_keeps_what_it_was_given(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path, log={"internal_segment_bytes": 100_000})
    both.manager.begin_append(TP, make_batch(value=b"x" * 50_000), leader_epoch=0)
    result = both.manager.read(TP, 0, ReadLimit(100_000, 1, at_least_one_batch=True))
    both.move()
    both.run(DELAY_MS / 1000 + 1)
    assert both.names() == ([], ["t-0"])
    assert b"x" * 50_000 in take_bytes(result)


def test_how_far_it_is_can_be_seen_and_it_may_turn_round(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path, rate=200, log={"internal_segment_bytes": 40_000})
    both.append(1000)
    both.move()
    both.run()
    ((where, lag),) = both.futures()
    assert where == "there"
    assert 0 < lag < 1000
    both.move()  # once more is the same
    both.move(both.here)
    assert both.futures() == []
    assert both.names() == (["t-0"], ["delete"])
    both.move()
    both.set_rate(10**9)
    both.run()
    assert both.names() == (["delete"], ["delete", "t-0"])


def test_a_log_that_is_deleted_on_its_way_is_gone_everywhere(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path, rate=200, log={"internal_segment_bytes": 40_000})
    both.append(1000)
    both.move()
    both.run()
    both.manager.delete(TP)
    assert both.names() == (["delete"], ["delete"])
    both.run(DELAY_MS / 1000 + 1)
    assert both.names() == ([], [])


def test_a_topic_that_took_the_name_keeps_its_directory(tmp_path: Path) -> None:
    """The log was deleted, and made anew, just when a thread was about to put its original aside."""

    class Watched(LocalFileSystem):
        def remove_tree(self, path: str) -> None:
            super().remove_tree(path)
            if path == str(both.here / f"t-0.{TOPIC_ID.hex()}-delete") and not recreated:
                recreated.append(True)
                both.manager.delete(TP)
                both.manager.keep_in(TP, str(both.here))
                both.manager.create(TP, TopicId(bytes(15) + b"\x09"), log_config())
                super().remove_tree(path)  # its time may have come

    recreated: list[bool] = []
    both = TwoDirectories(tmp_path, filesystem=Watched())
    both.append(3)
    both.move()
    both.run()
    assert recreated
    both.append(2)
    both.run(DELAY_MS / 1000 + 1)
    assert both.names() == (["t-0"], [])
    assert both.manager.offsets(TP).log_end_offset == 2


def test_places_that_are_none_are_refused(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path)
    with pytest.raises(LogDirNotFound):
        both.move(tmp_path / "nowhere")
    both.move(both.here)  # where it is
    both.run()
    assert both.names() == (["t-0"], [])
    long = TopicPartition("t" * 249, 0)
    both.manager.create(long, TOPIC_ID, LogConfig())
    elsewhere = both.here if both.manager.directory_of(long).path == str(both.there) else both.there
    with pytest.raises(InvalidTopicException):
        both.manager.keep_in(long, str(elsewhere))


def test_a_partition_that_is_not_there_yet_is_made_where_it_was_wanted(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path)
    later = TopicPartition("later", 3)
    both.manager.keep_in(later, str(both.here))  # which has more already
    both.manager.create(later, TOPIC_ID, LogConfig())
    assert both.manager.directory_of(later).path == str(both.here)


def test_retention_and_deleted_records_hold_on_the_way(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path, rate=50_000)
    both.append(200)
    both.move()
    both.run(0.3)
    assert both.futures()
    start = both.manager.delete_records(TP, 103)
    both.kept.advance(301)  # retention removes the segments before
    both.set_rate(10**9)
    both.run()
    assert both.names()[1] == ["t-0"]
    assert both.manager.offsets(TP).log_start_offset == start == 103
    expected = both.read()
    files = [int(name[:-4]) for name in os.listdir(both.there / "t-0") if name.endswith(".log")]
    assert min(files) == both.manager.log(TP).segments[0].base_offset > 0
    both.manager.close()
    both.manager = start_manager(tmp_path, properties={"log.dirs": f"{both.here},{both.there}"})
    assert both.manager.offsets(TP).log_start_offset == 103
    assert both.read() == expected


def test_a_compacted_log_is_not_rewritten_on_its_way(tmp_path: Path) -> None:
    both = TwoDirectories(
        tmp_path,
        rate=200,
        log={"cleanup_policy": frozenset({"compact"}), "min_cleanable_dirty_ratio": 0.01},
    )
    both.append(200)
    both.move()
    both.kept.advance(16)
    assert both.futures()
    assert both.manager.size_bytes(TP) > 30_000
    both.set_rate(10**9)
    both.run(40)
    assert both.names()[1] == ["t-0"]
    assert both.manager.size_bytes(TP) < 2000


def test_a_full_disk_leaves_the_log_where_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class FullThere(LocalFileSystem):
        def open(self, path: str, *, create: bool = False) -> Any:
            if "-future" in path:
                raise OSError(errno.ENOSPC, "no space left on device")
            return super().open(path, create=create)

    both = TwoDirectories(tmp_path, filesystem=FullThere())
    both.append(30)
    both.move()
    both.run()
    both.append()
    assert both.names() == (["t-0"], ["delete"])
    assert both.manager.offsets(TP).log_end_offset == 31
    assert "t-0 does not move" in caplog.text


def test_a_copy_that_cannot_be_synced_ends_the_writing_and_the_original_stays(tmp_path: Path) -> None:
    class Unsyncable(LocalFileSystem):
        def sync_directory(self, path: str) -> None:
            if "-future" in path:
                raise OSError(errno.EIO, "input/output error")

    both = TwoDirectories(tmp_path, filesystem=Unsyncable())
    both.append(3)
    both.move()
    both.run()
    with pytest.raises(KafkaStorageError):
        both.append()
    assert both.names() == (["t-0"], ["future"])


def crash(both: TwoDirectories) -> TwoDirectories:
    """Forget the manager as it is and start another one."""
    for directory in both.manager.directories:
        directory.release()
    again = TwoDirectories.__new__(TwoDirectories)
    again.here, again.there, again.settings = both.here, both.there, both.settings
    again.kept = Kept(both.here.parent, properties={"log.dirs": f"{both.here},{both.there}"})
    again.manager = again.kept.manager
    again.manager.create(TP, TOPIC_ID, log_config())
    return again


def test_a_killed_broker_goes_on_with_what_it_had_begun(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path, rate=20_000)
    both.append(200)
    expected = both.read()
    both.move()
    both.run(0.5)
    assert both.names() == (["t-0"], ["future"])
    again = crash(both)
    assert again.manager.directory_of(TP).path == str(both.here)
    again.run()
    assert again.names() == (["delete"], ["t-0"])
    assert again.read() == expected


def test_a_copy_of_other_segments_is_made_anew(tmp_path: Path) -> None:
    """Kafka's copies begin their segments elsewhere."""
    both = TwoDirectories(tmp_path)
    both.append(40)
    expected = both.read()
    future = both.there / f"t-0.{'1f' * 16}-future"
    future.mkdir()
    (future / f"{0:020d}.log").write_bytes(expected[:321])
    (future / f"{2:020d}.log").write_bytes(expected[321:500])
    again = crash(both)
    again.run()
    assert again.names() == (["delete"], ["t-0"])
    assert again.read() == expected


def test_a_copy_in_which_the_log_went_on_is_the_log(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path)
    both.append(40)
    both.move()
    both.kept.offload.run_work()
    while both.manager.log(TP).directory == str(both.here / "t-0"):
        both.kept.offload.run_work()
    both.append(7)
    expected = both.read()
    assert both.names() == (["t-0"], ["future"])
    again = crash(both)
    assert again.manager.directory_of(TP).path == str(both.there)
    assert again.names() == (["delete"], ["t-0"])
    assert again.read() == expected


def test_a_longer_copy_with_a_hole_is_not_the_log(tmp_path: Path) -> None:
    """What a power cut leaves of files that were not synced need not be their beginning."""
    both = TwoDirectories(tmp_path)
    both.append(40)
    both.move()
    while both.manager.log(TP).directory == str(both.here / "t-0"):
        both.kept.offload.run_work()
    expected = both.read()
    both.append(20)
    at_the_switch = max(int(name[:-4]) for name in os.listdir(both.here / "t-0") if name.endswith(".log"))
    (torn,) = both.there.glob(f"*/{at_the_switch:020d}.log")
    torn.write_bytes(torn.read_bytes()[:-1])
    again = crash(both)
    assert again.manager.directory_of(TP).path == str(both.here)
    assert again.read() == expected


def test_a_log_that_is_almost_there_may_be_asked_back(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path)
    both.append(3)
    expected = both.read()
    both.move()
    while both.names() == (["t-0"], ["future"]):
        work, done = both.kept.offload.work.popleft()
        work()
        if both.names() == (["t-0"], ["future"]):
            done(None)
    assert both.names() == (["delete"], ["future"])
    both.move(both.here)
    done(None)
    both.run()
    assert both.names() == (["delete", "t-0"], ["delete"])
    assert both.read() == expected


def test_a_whole_copy_that_is_alone_is_the_log(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path)
    both.append(40)
    expected = both.read()
    both.move()
    while both.names() != (["delete"], ["future"]):
        work, done = both.kept.offload.work.popleft()
        work()
        if both.names() != (["delete"], ["future"]):
            done(None)
    again = crash(both)
    assert again.names() == (["delete"], ["t-0"])
    assert again.read() == expected
    assert not (both.there / "t-0" / WHOLE_MARK).exists()


def test_a_copy_whose_original_is_on_another_disk_is_left_alone(tmp_path: Path) -> None:
    """It may be a beginning only, and whoever took it for the log would write its offsets anew."""
    both = TwoDirectories(tmp_path)
    both.append(40)
    (both.here / "t-0").rename(both.there / f"t-0.{'1f' * 16}-future")
    again = crash(both)
    assert again.manager.offsets(TP).log_end_offset == 0
    assert "future" in again.names()[1]


def test_of_two_copies_the_longer_one_is_gone_on_with(tmp_path: Path) -> None:
    both = TwoDirectories(tmp_path)
    both.append(40)
    expected = both.read()
    for unique, size_bytes in (("1f", 600), ("2e", 900)):
        future = both.there / f"t-0.{unique * 16}-future"
        future.mkdir()
        (future / f"{0:020d}.log").write_bytes(expected[:size_bytes])
    again = crash(both)
    again.run()
    assert again.names() == (["delete"], ["t-0"])
    assert again.read() == expected
