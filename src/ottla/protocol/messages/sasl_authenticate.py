"""SaslAuthenticate: one step of an authentication (API key 36)."""

from __future__ import annotations

from ottla.protocol.schema import Message, int16, int64, octets, string


class SaslAuthenticateRequest(Message, key=36, versions="0-2", flexible="2+"):
    """The client's next token, opaque here."""

    auth_bytes: bytes = octets()


class SaslAuthenticateResponse(Message, key=36, versions="0-2", flexible="2+"):
    """The server's next token. Version 1 adds how long the session lasts (KIP-368)."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = octets()
    session_lifetime_ms: int = int64("1+", ignorable=True)
