"""What members of classic groups ask for, and what they are told. Values only; versions have been translated away.

Answers may come later: whoever asks hands in what is to be called with the outcome, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.errors import KafkaError

NO_GENERATION = -1


class AssignmentProtocol(NamedTuple):
    """An assignor that a member can use, with what it wants the leader to know."""

    name: str
    metadata: bytes


class JoiningMember(NamedTuple):
    """A member as the leader gets to see it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """Somebody wants to be in the next generation."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    """As Kafka shows it: `/` and the address."""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Sequence[AssignmentProtocol]
    must_know_member_id: bool = True
    """A new member gets its id first and comes again with it (KIP-394)."""
    can_skip_assignment: bool = True
    """A returning static leader can be told that its group needs no assignment (KIP-814)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOutcome:
    """The generation that was formed, or why the member is not in it."""

    member_id: str
    error: KafkaError | None = None
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: Sequence[JoiningMember] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequest:
    """A member asks for its assignment; the leader brings everybody's."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncOutcome:
    """A member's assignment, or why it has none."""

    error: KafkaError | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class LeavingMember(NamedTuple):
    """Who leaves, or is made to: `member_id` is empty where an administrator only knows the instance."""

    member_id: str
    group_instance_id: str | None


class LeaveOutcome(NamedTuple):
    """What became of one `LeavingMember`."""

    member_id: str
    group_instance_id: str | None
    error: KafkaError | None


JoinReply = Callable[[JoinOutcome], None]
SyncReply = Callable[[SyncOutcome], None]
