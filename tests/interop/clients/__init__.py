"""Every client behind the same few verbs, so that each fact is tested on all of them."""

from __future__ import annotations

from typing import Final

from tests.interop.clients.aiokafka_client import AiokafkaClient
from tests.interop.clients.client import Acks, Client, Codec, Row
from tests.interop.clients.confluent import ConfluentClient
from tests.interop.clients.console import ConsoleClient
from tests.interop.clients.franz import FranzClient
from tests.interop.clients.kafka_python import KafkaPythonClient
from tests.interop.clients.kcat import KcatClient

CLIENTS: Final[tuple[type[Client], ...]] = (
    ConfluentClient,
    KafkaPythonClient,
    AiokafkaClient,
    KcatClient,
    ConsoleClient,
    FranzClient,
)

__all__ = ["CLIENTS", "Acks", "Client", "Codec", "Row"]
