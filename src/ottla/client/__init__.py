"""Producer, consumer and admin client for any Kafka-compatible cluster, on asyncio and fully typed.

    from ottla.client import Admin, Consumer, Producer

`ottla.client.sync` has the same for scripts without an event loop. Errors are `ottla.errors.KafkaError`s, each with
Kafka's `name` and `code`; those that no broker sent are in `ottla.client.errors`.
"""

from ottla.client.admin import Admin
from ottla.client.cluster import ClusterSettings
from ottla.client.committed import OffsetAndMetadata
from ottla.client.connection import ConnectionSettings
from ottla.client.consumer import Consumer, ConsumerBatch, ConsumerRecord
from ottla.client.fetcher import FetchSettings
from ottla.client.membership import GroupSettings, RebalanceListener
from ottla.client.producer import Producer, ProducerSettings
from ottla.client.producer_batch import Delivery, RecordMetadata
from ottla.model import IsolationLevel, TopicPartition

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
]
