"""The headers before every request and response.

`ottla.protocol.headers` has codecs of its own for these, since every frame needs them; this is what they do.
"""

from __future__ import annotations

from ottla.protocol.schema import Message, int16, int32, string


class RequestHeader(Message, versions="1-2", flexible="2+"):
    """What is asked, in which version, and by what number the answer will be known.

    Version 2 adds tagged fields; the client id keeps its plain form even there, so that a broker can read it before it
    has made sense of the version.
    """

    request_api_key: int = int16()
    request_api_version: int = int16()
    correlation_id: int = int32()
    client_id: str | None = string(nullable="0+", ignorable=True, not_compact="2+")


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    """Which request this answers. Version 1 adds tagged fields; ApiVersions never uses it."""

    correlation_id: int = int32()
