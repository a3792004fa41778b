"""From exception to error code, in this one place."""

from __future__ import annotations

import logging

from ottla.errors import KafkaError, UnknownServerError

_log = logging.getLogger(__name__)


class CloseConnection(Exception):
    """Raised by a handler where Kafka ends the connection instead of answering."""


def error_code(error: Exception) -> int:
    """The code that goes on the wire. Anything but a `KafkaError` is a fault of ours: logged, and told as code -1."""
    if isinstance(error, KafkaError):
        return error.code
    _log.error("a request met a fault", exc_info=error)
    return UnknownServerError.code
