"""Group commit: one sync at a time serves all appends before it, and a failed one is final."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import ReadLimit, Ticket
from ottla.errors import KafkaStorageError, UnknownTopicOrPartition
from ottla.model import TopicId, TopicPartition
from ottla.storage.flusher import MOST_AT_ONCE, flushes_at_once
from ottla.storage.manager import LogManager
from ottla.testing.clock import ManualClock
from ottla.testing.faults import Faults, FaultyFileSystem
from ottla.testing.memory import MemoryFileSystem
from tests.storage.harness import (
    TOPIC_ID,
    TP,
    FailingFileSystem,
    ManualOffload,
    UnsyncedFileSystem,
    make_batch,
    make_host,
    make_manager,
    open_log,
)


class Bench:
    """A manager under `fsync` with one partition whose first flush, which also makes its names durable, has run."""

    def __init__(self, directory: Path) -> None:
        self.files = FailingFileSystem()
        self.offload = ManualOffload()
        self.manager: LogManager = make_manager(directory, fsync=True, filesystem=self.files, offload=self.offload)
        self.manager.open()
        self.manager.load()
        self.manager.create(TP, TOPIC_ID, LogConfig())
        self.append()
        self.offload.run_all()
        self.files.sync_count = 0

    def append(self) -> Ticket:
        return self.manager.begin_append(TP, make_batch(), leader_epoch=0)

    @property
    def high_watermark(self) -> int:
        return self.manager.offsets(TP).high_watermark


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_append_is_durable_after_the_flush_only(bench: Bench) -> None:
    ticket = bench.append()
    before = (ticket.is_durable, bench.high_watermark)

    bench.offload.run_all()

    assert before == (False, 1)
    assert (ticket.is_durable, bench.high_watermark) == (True, 2)


def test_appends_of_one_round_share_a_flush(bench: Bench) -> None:
    tickets = [bench.append() for _ in range(10)]
    bench.offload.run_all()
    assert bench.files.sync_count == 1
    assert all(ticket.is_durable for ticket in tickets)


def test_one_flush_runs_at_a_time_and_the_next_serves_all_that_came(bench: Bench) -> None:
    first = bench.append()
    bench.offload.run_loop()
    later = [bench.append() for _ in range(5)]
    bench.offload.run_loop()
    assert len(bench.offload.work) == 1

    bench.offload.run_work()
    bench.offload.run_loop()
    assert first.is_durable
    assert not later[0].is_durable
    assert len(bench.offload.work) == 1

    bench.offload.run_work()
    assert all(ticket.is_durable for ticket in later)
    assert bench.files.sync_count == 2
    assert not bench.offload.work


def test_high_watermark_moves_before_the_tickets_report(bench: Bench) -> None:
    seen: list[int] = []
    bench.append().on_done(lambda: seen.append(bench.high_watermark))
    bench.offload.run_all()
    assert seen == [2]


def test_callback_of_a_settled_ticket_runs_soon_and_not_at_once(bench: Bench) -> None:
    ticket = bench.append()
    bench.offload.run_all()
    called: list[bool] = []
    ticket.on_done(lambda: called.append(True))
    assert not called
    bench.offload.run_all()
    assert called == [True]


def test_every_callback_of_a_ticket_runs_once(bench: Bench) -> None:
    ticket = bench.append()
    called: list[str] = []
    ticket.on_done(lambda: called.append("first"))
    ticket.on_done(lambda: called.append("second"))
    bench.offload.run_all()
    assert called == ["first", "second"]


def test_failed_flush_ends_appends_for_good_and_not_reads(bench: Bench) -> None:
    """The kernel may have dropped what it could not write, so a later sync that works proves nothing."""
    ticket = bench.append()
    done: list[bool] = []
    ticket.on_done(lambda: done.append(True))
    bench.files.is_sync_failing = True
    bench.offload.run_all()

    assert isinstance(ticket.error, KafkaStorageError)
    assert done == [True]
    assert not ticket.is_durable
    assert bench.high_watermark == 1
    bench.files.is_sync_failing = False
    with pytest.raises(KafkaStorageError):
        bench.append()
    assert bench.manager.read(TP, 0, ReadLimit(1000, 1, at_least_one_batch=True)).size_bytes > 0


def test_appends_behind_a_failed_flush_fail_with_it(bench: Bench) -> None:
    bench.append()
    bench.offload.run_loop()
    later = bench.append()
    bench.files.is_sync_failing = True
    bench.offload.run_all()
    assert isinstance(later.error, KafkaStorageError)


def test_repeat_of_an_append_that_is_not_durable_waits_too(bench: Bench) -> None:
    bench.manager.begin_append(TP, make_batch(producer_id=1, producer_epoch=0, base_sequence=0), leader_epoch=0)
    repeat = bench.manager.begin_append(
        TP, make_batch(producer_id=1, producer_epoch=0, base_sequence=0), leader_epoch=0
    )
    assert repeat.is_duplicate
    assert repeat.base_offset == 1
    assert not repeat.is_durable
    bench.offload.run_all()
    assert repeat.is_durable


def test_rolled_segment_is_synced_with_the_one_that_follows(bench: Bench) -> None:
    bench.manager.configure(TP, LogConfig(internal_segment_bytes=150))
    for _ in range(3):
        bench.append()
    bench.offload.run_all()
    assert bench.files.sync_count == 2
    assert bench.high_watermark == 4


def test_when_idle_waits_for_the_running_flush(bench: Bench) -> None:
    called: list[bool] = []
    bench.append()
    bench.manager.when_idle(lambda: called.append(True))
    assert not called
    bench.offload.run_all()
    assert called == [True]
    bench.manager.when_idle(lambda: called.append(True))
    assert called == [True, True]


def test_stop_while_a_flush_runs_is_not_clean(bench: Bench, tmp_path: Path) -> None:
    bench.append()
    bench.offload.run_loop()
    bench.manager.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_flush_messages_adds_flushes_without_fsync_policy(tmp_path: Path) -> None:
    offload = ManualOffload()
    manager = make_manager(tmp_path, offload=offload)
    manager.open()
    manager.load()
    manager.create(TP, TOPIC_ID, LogConfig(flush_messages=3))
    for expected in (0, 0, 1):
        manager.begin_append(TP, make_batch(), leader_epoch=0)
        offload.run_loop()
        assert len(offload.work) == expected
    offload.run_all()
    assert manager.log(TP).flushed_offset == 3


def test_os_policy_leaves_threads_alone(tmp_path: Path) -> None:
    offload = ManualOffload()
    manager = make_manager(tmp_path, offload=offload)
    manager.open()
    manager.load()
    manager.create(TP, TOPIC_ID, LogConfig())
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    assert not offload.callbacks
    assert not offload.work


def test_a_log_deleted_before_its_flush_leaves_its_successor_alone(bench: Bench, tmp_path: Path) -> None:
    bench.manager.begin_append(TP, make_batch(), leader_epoch=7)
    bench.manager.delete(TP)
    bench.manager.create(TP, TopicId(bytes(15) + b"\x08"), LogConfig())

    bench.offload.run_all()

    assert bench.manager.open_file_count == 0
    assert not (tmp_path / "t-0" / "leader-epoch-checkpoint").exists()
    assert bench.append().base_offset == 0


def test_an_append_that_the_end_of_a_flush_leads_to_has_its_own_flush(bench: Bench) -> None:
    """A connection whose request was acknowledged goes on with the next, within the call that told it so."""
    followed: list[Ticket] = []
    bench.append().on_done(lambda: followed.append(bench.append()))
    bench.offload.run_all()
    assert [ticket.is_durable for ticket in followed] == [True]
    assert bench.high_watermark == 3


def test_a_fault_of_who_hears_of_progress_does_not_end_flushing(bench: Bench) -> None:
    def fail(_: TopicPartition) -> None:
        raise RuntimeError("a fault")

    bench.manager.on_advance(fail)
    first = bench.append()
    with pytest.raises(RuntimeError):
        bench.offload.run_all()
    bench.manager.on_advance(lambda _: None)

    second = bench.append()
    bench.offload.run_all()

    assert first.is_durable
    assert second.is_durable


def test_thousands_of_logs_do_not_have_their_files_open_at_once(tmp_path: Path) -> None:
    offload = ManualOffload()
    manager = make_manager(tmp_path, fsync=True, filesystem=UnsyncedFileSystem(), offload=offload)
    manager.open()
    manager.load()
    tickets = []
    for number in range(3 * MOST_AT_ONCE):
        partition = TopicPartition("t", number)
        manager.create(partition, TOPIC_ID, LogConfig())
        tickets.append(manager.begin_append(partition, make_batch(), leader_epoch=0))
    manager.delete(TopicPartition("t", 2 * MOST_AT_ONCE))

    begun = []
    while offload.callbacks or offload.work:
        offload.run_loop()
        begun.append(len(offload.work))
        if offload.work:
            offload.run_work()

    assert max(begun) == MOST_AT_ONCE
    assert sum(ticket.is_durable for ticket in tickets) == len(tickets) - 1
    idle: list[bool] = []
    manager.when_idle(lambda: idle.append(True))
    assert idle


class ShortOfDescriptors:
    """A log under `fsync` on a file system that is out of descriptors from its append on, for three pauses."""

    def __init__(self, call: str) -> None:
        self.is_short = False
        self.pauses = 0
        clock = ManualClock()
        faults = Faults(Random(1))
        faults.error = errno.EMFILE
        faults.fails = lambda tried, _: self.is_short and tried == call
        self.at_pause: Callable[[], None] = lambda: None
        files = FaultyFileSystem(MemoryFileSystem(clock), faults)
        host, self.offload = make_host(fsync=True, filesystem=files, clock=clock, pause=self.pause)
        self.log = open_log(Path("/data/t-0"), host=host)

    def pause(self) -> None:
        self.pauses += 1
        self.is_short = self.pauses < 3
        self.at_pause()

    def append(self) -> Ticket:
        ticket = self.log.append(make_batch(), leader_epoch=0)
        self.log.active.file.close_if_idle()  # which takes note that it was touched
        self.log.active.file.close_if_idle()
        self.is_short = True
        self.offload.run_all()
        return ticket


@pytest.mark.parametrize("call", ["open", "sync_directory"])
def test_a_flush_without_descriptors_waits_and_loses_nothing(call: str, caplog: pytest.LogCaptureFixture) -> None:
    bench = ShortOfDescriptors(call)
    ticket = bench.append()
    assert bench.pauses == 3
    assert ticket.is_durable
    assert bench.log.failure is None
    assert caplog.text.count("flushes wait for file descriptors") == 1


@pytest.mark.parametrize("call", ["open", "sync_directory"])
def test_a_log_deleted_while_its_flush_waits_for_descriptors_ends_it(call: str) -> None:
    bench = ShortOfDescriptors(call)
    bench.at_pause = lambda: bench.log.discard(UnknownTopicOrPartition("t-0 was deleted"))
    ticket = bench.append()
    assert bench.pauses == 1
    assert isinstance(ticket.error, UnknownTopicOrPartition)
    assert not bench.log.active.file.is_open


@pytest.mark.parametrize(
    ("descriptor_limit", "flushes"), [(1, 1), (64, 8), (256, 32), (1024, MOST_AT_ONCE), (1 << 20, 64)]
)
def test_flushes_leave_most_descriptors_to_each_other(descriptor_limit: int, flushes: int) -> None:
    """Each may need one more than it holds, and all would wait for each other."""
    assert flushes_at_once(descriptor_limit) == flushes
