"""What a log owes the disk: told once, to the next flush, by the names that hold then."""

from __future__ import annotations

from pathlib import Path

from ottla.config.log_config import LogConfig
from ottla.storage.directory_names import DirectoryNames
from ottla.storage.files import LocalFileSystem
from ottla.storage.flush_work import FlushWork
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.unsynced import Unsynced
from tests.storage.harness import make_batch, make_host, open_log


class ToldFileSystem(LocalFileSystem):
    """Notes what is synced."""

    __slots__ = ("synced",)

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []

    def sync_file(self, path: str) -> None:
        self.synced.append(path)

    def sync_directory(self, path: str) -> None:
        self.synced.append(path)


def flush(unsynced: Unsynced, directory: str) -> list[str]:
    files = ToldFileSystem()
    work = FlushWork(files, 0, [])
    unsynced.hand_over(work, directory, DirectoryNames(), LeaderEpochs(files, f"{directory}/leader-epoch-checkpoint"))
    work.run()
    return files.synced


def test_nothing_is_owed_at_first(tmp_path: Path) -> None:
    unsynced = Unsynced()
    assert not unsynced
    assert flush(unsynced, str(tmp_path)) == []


def test_what_was_made_is_synced_once_and_each_directory_once(tmp_path: Path) -> None:
    unsynced = Unsynced()
    unsynced.add_made((), ["/data/t-0", "/data"])
    unsynced.add_made(["/data/t-0/partition.metadata"], ["/data/t-0", "/data"])
    assert flush(unsynced, str(tmp_path)) == ["/data/t-0/partition.metadata", "/data/t-0", "/data"]
    assert flush(unsynced, str(tmp_path)) == []


def test_names_follow_the_log_into_another_directory(tmp_path: Path) -> None:
    unsynced = Unsynced()
    unsynced.add_made(["/data/t-0/partition.metadata"], ["/data/t-0", "/data", "/data/t-01"])
    unsynced.add_indexes(["/data/t-0/00000000000000000000.index"])
    unsynced.move("/data/t-0", "/other/t-0")
    assert unsynced
    assert flush(unsynced, str(tmp_path)) == [
        "/other/t-0/partition.metadata",
        "/other/t-0/00000000000000000000.index",
        "/other/t-0",
        "/data",
        "/data/t-01",
    ]
    assert not unsynced


def test_epochs_are_written_where_they_were_not_and_where_they_were_in_memory_only(tmp_path: Path) -> None:
    for note in (lambda unsynced: setattr(unsynced, "has_epoch", True), Unsynced.note_written_epoch):
        unsynced = Unsynced()
        note(unsynced)
        assert unsynced
        flush(unsynced, str(tmp_path))
        assert (tmp_path / "leader-epoch-checkpoint").exists()
        assert not unsynced


def test_a_segment_that_is_gone_is_owed_no_more(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(index_interval_bytes=0), host=make_host()[0])
    log.append(make_batch(2), leader_epoch=0)
    old = log.active
    log.roll()
    assert log.unsynced.rolled == [old]
    log.unsynced.forget(old)
    log.unsynced.forget(old)
    assert log.unsynced.rolled == []
