"""Snapshots by age."""

from __future__ import annotations

from ottla.broker.metadata.create_topics import NewTopic
from ottla.clock import Timers
from ottla.testing.clock import ManualClock
from tests.broker.metadata.harness import MemoryStore, start

HOUR_S = 3600.0


def test_a_snapshot_is_written_an_hour_after_the_first_record_that_is_in_none() -> None:
    store, timers, clock = MemoryStore(), Timers(), ManualClock()
    controller = start(store)
    controller.watch_snapshot_age(timers, clock)
    clock.advance(HOUR_S - 1)
    controller.create_topics([NewTopic("t", 1, 1)])
    timers.run_due(clock.monotonic())
    assert store.snapshot_offset == 0
    clock.advance(1)
    timers.run_due(clock.monotonic())
    assert store.snapshot_offset == store.next_offset


def test_while_everything_is_in_a_snapshot_nothing_waits() -> None:
    store, timers, clock = MemoryStore(), Timers(), ManualClock()
    controller = start(store)
    controller.watch_snapshot_age(timers, clock)
    controller.snapshot()
    assert len(timers) == 0
    controller.create_topics([NewTopic("t", 1, 1)])
    assert len(timers) == 1


def test_a_snapshot_that_fails_is_tried_again() -> None:
    class FullDisk(MemoryStore):
        is_full = True

        def snapshot(self, *arguments: object) -> None:
            if self.is_full:
                raise OSError("no space left")
            super().snapshot(*arguments)  # type: ignore[arg-type]

    store, timers, clock = FullDisk(), Timers(), ManualClock()
    start(store).watch_snapshot_age(timers, clock)
    clock.advance(HOUR_S)
    timers.run_due(clock.monotonic())
    store.is_full = False
    clock.advance(HOUR_S)
    timers.run_due(clock.monotonic())
    assert store.snapshot_offset == store.next_offset
    assert len(timers) == 0


def test_an_interval_of_0_means_never() -> None:
    timers = Timers()
    start(metadata_log_max_snapshot_interval_ms="0").watch_snapshot_age(timers, ManualClock())
    assert len(timers) == 0
