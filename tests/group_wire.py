"""A member of a classic group on a connection of its own, for tests that speak to a whole broker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.protocol.internal.consumer_protocol import ConsumerProtocolSubscription
from ottla.protocol.internal.framing import encode_versioned
from ottla.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.wire import Peer, Room

MEMBER_ID_REQUIRED: Final = 79
JOIN_VERSION: Final = 9
IDS_FIRST_FROM_VERSION: Final = 4
INITIAL_DELAY_MS: Final = 100
GROUP_SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": str(INITIAL_DELAY_MS),
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "4",
}


def subscription(*topics: str) -> bytes:
    """What a consumer tells about its topics."""
    return encode_versioned(ConsumerProtocolSubscription(topics=list(topics)), 1)


async def find_coordinator(room: Room) -> None:
    """Have the topic of the groups made."""
    answer = await room.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["anybody"]), 4)
    assert [row.error_code for row in answer.coordinators] == [0]


@dataclass
class Member:
    """One member with what it says of itself, and the latest answer to its join."""

    peer: Peer
    group_id: str = "g"
    member_id: str = ""
    instance_id: str | None = None
    protocols: Sequence[tuple[str, bytes]] = (("range", subscription("t")),)
    protocol_type: str = "consumer"
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    version: int = JOIN_VERSION
    joined: Any = field(default_factory=JoinGroupResponse)
    asked: int = 0

    @classmethod
    async def connect(cls, room: Room, **said: Any) -> Member:
        return cls(await room.connect(), **said)

    async def begin_join(self) -> Member:
        """Ask to join, for `end_join` to wait for the answer. Ids that are given first are taken."""
        if self.version >= IDS_FIRST_FROM_VERSION and not self.member_id and self.instance_id is None:
            await self.ask_for_id()
        self._send_join()
        return self

    async def ask_for_id(self) -> None:
        """Get a member id, and do not join with it."""
        self._send_join()
        assert await self.end_join() == MEMBER_ID_REQUIRED, self.joined.error_code

    def _send_join(self) -> None:
        protocols = [JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in self.protocols]
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=protocols,
        )
        self.asked = self.peer.send(request, self.version)

    async def end_join(self) -> int:
        """Wait for the answer; returns its error."""
        self.joined = await self.peer.receive_answer(JoinGroupResponse, self.version, self.asked)
        self.member_id = self.joined.member_id or self.member_id
        code: int = self.joined.error_code
        return code

    async def join(self) -> int:
        await self.begin_join()
        return await self.end_join()

    @property
    def is_leader(self) -> bool:
        return bool(self.joined.leader == self.member_id)

    async def sync(self, *, generation_id: int | None = None) -> Any:
        """Ask for the assignment; the leader gives everybody its id."""
        members = self.joined.members if self.is_leader else []
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.joined.generation_id if generation_id is None else generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=one.member_id, assignment=one.member_id.encode())
                for one in members
            ],
        )
        return await self.peer.ask(request, 4)

    async def heartbeat(self) -> int:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.joined.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        code: int = (await self.peer.ask(request, 4)).error_code
        return code

    async def leave(self) -> int:
        leaving = [MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)]
        answer = await self.peer.ask(LeaveGroupRequest(group_id=self.group_id, members=leaving), 5)
        code: int = answer.error_code or answer.members[0].error_code
        return code

    async def commit(self, topic: str, partition: int, offset: int) -> int:
        """Commit as this member of this generation; returns the partition's error."""
        return await commit(
            self.peer,
            self.group_id,
            topic,
            partition,
            offset,
            member=(self.member_id, self.joined.generation_id, self.instance_id),
        )


async def sync_all(*members: Member) -> list[bytes]:
    """Have all members of a generation ask for their assignments; returns these."""
    answers = await asyncio.gather(*(member.sync() for member in members))
    assert [answer.error_code for answer in answers] == [0] * len(members)
    return [answer.assignment for answer in answers]


async def form_group(room: Room, *members: Member) -> None:
    """Have these be the first members of a group, on a clock that the test moves, and be assigned."""
    for member in members:
        await member.begin_join()
    while len((await describe(room.peer, members[0].group_id)).members) < len(members):
        pass  # some of the requests are still on their way
    for _ in range(3):  # the wait for more members, once more since some came, and over
        room.running.advance(INITIAL_DELAY_MS / 1000)
    await end_joins(*members)
    await sync_all(*members)


async def end_joins(*members: Member) -> None:
    """All of these are in the next generation."""
    assert [await member.end_join() for member in members] == [0] * len(members)


async def commit(
    peer: Peer,
    group_id: str,
    topic: str,
    partition: int,
    offset: int,
    *,
    member: tuple[str, int, str | None] = ("", -1, None),
    version: int = 9,
    retention_time_ms: int = -1,
) -> int:
    """Commit one offset; returns the partition's error."""
    row = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group_id,
        member_id=member[0],
        generation_id_or_member_epoch=member[1],
        group_instance_id=member[2],
        retention_time_ms=retention_time_ms,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[row])],
    )
    code: int = (await peer.ask(request, version)).topics[0].partitions[0].error_code
    return code


async def committed(peer: Peer, group_id: str, topic: str, partition: int = 0) -> int:
    """Return a group's offset, -1 where it has none."""
    asked = OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=[asked])])
    (group,) = (await peer.ask(request, 9)).groups
    row = group.topics[0].partitions[0]
    assert (group.error_code, row.error_code) == (0, 0)
    offset: int = row.committed_offset
    return offset


async def describe(peer: Peer, group_id: str, version: int = 5) -> DescribedGroup:
    (row,) = (await peer.ask(DescribeGroupsRequest(groups=[group_id]), version)).groups
    described: DescribedGroup = row
    return described


async def state_of(peer: Peer, group_id: str = "g") -> str:
    return (await describe(peer, group_id)).group_state
