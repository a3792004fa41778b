"""SaslHandshake v0 and v1: listeners without authentication have nothing to shake hands about."""

from __future__ import annotations

from ottla.dialects.kafka.answers import RequestContext
from ottla.errors import IllegalSaslState
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=IllegalSaslState.code)
