"""RenewDelegationToken (API key 39)."""

from __future__ import annotations

from ottla.protocol.schema import Message, int16, int32, int64, octets


class RenewDelegationTokenRequest(Message, key=39, versions="1-2", flexible="2+"):
    """RenewDelegationTokenRequest."""

    hmac: bytes = octets()
    renew_period_ms: int = int64()


class RenewDelegationTokenResponse(Message, key=39, versions="1-2", flexible="2+"):
    """RenewDelegationTokenResponse."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
