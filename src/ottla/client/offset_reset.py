"""auto.offset.reset: where to go without a position, in Kafka's words.

"earliest", "latest", "none" for an error, or "by_duration:P7D" for the first record that is at most so old (KIP-1106).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ottla.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

NO_RESET: Final = "none"
BY_DURATION: Final = "by_duration:"
WORDS: Final = {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP}

_DURATION: Final = re.compile(
    r"P(?=.)(?:(?P<days>\d+)D)?(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)
_UNITS_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


class OffsetReset:
    """What a reset means at any moment."""

    __slots__ = ("_duration_ms", "_wall_ms", "_word")

    def __init__(self, text: str, wall_ms: Callable[[], int]) -> None:
        """`wall_ms` gives milliseconds since 1970. Raises `ValueError` for what Kafka's consumer would not take."""
        self._word = text
        self._wall_ms = wall_ms
        self._duration_ms: int | None = None
        if text.startswith(BY_DURATION):
            self._duration_ms = parse_duration_ms(text.removeprefix(BY_DURATION))
        elif text not in WORDS and text != NO_RESET:
            raise ValueError(f"auto_offset_reset {text!r} is none of earliest, latest, none, by_duration:P1DT2H3M4S")

    def timestamp_ms(self) -> int | None:
        """Return the timestamp to ask the leader for, one of `model`'s special ones perhaps; None: that is an error."""
        if self._duration_ms is not None:
            return max(0, self._wall_ms() - self._duration_ms)
        return WORDS.get(self._word)


def parse_duration_ms(text: str) -> int:
    """Return the milliseconds of an ISO 8601 duration in days, hours, minutes and seconds. Raises `ValueError`."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration; P7D, PT1H30M and P1DT0.5S are some")
    return round(sum(float(found[unit] or 0) * unit_ms for unit, unit_ms in _UNITS_MS.items()))
