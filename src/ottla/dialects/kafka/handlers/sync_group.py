"""SyncGroup v0 to v5: hand out and receive a generation's assignment. Followers wait for the leader.

From v5 on a member must say which protocol it believes the group to use (KIP-559).
"""

from __future__ import annotations

from typing import Final

from ottla.broker.groups.requests import SyncOutcome, SyncRequest
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.handlers.group_rows import code_of, complete_once
from ottla.errors import InconsistentGroupProtocol, NotCoordinator
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_NEEDED_FROM_VERSION: Final = 5


def handle(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse | LaterAnswer:
    is_protocol_told = request.protocol_type is not None and request.protocol_name is not None
    if context.api_version >= PROTOCOL_NEEDED_FROM_VERSION and not is_protocol_told:
        return _response(SyncOutcome(error=InconsistentGroupProtocol()))
    later = LaterAnswer()
    later.hurry = lambda: later.complete(_response(SyncOutcome(error=NotCoordinator())))
    context.broker.groups.sync(
        SyncRequest(
            group_id=request.group_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            generation_id=request.generation_id,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignments={assigned.member_id: assigned.assignment for assigned in request.assignments},
        ),
        lambda outcome: complete_once(later, _response(outcome)),
    )
    return later


def _response(outcome: SyncOutcome) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=code_of(outcome.error),
        protocol_type=outcome.protocol_type,
        protocol_name=outcome.protocol_name,
        assignment=outcome.assignment,
    )
