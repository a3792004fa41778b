"""What a manager does from time to time: checkpoints, retention, flushes, removals; all on one timer."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import LogOffsets, ReadLimit
from ottla.model import TopicId, TopicPartition
from tests.storage.harness import TOPIC_ID, TP, Kept, make_batch, start_manager, take_bytes

SEGMENT_BYTES = 200
HOUR_MS = 3_600_000
OTHER_ID = TopicId(bytes(15) + b"\x08")
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
CHECK = {"log.retention.check.interval.ms": "1000"}


def keep(directory: Path, config: LogConfig, **settings: str) -> Kept:
    kept = Kept(directory, properties={**CHECK, **settings})
    kept.manager.create(TP, TOPIC_ID, config)
    return kept


def fill(kept: Kept, count: int, *, timestamp_ms: int | None = None, value: bytes = bytes(100)) -> None:
    for _ in range(count):
        stamp = kept.clock.wall_ms() if timestamp_ms is None else timestamp_ms
        kept.manager.begin_append(TP, make_batch(value=value, timestamp_ms=stamp), leader_epoch=0)


def logs_in(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / str(TP)).iterdir() if path.name.endswith(".log"))


def small_segments(*, file_delete_delay_ms: int = 60_000, retention_bytes: int = -1) -> LogConfig:
    return LogConfig(
        internal_segment_bytes=SEGMENT_BYTES,
        retention_ms=HOUR_MS,
        file_delete_delay_ms=file_delete_delay_ms,
        retention_bytes=retention_bytes,
    )


def test_one_timer_serves_all_chores(tmp_path: Path) -> None:
    kept = keep(tmp_path, LogConfig(flush_ms=5_000))
    kept.manager.delete(TP)
    assert len(kept.timers) == 1
    kept.advance(3_600)
    assert len(kept.timers) == 1


def test_a_chore_that_meets_a_fault_ends_none_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the first sweep does where no descriptor is left to read what sweeps."""
    kept = keep(tmp_path, small_segments())
    fill(kept, 4)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "ottla.storage.sweeper", None)
        with pytest.raises(ImportError):
            kept.advance(30)
    kept.advance(HOUR_MS / 1000 + 2)
    fill(kept, 1)
    kept.advance(1)

    assert logs_in(tmp_path) == ["00000000000000000004.log"]
    assert len(kept.timers) == 1


def test_old_segments_go_and_the_log_starts_behind_them(tmp_path: Path) -> None:
    kept = keep(tmp_path, small_segments(file_delete_delay_ms=5_000))
    fill(kept, 4)
    kept.advance(HOUR_MS / 1000 + 2)
    fill(kept, 1)
    kept.advance(1)

    assert kept.manager.offsets(TP) == LogOffsets(4, 5, 5, 5)
    assert logs_in(tmp_path) == ["00000000000000000004.log"]
    assert list((tmp_path / "t-0").glob("*.log.deleted"))
    kept.advance(6)
    assert not list((tmp_path / "t-0").glob("*.deleted"))


def test_log_without_young_records_begins_anew_at_its_end(tmp_path: Path) -> None:
    kept = keep(tmp_path, small_segments())
    fill(kept, 3)
    kept.advance(HOUR_MS / 1000 + 1)

    assert kept.manager.offsets(TP) == LogOffsets(3, 3, 3, 3)
    assert logs_in(tmp_path) == ["00000000000000000003.log"]
    kept.advance(1)
    assert logs_in(tmp_path) == ["00000000000000000003.log"], "the second pass finds nothing"
    assert kept.manager.begin_append(TP, make_batch(), leader_epoch=0).base_offset == 3


def test_size_is_kept_below_its_limit(tmp_path: Path) -> None:
    kept = keep(tmp_path, small_segments(retention_bytes=400))
    fill(kept, 10)
    before = kept.manager.size_bytes(TP)
    kept.advance(1)
    assert 400 <= kept.manager.size_bytes(TP) < before
    assert kept.manager.offsets(TP).log_end_offset == 10


def test_segments_below_the_log_start_go_also_where_nothing_expires(tmp_path: Path) -> None:
    kept = keep(tmp_path, LogConfig(internal_segment_bytes=SEGMENT_BYTES, retention_ms=-1))
    fill(kept, 4)
    kept.manager.delete_records(TP, 2)
    kept.advance(1)
    assert logs_in(tmp_path)[0] == "00000000000000000002.log"


def test_logs_that_nobody_touched_since_the_start_lose_old_segments_too(tmp_path: Path) -> None:
    kept = keep(tmp_path, small_segments())
    fill(kept, 4)
    kept.offload.run_all()
    kept.manager.close()

    again = Kept(tmp_path, properties={**CHECK, "log.retention.ms": str(HOUR_MS)})
    again.advance(1)
    assert TP not in again.manager.opened, "nothing has expired, so nothing is opened"
    again.advance(HOUR_MS / 1000)

    assert again.manager.offsets(TP).log_start_offset == 4


def test_log_without_a_segment_yet_does_not_end_the_sweep_of_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = keep(tmp_path, small_segments())
    kept.manager.create(TopicPartition("a", 0), TopicId(bytes(15) + b"a"), small_segments())
    for path in (tmp_path / "a-0").glob("*.log"):
        path.unlink()
    fill(kept, 4)
    kept.advance(HOUR_MS / 1000 + 2)

    assert kept.manager.offsets(TP).log_start_offset == 4
    assert not caplog.records


def test_records_from_the_future_do_not_pin_the_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = keep(tmp_path, small_segments())
    fill(kept, 3, timestamp_ms=kept.clock.wall_ms() + 10**12)
    for name in logs_in(tmp_path)[:-1]:
        path = tmp_path / "t-0" / name
        seconds = kept.clock.wall_ms() / 1000 - 2 * HOUR_MS / 1000
        os.utime(path, (seconds, seconds))
    with caplog.at_level(logging.WARNING):
        kept.advance(1)
        kept.advance(1)

    assert kept.manager.offsets(TP).log_start_offset == 2
    warned = [record.getMessage() for record in caplog.records if "from the future" in record.getMessage()]
    assert len(warned) == 3, "once per segment"


def test_topic_made_anew_keeps_what_old_segments_of_its_name_were_to_lose(tmp_path: Path) -> None:
    """The thread that renames old segments comes late: by then their names are those of a new topic's."""
    config = LogConfig(internal_segment_bytes=SEGMENT_BYTES, retention_bytes=SEGMENT_BYTES)
    kept = keep(tmp_path, config)
    fill(kept, 5)
    kept.clock.advance(1)
    kept.timers.run_due(kept.clock.monotonic())
    while kept.manager.offsets(TP).log_start_offset == 0:
        kept.offload.run_work()
    kept.manager.delete(TP)
    kept.manager.create(TP, OTHER_ID, config)
    fill(kept, 1)
    kept.offload.run_all()

    assert (tmp_path / "t-0" / "00000000000000000000.log").exists()


def test_reader_of_a_segment_that_goes_keeps_its_bytes(tmp_path: Path) -> None:
    kept = keep(tmp_path, LogConfig(internal_segment_bytes=50_000, retention_ms=HOUR_MS, file_delete_delay_ms=0))
    fill(kept, 2, value=bytes(40_000))
    found = kept.manager.read(TP, 0, ReadLimit(100_000, 2, at_least_one_batch=True))
    kept.advance(HOUR_MS / 1000 + 1)
    kept.advance(1)
    assert kept.manager.offsets(TP).log_start_offset == 2
    assert len(take_bytes(found)) > 40_000


def test_checkpoints_are_written_when_something_has_changed(tmp_path: Path) -> None:
    kept = keep(tmp_path, LogConfig(flush_messages=1))
    fill(kept, 3)
    kept.offload.run_all()
    kept.advance(60)
    assert (tmp_path / RECOVERY_POINTS).read_text() == "0\n1\nt 0 3\n"
    (tmp_path / RECOVERY_POINTS).unlink()
    kept.advance(60)
    assert not (tmp_path / RECOVERY_POINTS).exists(), "an idle broker leaves the disk alone"
    fill(kept, 1)
    kept.offload.run_all()
    kept.advance(60)
    assert (tmp_path / RECOVERY_POINTS).read_text() == "0\n1\nt 0 4\n"


def test_rolled_segments_are_flushed_some_time_later_where_nothing_waits_for_it(tmp_path: Path) -> None:
    """A segment that is flushed as it rolls costs the appends after it; the kernel writes most of it by itself."""
    kept = keep(tmp_path, LogConfig(internal_segment_bytes=SEGMENT_BYTES))
    fill(kept, 4)
    kept.offload.run_all()
    log = kept.manager.log(TP)
    assert len(log.segments) > 1
    assert log.flushed_offset == 0
    kept.advance(60)
    assert log.flushed_offset == 4


def test_flush_ms_flushes_what_waits_for_so_long(tmp_path: Path) -> None:
    kept = keep(tmp_path, LogConfig(flush_ms=500))
    fill(kept, 1)
    kept.offload.run_all()
    assert kept.manager.log(TP).flushed_offset == 0
    kept.advance(0.5)
    assert kept.manager.log(TP).flushed_offset == 1


def test_flush_ms_may_be_set_later(tmp_path: Path) -> None:
    kept = keep(tmp_path, LogConfig())
    fill(kept, 1)
    kept.advance(5)
    assert kept.manager.log(TP).flushed_offset == 0
    kept.manager.configure(TP, LogConfig(flush_ms=100))
    kept.advance(0.1)
    assert kept.manager.log(TP).flushed_offset == 1


def test_stop_ends_the_chores_and_waits_for_what_is_under_way(tmp_path: Path) -> None:
    kept = keep(tmp_path, small_segments())
    fill(kept, 2)
    kept.clock.advance(HOUR_MS / 1000 + 2)
    kept.timers.run_due(kept.clock.monotonic())
    told: list[str] = []
    kept.manager.prepare_close()
    kept.manager.when_idle(lambda: told.append("idle"))
    assert not told
    kept.offload.run_all()
    assert told == ["idle"]
    kept.manager.close()
    assert len(kept.timers) == 0
    assert start_manager(tmp_path).directories[0].was_clean


def test_segment_is_over_after_its_time_less_its_share_of_the_jitter(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    lives = set()
    for number in range(20):
        partition = TopicPartition("t", number)
        kept.manager.create(partition, TOPIC_ID, LogConfig(segment_ms=10_000, segment_jitter_ms=8_000))
        for second in range(0, 11):
            batch = make_batch(timestamp_ms=1_000_000 + second * 1_000)
            kept.manager.begin_append(partition, batch, leader_epoch=0)
        lives.add(kept.manager.log(partition).segments[1].base_offset)
    assert min(lives) >= 2
    assert max(lives) <= 11
    assert len(lives) > 3, "partitions do not roll all at once"
