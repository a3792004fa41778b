"""AlterClientQuotas: set or remove quotas (KIP-546; API key 49)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, boolean, float64, int16, int32, string


class EntityData(Struct):
    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


class OpData(Struct):
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


class AlterClientQuotasRequestEntryData(Struct):
    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


class AlterClientQuotasRequest(Message, key=49, versions="0-1", flexible="1+"):
    """Changes by entity."""

    entries: list[AlterClientQuotasRequestEntryData] = array(AlterClientQuotasRequestEntryData)
    validate_only: bool = boolean()


class AlterClientQuotasResponseEntryData(Struct):
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: list[EntityData] = array(EntityData)


class AlterClientQuotasResponse(Message, key=49, versions="0-1", flexible="1+"):
    """What became of each entity."""

    throttle_time_ms: int = int32()
    entries: list[AlterClientQuotasResponseEntryData] = array(AlterClientQuotasResponseEntryData)
