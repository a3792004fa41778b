"""Answers that wait for the disk: a change was made and replayed, and may be told once it is durable."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ottla.dialects.kafka.answers import LaterAnswer
from ottla.engine import Ticket
from ottla.errors import KafkaError
from ottla.protocol.schema import Message

ResponseT = TypeVar("ResponseT", bound=Message)


def when_durable(
    ticket: Ticket | None, response: ResponseT, refuse: Callable[[KafkaError], ResponseT]
) -> ResponseT | LaterAnswer:
    """Return `response` once `ticket` is durable, now where it is so already or nothing was written.

    `refuse` makes the response to be sent when it never will be.
    """
    if ticket is None or ticket.is_durable:
        return response
    later = LaterAnswer()

    def complete() -> None:
        later.complete(response if ticket.error is None else refuse(ticket.error))

    ticket.on_done(complete)
    return later
