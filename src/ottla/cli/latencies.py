"""What records took on their way, in figures: the mean, percentiles and the longest, as Kafka's own tools give them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Final

PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9)

MOST_SAMPLES: Final = 500_000
"""So many times are kept at most, as by kafka-producer-perf-test; 4 MB of them."""

ENOUGH_SAMPLES: Final = 1_000
SPARSE: Final = 16
"""Where there are many records every 16th is timed, which costs the run nothing that could be measured."""


class Latencies:
    """Times from when records were sent until something had become of them, in milliseconds."""

    def __init__(self) -> None:
        self._taken_ms = array("d")

    def __len__(self) -> int:
        return len(self._taken_ms)

    def note(self, seconds: float) -> None:
        """Take one more."""
        self._taken_ms.append(seconds * 1000)

    def figures(self) -> dict[str, float]:
        """Return mean, percentiles and maximum, of one time at least.

        A percentile is the time at that place of all in order, as Kafka's tools choose it.
        """
        ordered = sorted(self._taken_ms)
        count = len(ordered)
        figures = {"avg": sum(ordered) / count}
        figures |= {f"p{rank:g}": ordered[min(count - 1, int(count * rank / 100))] for rank in PERCENTILES}
        figures["max"] = ordered[-1]
        return {name: round(value, 3) for name, value in figures.items()}


def timed_each(records: int) -> int:
    """Return which of so many records are timed: every one (1), every second (2) ..."""
    return max(1, min(SPARSE, records // ENOUGH_SAMPLES), -(-records // MOST_SAMPLES))


def figures_line(name: str, figures: Mapping[str, float]) -> str:
    """Return them as a line for people."""
    return f"{name:12} " + "  ".join(f"{key} {value:.3f} ms" for key, value in figures.items())
