"""CreateDelegationToken: get a token to authenticate with (API key 38)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int16, int32, int64, octets, string


class CreatableRenewers(Struct):
    principal_type: str = string()
    principal_name: str = string()


class CreateDelegationTokenRequest(Message, key=38, versions="1-3", flexible="2+"):
    """Who may renew it and how long it can live. Version 3 can name another owner (KIP-373)."""

    owner_principal_type: str | None = string("3+", nullable="3+")
    owner_principal_name: str | None = string("3+", nullable="3+")
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()


class CreateDelegationTokenResponse(Message, key=38, versions="1-3", flexible="2+"):
    """The token and its secret. Version 3 adds who asked for it."""

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = octets()
    throttle_time_ms: int = int32()
