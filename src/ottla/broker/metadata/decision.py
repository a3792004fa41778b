"""What a decision hands back, and what the controller makes of it.

Deciding code reads the image and values and returns a `Decision`; only the controller appends and replays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from ottla.broker.metadata.records import MetadataRecord
from ottla.engine import Ticket

AnswerT = TypeVar("AnswerT")


class Decision(NamedTuple, Generic[AnswerT]):
    """Records to append as one batch (none: nothing changes), and the answer once they are durable."""

    records: Sequence[MetadataRecord]
    answer: AnswerT


class Committed(NamedTuple, Generic[AnswerT]):
    """A decision that was appended and replayed. The answer may leave when `ticket` is durable; None: at once."""

    answer: AnswerT
    ticket: Ticket | None
