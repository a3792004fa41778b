"""What members of consumer groups say in a heartbeat, and what they are told. Values only, known to no version."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ottla.broker.groups.assignors import TopicIdPartition
from ottla.broker.groups.consumer_member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from ottla.errors import InvalidRequest, KafkaError, UnsupportedAssignor


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """One ConsumerGroupHeartbeat. None means: as before."""

    group_id: str
    member_id: str
    member_epoch: int
    """0 to join, -1 to leave, -2 to leave for now, else the epoch that the member knows to be in."""
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    """As Kafka shows it: `/` and the address."""
    rebalance_timeout_ms: int | None
    subscribed_topics: Collection[str] | None
    subscribed_pattern: str | None
    server_assignor: str | None
    owned: AbstractSet[TopicIdPartition] | None
    """The partitions that the member reads now."""
    brings_own_id: bool = True
    """False for members from before they made their own ids (version 0); they may join without one."""

    @property
    def is_leaving(self) -> bool:
        return self.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH)

    @property
    def is_complete(self) -> bool:
        """True when it says everything, as it does after anything went wrong: the answer then has everything too."""
        has_topics = self.subscribed_topics is not None or self.subscribed_pattern is not None
        return self.rebalance_timeout_ms is not None and has_topics and self.owned is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatOutcome:
    """Where a member stands now. `assigned` None: nothing new."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assigned: AbstractSet[TopicIdPartition] | None = None


HeartbeatReply = Callable[[HeartbeatOutcome | KafkaError], None]


def check_heartbeat(beat: Heartbeat, assignors: Sequence[str]) -> None:
    """Raise `InvalidRequest` or `UnsupportedAssignor` for what can be refused without a look at the group."""
    if not beat.member_id and (beat.brings_own_id or beat.member_epoch != JOIN_EPOCH):
        raise InvalidRequest("the member id is empty")
    _check_not_blank("group id", beat.group_id)
    _check_not_blank("instance id", beat.instance_id)
    _check_not_blank("rack id", beat.rack_id)
    if beat.member_epoch == JOIN_EPOCH:
        _check_join(beat)
    elif beat.member_epoch == STATIC_LEAVE_EPOCH and beat.instance_id is None:
        raise InvalidRequest("only a member with an instance id leaves for a while")
    elif beat.member_epoch < STATIC_LEAVE_EPOCH:
        raise InvalidRequest(f"there is no member epoch {beat.member_epoch}")
    if beat.server_assignor is not None and beat.server_assignor not in assignors:
        raise UnsupportedAssignor(f"the assignors here are {', '.join(assignors)}, not {beat.server_assignor!r}")


def _check_join(beat: Heartbeat) -> None:
    if beat.rebalance_timeout_ms is None:
        raise InvalidRequest("who joins says its rebalance timeout")
    if beat.owned is None or beat.owned:
        raise InvalidRequest("who joins owns no partitions, and says so")
    if beat.subscribed_topics is None and beat.subscribed_pattern is None:
        raise InvalidRequest("who joins says which topics it wants")


def _check_not_blank(what: str, value: str | None) -> None:
    if value is not None and not value.strip():
        raise InvalidRequest(f"the {what} is empty")
