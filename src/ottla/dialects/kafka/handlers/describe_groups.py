"""DescribeGroups v0 to v6: state, protocol and members of classic groups.

A group that is not there, or of another kind, is "Dead" and no error up to v5; v6 says GROUP_ID_NOT_FOUND (KIP-1043).
"""

from __future__ import annotations

from typing import Final

from ottla.broker.groups.classic import ClassicGroup, ClassicState
from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import RequestContext, rows_in_steps
from ottla.dialects.kafka.authorized_operations import GROUP_OPERATIONS
from ottla.errors import GroupIdNotFound, KafkaError
from ottla.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

NOT_FOUND_FROM_VERSION: Final = 6


def handle(request: DescribeGroupsRequest, context: RequestContext) -> Steps[DescribeGroupsResponse]:
    rows = yield from rows_in_steps(request.groups, lambda group_id: _row(group_id, context))
    if request.include_authorized_operations:
        for row in rows:
            if not row.error_code:
                row.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=rows)


def _row(group_id: str, context: RequestContext) -> DescribedGroup:
    try:
        return _described(context.broker.groups.describe_classic(group_id))
    except GroupIdNotFound as error:
        row = DescribedGroup(group_id=group_id, group_state=ClassicState.DEAD)
        if context.api_version >= NOT_FOUND_FROM_VERSION:
            row.error_code = error.code
            row.error_message = str(error)
        return row
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)


def _described(group: ClassicGroup) -> DescribedGroup:
    is_stable = group.state is ClassicState.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
                member_assignment=member.assignment,  # during a rebalance that of the generation before
            )
            for member in group.members.values()
        ],
    )
