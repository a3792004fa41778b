"""ListGroups: the groups that a broker coordinates (API key 16)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int16, int32, string


class ListGroupsRequest(Message, key=16, versions="0-5", flexible="3+"):
    """All groups, or those in some states. Version 4 adds the filter of states (KIP-518); 5 of types (KIP-848)."""

    states_filter: list[str] = array(string, "4+")
    types_filter: list[str] = array(string, "5+")


class ListedGroup(Struct):
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


class ListGroupsResponse(Message, key=16, versions="0-5", flexible="3+"):
    """Ids of groups. Version 1 adds the throttle time; 4 states; 5 types."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
