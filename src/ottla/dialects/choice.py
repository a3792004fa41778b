"""Which dialect a listener speaks. One that is spoken nowhere is not imported, so that starts stay short."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.config.listeners import LITE, Listener
from ottla.dialects.kafka.dialect import KafkaDialect
from ottla.dialects.session import Dialect


class Dialects:
    """The dialects of one broker. All Kafka listeners share one."""

    __slots__ = ("_broker", "_kafka")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._kafka = KafkaDialect(broker, broker.config.socket_request_max_bytes)

    def of(self, listener: Listener) -> Dialect:
        """Return what is spoken at a listener."""
        if listener.security_protocol == LITE:
            return self._lite(listener)
        return self._kafka

    def _lite(self, listener: Listener) -> Dialect:
        from ottla.dialects.lite.session import LiteDialect

        config = self._broker.config
        return LiteDialect(
            self._broker,
            keep_alive=config.listener_get(listener.name, "ottla.lite.keep.alive") is True,
            errors_close=config.listener_get(listener.name, "ottla.lite.errors") == "close",
            max_request_bytes=config.listener_integer(listener.name, "socket.request.max.bytes"),
        )
