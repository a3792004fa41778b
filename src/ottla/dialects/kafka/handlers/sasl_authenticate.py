"""SaslAuthenticate v0 to v2: on a listener without authentication it comes at the wrong time."""

from __future__ import annotations

from ottla.dialects.kafka.answers import RequestContext
from ottla.errors import IllegalSaslState
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(request: SaslAuthenticateRequest, context: RequestContext) -> SaslAuthenticateResponse:
    message = f"The listener {context.listener_name} asks nobody to authenticate."
    return SaslAuthenticateResponse(error_code=IllegalSaslState.code, error_message=message)
