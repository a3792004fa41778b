"""Heartbeat v0 to v4: a classic member is still there, and hears whether it must rejoin."""

from __future__ import annotations

from ottla.dialects.kafka.answers import RequestContext
from ottla.errors import KafkaError
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    try:
        context.broker.groups.heartbeat(
            request.group_id, request.member_id, request.group_instance_id, request.generation_id
        )
    except KafkaError as error:
        return HeartbeatResponse(error_code=error.code)
    return HeartbeatResponse()
