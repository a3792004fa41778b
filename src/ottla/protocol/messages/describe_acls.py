"""DescribeAcls: which access rules there are (API key 29)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int8, int16, int32, string


class DescribeAclsRequest(Message, key=29, versions="1-3", flexible="2+"):
    """A filter for rules. Version 1 added the pattern type (KIP-290); 3 users as a kind of resource."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8(default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


class AclDescription(Struct):
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class DescribeAclsResource(Struct):
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8(default=3)
    acls: list[AclDescription] = array(AclDescription)


class DescribeAclsResponse(Message, key=29, versions="1-3", flexible="2+"):
    """Rules that match, by resource."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)
