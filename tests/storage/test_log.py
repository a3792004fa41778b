"""One partition's log: appends, rolls, reads across segments, cuts, and what a disk that fails leaves."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random
from traceback import walk_tb

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import LogOffsets, ReadLimit
from ottla.errors import KafkaStorageError, OffsetOutOfRange, OutOfOrderSequenceNumber, RecordListTooLarge
from ottla.model import AppendOrigin
from ottla.records.batch import HEADER_BYTES, RecordBatch
from ottla.records.control import ControlType, EndTransactionMarker, end_transaction_batch
from ottla.records.validation import ValidatedBatch
from ottla.storage.files import LocalFile, LocalFileSystem
from ottla.storage.log import SPAN_FROM_BYTES, PartitionLog
from ottla.storage.producer_state import encode_snapshot
from ottla.storage.recovery import LoadPoint
from ottla.storage.span import SegmentSpan
from ottla.testing.clock import ManualClock
from ottla.testing.faults import Faults, FaultyFileSystem
from tests.storage.harness import UNCLEAN, FailingFileSystem, make_batch, make_host, open_log, take_bytes

FILES = LocalFileSystem()
EVERYTHING = ReadLimit(1_000_000, 1_000_000, at_least_one_batch=True)


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_append_stamps_offset_and_epoch_in_place(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    batch = make_batch(3)

    first = log.append(batch, leader_epoch=4)
    second = log.append(make_batch(2), leader_epoch=4)

    stamped = RecordBatch(batch)
    assert (stamped.base_offset, stamped.partition_leader_epoch) == (0, 4)
    assert (first.base_offset, first.last_offset) == (0, 2)
    assert (second.base_offset, second.last_offset) == (3, 4)
    assert take_bytes(log.read(0, EVERYTHING))[: len(batch)] == batch
    assert log.epochs.entries == [(4, 0)]


def test_log_rolls_when_a_segment_is_full(tmp_path: Path) -> None:
    batch = make_batch()
    log = open_log(tmp_path, LogConfig(segment_bytes=3 * len(batch)))
    for _ in range(7):
        log.append(make_batch(), leader_epoch=0)

    assert bases(log) == [0, 3, 6]
    assert sorted(path.name for path in tmp_path.glob("*.snapshot")) == [f"{offset:020d}.snapshot" for offset in (3, 6)]
    assert [take_bytes(log.read(offset, EVERYTHING))[7] for offset in (2, 3, 6)] == [2, 3, 6]


def test_log_rolls_by_the_time_of_the_records(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000))
    for timestamp_ms in (5000, 6000, 6001, 6500):
        log.append(make_batch(timestamp_ms=timestamp_ms), leader_epoch=0)
    assert bases(log) == [0, 2]


def test_log_without_timestamps_rolls_by_the_clock(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, LogConfig(segment_ms=1000), host=make_host(clock=clock)[0])
    log.append(make_batch(timestamp_ms=-1), leader_epoch=0)
    clock.advance(2)
    log.append(make_batch(timestamp_ms=clock.wall_ms()), leader_epoch=0)
    assert bases(log) == [0, 1]


def test_log_rolls_when_an_index_is_full(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_index_bytes=36, index_interval_bytes=0))
    for index in range(6):
        log.append(make_batch(timestamp_ms=1000 + index), leader_epoch=0)
    assert bases(log) == [0, 3]


def test_log_rolls_before_an_offset_that_the_index_cannot_hold(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(make_batch(), leader_epoch=0)
    log.log_end_offset = 2**31
    log.append(make_batch(), leader_epoch=0)
    assert bases(log) == [0, 2**31]


def test_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=100))
    with pytest.raises(RecordListTooLarge):
        log.append(make_batch(value=bytes(200)), leader_epoch=0)
    assert log.log_end_offset == 0


def test_internal_segment_bytes_comes_before_segment_bytes(tmp_path: Path) -> None:
    size = len(make_batch())
    log = open_log(tmp_path, LogConfig(segment_bytes=10 * size, internal_segment_bytes=size))
    for _ in range(3):
        log.append(make_batch(), leader_epoch=0)
    assert bases(log) == [0, 1, 2]


def test_large_read_is_a_lease_on_the_file(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(make_batch(value=bytes(SPAN_FROM_BYTES)), leader_epoch=0)

    result = log.read(0, EVERYTHING)

    (span,) = result.spans
    assert isinstance(span, SegmentSpan)
    assert (span.position, span.size_bytes) == (0, result.size_bytes)
    assert span.is_resident
    assert len(span.read()) == result.size_bytes
    span.release()


def test_leased_bytes_outlive_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(make_batch(value=bytes(SPAN_FROM_BYTES)), leader_epoch=0)
    (span,) = log.read(0, EVERYTHING).spans
    assert isinstance(span, SegmentSpan)

    log.discard(KafkaStorageError("gone"))
    FILES.remove_tree(str(tmp_path))

    assert len(span.read()) == span.size_bytes
    span.release()
    with pytest.raises(OSError, match="descriptor"):
        LocalFile(span.file_descriptor).size()


def test_read_outside_the_log_is_out_of_range(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(make_batch(3), leader_epoch=0)
    assert log.read(3, EVERYTHING).size_bytes == 0
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, EVERYTHING)


def test_delete_records_raises_the_log_start(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(4):
        log.append(make_batch(), leader_epoch=0)

    assert log.delete_records(2) == 2
    assert log.delete_records(1) == 2
    assert (log.offsets().log_start_offset, log.offsets().high_watermark) == (2, 4)
    assert log.epochs.entries == [(0, 2)]
    with pytest.raises(OffsetOutOfRange):
        log.read(1, EVERYTHING)
    with pytest.raises(OffsetOutOfRange):
        log.delete_records(5)


def test_truncation_goes_back_over_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=2 * len(make_batch())))
    for epoch in range(6):
        log.append(make_batch(), leader_epoch=epoch)

    log.truncate_to(3)

    assert bases(log) == [0, 2]
    assert log.offsets() == LogOffsets(0, 3, 3, 3)
    assert log.epochs.latest_epoch == 2
    assert log.append(make_batch(), leader_epoch=6).base_offset == 3
    assert [path.name for path in sorted(tmp_path.glob("*.log"))] == [f"{offset:020d}.log" for offset in (0, 2)]


def test_truncation_to_the_end_or_beyond_changes_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(make_batch(), leader_epoch=0)
    log.truncate_to(1)
    assert log.log_end_offset == 1


def test_append_that_finds_the_disk_full_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    files = FailingFileSystem()
    log = open_log(tmp_path, host=make_host(filesystem=files)[0])
    log.append(make_batch(), leader_epoch=0)
    size = log.size_bytes
    files.torn_append_bytes = 20

    with pytest.raises(KafkaStorageError, match="no space"):
        log.append(make_batch(), leader_epoch=0)

    assert (log.log_end_offset, log.size_bytes) == (1, size)
    assert files.size(log.active.file.path) == size
    files.torn_append_bytes = None
    assert log.append(make_batch(), leader_epoch=0).base_offset == 1


def test_torn_append_that_cannot_be_cut_off_ends_appends_but_not_reads(tmp_path: Path) -> None:
    files = FailingFileSystem()
    log = open_log(tmp_path, host=make_host(filesystem=files)[0])
    log.append(make_batch(), leader_epoch=0)
    files.torn_append_bytes, files.is_truncate_failing = 20, True
    with pytest.raises(KafkaStorageError):
        log.append(make_batch(), leader_epoch=0)
    files.torn_append_bytes, files.is_truncate_failing = None, False

    with pytest.raises(KafkaStorageError):
        log.append(make_batch(), leader_epoch=0)
    assert log.read(0, ReadLimit(1000, 1, at_least_one_batch=True)).size_bytes == log.size_bytes


@pytest.mark.parametrize("failing", ["append", "open"], ids=["write", "roll"])
def test_no_batch_of_a_producer_comes_before_its_first_that_the_disk_did_not_take(tmp_path: Path, failing: str) -> None:
    files = FaultyFileSystem(LocalFileSystem(), Faults(Random(1)))
    config = LogConfig(internal_segment_bytes=len(make_batch(40)))
    log = open_log(tmp_path, config, host=make_host(filesystem=files)[0])
    log.append(make_batch(), leader_epoch=0)
    first = make_batch(40, producer_id=7, producer_epoch=0, base_sequence=0)
    second = make_batch(producer_id=7, producer_epoch=0, base_sequence=40)
    files.faults.fails = lambda call, path: call == failing and path.endswith(".log")
    with pytest.raises(KafkaStorageError):
        log.append(first, leader_epoch=0)
    files.faults.fails = None

    with pytest.raises(OutOfOrderSequenceNumber):
        log.append(second, leader_epoch=0)

    assert [log.append(batch, leader_epoch=0).base_offset for batch in (first, second)] == [1, 41]


def test_a_log_that_refuses_appends_keeps_nothing_of_them(tmp_path: Path) -> None:
    """An exception keeps where it was raised, each time, and thereby what was going on there."""
    log = open_log(tmp_path)
    log.append(make_batch(), leader_epoch=0)
    log.fail(KafkaStorageError("broken"))
    for _ in range(20):
        with pytest.raises(KafkaStorageError):
            log.append(make_batch(), leader_epoch=0)
        with pytest.raises(KafkaStorageError):
            together(log, make_batch(), make_batch())

    assert log.failure is not None
    assert len(list(walk_tb(log.failure.__traceback__))) < 10


def test_an_append_that_finds_no_descriptor_is_tried_again(tmp_path: Path) -> None:
    class ScarceFileSystem(LocalFileSystem):
        is_exhausted = False

        def open(self, path: str, *, create: bool = False) -> LocalFile:
            if self.is_exhausted:
                raise OSError(errno.EMFILE, "too many open files", path)
            return super().open(path, create=create)

    files = ScarceFileSystem()
    log = open_log(tmp_path, host=make_host(filesystem=files)[0])
    log.append(make_batch(), leader_epoch=0)
    log.active.file.touched = False
    assert log.active.file.close_if_idle()
    files.is_exhausted = True
    with pytest.raises(KafkaStorageError):
        log.append(make_batch(), leader_epoch=0)
    files.is_exhausted = False

    assert log.append(make_batch(), leader_epoch=0).base_offset == 1


def test_epochs_that_cannot_be_written_come_with_the_next_flush(tmp_path: Path) -> None:
    files = FaultyFileSystem(LocalFileSystem(), Faults(Random(1)))
    host, offload = make_host(filesystem=files)
    log = open_log(tmp_path, host=host)
    files.faults.fails = lambda call, path: "leader-epoch-checkpoint" in path
    assert log.append(make_batch(), leader_epoch=7).base_offset == 0
    files.faults.fails = None

    assert log.has_unflushed
    host.schedule_flush(log)
    offload.run_all()

    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n1\n7 0\n"


def test_epochs_that_change_during_a_flush_are_written_by_the_next_one(tmp_path: Path) -> None:
    """Two that write one file at once take it away from each other, and a flush that fails ends a log."""
    host, offload = make_host()
    log = open_log(tmp_path, host=host)
    log.append(make_batch(), leader_epoch=0)
    path = tmp_path / "leader-epoch-checkpoint"
    before = path.read_text()
    host.schedule_flush(log)
    offload.run_loop()
    assert offload.work, "the flush is under way"
    log.append(make_batch(), leader_epoch=1)
    assert path.read_text() == before
    offload.run_all()
    assert path.read_text().splitlines()[2:] == ["0 0", "1 1"]
    assert log.failure is None


def test_abort_that_cannot_be_noted_ends_appends_and_is_found_at_the_next_start(tmp_path: Path) -> None:
    faults = Faults(Random(1))
    host, _ = make_host(filesystem=FaultyFileSystem(FILES, faults))
    log = open_log(tmp_path, host=host)
    log.append(make_batch(producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True), 0)
    faults.fails = lambda call, path: path.endswith(".txnindex")
    marker = end_transaction_batch(
        EndTransactionMarker(ControlType.ABORT, 0), producer_id=1, producer_epoch=0, timestamp_ms=1_750_000_000_000
    )
    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            log.append(bytearray(marker), 0, AppendOrigin.COORDINATOR)
    assert log.failure is not None

    again = open_log(tmp_path, point=UNCLEAN)
    assert again.log_end_offset == 2
    assert len(again.aborted_transactions(0, 2)) == 1


def test_log_opens_as_it_was_closed(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=300)
    log = open_log(tmp_path, config)
    for sequence in range(5):
        log.append(make_batch(producer_id=9, producer_epoch=0, base_sequence=sequence), leader_epoch=sequence)
    expected = log.offsets()
    log.close()

    again = open_log(tmp_path, config)

    assert again.offsets() == expected
    assert again.epochs.entries == log.epochs.entries
    duplicate = again.append(make_batch(producer_id=9, producer_epoch=0, base_sequence=4), leader_epoch=4)
    assert duplicate.is_duplicate
    assert duplicate.base_offset == 4


def test_unclean_stop_keeps_whole_batches_and_cuts_the_torn_tail(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(5):
        log.append(make_batch(producer_id=9, producer_epoch=0, base_sequence=sequence), leader_epoch=3)
    path = log.active.file.path
    FILES.write(path, FILES.read(path)[:-1])

    again = open_log(tmp_path, point=UNCLEAN)

    assert again.log_end_offset == 4
    assert again.epochs.entries == [(3, 0)]
    assert again.append(make_batch(producer_id=9, producer_epoch=0, base_sequence=4), leader_epoch=3).base_offset == 4


def test_segments_behind_a_bad_batch_go(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=2 * len(make_batch()))
    log = open_log(tmp_path, config)
    for _ in range(6):
        log.append(make_batch(), leader_epoch=0)
    data = bytearray(FILES.read(log.segments[1].file.path))
    data[-1] ^= 1
    FILES.write(log.segments[1].file.path, data)

    again = open_log(tmp_path, config, point=UNCLEAN)

    assert bases(again) == [0, 2]
    assert again.log_end_offset == 3
    assert len(list(tmp_path.glob("*.log"))) == 2


def test_index_settings_that_became_smaller_cost_no_records(tmp_path: Path) -> None:
    """Recovery indexes anew by the settings of now; a segment may have more entries than they allow."""
    log = open_log(tmp_path, LogConfig(index_interval_bytes=0))
    for _ in range(50):
        log.append(make_batch(), 0)
    log.retire()

    again = open_log(tmp_path, LogConfig(index_interval_bytes=0, segment_index_bytes=80), point=UNCLEAN)
    assert again.log_end_offset == 50
    assert again.read(49, EVERYTHING).size_bytes == len(make_batch())
    again.append(make_batch(), 0)
    assert [segment.base_offset for segment in again.segments] == [0, 50]
    for path in tmp_path.glob("*index"):
        path.unlink()
    assert open_log(tmp_path, LogConfig(index_interval_bytes=0, segment_index_bytes=80)).log_end_offset == 51


def test_nothing_below_the_recovery_point_is_checked(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=2 * len(make_batch()))
    log = open_log(tmp_path, config)
    for _ in range(6):
        log.append(make_batch(), leader_epoch=0)
    log.close()
    data = bytearray(FILES.read(log.segments[0].file.path))
    data[-1] ^= 1
    FILES.write(log.segments[0].file.path, data)

    again = open_log(tmp_path, config, point=LoadPoint(is_clean=False, recovery_point=4, log_start_offset=0))

    assert again.log_end_offset == 6


def test_log_that_ends_before_its_start_begins_anew_there(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(make_batch(), leader_epoch=0)
    log.close()

    again = open_log(tmp_path, point=LoadPoint(is_clean=True, recovery_point=0, log_start_offset=50))

    assert again.offsets() == LogOffsets(50, 50, 50, 50)
    assert again.append(make_batch(), leader_epoch=1).base_offset == 50


@pytest.mark.parametrize("content", [b"nonsense\n", b"", b"0\n2\n3 0\n"])
def test_damaged_leader_epochs_are_made_again_from_the_log(tmp_path: Path, content: bytes) -> None:
    log = open_log(tmp_path)
    log.append(make_batch(2), 3)
    log.append(make_batch(), 5)
    log.close()
    FILES.write(str(tmp_path / "leader-epoch-checkpoint"), content)
    assert open_log(tmp_path).epochs.entries == [(3, 0), (5, 2)]


def test_leftovers_of_unfinished_work_are_removed(tmp_path: Path) -> None:
    for name in ("00000000000000000000.log.deleted", "00000000000000000000.index.cleaned", "x.tmp"):
        FILES.write(str(tmp_path / name), b"x")
    open_log(tmp_path)
    assert not list(tmp_path.glob("*.deleted"))
    assert not list(tmp_path.glob("*.cleaned"))
    assert not list(tmp_path.glob("*.tmp"))


# ---- several batches with one write


def validated(batch: bytearray, *, log_append_time_ms: int = -1) -> ValidatedBatch:
    """The batch as it is, without a look at its records."""
    header = RecordBatch(batch)
    return ValidatedBatch(
        memoryview(batch),
        bytes(batch[:HEADER_BYTES]),
        max_timestamp_ms=header.max_timestamp,
        max_timestamp_offset_delta=0,
        log_append_time_ms=log_append_time_ms,
        is_rebuilt=False,
    )


def together(log: PartitionLog, *batches: bytearray, leader_epoch: int = 0) -> list[tuple[int, int]]:
    """Append them together; returns base and last offsets of those that were."""
    tickets = log.append_together([validated(batch) for batch in batches], leader_epoch)
    return [(ticket.base_offset, ticket.last_offset) for ticket in tickets]


def test_batches_that_are_appended_together_are_those_that_are_appended_singly(tmp_path: Path) -> None:
    counts = [3, 1, 40, 2, 300, 7]
    config = LogConfig(index_interval_bytes=100)
    single, joined = (open_log(tmp_path / name, config) for name in ("single", "joined"))
    for log in (single, joined):
        log.append(make_batch(1), leader_epoch=2)
    for count in counts:
        single.append(make_batch(count), leader_epoch=2)

    expected = [(1, 3), (4, 4), (5, 44), (45, 46), (47, 346), (347, 353)]
    assert together(joined, *(make_batch(count) for count in counts), leader_epoch=2) == expected

    assert joined.offsets() == single.offsets()
    assert joined.active.next_offset == single.active.next_offset
    for log in (single, joined):
        log.active.become_inactive()
    for suffix in ("log", "index", "timeindex"):
        name = f"{0:020d}.{suffix}"
        assert (tmp_path / "joined" / name).read_bytes() == (tmp_path / "single" / name).read_bytes()
    assert [joined.active.position_of(offset) for offset in range(354)] == [
        single.active.position_of(offset) for offset in range(354)
    ]


def test_the_first_batches_go_together_as_far_as_nothing_else_changes(tmp_path: Path) -> None:
    batch_bytes = len(make_batch())
    log = open_log(tmp_path, LogConfig(segment_bytes=4 * batch_bytes))
    assert together(log, make_batch(), make_batch()) == [], "there is no epoch yet, and no segment's time"
    log.append(make_batch(), leader_epoch=0)

    assert together(log, make_batch(), leader_epoch=1) == [], "a new epoch is written first"
    idempotent = make_batch(producer_id=7, producer_epoch=0, base_sequence=0)
    assert together(log, make_batch(), idempotent, make_batch()) == [(1, 1)], "two who sent are two appends"
    assert together(log, *(make_batch() for _ in range(5))) == [(2, 2), (3, 3)], "the others need a new segment"
    assert log.log_end_offset == log.high_watermark == 4
    assert bases(log) == [0]


def test_a_log_whose_index_is_nearly_full_takes_batches_singly(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(index_interval_bytes=1, segment_index_bytes=8 * 4))
    log.append(make_batch(), leader_epoch=0)
    assert together(log, *(make_batch() for _ in range(5))) == []
    for _ in range(5):
        log.append(make_batch(), leader_epoch=0)
    assert bases(log)[0] == 0
    assert log.log_end_offset == 6


@pytest.mark.parametrize("torn_bytes", [0, 1, 50])
def test_a_write_of_several_batches_that_fails_leaves_none(tmp_path: Path, torn_bytes: int) -> None:
    files = FailingFileSystem()
    host, _ = make_host(filesystem=files)
    log = open_log(tmp_path, host=host)
    log.append(make_batch(), leader_epoch=0)
    before = (tmp_path / f"{0:020d}.log").read_bytes()
    batches = [make_batch(2), make_batch(3)]
    files.torn_append_bytes = torn_bytes

    with pytest.raises(KafkaStorageError):
        together(log, *batches)

    files.torn_append_bytes = None
    assert (tmp_path / f"{0:020d}.log").read_bytes() == before
    assert [RecordBatch(batch).base_offset for batch in batches] == [0, 0], "as they came, to be tried again"
    assert log.offsets().log_end_offset == log.high_watermark == 1
    assert together(log, *batches) == [(1, 2), (3, 5)]
    assert len((tmp_path / f"{0:020d}.log").read_bytes()) == len(before) + sum(map(len, batches))


def test_batches_that_are_appended_together_share_a_flush(tmp_path: Path) -> None:
    host, offload = make_host(fsync=True)
    log = open_log(tmp_path, host=host)
    log.append(make_batch(), leader_epoch=0)
    offload.run_all()

    tickets = log.append_together([validated(make_batch()), validated(make_batch(), log_append_time_ms=5)], 0)
    assert [(ticket.is_durable, ticket.log_append_time_ms) for ticket in tickets] == [(False, -1), (False, 5)]
    assert log.high_watermark == 1
    offload.run_all()

    assert all(ticket.is_durable for ticket in tickets)
    assert log.high_watermark == 3


def test_a_log_that_failed_takes_nothing_together(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(make_batch(), leader_epoch=0)
    log.fail(KafkaStorageError("a fault"))
    with pytest.raises(KafkaStorageError):
        together(log, make_batch(), make_batch())


def sent(
    sequence: int, *, count: int = 1, producer_id: int = 7, epoch: int = 0, is_transactional: bool = False
) -> bytearray:
    return make_batch(
        count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


def test_batches_of_an_idempotent_producer_go_together_in_its_order(tmp_path: Path) -> None:
    single, joined = (open_log(tmp_path / name) for name in ("single", "joined"))
    runs = [[sent(0), sent(1, count=3), sent(4)], [sent(5, count=2), sent(7)]]
    for log in (single, joined):
        log.append(make_batch(), leader_epoch=0)
    for batch in (bytearray(batch) for run in runs for batch in run):
        single.append(batch, leader_epoch=0)

    assert [together(joined, *run) for run in runs] == [[(1, 1), (2, 4), (5, 5)], [(6, 7), (8, 8)]]

    assert encode_snapshot(joined.producers) == encode_snapshot(single.producers)
    assert (tmp_path / "joined" / f"{0:020d}.log").read_bytes() == (tmp_path / "single" / f"{0:020d}.log").read_bytes()
    assert joined.append(sent(5, count=2), leader_epoch=0).is_duplicate


@pytest.mark.parametrize(
    ("run", "taken"),
    [
        ([sent(2), sent(3)], 0),
        ([sent(1), sent(3)], 1),
        ([sent(1), sent(1)], 1),
        ([sent(0), sent(1)], 0),
        ([sent(1), sent(2, producer_id=8)], 1),
        ([sent(1), sent(2, epoch=1)], 1),
        ([sent(1), make_batch()], 1),
        ([sent(1), sent(2, is_transactional=True)], 1),
        ([sent(1, is_transactional=True)], 0),
    ],
    ids=[
        "gap",
        "gap behind",
        "repeat behind",
        "repeat",
        "other producer",
        "new epoch",
        "nobody",
        "transaction",
        "first",
    ],
)
def test_what_needs_a_decision_for_itself_is_left(tmp_path: Path, run: list[bytearray], taken: int) -> None:
    log = open_log(tmp_path)
    log.append(sent(0), leader_epoch=0)
    assert len(together(log, *(bytearray(batch) for batch in run))) == taken
    assert log.log_end_offset == 1 + taken


def test_a_failed_write_of_several_batches_leaves_their_producer_as_it_was(tmp_path: Path) -> None:
    files = FailingFileSystem()
    host, _ = make_host(filesystem=files)
    log = open_log(tmp_path, host=host)
    log.append(sent(0), leader_epoch=0)
    before = encode_snapshot(log.producers)
    files.torn_append_bytes = 10
    with pytest.raises(KafkaStorageError):
        together(log, sent(1), sent(2))
    files.torn_append_bytes = None
    assert encode_snapshot(log.producers) == before
    assert together(log, sent(1), sent(2)) == [(1, 1), (2, 2)]


def test_an_index_that_recovery_fills_is_known_to_be_full(tmp_path: Path) -> None:
    config = LogConfig(segment_index_bytes=24, index_interval_bytes=0)
    open_log(tmp_path, config).append(make_batch(), leader_epoch=0)

    log = open_log(tmp_path, config, point=UNCLEAN)
    for number in range(3):
        assert log.append(make_batch(timestamp_ms=2_000 + number), leader_epoch=0).base_offset == 1 + number
    assert log.log_end_offset == 4


def test_a_log_that_was_cut_has_room_again(tmp_path: Path) -> None:
    config = LogConfig(segment_index_bytes=24, index_interval_bytes=0)
    log = open_log(tmp_path, config)
    log.append(make_batch(timestamp_ms=1), leader_epoch=0)
    log.append(make_batch(timestamp_ms=2), leader_epoch=0)
    was_full = log.active.is_full

    log.truncate_to(0)

    assert (was_full, log.active.is_full) == (True, False)


def test_nothing_goes_together_behind_a_torn_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(make_batch(), leader_epoch=0)
    log.append(make_batch(), leader_epoch=0)
    log.prepare_close()
    log.close()
    with (tmp_path / f"{0:020d}.log").open("ab") as file:
        file.write(bytes(make_batch())[:40])
    log = open_log(tmp_path)

    assert log.active.has_torn_end
    assert together(log, make_batch(), make_batch()) == []
    assert log.append(make_batch(), leader_epoch=0).base_offset == 2
    assert take_bytes(log.read(2, ReadLimit(10_000, log.log_end_offset, True)))
