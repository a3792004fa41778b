"""ConsumerGroupDescribe v0 and v1: epochs, members and assignments of groups of the new protocol (KIP-848).

From v1 on it tells which members speak the classic protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.broker.groups.consumer_description import AssignedTopic, DescribedConsumerGroup, DescribedMember
from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import RequestContext, rows_in_steps
from ottla.dialects.kafka.authorized_operations import GROUP_OPERATIONS
from ottla.errors import InvalidGroupId, KafkaError
from ottla.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC: Final = 0
CONSUMER: Final = 1


def handle(request: ConsumerGroupDescribeRequest, context: RequestContext) -> Steps[ConsumerGroupDescribeResponse]:
    rows = yield from rows_in_steps(request.group_ids, lambda group_id: _row(group_id, context))
    if request.include_authorized_operations:
        for row in rows:
            if not row.error_code:
                row.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=rows)


def _row(group_id: str, context: RequestContext) -> DescribedGroup:
    try:
        return _described(context.broker.groups.describe_consumer(group_id))
    except InvalidGroupId as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=str(error))


def _described(described: DescribedConsumerGroup) -> DescribedGroup:
    group = described.group
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=described.assignor_name,
        members=[_member(member) for member in described.members],
    )


def _member(described: DescribedMember) -> Member:
    member = described.member
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_pattern,
        assignment=_assignment(described.assigned),
        target_assignment=_assignment(described.target),
        member_type=CONSUMER if member.classic is None else CLASSIC,
    )


def _assignment(topics: Sequence[AssignedTopic]) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=list(topic.partitions))
            for topic in topics
        ]
    )
