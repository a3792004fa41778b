"""`ManualClock`: time moves when the test says so."""

from __future__ import annotations

from typing import Final

START_WALL_MS: Final = 1_750_000_000_000
"""2025-06-15; the same instant that the reference batches use for now."""


class ManualClock:
    """A `Clock` that stands still between calls of `advance`. Both of its scales move together."""

    __slots__ = ("_monotonic", "_wall_ms")

    def __init__(self, wall_ms: int = START_WALL_MS, monotonic: float = 0.0) -> None:
        self._wall_ms = float(wall_ms)
        self._monotonic = monotonic

    def wall_ms(self) -> int:
        return int(self._wall_ms)

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Move both scales forward. Raises `ValueError` for a negative step; `set_wall_ms` is for clocks that jump."""
        if seconds < 0:
            raise ValueError(f"time does not go back: advance({seconds})")
        self._monotonic += seconds
        self._wall_ms += seconds * 1000

    def set_wall_ms(self, wall_ms: int) -> None:
        """Set the wall clock alone, as an administrator or NTP does: it may go back, `monotonic` does not."""
        self._wall_ms = float(wall_ms)
