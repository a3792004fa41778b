"""Jafka's segments: names, rolling, what is readable, what a crash leaves, what goes by age and size."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.errors import KafkaStorageError, OffsetOutOfRange
from ottla.storage.files import LocalFileSystem
from ottla.storage.jafka_log import JafkaLog, JafkaLogSettings
from ottla.testing.clock import ManualClock
from tests.storage.harness import ManualOffload

ENTRY = bytes(100)
EVERY_MESSAGE = JafkaLogSettings(flush_messages=1, is_synced=False)
SMALL = JafkaLogSettings(file_size_bytes=300, flush_messages=1, is_synced=False, retention_ms=1000)


def open_log(
    path: Path,
    settings: JafkaLogSettings = EVERY_MESSAGE,
    *,
    clock: ManualClock | None = None,
    offload: ManualOffload | None = None,
    kafka_offset: int = 0,
) -> JafkaLog:
    return JafkaLog(
        str(path),
        LocalFileSystem(),
        ManualClock() if clock is None else clock,
        ManualOffload() if offload is None else offload,
        settings,
        kafka_offset=kafka_offset,
    )


def append(log: JafkaLog, count: int = 1) -> None:
    for _ in range(count):
        log.append(ENTRY, 1, log.next_kafka_offset + 1)


def segments(path: Path) -> dict[int, int]:
    """Return the size of each segment by its start."""
    return {int(file.stem): file.stat().st_size for file in sorted(path.glob("*.jafka"))}


def test_a_segment_is_rolled_when_it_is_larger_than_its_limit(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    append(log, 8)
    assert segments(tmp_path) == {0: 400, 400: 400, 800: 0}
    assert (log.start, log.readable_end, log.end) == (0, 800, 800)


def test_reads_begin_where_they_are_asked_to_and_end_with_the_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    append(log, 6)
    assert len(log.read(0, 100_000)) == 400
    assert len(log.read(37, 100_000)) == 363
    assert len(log.read(0, 10)) == 10
    assert len(log.read(400, 100_000)) == 200
    assert log.read(600, 100) == b""
    for position in (-1, 601):
        with pytest.raises(OffsetOutOfRange):
            log.read(position, 100)


def test_only_what_was_flushed_is_readable(tmp_path: Path) -> None:
    offload = ManualOffload()
    log = open_log(tmp_path, JafkaLogSettings(flush_messages=3), offload=offload)
    append(log, 2)
    with pytest.raises(OffsetOutOfRange):
        log.read(200, 100)
    assert log.read(0, 100) == b""
    append(log, 1)
    assert log.readable_end == 0
    offload.run_all()
    assert log.readable_end == 300
    append(log)
    log.flush()
    append(log, 3)  # while the sync runs: they are flushed by the next one
    offload.run_work()
    assert log.readable_end == 400
    offload.run_all()
    assert log.readable_end == 700


def test_a_sync_that_fails_is_tried_again(tmp_path: Path) -> None:
    offload = ManualOffload()
    log = open_log(tmp_path, JafkaLogSettings(flush_messages=10), offload=offload)
    append(log)
    log.flush()
    _, done = offload.work.popleft()
    done(OSError("no"))
    assert (log.readable_end, log.has_unflushed) == (0, True)
    log.flush()
    offload.run_all()
    assert log.readable_end == 100


def test_a_restart_goes_on_with_the_same_positions_and_records(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL, kafka_offset=7)
    append(log, 5)
    log.close()
    again = open_log(tmp_path, SMALL)
    assert (again.start, again.readable_end, again.next_kafka_offset) == (0, 500, 12)
    append(again)
    assert segments(tmp_path) == {0: 400, 400: 200}


def test_what_a_crash_left_behind_the_last_flush_is_cut(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    append(log, 5)
    with (tmp_path / f"{400:020d}.jafka").open("ab") as file:
        file.write(b"junk bytes")
    with (tmp_path / "jafka.positions").open("ab") as file:
        file.write(b"torn")
    again = open_log(tmp_path, SMALL)
    assert (again.readable_end, again.next_kafka_offset) == (500, 5)
    assert segments(tmp_path) == {0: 400, 400: 100}
    append(again)
    assert open_log(tmp_path, SMALL).readable_end == 600


def test_messages_that_a_power_cut_took_are_not_readable_any_more(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, 3)
    (tmp_path / f"{0:020d}.jafka").write_bytes(ENTRY + ENTRY[:50])
    again = open_log(tmp_path)
    assert (again.readable_end, again.next_kafka_offset) == (100, 1)


def test_a_missing_segment_is_told(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    append(log, 9)
    (tmp_path / f"{400:020d}.jafka").unlink()
    with pytest.raises(KafkaStorageError, match="does not begin where"):
        open_log(tmp_path, SMALL)


def test_positions_by_time(tmp_path: Path) -> None:
    clock = ManualClock(wall_ms=1_000_000)
    log = open_log(tmp_path, SMALL, clock=clock)
    for _ in range(10):
        append(log)
        clock.advance(1)
    assert segments(tmp_path) == {0: 400, 400: 400, 800: 200}
    assert log.positions_before(None, 10) == [1000, 800, 400, 0]
    assert log.positions_before(None, 2) == [1000, 800]
    assert log.positions_before(None, 0) == []
    assert log.positions_before(2_000_000, 10) == [1000, 800, 400, 0]
    assert log.positions_before(1_007_000, 10) == [400, 0]
    assert log.positions_before(1_003_000, 10) == [0]
    assert log.positions_before(0, 10) == []


def test_old_segments_go_and_positions_go_on(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, SMALL, clock=clock)
    append(log, 4)
    clock.advance(0.9)
    append(log, 1)
    clock.advance(0.2)
    log.sweep()
    assert segments(tmp_path) == {400: 100}
    clock.advance(1)
    log.sweep()
    assert segments(tmp_path) == {500: 0}
    assert (log.start, log.readable_end) == (500, 500)
    log.close()
    again = open_log(tmp_path, SMALL, clock=clock)
    assert (again.start, again.readable_end, again.next_kafka_offset) == (500, 500, 5)


def test_spare_segments_go_by_size(tmp_path: Path) -> None:
    settings = JafkaLogSettings(file_size_bytes=300, flush_messages=1, is_synced=False, retention_bytes=600)
    log = open_log(tmp_path, settings)
    append(log, 12)
    log.sweep()
    assert segments(tmp_path) == {400: 400, 800: 400, 1200: 0}
    log.sweep()
    assert segments(tmp_path) == {400: 400, 800: 400, 1200: 0}


def test_a_log_that_is_closed_while_it_syncs_loses_nothing(tmp_path: Path) -> None:
    offload = ManualOffload()
    log = open_log(tmp_path, JafkaLogSettings(flush_messages=1), offload=offload)
    append(log, 2)
    log.close()
    offload.run_all()
    assert open_log(tmp_path).readable_end == 200


def test_flushes_are_remembered_as_long_as_they_tell_something(tmp_path: Path) -> None:
    clock = ManualClock(wall_ms=0)
    log = open_log(tmp_path, SMALL, clock=clock)
    for _ in range(42):
        clock.advance(1)
        append(log)
    before = log.positions_before(22_000, 3)
    assert before == [1600, 1200, 800]
    log.close()
    again = open_log(tmp_path, SMALL, clock=clock)
    assert (tmp_path / "jafka.positions").stat().st_size <= 24 * 12
    assert again.positions_before(22_000, 3) == before
    assert (again.readable_end, again.next_kafka_offset) == (4200, 42)
