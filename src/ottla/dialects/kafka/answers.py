"""What a handler may return, and what it may ask about its request.

* a response: it leaves as soon as those before it have left;
* None: there is nothing to say (Produce with acks=0);
* a `LaterAnswer`: the response comes when something happens, without a task;
* `Steps` whose result is one of these, for what may be asked so much of that others must be heard in between. What
  they have is of the request's own connection, on which nothing else is begun before their end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from ottla.broker.broker import Broker
from ottla.broker.turns import Steps
from ottla.dialects.session import Part, Peer
from ottla.protocol.codec import Message

ItemT = TypeVar("ItemT")
RowT = TypeVar("RowT")

ANONYMOUS = "User:ANONYMOUS"
"""The principal of everyone on a listener without authentication."""
ROWS_A_STEP: Final = 32
"""How many rows of an answer are found between two yields, about: a millisecond's worth where a row costs most."""


class RequestContext:
    """What is known about a request besides its body.

    One per connection, filled anew for each request: a handler that answers later keeps what it needs of it.
    """

    def __init__(self, broker: Broker, peer: Peer, *, api_version: int = -1) -> None:
        self.broker = broker
        self.peer = peer
        self.principal = ANONYMOUS
        self.api_key = -1
        self.api_version = api_version
        self.client_id: str | None = None
        self.is_long = False
        """True where the request is so large that it had better be answered in steps, if the handler can."""

    @property
    def listener_name(self) -> str:
        return self.peer.listener_name


class LaterAnswer:
    """A response that comes later. The handler completes it; the session was told to listen."""

    __slots__ = ("_on_complete", "cancel", "frame", "hurry", "is_complete", "response", "steps")

    def __init__(self) -> None:
        self.cancel: Callable[[], None] | None = None
        """Called when the connection is lost first."""
        self.hurry: Callable[[], None] | None = None
        """Called when the server wants to stop: answers with what there is."""
        self.is_complete = False
        self.response: Message | None = None
        self.frame: Sequence[Part] = ()
        """The response where it is encoded already."""
        self.steps: Steps[Settled] | None = None
        """What is to be done for the response, now that the wait is over."""
        self._on_complete: Callable[[], None] | None = None

    def complete(self, response: Message | None) -> None:
        """Answer with `response`, or leave the request unanswered (None)."""
        self.response = response
        self.is_complete = True
        if self._on_complete is not None:
            self._on_complete()

    def go_on(self, steps: Steps[Settled]) -> None:
        """End the wait: the steps come to the response. For answers that were come to in steps themselves."""
        self.steps = steps
        self.complete(None)

    def listen(self, on_complete: Callable[[], None]) -> None:
        """Have `on_complete` called once the response is there (called by the session)."""
        self._on_complete = on_complete


def rows_in_steps(items: Iterable[ItemT], row: Callable[[ItemT], RowT]) -> Steps[list[RowT]]:
    """Find the row of each item, some at a time."""
    rows: list[RowT] = []
    for item in items:
        rows.append(row(item))
        if len(rows) % ROWS_A_STEP == 0:
            yield
    return rows


Settled = Message | LaterAnswer | None
HandlerAnswer = Settled | Steps[Settled]
Handler = Callable[[Any, RequestContext], HandlerAnswer]
"""Takes the decoded request, of the class that belongs to its API."""
