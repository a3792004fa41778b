"""A scripted cluster whose coordinator runs one group of one member, in either protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from ottla.errors import (
    FencedMemberEpoch,
    IllegalGeneration,
    KafkaError,
    MemberIdRequired,
    NotCoordinator,
    UnknownMemberId,
)
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.client.scripted import TOPIC_ID, Answer, ScriptedBroker, ScriptedCluster

HEARTBEAT_MS = 3000


@dataclass(slots=True)
class ScriptedGroup:
    """What the coordinator, whichever broker that is, knows."""

    member_id: str = ""
    generation_id: int = 0
    member_epoch: int = 0
    joins: int = 0

    def forget(self) -> None:
        """Do as if the member's session had timed out."""
        self.member_id, self.member_epoch = "", 0


class GroupBroker(ScriptedBroker):
    """A broker that also coordinates."""

    served = (
        *ScriptedBroker.served,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
    )

    @property
    def group(self) -> ScriptedGroup:
        return cast(GroupCluster, self.cluster).group

    def _problem(self, member_id: str) -> type[KafkaError] | None:
        if self.cluster.coordinator != self.node_id:
            return NotCoordinator
        return None if member_id == self.group.member_id else UnknownMemberId

    # ---- classic

    def _join_group(self, request: JoinGroupRequest) -> Message:
        group = self.group
        if self.cluster.coordinator != self.node_id:
            return _join_refused(NotCoordinator)
        if not request.member_id:
            group.member_id = f"member-{group.joins}"
            return _join_refused(MemberIdRequired, group.member_id)
        if request.member_id != group.member_id:
            return _join_refused(UnknownMemberId)
        group.joins += 1
        group.generation_id += 1
        return JoinGroupResponse(
            error_code=0,
            generation_id=group.generation_id,
            protocol_type="consumer",
            protocol_name=request.protocols[0].name,
            leader=group.member_id,
            member_id=group.member_id,
            members=[JoinGroupResponseMember(member_id=group.member_id, metadata=request.protocols[0].metadata)],
        )

    def _sync_group(self, request: SyncGroupRequest) -> Message:
        problem = self._problem(request.member_id)
        if problem is not None:
            return SyncGroupResponse(error_code=problem.code, assignment=b"")
        return SyncGroupResponse(error_code=0, assignment=request.assignments[0].assignment)

    def _heartbeat(self, request: HeartbeatRequest) -> Message:
        problem = self._problem(request.member_id)
        if problem is None and request.generation_id != self.group.generation_id:
            problem = IllegalGeneration
        return HeartbeatResponse(error_code=0 if problem is None else problem.code)

    def _leave_group(self, request: LeaveGroupRequest) -> Message:
        return LeaveGroupResponse(error_code=0, members=[])

    # ---- the newer protocol

    def _consumer_group_heartbeat(self, request: ConsumerGroupHeartbeatRequest) -> Message:
        group = self.group
        problem: type[KafkaError] | None = None
        if self.cluster.coordinator != self.node_id:
            problem = NotCoordinator
        elif request.member_epoch > 0 and request.member_epoch != group.member_epoch:
            problem = FencedMemberEpoch
        if problem is not None:
            return ConsumerGroupHeartbeatResponse(
                error_code=problem.code, member_epoch=0, heartbeat_interval_ms=0, assignment=None
            )
        assignment = None
        if request.member_epoch == 0:
            group.joins += 1
            group.member_id, group.member_epoch = request.member_id, group.joins
            rows = [TopicPartitions(topic_id=TOPIC_ID, partitions=list(range(len(self.cluster.logs))))]
            assignment = Assignment(topic_partitions=rows)
        return ConsumerGroupHeartbeatResponse(
            error_code=0,
            member_id=request.member_id,
            member_epoch=group.member_epoch,
            heartbeat_interval_ms=HEARTBEAT_MS,
            assignment=assignment,
        )

    # ---- offsets

    def _offset_fetch(self, request: OffsetFetchRequest) -> Message:
        (wanted,) = request.groups
        code = 0 if self.cluster.coordinator == self.node_id else NotCoordinator.code
        topics = [
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[self._committed(number) for number in topic.partition_indexes],
            )
            for topic in wanted.topics or ()
        ]
        return OffsetFetchResponse(
            groups=[OffsetFetchResponseGroup(group_id=wanted.group_id, topics=[] if code else topics, error_code=code)]
        )

    def _committed(self, number: int) -> OffsetFetchResponsePartitions:
        offset, leader_epoch = self.cluster.committed.get(number, (-1, -1))
        return OffsetFetchResponsePartitions(
            partition_index=number,
            committed_offset=offset,
            committed_leader_epoch=leader_epoch,
            metadata="",
            error_code=0,
        )


class GroupCluster(ScriptedCluster):
    """A scripted cluster with a group."""

    broker_type = GroupBroker

    def __init__(self, brokers: int = 1, partitions: int = 1) -> None:
        super().__init__(brokers, partitions)
        self.group = ScriptedGroup()


def _join_refused(error: type[KafkaError], member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error.code, protocol_name=None, leader="", member_id=member_id, members=[])


def moved_to(node_id: int) -> Answer:
    """Let another broker coordinate from now on, and answer as the old one does then."""

    def answer(broker: ScriptedBroker, request: Any) -> Message:
        broker.cluster.coordinator = node_id
        return broker.usual(request)

    return answer
