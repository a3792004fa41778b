"""A broker without sockets, for handlers: metadata in memory, logs in a temporary directory."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any, TypeVar

from ottla.broker.broker import Broker
from ottla.broker.membership import LocalMembership
from ottla.broker.metadata.registration import format_records
from ottla.clock import Timers
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.session import Peer
from ottla.protocol.schema import Message
from ottla.storage.state_store import LocalStateStore
from ottla.testing.clock import ManualClock
from tests.broker.metadata.harness import MemoryStore, start
from tests.storage.harness import ManualOffload, start_manager
from tests.turns import finish

ResponseT = TypeVar("ResponseT", bound=Message)
LISTENER = "PLAINTEXT"


class Bench:
    """One broker, and requests to it at any version."""

    def __init__(self, directory: Path, disk: ManualOffload | None = None, /, **settings: str) -> None:
        """With `disk` produced records are acknowledged once it has run what it was given."""
        self.store = MemoryStore(format_records())
        self.controller = start(self.store, **settings)
        membership = LocalMembership(1)
        membership.advertise(LISTENER, "localhost", 9092)
        logs = start_manager(directory, fsync=disk is not None, offload=disk)
        self.timers, self.clock = Timers(), ManualClock()
        self.broker = Broker(
            log=logs,
            state=LocalStateStore(logs, self.clock),
            metadata=self.controller,
            membership=membership,
            timers=self.timers,
            clock=self.clock,
        )
        self.broker.load_topics()
        self.broker.load_groups()

    def context(self, version: int) -> RequestContext:
        return RequestContext(self.broker, Peer(LISTENER, "localhost", 50_000), api_version=version)

    def advance(self, seconds: float) -> None:
        """Move the clock and run what falls due."""
        self.clock.advance(seconds)
        self.timers.run_due(self.clock.monotonic())

    def ask(self, module: Any, request: Message, version: int) -> Any:
        """Return the response of a handler's module; what waits for the disk gets it."""
        answer = self.begin(module.handle(request, self.context(version)))
        if isinstance(answer, LaterAnswer):
            self.store.tickets[-1].settle()
            return answer.response if answer.steps is None else self.begin(answer.steps)
        return answer

    def begin(self, answer: Any) -> Any:
        """Return what a handler comes to, which may still have to wait; what goes in steps is done in one turn."""
        return finish(answer)[0] if isinstance(answer, Generator) else answer
