"""Membership in a classic group: JoinGroup, SyncGroup, heartbeats, LeaveGroup; the leader assigns for all.

Eager members give everything up before they rejoin. Cooperative ones (KIP-429) rejoin with what they have, give up what
the new assignment takes from them, and rejoin once more so that others get it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ottla.client.assignors import ASSIGNORS, GroupMember, is_cooperative
from ottla.client.committed import MemberIdentity
from ottla.client.coordinator import GROUP_CHANNEL, GroupLink
from ottla.client.errors import raise_error
from ottla.client.membership import Assigner, GroupSettings, PollGate
from ottla.errors import (
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
    error_for_code,
)
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.internal.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from ottla.protocol.internal.framing import decode_versioned, encode_versioned
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.protocol.messages.leave_group import MemberIdentity as LeavingMember
from ottla.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from ottla.protocol.primitives import DecodeError

PROTOCOL_TYPE: Final = "consumer"
SUBSCRIPTION_VERSION: Final = 3
ASSIGNMENT_VERSION: Final = 3
NO_GENERATION: Final = -1
JOIN_GRACE_MS: Final = 5_000
"""An answer to JoinGroup comes when all have joined or the rebalance timeout is over, and then needs a moment."""
SEVERAL_MEMBERS_FROM: Final = 3


class ClassicMembership:
    """See the module."""

    def __init__(
        self, link: GroupLink, settings: GroupSettings, topics: Sequence[str], assigner: Assigner, gate: PollGate
    ) -> None:
        self._link = link
        self._settings = settings
        self._topics = sorted(set(topics))
        self._assigner = assigner
        self._gate = gate
        self._is_cooperative = is_cooperative(settings.assignors)
        self._member_id = ""
        self._generation_id = NO_GENERATION
        self._counts: dict[str, int] = {}
        self._is_leader = False

    @property
    def identity(self) -> MemberIdentity:
        return MemberIdentity(self._member_id, self._generation_id, self._settings.group_instance_id)

    # ---- life

    async def run(self) -> None:
        """Rebalance whenever that is due, and be heard of in between."""
        attempt = 0
        while True:
            try:
                if not self._is_cooperative:
                    await self._revoke(self._assigner.owned)
                await self._rebalance()
                attempt = 0
                await self._stay()
            except RebalanceInProgress:
                continue
            except FencedInstanceId:
                await self._lose()
                raise
            except (UnknownMemberId, IllegalGeneration) as error:
                await self._lose()
                if isinstance(error, UnknownMemberId):
                    self._member_id = ""
            except KafkaError as error:
                attempt += 1
                await self._link.pause_after(error, attempt)

    async def leave(self) -> None:
        if not self._member_id or self._settings.group_instance_id is not None:
            return  # a static member comes back
        connection = await self._link.connection(GROUP_CHANNEL)
        version = connection.version_for(ApiKey.LEAVE_GROUP)
        request = (
            LeaveGroupRequest(
                group_id=self._link.group_id,
                members=[LeavingMember(member_id=self._member_id, reason="the consumer is being closed")],
            )
            if version >= SEVERAL_MEMBERS_FROM
            else LeaveGroupRequest(group_id=self._link.group_id, member_id=self._member_id)
        )
        response = await connection.send(ApiKey.LEAVE_GROUP, request, version)
        assert isinstance(response, LeaveGroupResponse)
        self._member_id, self._generation_id = "", NO_GENERATION

    async def _stay(self) -> None:
        """Send heartbeats until the group rebalances, topics change, or the application has gone away."""
        while True:
            await asyncio.sleep(self._settings.heartbeat_interval_ms / 1000)
            if self._gate.is_overdue:
                await self.leave()
                await self._gate.await_poll()
                raise UnknownMemberId("the application did not ask for records within max_poll_interval_ms")
            if self._is_leader and self._counts != self._known_counts():
                return
            request = HeartbeatRequest(
                group_id=self._link.group_id,
                generation_id=self._generation_id,
                member_id=self._member_id,
                group_instance_id=self._settings.group_instance_id,
            )
            try:
                connection = await self._link.connection(GROUP_CHANNEL)
                response = await connection.call(ApiKey.HEARTBEAT, request, HeartbeatResponse)
                raise_error(response.error_code)
            except (RebalanceInProgress, UnknownMemberId, IllegalGeneration, FencedInstanceId):
                raise
            except KafkaError as error:
                await self._link.pause_after(error, 1)

    # ---- a rebalance

    async def _rebalance(self) -> None:
        """Join, get an assignment, and follow it. Raises `RebalanceInProgress` when that must be done once more."""
        joined = await self._join()
        self._is_leader = joined.leader == self._member_id and not joined.skip_assignment
        assignments: list[SyncGroupRequestAssignment] = []
        if self._is_leader:
            assignments = await self._assign(joined.protocol_name or "", joined.members)
        connection = await self._link.connection(GROUP_CHANNEL)
        request = SyncGroupRequest(
            group_id=self._link.group_id,
            generation_id=self._generation_id,
            member_id=self._member_id,
            group_instance_id=self._settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        response = await connection.call(ApiKey.SYNC_GROUP, request, SyncGroupResponse, self._join_timeout_ms)
        raise_error(response.error_code)
        await self._follow(_decode_assignment(response.assignment))

    @property
    def _join_timeout_ms(self) -> int:
        return self._settings.max_poll_interval_ms + JOIN_GRACE_MS

    async def _join(self) -> JoinGroupResponse:
        while True:
            connection = await self._link.connection(GROUP_CHANNEL)
            request = JoinGroupRequest(
                group_id=self._link.group_id,
                session_timeout_ms=self._settings.session_timeout_ms,
                rebalance_timeout_ms=self._settings.max_poll_interval_ms,
                member_id=self._member_id,
                group_instance_id=self._settings.group_instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[
                    JoinGroupRequestProtocol(name=name, metadata=self._subscription())
                    for name in self._settings.assignors
                ],
            )
            response = await connection.call(ApiKey.JOIN_GROUP, request, JoinGroupResponse, self._join_timeout_ms)
            error = error_for_code(response.error_code)
            if isinstance(error, MemberIdRequired):
                self._member_id = response.member_id
                continue
            if error is not None:
                raise error
            self._member_id, self._generation_id = response.member_id, response.generation_id
            return response

    def _subscription(self) -> bytes:
        owned = self._assigner.owned if self._is_cooperative else ()
        subscription = ConsumerProtocolSubscription(
            topics=list(self._topics),
            owned_partitions=[
                ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=numbers)
                for topic, numbers in _by_topic(owned).items()
            ],
            generation_id=self._generation_id,
        )
        return encode_versioned(subscription, SUBSCRIPTION_VERSION)

    async def _assign(self, protocol: str, rows: Iterable[JoinGroupResponseMember]) -> list[SyncGroupRequestAssignment]:
        """Assign for all members, as the leader."""
        members = {row.member_id: _read_member(row) for row in rows}
        cluster = self._link.cluster
        cluster.want({topic for member in members.values() for topic in member.topics})
        await cluster.refresh()
        wanted = sorted({topic for member in members.values() for topic in member.topics})
        self._counts = {topic: len(cluster.topics[topic].partitions) for topic in wanted if topic in cluster.topics}
        assigned = ASSIGNORS[protocol](members, self._counts)
        return [
            SyncGroupRequestAssignment(member_id=member_id, assignment=_encode_assignment(partitions))
            for member_id, partitions in assigned.items()
        ]

    def _known_counts(self) -> dict[str, int]:
        """The partitions of the group's topics as the metadata has them now; the leader rejoins when they change."""
        topics = self._link.cluster.topics
        return {topic: len(topics[topic].partitions) for topic in {*self._counts, *self._topics} if topic in topics}

    async def _follow(self, assigned: Sequence[TopicPartition]) -> None:
        owned = set(self._assigner.owned)
        revoked = sorted(owned - set(assigned))
        if revoked:
            await self._revoke(revoked)
        added = sorted(set(assigned) - owned)
        async with self._gate:
            await self._assigner.assign(added)
        if revoked and self._is_cooperative:
            raise RebalanceInProgress("what was given up is free for others now")

    async def _revoke(self, partitions: Sequence[TopicPartition]) -> None:
        if partitions:
            async with self._gate:
                await self._assigner.revoke(partitions)

    async def _lose(self) -> None:
        self._generation_id = NO_GENERATION
        if self._assigner.owned:
            async with self._gate:
                await self._assigner.lose()


def _read_member(row: JoinGroupResponseMember) -> GroupMember:
    """Raises `InconsistentGroupProtocol` for a member that speaks otherwise than its protocol's name says."""
    try:
        subscription = decode_versioned(ConsumerProtocolSubscription, row.metadata)
    except DecodeError as error:
        raise InconsistentGroupProtocol(f"what member {row.member_id} wants cannot be read: {error}") from error
    owned = [TopicPartition(one.topic, number) for one in subscription.owned_partitions for number in one.partitions]
    return GroupMember(subscription.topics, row.group_instance_id, owned, subscription.generation_id)


def _encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    topics = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=numbers)
        for topic, numbers in _by_topic(partitions).items()
    ]
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=topics), ASSIGNMENT_VERSION)


def _decode_assignment(data: bytes) -> list[TopicPartition]:
    if not data:
        return []
    try:
        assigned = decode_versioned(ConsumerProtocolAssignment, data).assigned_partitions
    except DecodeError as error:
        raise InconsistentGroupProtocol(f"what the group's leader assigns cannot be read: {error}") from error
    return [TopicPartition(topic.topic, number) for topic in assigned for number in topic.partitions]


def _by_topic(partitions: Iterable[TopicPartition]) -> Mapping[str, list[int]]:
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for partition in sorted(partitions):
        topics[partition.topic].append(partition.partition)
    return topics
