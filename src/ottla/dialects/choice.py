"""Which dialect a listener speaks. One that is spoken nowhere is not imported, so that starts stay short."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.broker import Broker
from ottla.config.listeners import JAFKA, JAFKA_HTTP, LITE, Listener
from ottla.dialects.kafka.dialect import KafkaDialect
from ottla.dialects.session import Dialect
from ottla.random_ids import random_below

if TYPE_CHECKING:
    from ottla.broker.jafka_topics import ByteLogs
    from ottla.dialects.jafka.handlers import JafkaHandlers


class Dialects:
    """The dialects of one broker. All Kafka listeners share one."""

    __slots__ = ("_broker", "_jafka", "_jafka_logs", "_kafka")

    def __init__(self, broker: Broker, jafka_logs: Callable[[], ByteLogs]) -> None:
        """`jafka_logs` gives what keeps logs in Jafka's form, and is asked where that is spoken."""
        self._broker = broker
        self._jafka_logs = jafka_logs
        self._jafka: JafkaHandlers | None = None
        self._kafka = KafkaDialect(broker, broker.config.socket_request_max_bytes)

    def of(self, listener: Listener) -> Dialect:
        """Return what is spoken at a listener."""
        if listener.security_protocol == LITE:
            return self._lite(listener)
        if listener.security_protocol in (JAFKA, JAFKA_HTTP):
            return self._jafka_at(listener)
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

    def _jafka_at(self, listener: Listener) -> Dialect:
        from ottla.dialects.jafka.http import JafkaHttpDialect
        from ottla.dialects.jafka.session import JafkaDialect

        if self._jafka is None:
            self._jafka = self._make_jafka()
        max_request_bytes = self._broker.config.listener_integer(listener.name, "socket.request.max.bytes")
        if listener.security_protocol == JAFKA_HTTP:
            return JafkaHttpDialect(self._jafka, max_request_bytes)
        return JafkaDialect(self._jafka, max_request_bytes)

    def _make_jafka(self) -> JafkaHandlers:
        from ottla.broker.jafka_topics import JafkaTopics, JafkaTopicSettings
        from ottla.dialects.jafka.handlers import JafkaHandlers
        from ottla.dialects.jafka.password import password_check

        config = self._broker.config
        return JafkaHandlers(
            JafkaTopics(self._broker, self._jafka_logs(), JafkaTopicSettings.from_config(config)),
            is_password=password_check(config.text("ottla.jafka.password")),
            random_below=random_below,
            max_answer_bytes=config.fetch_max_bytes,
        )
