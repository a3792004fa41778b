"""After a crash at any call, with or without power, what was acknowledged is there. Some cuts; the soak takes all."""

from __future__ import annotations

from random import Random

import pytest

from tests.storage.crashes import count_calls, crash, kill_then_cut_power

STEPS = 60
CUTS = 25


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_power_cut", [False, True], ids=["killed", "power-cut"])
def test_acknowledged_records_survive(seed: int, is_power_cut: bool) -> None:
    calls = count_calls(seed, STEPS)
    for cut_at in sorted(Random(seed).sample(range(calls), CUTS)):
        try:
            crash(seed, STEPS, cut_at, is_power_cut=is_power_cut)
        except BaseException as error:
            error.add_note(f"seed {seed}, cut at call {cut_at} of {calls}")
            raise


@pytest.mark.parametrize("seed", range(4))
def test_what_recovery_took_over_survives_a_power_cut(seed: int) -> None:
    calls = count_calls(seed, STEPS)
    for cut_at in sorted(Random(seed).sample(range(calls), CUTS)):
        try:
            kill_then_cut_power(seed, STEPS, cut_at)
        except BaseException as error:
            error.add_note(f"seed {seed}, cut at call {cut_at} of {calls}")
            raise
