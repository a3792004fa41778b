"""LeaveGroup: leave a classic consumer group (API key 13)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int16, int32, string


class MemberIdentity(Struct):
    member_id: str = string()
    group_instance_id: str | None = string(nullable="0+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupRequest(Message, key=13, versions="0-5", flexible="4+"):
    """Who leaves. Version 3 takes several members, also static ones (KIP-345); 5 adds reasons (KIP-800)."""

    group_id: str = string()
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")


class MemberResponse(Struct):
    member_id: str = string()
    group_instance_id: str | None = string(nullable="0+")
    error_code: int = int16()


class LeaveGroupResponse(Message, key=13, versions="0-5", flexible="4+"):
    """What became of it. Version 1 adds the throttle time; 3 answers for each member."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, "3+")
