"""Jafka's segments, by way of a copy: names, rolling, what is readable, what a crash leaves, what goes by age."""

from __future__ import annotations

from pathlib import Path
from random import Random
from traceback import walk_tb

import pytest

from ottla.config.log_config import LogConfig
from ottla.errors import KafkaStorageError, OffsetOutOfRange
from ottla.storage.jafka_log import JafkaLog, JafkaLogSettings
from ottla.testing.clock import ManualClock
from ottla.testing.memory import MemoryFileSystem
from tests.storage.harness import FailingFileSystem, make_host
from tests.storage.jafka import SMALL, open_copy, segments

ENTRY = bytes(100)


def append(log: JafkaLog, count: int = 1) -> None:
    for _ in range(count):
        log.append(ENTRY, 1, log.next_kafka_offset + 1)


def test_a_segment_is_rolled_when_it_is_larger_than_its_limit(tmp_path: Path) -> None:
    log = open_copy(tmp_path, SMALL)
    append(log, 8)
    assert segments(tmp_path) == {0: 400, 400: 400, 800: 0}
    assert (log.start, log.readable_end, log.end) == (0, 800, 800)


def test_reads_begin_where_they_are_asked_to_and_end_with_the_segment(tmp_path: Path) -> None:
    log = open_copy(tmp_path, SMALL)
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
    host, offload = make_host(fsync=True)
    log = open_copy(tmp_path, JafkaLogSettings(flush_messages=3), host=host)
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
    offload.run_loop()
    append(log, 3)  # while the sync runs: they are flushed by the next one
    offload.run_work()
    assert log.readable_end == 400
    offload.run_all()
    assert log.readable_end == 700


def test_a_log_whose_sync_failed_takes_nothing_more_and_is_read_on(tmp_path: Path) -> None:
    files = FailingFileSystem()
    host, offload = make_host(fsync=True, filesystem=files)
    log = open_copy(tmp_path, JafkaLogSettings(flush_messages=1), host=host)
    append(log)
    offload.run_all()
    files.is_sync_failing = True
    append(log)
    offload.run_all()
    assert log.readable_end == 100
    for _ in range(20):
        with pytest.raises(KafkaStorageError, match="flush failed"):
            append(log)
    assert log.read(0, 1000) == ENTRY
    assert log.failure is not None
    assert len(list(walk_tb(log.failure.__traceback__))) < 10, "of what was refused nothing is kept"


def test_an_append_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    files = FailingFileSystem()
    log = open_copy(tmp_path, host=make_host(filesystem=files)[0])
    append(log)
    files.torn_append_bytes = 7
    with pytest.raises(KafkaStorageError, match="append failed"):
        append(log)
    files.torn_append_bytes = None
    append(log)
    assert (segments(tmp_path), log.readable_end) == ({0: 200}, 200)
    files.torn_append_bytes, files.is_truncate_failing = 7, True
    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            append(log)
    assert log.failure is not None


def test_files_are_closed_when_too_many_are_open(tmp_path: Path) -> None:
    host, _ = make_host()
    host.open_files.limit = 3
    log = open_copy(tmp_path, SMALL, host=host)
    append(log, 20)
    assert [len(log.read(position, 1000)) for position in range(0, 2000, 400)] == [400] * 5
    assert host.open_files.count <= 3
    log.close()
    assert host.open_files.count == 0


def test_a_restart_goes_on_with_the_same_positions_and_records(tmp_path: Path) -> None:
    log = open_copy(tmp_path, SMALL, kafka_offset=7)
    append(log, 5)
    log.close()
    again = open_copy(tmp_path, SMALL)
    assert (again.start, again.readable_end, again.next_kafka_offset) == (0, 500, 12)
    append(again)
    assert segments(tmp_path) == {0: 400, 400: 200}


def test_what_a_crash_left_behind_the_last_flush_is_cut(tmp_path: Path) -> None:
    log = open_copy(tmp_path, SMALL)
    append(log, 5)
    with (tmp_path / f"{400:020d}.jafka").open("ab") as file:
        file.write(b"junk bytes")
    with (tmp_path / "jafka.positions").open("ab") as file:
        file.write(b"torn")
    again = open_copy(tmp_path, SMALL)
    assert (again.readable_end, again.next_kafka_offset) == (500, 5)
    assert segments(tmp_path) == {0: 400, 400: 100}
    append(again)
    assert open_copy(tmp_path, SMALL).readable_end == 600


def test_messages_that_a_power_cut_took_are_not_readable_any_more(tmp_path: Path) -> None:
    log = open_copy(tmp_path)
    append(log, 3)
    (tmp_path / f"{0:020d}.jafka").write_bytes(ENTRY + ENTRY[:50])
    again = open_copy(tmp_path)
    assert (again.readable_end, again.next_kafka_offset) == (100, 1)


def test_a_missing_segment_is_told(tmp_path: Path) -> None:
    log = open_copy(tmp_path, SMALL)
    append(log, 9)
    (tmp_path / f"{400:020d}.jafka").unlink()
    with pytest.raises(KafkaStorageError, match="does not begin where"):
        open_copy(tmp_path, SMALL)


def test_positions_by_time(tmp_path: Path) -> None:
    clock = ManualClock(wall_ms=1_000_000)
    log = open_copy(tmp_path, SMALL, host=make_host(clock=clock)[0])
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
    log = open_copy(tmp_path, SMALL, host=make_host(clock=clock)[0])
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
    again = open_copy(tmp_path, SMALL, host=make_host(clock=clock)[0])
    assert (again.start, again.readable_end, again.next_kafka_offset) == (500, 500, 5)


def test_spare_segments_go_by_size(tmp_path: Path) -> None:
    log = open_copy(tmp_path, SMALL, config=LogConfig(retention_bytes=600))
    append(log, 12)
    log.sweep()
    assert segments(tmp_path) == {400: 400, 800: 400, 1200: 0}
    log.sweep()
    assert segments(tmp_path) == {400: 400, 800: 400, 1200: 0}


def test_flushes_are_remembered_as_long_as_they_tell_something(tmp_path: Path) -> None:
    clock = ManualClock(wall_ms=0)
    log = open_copy(tmp_path, SMALL, host=make_host(clock=clock)[0])
    for _ in range(42):
        clock.advance(1)
        append(log)
    before = log.positions_before(22_000, 3)
    assert before == [1600, 1200, 800]
    log.close()
    again = open_copy(tmp_path, SMALL, host=make_host(clock=clock)[0])
    assert (tmp_path / "jafka.positions").stat().st_size <= 28 * 12
    assert again.positions_before(22_000, 3) == before
    assert (again.readable_end, again.next_kafka_offset) == (4200, 42)


@pytest.mark.parametrize("seed", range(50))
def test_what_somebody_has_seen_stands_at_its_place_after_power_cuts(seed: int) -> None:
    dice = Random(seed)
    clock = ManualClock(wall_ms=1 << 41)
    files = MemoryFileSystem(clock)
    files.make_directory("/data")
    seen = b""
    for _ in range(4):
        host, offload = make_host(fsync=True, filesystem=files, clock=clock)
        log = open_copy(Path("/data"), SMALL, host=host, config=LogConfig())
        assert log.readable_end >= len(seen)
        found = read_all(log)
        assert found.startswith(seen)
        assert log.next_kafka_offset == found.count(b"#")
        for _ in range(dice.randrange(1, 30)):
            log.append(b"#" + bytes(dice.randrange(1, 90)), 1, log.next_kafka_offset + 1)
            if dice.random() < 0.5:
                offload.run_loop()
            if dice.random() < 0.3 and offload.work:
                offload.run_work()
        seen = read_all(log)
        files = files.cut_power(dice) if dice.random() < 0.7 else files.kill()


def read_all(log: JafkaLog) -> bytes:
    found = b""
    while len(found) < log.readable_end:
        found += log.read(len(found), 1 << 20)
    return found
