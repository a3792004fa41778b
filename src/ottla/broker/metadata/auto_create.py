"""Which topic is made when a client asks for one that is not there, and how the broker's own topics are made.

Pure. Settings of internal topics are those that Kafka 4.4 writes, in its order; their counts stand in the broker's
configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ottla.broker.metadata.create_topics import NewTopic
from ottla.broker.metadata.topic_names import SHARE_GROUP_STATE_TOPIC
from ottla.config.broker_config import BrokerConfig
from ottla.model import OFFSETS_TOPIC, TRANSACTION_TOPIC


def topic_to_create(name: str, config: BrokerConfig) -> NewTopic:
    """Return the topic of this name as it is made unasked."""
    internal = _INTERNAL.get(name)
    if internal is not None:
        return internal(config)
    return NewTopic(name, config.num_partitions, config.default_replication_factor)


def _offsets_topic(config: BrokerConfig) -> NewTopic:
    return NewTopic(
        OFFSETS_TOPIC,
        config.integer("offsets.topic.num.partitions"),
        config.integer("offsets.topic.replication.factor"),
        configs=[
            ("compression.type", "producer"),
            ("cleanup.policy", "compact"),
            ("segment.bytes", str(config.get("offsets.topic.segment.bytes"))),
        ],
    )


def _transaction_topic(config: BrokerConfig) -> NewTopic:
    return NewTopic(
        TRANSACTION_TOPIC,
        config.integer("transaction.state.log.num.partitions"),
        config.integer("transaction.state.log.replication.factor"),
        configs=[
            ("compression.type", "uncompressed"),
            ("cleanup.policy", "compact"),
            ("min.insync.replicas", str(config.get("transaction.state.log.min.isr"))),
            ("segment.bytes", str(config.get("transaction.state.log.segment.bytes"))),
            ("unclean.leader.election.enable", "false"),
        ],
    )


def _share_group_topic(config: BrokerConfig) -> NewTopic:
    return NewTopic(
        SHARE_GROUP_STATE_TOPIC,
        config.integer("share.coordinator.state.topic.num.partitions"),
        config.integer("share.coordinator.state.topic.replication.factor"),
        configs=[
            ("compression.type", "producer"),
            ("cleanup.policy", "delete"),
            ("min.insync.replicas", str(config.get("share.coordinator.state.topic.min.isr"))),
            ("retention.ms", "-1"),
            ("segment.bytes", str(config.get("share.coordinator.state.topic.segment.bytes"))),
        ],
    )


_INTERNAL: Final[Mapping[str, Callable[[BrokerConfig], NewTopic]]] = {
    OFFSETS_TOPIC: _offsets_topic,
    TRANSACTION_TOPIC: _transaction_topic,
    SHARE_GROUP_STATE_TOPIC: _share_group_topic,
}
