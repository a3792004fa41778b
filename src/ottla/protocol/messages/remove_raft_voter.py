"""RemoveRaftVoter: take a controller's vote (KIP-853; API key 81)."""

from __future__ import annotations

from ottla.protocol.schema import Message, int16, int32, string, uuid


class RemoveRaftVoterRequest(Message, key=81, versions="0", flexible="0+"):
    """The voter and its directory."""

    cluster_id: str | None = string(nullable="0+")
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()


class RemoveRaftVoterResponse(Message, key=81, versions="0", flexible="0+"):
    """What became of it."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
