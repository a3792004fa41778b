"""AddRaftVoter: let a controller vote (KIP-853; API key 80)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, boolean, int16, int32, string, uint16, uuid


class Listener(Struct):
    name: str = string()
    host: str = string()
    port: int = uint16()


class AddRaftVoterRequest(Message, key=80, versions="0-1", flexible="0+"):
    """The voter, its directory and addresses. Version 1 tells whether to answer only when it is committed."""

    cluster_id: str | None = string(nullable="0+")
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    ack_when_committed: bool = boolean("1+", default=True)


class AddRaftVoterResponse(Message, key=80, versions="0-1", flexible="0+"):
    """What became of it."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
