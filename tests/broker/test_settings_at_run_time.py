"""Settings that change while a broker runs: they hold at once, for whoever inherits them too, and after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.broker.broker import Broker
from ottla.broker.metadata.alter_configs import ConfigAlteration
from ottla.broker.metadata.create_partitions import GrownTopic
from ottla.broker.metadata.create_topics import NewTopic
from ottla.broker.metadata.reassign_partitions import Reassignment
from ottla.config.resource_type import ResourceType
from ottla.engine import Ticket
from ottla.errors import (
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    KafkaError,
    MessageTooLarge,
)
from ottla.model import TimestampType
from ottla.records.builder import BatchBuilder
from ottla.testing.cluster import running_broker

TOPIC, BROKER, GROUP = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP
SET, DELETE = 0, 1


def alter(broker: Broker, resource_type: ResourceType, name: str, *changes: tuple[str, int, str | None]) -> None:
    (error,) = broker.alter_configs([ConfigAlteration(resource_type, name, changes)]).answer
    assert error is None, error


def produce(broker: Broker, topic: str, value_bytes: int) -> Ticket:
    builder = BatchBuilder()
    builder.append(broker.clock.wall_ms(), None, bytes(value_bytes))
    return broker.append(broker.partition(topic, 0), memoryview(bytearray(builder.build())))


def on_broker(check: Callable[[Broker], None], **settings: str) -> None:
    """Run `check` on a broker that has the topics `plain` and `own`; the latter has its own largest batch."""

    async def main() -> None:
        async with running_broker(settings) as running:
            running.broker.metadata.create_topics(
                [NewTopic("plain", 1, 1), NewTopic("own", 1, 1, configs=[("max.message.bytes", "3000")])]
            )
            check(running.broker)

    asyncio.run(main())


def test_a_topics_own_limit_holds_for_the_next_batch() -> None:
    def check(broker: Broker) -> None:
        produce(broker, "plain", 5000)
        alter(broker, TOPIC, "plain", ("max.message.bytes", SET, "4000"))
        with pytest.raises(MessageTooLarge):
            produce(broker, "plain", 5000)
        alter(broker, TOPIC, "plain", ("max.message.bytes", DELETE, None))
        produce(broker, "plain", 5000)

    on_broker(check)


@pytest.mark.parametrize("name", ["", "1"])
def test_a_brokers_limit_holds_for_topics_that_have_none(name: str) -> None:
    def check(broker: Broker) -> None:
        alter(broker, BROKER, name, ("message.max.bytes", SET, "1000"))
        with pytest.raises(MessageTooLarge):
            produce(broker, "plain", 2000)
        produce(broker, "own", 2000)
        alter(broker, BROKER, name, ("message.max.bytes", DELETE, None))
        produce(broker, "plain", 2000)

    on_broker(check)


def test_the_change_for_one_broker_goes_before_that_for_all() -> None:
    def check(broker: Broker) -> None:
        alter(broker, BROKER, "", ("log.message.timestamp.type", SET, "LogAppendTime"))
        assert broker.partition("plain", 0).config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        alter(broker, BROKER, "1", ("log.message.timestamp.type", SET, "CreateTime"))
        assert broker.partition("plain", 0).config.message_timestamp_type is TimestampType.CREATE_TIME

    on_broker(check)


def test_new_topics_and_new_partitions_have_the_settings_of_now() -> None:
    def check(broker: Broker) -> None:
        alter(broker, BROKER, "", ("log.retention.ms", SET, "7000"))
        broker.metadata.create_topics([NewTopic("later", 1, 1)])
        assert broker.partition("later", 0).config.retention_ms == 7000

    on_broker(check, **{"log.retention.hours": "1"})


def test_whoever_asks_the_broker_gets_the_setting_of_now() -> None:
    def check(broker: Broker) -> None:
        before = broker.config
        alter(broker, BROKER, "1", ("max.connections", SET, "7"), ("no.such.setting", SET, "x"))
        assert broker.config.integer("max.connections") == 7
        assert before.integer("max.connections") > 7, "what was handed out stays as it was"

    on_broker(check)


def test_no_topic_is_made_or_grows_where_every_log_directory_is_cordoned() -> None:
    def check(broker: Broker) -> None:
        metadata = broker.metadata
        chosen, assigned = NewTopic("chosen", 1, 1), NewTopic("assigned", -1, -1, assignments=[(0, [1])])
        alter(broker, BROKER, "1", ("cordoned.log.dirs", SET, "*"))
        created = metadata.create_topics([chosen, assigned]).answer
        assert isinstance(created["chosen"], InvalidReplicationFactor)
        assert isinstance(created["assigned"], InvalidReplicaAssignment)
        grown = metadata.create_partitions([GrownTopic("plain", 2), GrownTopic("own", 2, [[1]])]).answer
        assert isinstance(grown["plain"], InvalidReplicationFactor)
        assert isinstance(grown["own"], InvalidReplicaAssignment)
        (error,) = metadata.reassign_partitions(
            [Reassignment("plain", 0, [1])], allow_replication_factor_change=True
        ).answer
        assert isinstance(error, InvalidReplicaAssignment)
        produce(broker, "plain", 10)

        alter(broker, BROKER, "1", ("cordoned.log.dirs", DELETE, None))
        created = metadata.create_topics([chosen, assigned]).answer
        assert not [answer for answer in created.values() if isinstance(answer, KafkaError)]

    on_broker(check)


def test_a_restart_keeps_what_was_changed(tmp_path: Path) -> None:
    async def run(check: Callable[[Broker], None]) -> None:
        async with running_broker({"log.dirs": str(tmp_path)}) as running:
            check(running.broker)

    def change(broker: Broker) -> None:
        broker.metadata.create_topics([NewTopic("plain", 1, 1)])
        alter(broker, TOPIC, "plain", ("retention.ms", SET, "5000"))
        alter(broker, BROKER, "", ("message.max.bytes", SET, "2000"), ("max.connections", SET, "8"))
        alter(broker, BROKER, "1", ("max.connections", SET, "9"))
        alter(broker, GROUP, "g", ("consumer.session.timeout.ms", SET, "46000"))

    def look(broker: Broker) -> None:
        config = broker.partition("plain", 0).config
        assert (config.retention_ms, config.max_message_bytes) == (5000, 2000)
        assert broker.config.integer("max.connections") == 9
        assert broker.image.configs(GROUP, "g") == {"consumer.session.timeout.ms": "46000"}

    asyncio.run(run(change))
    asyncio.run(run(look))


def test_a_broker_changes_its_own_settings_and_no_others() -> None:
    def check(broker: Broker) -> None:
        alter(broker, BROKER, "7", ("max.connections", SET, "9"))
        (error,) = broker.alter_configs([ConfigAlteration(BROKER, "1", [("max.connections", SET, "5")])]).answer
        assert isinstance(error, InvalidRequest)
        assert broker.config.integer("max.connections") == 9

    on_broker(check, **{"node.id": "7"})
