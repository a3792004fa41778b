"""What members of both group protocols share: settings, callbacks, and the gate at which the application lets go.

A rebalance takes partitions away only where the application asks for its next record, because by then it has done what
it does with those that it got before: no record is worked on here while another member reads its partition, and what
is committed then was processed. An application that does not ask for `max_poll_interval_ms` has left the group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ottla.client.assignors import ASSIGNORS
from ottla.client.committed import MemberIdentity
from ottla.model import TopicPartition

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """How a consumer is in a group. Names and defaults are those of Kafka's consumer. Raises `ValueError`."""

    group_id: str
    group_protocol: str = CLASSIC
    """`classic` (JoinGroup, SyncGroup) or `consumer` (KIP-848)."""
    group_instance_id: str | None = None
    """A name that outlives restarts of this process: it comes back to the partitions that it had (KIP-345)."""
    session_timeout_ms: int = 45_000
    """Classic only, like the next two; in the new protocol the broker decides."""
    heartbeat_interval_ms: int = 3_000
    assignors: Sequence[str] = ("range", "cooperative-sticky")
    """`range`, `roundrobin`, `cooperative-sticky`; the first that all members have is used. Members keep their
    partitions while they rejoin only where all of these are cooperative."""
    group_remote_assignor: str | None = None
    """The broker's assignor (`uniform`, `range`) for groups of the new protocol; None leaves it to the broker."""
    max_poll_interval_ms: int = 300_000
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000

    def __post_init__(self) -> None:
        if self.group_protocol not in (CLASSIC, CONSUMER):
            raise ValueError(f"group_protocol {self.group_protocol!r} is neither {CLASSIC} nor {CONSUMER}")
        unknown = [name for name in self.assignors if name not in ASSIGNORS]
        if unknown or not self.assignors:
            raise ValueError(f"assignors are some of {', '.join(ASSIGNORS)}, not {', '.join(unknown) or 'none'}")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError("heartbeat_interval_ms must be below session_timeout_ms")


class RebalanceListener:
    """Override what you need. Called while no record is handed out."""

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """These are about to go to others; positions are still this consumer's to commit."""

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """These are read from now on; `seek` works."""

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """These belong to others already: the group did without this consumer. Nothing can be committed."""


class Assigner(Protocol):
    """What a membership does to its consumer. Each call comes while the application waits at the gate."""

    @property
    def owned(self) -> Sequence[TopicPartition]:
        """The partitions that are read."""

    async def revoke(self, partitions: Sequence[TopicPartition]) -> None:
        """Commit their positions, if that is the consumer's habit, and read them no more."""

    async def lose(self) -> None:
        """Read nothing more; there is nothing to commit to."""

    async def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these too, from where the group has got."""


class PollGate:
    """Where application and membership meet: the application passes it whenever it asks for records."""

    def __init__(self, wake: Callable[[], None], max_poll_interval_ms: int) -> None:
        """`wake` makes an application that waits for records come by."""
        self.polls = 0
        """How often the application has asked for records; raised by it."""
        self.is_waiting = False
        """True while the application waits for records: then it is never overdue."""
        self._wake = wake
        self._max_poll_seconds = max_poll_interval_ms / 1000
        self._arrival: asyncio.Future[None] | None = None
        self._passage: asyncio.Future[None] | None = None
        self._seen_polls = 0
        self._seen_at = asyncio.get_running_loop().time()

    @property
    def is_wanted(self) -> bool:
        """True while the application is to come by before it gets another record."""
        return self._passage is not None or self._arrival is not None

    @property
    def is_overdue(self) -> bool:
        """True when the application has not asked for records for too long. Ask regularly."""
        now = asyncio.get_running_loop().time()
        if self.is_waiting or self.polls != self._seen_polls:
            self._seen_polls, self._seen_at = self.polls, now
        return now - self._seen_at > self._max_poll_seconds

    async def pass_by(self) -> None:
        """Let happen what waits for the application (called by it)."""
        while self.is_wanted:
            if self._arrival is not None and not self._arrival.done():
                self._arrival.set_result(None)
            if self._passage is None:
                return
            await asyncio.shield(self._passage)

    async def await_poll(self) -> None:
        """Wait until the application asks for records, however long that takes."""
        self._arrival = asyncio.get_running_loop().create_future()
        self._wake()
        try:
            await self._arrival
        finally:
            self._arrival = None

    async def __aenter__(self) -> None:
        """Wait for the application to come by, and hold it; one that works for too long is not waited for."""
        loop = asyncio.get_running_loop()
        self._passage = loop.create_future()
        try:
            async with asyncio.timeout(self._max_poll_seconds):
                await self.await_poll()
        except TimeoutError:
            pass
        except BaseException:
            self._open()
            raise

    async def __aexit__(self, *exception: object) -> None:
        self._open()

    def _open(self) -> None:
        passage, self._passage = self._passage, None
        if passage is not None and not passage.done():
            passage.set_result(None)


class Membership(Protocol):
    """One way to be in a group."""

    @property
    def identity(self) -> MemberIdentity:
        """Who this member is now, for commits."""

    async def run(self) -> None:
        """Join, and stay until cancelled. Raises what ends the membership for good."""

    async def leave(self) -> None:
        """Say good-bye; errors are not worth a word."""
