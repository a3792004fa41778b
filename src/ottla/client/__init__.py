"""Producer, consumer and admin client for any Kafka-compatible cluster, on asyncio and fully typed.

    from ottla.client import Admin, Consumer, Producer

`ottla.client.sync` has the same for scripts without an event loop. Errors are `ottla.errors.KafkaError`s, each with
Kafka's `name` and `code`; those that no broker sent are in `ottla.client.errors`.

A name is imported when it is first asked for: a program that only produces does not wait for consumers and groups, and
a command's help for nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from ottla.model import IsolationLevel, TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.cluster import ClusterSettings
    from ottla.client.committed import OffsetAndMetadata
    from ottla.client.connection import ConnectionSettings
    from ottla.client.consumer import Consumer
    from ottla.client.consumer_record import ConsumerBatch, ConsumerRecord
    from ottla.client.fetcher import FetchSettings
    from ottla.client.membership import GroupSettings, RebalanceListener
    from ottla.client.producer import Producer, ProducerSettings
    from ottla.client.producer_batch import Delivery, RecordMetadata, Written

__all__ = [
    "Admin",
    "ClusterSettings",
    "ConnectionSettings",
    "Consumer",
    "ConsumerBatch",
    "ConsumerRecord",
    "Delivery",
    "FetchSettings",
    "GroupSettings",
    "IsolationLevel",
    "OffsetAndMetadata",
    "Producer",
    "ProducerSettings",
    "RebalanceListener",
    "RecordMetadata",
    "TopicPartition",
    "Written",
]

_HOMES: Final = {
    "Admin": "admin",
    "ClusterSettings": "cluster",
    "ConnectionSettings": "connection",
    "Consumer": "consumer",
    "ConsumerBatch": "consumer_record",
    "ConsumerRecord": "consumer_record",
    "Delivery": "producer_batch",
    "FetchSettings": "fetcher",
    "GroupSettings": "membership",
    "OffsetAndMetadata": "committed",
    "Producer": "producer",
    "ProducerSettings": "producer",
    "RebalanceListener": "membership",
    "RecordMetadata": "producer_batch",
    "Written": "producer_batch",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
