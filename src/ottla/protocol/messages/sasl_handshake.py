"""SaslHandshake: choose how to authenticate (API key 17)."""

from __future__ import annotations

from ottla.protocol.schema import Message, array, int16, string


class SaslHandshakeRequest(Message, key=17, versions="0-1"):
    """The mechanism that the client wants. After version 0 bare tokens follow, after version 1 SaslAuthenticate
    requests.
    """

    mechanism: str = string()


class SaslHandshakeResponse(Message, key=17, versions="0-1"):
    """The mechanisms that this listener offers."""

    error_code: int = int16()
    mechanisms: list[str] = array(string)
