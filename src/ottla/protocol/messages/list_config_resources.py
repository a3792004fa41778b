"""ListConfigResources: resources that have settings of their own (KIP-1142; API key 74)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int8, int16, int32, string


class ListConfigResourcesRequest(Message, key=74, versions="0-1", flexible="0+"):
    """Types to list. Version 0 knows client metrics only (KIP-714)."""

    resource_types: list[int] = array(int8, "1+")


class ConfigResource(Struct):
    resource_name: str = string()
    resource_type: int = int8("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Message, key=74, versions="0-1", flexible="0+"):
    """Names, with types since version 1."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
