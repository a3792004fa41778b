"""DeleteGroups: remove groups that nobody is in (API key 42)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int16, int32, string


class DeleteGroupsRequest(Message, key=42, versions="0-3", flexible="2+"):
    """Ids of groups to remove."""

    groups_names: list[str] = array(string)


class DeletableGroupResult(Struct):
    group_id: str = string()
    error_code: int = int16()
    error_message: str | None = string("3+", nullable="3+", default=None, ignorable=True)


class DeleteGroupsResponse(Message, key=42, versions="0-3", flexible="2+"):
    """What became of each group. Version 3 adds a text."""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
