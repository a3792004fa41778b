"""What every group is to the coordinator, whatever its protocol: the seam at which kinds of groups plug in.

A kind of group that is served (classic, consumer) brings a class that is a `Group`, and a class per shard
that says what its records do when they are replayed (`GroupShard.on_replay`) and what happens once all are loaded.
Offsets, listing, deletion and expiry work on any `Group`; those of kinds that are not served are `ForeignGroup`s.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, Protocol

from ottla.broker.groups.assignors import TopicIdPartition
from ottla.protocol.internal.framing import CoordinatorRecord


class GroupType(StrEnum):
    """The kinds of groups, spelled as in ListGroups."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    UNKNOWN = "unknown"
    """Kinds that no release had when this was written; not listed."""


class MemberClaim(NamedTuple):
    """Who somebody says to be. Nobody in particular: the defaults."""

    member_id: str = ""
    epoch: int = -1
    """The generation (classic) or the member epoch (KIP-848)."""
    group_instance_id: str | None = None
    knows_member_epochs: bool = True
    """False for requests from before KIP-848, whose senders do not know what a member epoch is."""


class Group(Protocol):
    """A group, of any kind."""

    @property
    def group_id(self) -> str: ...

    @property
    def group_type(self) -> GroupType: ...

    @property
    def protocol_type(self) -> str:
        """`consumer`, `connect`, ...; empty for a group that only ever committed offsets."""

    @property
    def state_name(self) -> str:
        """The state as ListGroups and DescribeGroups spell it."""

    @property
    def is_empty(self) -> bool:
        """True when nobody is in it, so that it may be deleted and its offsets may expire."""

    def is_subscribed_to(self, topic: str) -> bool:
        """True when a member wants `topic`, whose offsets must then stay."""

    def check_offset_commit(self, claim: MemberClaim, *, is_transactional: bool) -> None:
        """Raise what keeps this somebody from committing offsets now."""

    def check_committed_partitions(self, claim: MemberClaim, partitions: Iterable[TopicIdPartition]) -> None:
        """Raise what keeps this somebody from committing for these partitions, all of them or none."""

    def check_offset_fetch(self, claim: MemberClaim) -> None:
        """Raise what keeps this somebody from reading offsets now."""

    def check_offset_delete(self) -> None:
        """Raise `NonEmptyGroup` when offsets may not be deleted now."""

    def check_delete(self) -> None:
        """Raise `NonEmptyGroup` when the group may not be deleted now."""

    def retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        """From when on the retention time of an offset counts that was committed at a time; None: not yet."""

    def touch(self, member_id: str) -> None:
        """A member was heard of otherwise than by its heartbeat; where that counts, its session goes on."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """Records that remove all that the log has of this group, its offsets aside."""

    def close(self) -> None:
        """The group is gone, or this broker stops: cancel its timers, send away who waits."""
