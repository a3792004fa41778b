"""principal."""

from __future__ import annotations

from ottla.protocol.schema import Message, boolean, string


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    """DefaultPrincipalData."""

    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()
