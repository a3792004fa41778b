"""`ForeignGroup`: a group of a kind that is not served here, as another broker left it in the log.

Share groups (KIP-932), streams groups (KIP-1071), and kinds that only their records tell of. Such a group keeps its
name, its records and its offsets until a broker that serves it takes the log over: nobody joins it, commits to it or
deletes it, and nothing of it expires. What is answered is what Kafka 4.4 answers about a group of another kind, or
about one that has members.

Made when a shard is loaded, and never changed: nothing here writes records of its kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ottla.broker.groups.assignors import TopicIdPartition
from ottla.broker.groups.group import GroupType, MemberClaim
from ottla.errors import GroupIdNotFound, NonEmptyGroup, UnknownMemberId
from ottla.protocol.internal.framing import CoordinatorRecord, RawCoordinatorRecord
from ottla.protocol.internal.share_group_records import ShareGroupMemberMetadataKey
from ottla.protocol.internal.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyValue,
)

SHARE_TYPES: Final = range(9, 16)
"""Record types of share groups; 9 was written by early releases only."""
STREAMS_TYPES: Final = range(17, 24)
"""Record types of streams groups; 18 was written by early releases only."""
SERVED_TYPES: Final = frozenset({0, *range(1, 9), 16})
"""Record types of offsets, classic groups and consumer groups."""

TYPE_BYTES: Final = 2
GROUP_AT: Final = 4
RECONCILED: Final = 1
"""The state of a streams group's member that has what it shall have."""
EMPTY: Final = "Empty"
NOT_READY: Final = "NotReady"
ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"
STABLE: Final = "Stable"
UNKNOWN: Final = "Unknown"

StoredRecord = CoordinatorRecord | RawCoordinatorRecord


def record_type(key: bytes) -> int:
    """Return the type of a record of `__consumer_offsets`."""
    return int.from_bytes(key[:TYPE_BYTES], "big", signed=True)


def group_id_in(key: bytes) -> str | None:
    """Return the group that a record belongs to, of any type: the id follows the type. None where it cannot be read."""
    end = GROUP_AT + int.from_bytes(key[TYPE_BYTES:GROUP_AT], "big")
    if not GROUP_AT < end <= len(key):
        return None
    try:
        return key[GROUP_AT:end].decode()
    except UnicodeDecodeError:
        return None


class ForeignGroup:
    """A `Group` that is kept as it is."""

    __slots__ = ("_group_id", "_group_type", "_state_name")

    def __init__(self, group_id: str, record_types: Iterable[int], records: Sequence[StoredRecord]) -> None:
        """`record_types` are those of all its records, `records` those that could be decoded."""
        self._group_id = group_id
        self._group_type = _group_type(record_types)
        self._state_name = _state_name(self._group_type, records)

    @property
    def group_id(self) -> str:
        return self._group_id

    @property
    def group_type(self) -> GroupType:
        return self._group_type

    @property
    def protocol_type(self) -> str:
        return self._group_type.value

    @property
    def state_name(self) -> str:
        """What it was when it was last served; `Unknown` where its records do not tell."""
        return self._state_name

    @property
    def is_empty(self) -> bool:
        """Never: it neither goes nor makes way."""
        return False

    def is_subscribed_to(self, topic: str) -> bool:
        """What it reads is not known here, so that all its offsets stay."""
        return True

    def check_offset_commit(self, claim: MemberClaim, *, is_transactional: bool) -> None:
        """Only members of streams groups commit, and whose sessions are kept elsewhere is no member here."""
        if self._group_type is GroupType.STREAMS:
            raise UnknownMemberId(self._refusal)
        raise GroupIdNotFound(self._refusal)

    def check_committed_partitions(self, claim: MemberClaim, partitions: Iterable[TopicIdPartition]) -> None:
        """Nobody comes so far."""

    def check_offset_fetch(self, claim: MemberClaim) -> None:
        """Anybody may ask but who says to be a member of a streams group."""
        if self._group_type is GroupType.STREAMS and (claim.epoch >= 0 or claim.member_id):
            raise UnknownMemberId(self._refusal)

    def check_offset_delete(self) -> None:
        """Of streams groups each topic is refused on its own, as one that it reads."""
        if self._group_type is not GroupType.STREAMS:
            raise GroupIdNotFound(self._refusal)

    def check_delete(self) -> None:
        """An empty one could go, but what else belongs to it, as share groups' state, is not known here."""
        if self._state_name in (EMPTY, UNKNOWN):
            raise GroupIdNotFound(self._refusal)
        raise NonEmptyGroup(self._refusal)

    def retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        return None

    def touch(self, member_id: str) -> None:
        """It has no sessions here."""

    def tombstones(self) -> list[CoordinatorRecord]:
        raise AssertionError("what is not served is not removed")

    def close(self) -> None:
        """It has no timers and nobody waits."""

    @property
    def _refusal(self) -> str:
        return f"group {self._group_id} is of type {self._group_type.value}, which is not served here"


def _group_type(record_types: Iterable[int]) -> GroupType:
    found = set(record_types)
    if found.intersection(STREAMS_TYPES):
        return GroupType.STREAMS
    return GroupType.SHARE if found.intersection(SHARE_TYPES) else GroupType.UNKNOWN


def _state_name(group_type: GroupType, records: Sequence[StoredRecord]) -> str:
    if group_type is GroupType.UNKNOWN or any(isinstance(record, RawCoordinatorRecord) for record in records):
        return UNKNOWN
    members = (ShareGroupMemberMetadataKey, StreamsGroupMemberMetadataKey)
    if not any(isinstance(record.key, members) for record in records):
        return EMPTY
    return STABLE if group_type is GroupType.SHARE else _streams_state_name(records)


def _streams_state_name(records: Sequence[StoredRecord]) -> str:
    """The state of a streams group with members, as Kafka finds it: it is ready when its topology was found valid."""
    epoch = assignment_epoch = 0
    validated_epoch = topology_epoch = -1
    member_states: list[tuple[int, int]] = []
    for record in records:
        match record.value:
            case StreamsGroupMetadataValue():
                epoch = record.value.epoch
                validated_epoch = record.value.validated_topology_epoch
            case StreamsGroupTopologyValue():
                topology_epoch = record.value.epoch
            case StreamsGroupTargetAssignmentMetadataValue():
                assignment_epoch = record.value.assignment_epoch
            case StreamsGroupCurrentMemberAssignmentValue():
                member_states.append((record.value.state, record.value.member_epoch))
    if topology_epoch < 0 or topology_epoch != validated_epoch:
        return NOT_READY
    if epoch > assignment_epoch:
        return ASSIGNING
    is_stable = all(state == (RECONCILED, assignment_epoch) for state in member_states)
    return STABLE if is_stable else RECONCILING
