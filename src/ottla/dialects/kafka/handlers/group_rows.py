"""What the handlers of groups share: waiting answers that end when the server stops."""

from __future__ import annotations

from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.errors import KafkaError
from ottla.protocol.schema import Message


def client_host(context: RequestContext) -> str:
    """The address of the client as Kafka shows it."""
    return f"/{context.peer.host}"


def code_of(error: KafkaError | None) -> int:
    return 0 if error is None else error.code


def complete_once(later: LaterAnswer, response: Message) -> None:
    """Answer unless that was done: a server that stops answers before the group does."""
    if not later.is_complete:
        later.complete(response)
