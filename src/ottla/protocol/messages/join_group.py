"""JoinGroup: enter a classic consumer group, or its next generation (API key 11)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, boolean, int16, int32, octets, string


class JoinGroupRequestProtocol(Struct):
    name: str = string()
    metadata: bytes = octets()


class JoinGroupRequest(Message, key=11, versions="0-9", flexible="6+"):
    """A member with the assignment protocols that it speaks.

    Version 1 adds a rebalance timeout of its own; 4 makes members without an id come twice (KIP-394); 5 static members
    (KIP-345); 8 a reason (KIP-800).
    """

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = octets()


class JoinGroupResponse(Message, key=11, versions="0-9", flexible="6+"):
    """The generation that was formed; the leader also gets all members.

    Version 2 adds the throttle time; 5 static members; 7 the protocol type, and no name when there is an error; 9 tells
    a returning static leader to skip the assignment (KIP-814).
    """

    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
