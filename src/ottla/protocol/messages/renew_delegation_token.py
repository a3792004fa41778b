"""RenewDelegationToken: let a token live longer (API key 39)."""

from __future__ import annotations

from ottla.protocol.schema import Message, int16, int32, int64, octets


class RenewDelegationTokenRequest(Message, key=39, versions="1-2", flexible="2+"):
    """The token's secret and by how much."""

    hmac: bytes = octets()
    renew_period_ms: int = int64()


class RenewDelegationTokenResponse(Message, key=39, versions="1-2", flexible="2+"):
    """When it expires now."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
