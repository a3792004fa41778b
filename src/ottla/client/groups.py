"""Administration of groups: which there are, who is in them, how far they have read, and how far behind they are.

`admin.groups` has it. Groups of both protocols look the same here; what only one of them has is None for the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.committed import CommitAnswers, OffsetAndMetadata, commit_offsets, fetch_committed
from ottla.client.coordinator import GroupLink
from ottla.client.errors import raise_error
from ottla.client.offsets import OffsetAndTimestamp, list_offsets
from ottla.errors import (
    GroupIdNotFound,
    KafkaError,
    UnsupportedVersion,
    error_for_code,
)
from ottla.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.internal.consumer_protocol import ConsumerProtocolAssignment
from ottla.protocol.internal.framing import decode_versioned
from ottla.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.protocol.primitives import DecodeError

CONSUMER_PROTOCOL: Final = "consumer"
DEAD: Final = "Dead"
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"


class GroupListing(NamedTuple):
    """A group as ListGroups shows it; what an older broker does not tell is empty."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """A member. `member_epoch` is None in classic groups; `assignment` where it cannot be read."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: Sequence[TopicPartition] | None
    member_epoch: int | None = None
    target: Sequence[TopicPartition] | None = None
    """What the member shall have in the end, in groups of the new protocol."""
    speaks_classic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group with its members. Epochs are None in classic groups."""

    group_id: str
    group_type: str
    state: str
    protocol_type: str
    assignor: str
    members: Sequence[MemberDescription]
    group_epoch: int | None = None
    assignment_epoch: int | None = None


class PartitionLag(NamedTuple):
    """How far a group is with a partition, all read in an order in which the lag cannot come out negative.

    `lag` is None where nothing is committed: there is no position that it could be counted from.
    """

    partition: TopicPartition
    committed: int | None
    beginning: int | None
    high_watermark: int | None
    lag: int | None
    metadata: str = ""


class Groups:
    """What an administrator does with groups."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # ---- which, and who

    async def list_groups(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
        """Return the groups of all brokers, by name; in some states or of some types only, where those are named.

        Raises `UnsupportedVersion` where a broker does not know such filters.
        """
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        await self._cluster.refresh()
        answers = await asyncio.gather(
            *(
                self._cluster.call(ApiKey.LIST_GROUPS, request, ListGroupsResponse, node_id)
                for node_id in self._cluster.brokers
            )
        )
        found: dict[str, GroupListing] = {}
        for answer in answers:
            raise_error(answer.error_code)
            for row in answer.groups:
                found[row.group_id] = GroupListing(row.group_id, row.protocol_type, row.group_state, row.group_type)
        return [found[group_id] for group_id in sorted(found)]

    async def describe(self, group_ids: Iterable[str]) -> dict[str, GroupDescription | KafkaError]:
        """Return each group, or why it is not described (`GroupIdNotFound` above all)."""
        return {group_id: await self._describe(group_id) for group_id in dict.fromkeys(group_ids)}

    async def _describe(self, group_id: str) -> GroupDescription | KafkaError:
        link = GroupLink(self._cluster, group_id)
        try:
            return await self._describe_consumer(link)
        except (GroupIdNotFound, UnsupportedVersion):
            pass  # a classic group, or a broker that knows no others
        except KafkaError as error:
            return error
        try:
            return await self._describe_classic(link)
        except KafkaError as error:
            return error

    async def _describe_consumer(self, link: GroupLink) -> GroupDescription:
        connection = await link.connection()
        request = ConsumerGroupDescribeRequest(group_ids=[link.group_id])
        response = await connection.call(ApiKey.CONSUMER_GROUP_DESCRIBE, request, ConsumerGroupDescribeResponse)
        group = response.groups[0]
        raise_error(group.error_code, group.error_message)
        return _described_consumer(group)

    async def _describe_classic(self, link: GroupLink) -> GroupDescription:
        connection = await link.connection()
        request = DescribeGroupsRequest(groups=[link.group_id])
        response = await connection.call(ApiKey.DESCRIBE_GROUPS, request, DescribeGroupsResponse)
        group = response.groups[0]
        raise_error(group.error_code)
        if group.group_state == DEAD:
            raise GroupIdNotFound(f"group {link.group_id!r} does not exist")
        return _described_classic(group)

    async def delete(self, group_ids: Iterable[str]) -> dict[str, KafkaError | None]:
        """Delete groups that nobody is in, with their offsets."""
        return {group_id: await self._delete(group_id) for group_id in dict.fromkeys(group_ids)}

    async def _delete(self, group_id: str) -> KafkaError | None:
        try:
            connection = await GroupLink(self._cluster, group_id).connection()
            request = DeleteGroupsRequest(groups_names=[group_id])
            response = await connection.call(ApiKey.DELETE_GROUPS, request, DeleteGroupsResponse)
        except KafkaError as error:
            return error
        refusal = error_for_code(response.results[0].error_code)
        return None if refusal is None else type(refusal)(f"group {group_id!r}: {refusal.sentence}")

    async def remove_members(
        self, group_id: str, members: Iterable[MemberDescription], *, reason: str = ""
    ) -> dict[str, KafkaError | None]:
        """Have members leave a group; what they read goes to the others. Clients that still run join anew.

        The answer is by static name (`instance_id`), or id for members that have none, as the members are asked for:
        a static member is removed by name, whatever its id is by then. Raises `KafkaError` for the group as a whole.
        """
        told = f"member was removed by an admin: {reason}" if reason else "member was removed by an admin"
        leaving = [
            MemberIdentity(
                member_id="" if one.instance_id is not None else one.member_id,
                group_instance_id=one.instance_id,
                reason=told,
            )
            for one in members
        ]
        if not leaving:
            return {}
        connection = await GroupLink(self._cluster, group_id).connection()
        request = LeaveGroupRequest(group_id=group_id, members=leaving)
        response = await connection.call(ApiKey.LEAVE_GROUP, request, LeaveGroupResponse)
        raise_error(response.error_code)
        return {row.group_instance_id or row.member_id: error_for_code(row.error_code) for row in response.members}

    # ---- offsets

    async def committed(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what a group has committed: for these partitions, else for all. A group that is not there has none."""
        return await fetch_committed(GroupLink(self._cluster, group_id), partitions, require_stable=False)

    async def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> CommitAnswers:
        """Set a group's offsets, which works while nobody is in it; returns for each why it was refused, or None."""
        return await commit_offsets(GroupLink(self._cluster, group_id), offsets)

    async def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> CommitAnswers:
        """Forget offsets of topics that no member wants."""
        connection = await GroupLink(self._cluster, group_id).connection()
        topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
        for partition in partitions:
            row = OffsetDeleteRequestPartition(partition_index=partition.partition)
            topics.setdefault(partition.topic, []).append(row)
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=[OffsetDeleteRequestTopic(name=name, partitions=rows) for name, rows in topics.items()],
        )
        response = await connection.call(ApiKey.OFFSET_DELETE, request, OffsetDeleteResponse)
        raise_error(response.error_code)
        return {
            TopicPartition(topic.name, row.partition_index): error_for_code(row.error_code)
            for topic in response.topics
            for row in topic.partitions
        }

    async def lag(self, group_id: str, partitions: Iterable[TopicPartition] = ()) -> list[PartitionLag]:
        """Return how far a group is with what it has committed, and with these partitions besides.

        The lag is counted to the high watermark, from the committed offset or, where retention went past that, from
        the log's beginning. Committed offsets are read first: what is committed meanwhile makes no lag negative.
        """
        committed = await self.committed(group_id)
        asked = sorted({*committed, *partitions})
        beginnings, ends = (
            await self._offsets_at(asked, EARLIEST_TIMESTAMP),
            await self._offsets_at(asked, LATEST_TIMESTAMP),
        )
        return [_lag(partition, committed.get(partition), beginnings, ends) for partition in asked]

    async def _offsets_at(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
        self._cluster.want({partition.topic for partition in partitions})
        if any(partition.topic not in self._cluster.topics for partition in partitions):
            await self._cluster.refresh()
        there = [partition for partition in partitions if self._cluster.leader_of(partition) is not None]
        answers = await list_offsets(self._cluster, dict.fromkeys(there, timestamp_ms))
        return {
            partition: answer.offset for partition, answer in answers.items() if isinstance(answer, OffsetAndTimestamp)
        }


def _lag(
    partition: TopicPartition,
    committed: OffsetAndMetadata | None,
    beginnings: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> PartitionLag:
    beginning, end = beginnings.get(partition), ends.get(partition)
    lag = None if committed is None or end is None else max(0, end - max(committed.offset, beginning or 0))
    return PartitionLag(
        partition,
        None if committed is None else committed.offset,
        beginning,
        end,
        lag,
        "" if committed is None else committed.metadata,
    )


def _described_consumer(group: DescribedConsumerGroup) -> GroupDescription:
    return GroupDescription(
        group_id=group.group_id,
        group_type=CONSUMER,
        state=group.group_state,
        protocol_type=CONSUMER_PROTOCOL,
        assignor=group.assignor_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=[
            MemberDescription(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                assignment=_flat(member.assignment),
                target=_flat(member.target_assignment),
                member_epoch=member.member_epoch,
                speaks_classic=member.member_type == 0,
            )
            for member in group.members
        ],
    )


def _flat(assignment: Assignment) -> list[TopicPartition]:
    return [
        TopicPartition(topic.topic_name, number) for topic in assignment.topic_partitions for number in topic.partitions
    ]


def _described_classic(group: DescribedGroup) -> GroupDescription:
    is_readable = group.protocol_type == CONSUMER_PROTOCOL
    return GroupDescription(
        group_id=group.group_id,
        group_type=CLASSIC,
        state=group.group_state,
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        members=[
            MemberDescription(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                assignment=_read_assignment(member) if is_readable else None,
                speaks_classic=True,
            )
            for member in group.members
        ],
    )


def _read_assignment(member: DescribedGroupMember) -> list[TopicPartition] | None:
    if not member.member_assignment:
        return []
    try:
        assigned = decode_versioned(ConsumerProtocolAssignment, member.member_assignment).assigned_partitions
    except (DecodeError, KafkaError):
        return None
    return [TopicPartition(topic.topic, number) for topic in assigned for number in topic.partitions]
