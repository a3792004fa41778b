"""JoinGroup v0 to v9: be in the next generation of a classic group. The answer comes when that begins."""

from __future__ import annotations

from typing import Final

from ottla.broker.groups.requests import AssignmentProtocol, JoinOutcome, JoinRequest
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.handlers.group_rows import client_host, code_of, complete_once
from ottla.errors import NotCoordinator
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

REBALANCE_TIMEOUT_FROM_VERSION: Final = 1
MEMBER_ID_FIRST_FROM_VERSION: Final = 4
NULL_PROTOCOL_FROM_VERSION: Final = 7
SKIP_ASSIGNMENT_FROM_VERSION: Final = 9


def handle(request: JoinGroupRequest, context: RequestContext) -> LaterAnswer:
    version = context.api_version
    later = LaterAnswer()
    later.hurry = lambda: later.complete(
        _response(JoinOutcome(member_id=request.member_id, error=NotCoordinator()), version)
    )
    context.broker.groups.join(
        JoinRequest(
            group_id=request.group_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            client_id=context.client_id or "",
            client_host=client_host(context),
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=(
                request.rebalance_timeout_ms
                if version >= REBALANCE_TIMEOUT_FROM_VERSION
                else request.session_timeout_ms
            ),
            protocol_type=request.protocol_type,
            protocols=[AssignmentProtocol(protocol.name, protocol.metadata) for protocol in request.protocols],
            must_know_member_id=version >= MEMBER_ID_FIRST_FROM_VERSION,
            can_skip_assignment=version >= SKIP_ASSIGNMENT_FROM_VERSION,
        ),
        lambda outcome: complete_once(later, _response(outcome, version)),
    )
    return later


def _response(outcome: JoinOutcome, version: int) -> JoinGroupResponse:
    protocol_name = outcome.protocol_name
    if protocol_name is None and version < NULL_PROTOCOL_FROM_VERSION:
        protocol_name = ""
    return JoinGroupResponse(
        error_code=code_of(outcome.error),
        generation_id=outcome.generation_id,
        protocol_type=outcome.protocol_type,
        protocol_name=protocol_name,
        leader=outcome.leader,
        skip_assignment=outcome.skip_assignment,
        member_id=outcome.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.group_instance_id, metadata=member.metadata
            )
            for member in outcome.members
        ],
    )
