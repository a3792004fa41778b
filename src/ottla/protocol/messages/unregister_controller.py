"""UnregisterController: forget a controller that will not come back (API key 94)."""

from __future__ import annotations

from ottla.protocol.schema import Message, int16, int32, string


class UnregisterControllerRequest(Message, key=94, versions="0", flexible="0+"):
    """The controller to forget."""

    controller_id: int = int32()


class UnregisterControllerResponse(Message, key=94, versions="0", flexible="0+"):
    """What became of it."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
