"""FindCoordinator: which broker takes care of a group, a transaction or a share partition (API key 10)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int8, int16, int32, string


class FindCoordinatorRequest(Message, key=10, versions="0-6", flexible="3+"):
    """What is looked for. Version 1 adds the kind of key; 4 several keys at once (KIP-699); 6 share
    groups (KIP-932).
    """

    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: list[str] = array(string, "4+")


class Coordinator(Struct):
    key: str = string()
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class FindCoordinatorResponse(Message, key=10, versions="0-6", flexible="3+"):
    """The coordinator's address. Version 1 adds the throttle time and a text; 4 answers for several keys."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3", ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: list[Coordinator] = array(Coordinator, "4+")
