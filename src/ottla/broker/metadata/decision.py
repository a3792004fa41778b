"""What a decision hands back, and what the controller makes of it.

Deciding code reads the image and values and returns a `Decision`; only the controller appends and replays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ottla.broker.metadata.records import MetadataRecord
from ottla.engine import Ticket

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class Decision(Generic[AnswerT]):
    """Records to append as one batch (none: nothing changes), and the answer once they are durable."""

    records: Sequence[MetadataRecord]
    answer: AnswerT


@dataclass(frozen=True, slots=True)
class Committed(Generic[AnswerT]):
    """A decision that was appended and replayed. The answer may leave when `ticket` is durable; None: at once."""

    answer: AnswerT
    ticket: Ticket | None
