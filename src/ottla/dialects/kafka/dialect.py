"""The Kafka dialect: what all its connections share."""

from __future__ import annotations

import logging
from typing import Final

from ottla.broker.broker import Broker
from ottla.dialects.kafka.answers import RequestContext
from ottla.dialects.kafka.router import Router
from ottla.dialects.kafka.session import KafkaSession
from ottla.dialects.session import Carrier, Peer
from ottla.protocol.connection import MAX_FRAME_BYTES, FrameReader, ReceiveBuffers

IMPORT_AFTER_SECONDS: Final = 10.0
"""When the handlers that nobody asked for begin to be imported: a start, and short runs, are left alone."""
IMPORT_EVERY_SECONDS: Final = 0.1
"""Importing one takes a millisecond or two, which nobody should have to wait for more than once."""

_log = logging.getLogger(__name__)


class KafkaDialect:
    """Makes sessions that serve `broker`. `max_request_bytes` is socket.request.max.bytes."""

    __slots__ = ("_broker", "_buffers", "_max_request_bytes", "router")

    def __init__(self, broker: Broker, max_request_bytes: int = MAX_FRAME_BYTES) -> None:
        self._broker = broker
        self.router = Router()
        self._buffers = ReceiveBuffers()
        self._max_request_bytes = max_request_bytes
        self._import_in(IMPORT_AFTER_SECONDS)

    def connect(self, carrier: Carrier, peer: Peer) -> KafkaSession:
        reader = FrameReader(self._buffers, self._max_request_bytes)
        return KafkaSession(self.router, RequestContext(self._broker, peer), carrier, reader)

    def _import_in(self, seconds: float) -> None:
        self._broker.timers.call_at(self._broker.clock.monotonic() + seconds, self._import_next)

    def _import_next(self) -> None:
        try:
            if self.router.import_next():
                self._import_in(IMPORT_EVERY_SECONDS)
        except (OSError, ImportError) as error:  # the latter where it is a shared object that cannot be opened
            _log.warning("a handler cannot be imported now, it is tried again later: %s", error)
            self._import_in(IMPORT_AFTER_SECONDS)
