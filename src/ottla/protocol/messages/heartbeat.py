"""Heartbeat: a classic member is still there (API key 12)."""

from __future__ import annotations

from ottla.protocol.schema import Message, int16, int32, string


class HeartbeatRequest(Message, key=12, versions="0-4", flexible="4+"):
    """A member of a generation reports. Version 3 adds static members (KIP-345)."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


class HeartbeatResponse(Message, key=12, versions="0-4", flexible="4+"):
    """Whether the member may go on, or must rejoin. Version 1 adds the throttle time."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
