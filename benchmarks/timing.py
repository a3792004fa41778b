"""How long one call takes, in CPU time, which noise hardly moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

RUNS: Final = 15
RUN_SECONDS: Final = 0.02


def best_seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of one call, the best of `RUNS` runs of about `RUN_SECONDS` each."""
    begin = time.process_time()
    work()
    times = max(1, int(RUN_SECONDS / max(time.process_time() - begin, 1e-6)))
    best = float("inf")
    for _ in range(RUNS):
        begin = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - begin) / times)
    return best
