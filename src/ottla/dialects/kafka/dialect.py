"""The Kafka dialect: what all its connections share."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.dialects.kafka.answers import RequestContext
from ottla.dialects.kafka.router import Router
from ottla.dialects.kafka.session import KafkaSession
from ottla.dialects.session import Carrier, Peer
from ottla.protocol.connection import MAX_FRAME_BYTES, FrameReader, ReceiveBuffers


class KafkaDialect:
    """Makes sessions that serve `broker`. `max_request_bytes` is socket.request.max.bytes."""

    __slots__ = ("_broker", "_buffers", "_max_request_bytes", "_router")

    def __init__(self, broker: Broker, max_request_bytes: int = MAX_FRAME_BYTES) -> None:
        self._broker = broker
        self._router = Router()
        self._buffers = ReceiveBuffers()
        self._max_request_bytes = max_request_bytes

    def connect(self, carrier: Carrier, peer: Peer) -> KafkaSession:
        reader = FrameReader(self._buffers, self._max_request_bytes)
        return KafkaSession(self._router, RequestContext(self._broker, peer), carrier, reader)
