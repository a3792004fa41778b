"""SaslHandshake (API key 17)."""

from __future__ import annotations

from ottla.protocol.schema import Message, array, int16, string


class SaslHandshakeRequest(Message, key=17, versions="0-1"):
    """SaslHandshakeRequest."""

    mechanism: str = string()


class SaslHandshakeResponse(Message, key=17, versions="0-1"):
    """SaslHandshakeResponse."""

    error_code: int = int16()
    mechanisms: list[str] = array(string)
