"""A principal as brokers forward it to controllers. The version stands in front."""

from __future__ import annotations

from ottla.protocol.schema import Message, boolean, string


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    """Type and name of a principal, and whether a token spoke for it."""

    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()
