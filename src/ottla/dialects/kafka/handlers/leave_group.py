"""LeaveGroup v0 to v5: members go, or an administrator makes them. Up to v2 it is one, whose error stands on top."""

from __future__ import annotations

from typing import Final

from ottla.broker.groups.requests import LeaveOutcome, LeavingMember
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.handlers.group_rows import code_of
from ottla.errors import KafkaError
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

SEVERAL_MEMBERS_FROM_VERSION: Final = 3


def handle(request: LeaveGroupRequest, context: RequestContext) -> LaterAnswer | LeaveGroupResponse:
    is_one = context.api_version < SEVERAL_MEMBERS_FROM_VERSION
    leaving = [LeavingMember(member.member_id, member.group_instance_id) for member in request.members]
    if is_one:
        leaving = [LeavingMember(request.member_id, None)]
    later = LaterAnswer()
    try:
        context.broker.groups.leave(
            request.group_id, leaving, lambda outcomes: later.complete(_response(outcomes, is_one=is_one))
        )
    except KafkaError as error:
        return LeaveGroupResponse(error_code=error.code)
    return later


def _response(outcomes: list[LeaveOutcome], *, is_one: bool) -> LeaveGroupResponse:
    if is_one:
        return LeaveGroupResponse(error_code=code_of(outcomes[0].error))
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=outcome.member_id,
                group_instance_id=outcome.group_instance_id,
                error_code=code_of(outcome.error),
            )
            for outcome in outcomes
        ]
    )
