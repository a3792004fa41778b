"""ListGroups v0 to v5: all groups, or those in some states (v4) and of some types (v5)."""

from __future__ import annotations

from ottla.dialects.kafka.answers import RequestContext
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state_name,
                group_type=group.group_type,
            )
            for group in context.broker.groups.list_groups(request.states_filter, request.types_filter)
        ]
    )
