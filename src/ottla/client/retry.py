"""When a failed request is tried again, and after which pause.

Decides only: who waits and who sends is up to the caller. The pause grows exponentially with a random share of 20 %, as
Kafka's clients do since KIP-580, so that clients that failed together do not come back together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ottla.errors import InvalidMetadataError, KafkaError, UnknownTopicId

JITTER: Final = 0.2


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between attempts, in milliseconds: `initial_ms`, twice that, and so on up to `maximum_ms`."""

    initial_ms: int
    maximum_ms: int

    def delay_seconds(self, failures: int, random: Callable[[], float]) -> float:
        """Return the pause after so many failures in a row (1 or more). `random` gives numbers in [0, 1)."""
        planned_ms = min(self.initial_ms * 2.0 ** min(failures - 1, 30), float(self.maximum_ms))
        spread = 1.0 + JITTER * (2.0 * random() - 1.0)
        return min(planned_ms * spread, float(self.maximum_ms)) / 1000.0


class Reaction(Enum):
    """What a client does about an error."""

    RETRY = "retry"
    REFRESH = "refresh metadata, then retry"
    GIVE_UP = "give up"


def reaction_to(error: KafkaError) -> Reaction:
    """Return what to do about an error that a broker answered or a connection ended with."""
    if isinstance(error, InvalidMetadataError | UnknownTopicId):
        return Reaction.REFRESH
    return Reaction.RETRY if error.retriable else Reaction.GIVE_UP
