"""DescribeGroups: state and members of classic groups (API key 15)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, boolean, int16, int32, octets, string


class DescribeGroupsRequest(Message, key=15, versions="0-6", flexible="5+"):
    """Groups to describe. Version 3 can ask for permitted operations (KIP-430)."""

    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean("3+")


class DescribedGroupMember(Struct):
    member_id: str = string()
    group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = octets()
    member_assignment: bytes = octets()


class DescribedGroup(Struct):
    error_code: int = int16()
    error_message: str | None = string("6+", nullable="6+", default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32("3+", default=-(2**31))


class DescribeGroupsResponse(Message, key=15, versions="0-6", flexible="5+"):
    """Each group's state, protocol and members.

    Version 1 adds the throttle time; 3 permitted operations; 4 static members; 6 a text, and an error for groups that
    do not exist (KIP-1043).
    """

    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)
