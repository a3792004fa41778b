"""After a crash at any call, with or without power, logs that were moving are whole, in one directory or the other."""

from __future__ import annotations

from random import Random

import pytest

from ottla.clock import Timers
from ottla.config.broker_config import BrokerConfig
from ottla.storage.manager import LogManager
from ottla.testing.clock import ManualClock
from ottla.testing.faults import Faults, FaultyFileSystem, PowerCut
from ottla.testing.memory import MemoryFileSystem
from tests.storage import crashes
from tests.storage.crashes import CONFIGS, Workload, check, open_manager
from tests.storage.harness import ManualOffload

STEPS = 60
CUTS = 25
DIRECTORIES = ("/data", "/more")


@pytest.fixture(autouse=True)
def two_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(crashes.PROPERTIES, "log.dirs", ",".join(DIRECTORIES))


class Moving(Workload):
    """The workload of all crashes, in which logs move now and then."""

    def _step(self, step: int) -> None:
        if self.dice.random() < 0.1:
            self.manager.keep_in(self.dice.choice(list(CONFIGS)), self.dice.choice(DIRECTORIES))
        if self.dice.random() < 0.3 and self.offload.work:
            self.offload.run_work()
        super()._step(step)


def count_calls(seed: int) -> int:
    clock = ManualClock()
    faults = Faults(Random(seed))
    Moving(FaultyFileSystem(MemoryFileSystem(clock), faults), clock, seed).run(STEPS)
    return faults.calls


def crash(seed: int, cut_at: int, *, is_power_cut: bool) -> None:
    """Run, crash at a call, start again and go on with what was begun, crash again, and check what is there then."""
    clock = ManualClock()
    dice = Random(seed * 1_000_003 + cut_at)
    memory = MemoryFileSystem(clock)
    workload: Moving | None = None
    try:
        workload = Moving(FaultyFileSystem(memory, Faults(dice, cut_at)), clock, seed)
        workload.run(STEPS)
    except PowerCut:
        pass
    left = memory.cut_power(dice) if is_power_cut else memory.kill()
    faulty = FaultyFileSystem(left, Faults(dice, dice.randrange(120)))
    try:
        offload = ManualOffload()
        manager = open_manager(faulty, clock, offload)
        go_on(manager, clock, offload)
    except PowerCut:
        pass
    left = left.cut_power(dice) if is_power_cut else left.kill()
    offload = ManualOffload()
    manager = open_manager(left, clock, offload)
    if dice.random() < 1 / 2:
        go_on(manager, clock, offload)
        names = [name for path in DIRECTORIES for name in left.list(path) if name.endswith("-future")]
        assert not names, "what was begun is ended"
    if workload is not None:
        for partition, told in workload.acknowledged.items():
            check(manager, partition, told)


def go_on(manager: LogManager, clock: ManualClock, offload: ManualOffload) -> None:
    timers = Timers()
    manager.start_housekeeping(timers, BrokerConfig.from_properties(crashes.PROPERTIES))
    for _ in range(10):
        offload.run_all()
        clock.advance(0.1)
        timers.run_due(clock.monotonic())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_power_cut", [False, True], ids=["killed", "power-cut"])
def test_moving_logs_survive(seed: int, is_power_cut: bool) -> None:
    calls = count_calls(seed)
    for cut_at in sorted(Random(seed).sample(range(calls), CUTS)):
        try:
            crash(seed, cut_at, is_power_cut=is_power_cut)
        except BaseException as error:
            error.add_note(f"seed {seed}, cut at call {cut_at} of {calls}")
            raise
