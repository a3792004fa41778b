"""Groups of three different clients, through joins, leaves, and kill -9 of members and of the broker.

Every record is delivered, no partition is assigned to two members of a generation, and no commit that was answered is
lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from tests.interop.brokers import Broker
from tests.interop.groups.commits import answered, check_commits_are_kept
from tests.interop.groups.generations import check_nothing_is_assigned_twice
from tests.interop.groups.members import WAIT_SECONDS, MemberProcess
from tests.interop.groups.test_groups import PARTITIONS, SETTINGS, produce, wait_for_records, wait_for_share

GROUP = "group"
TRIOS = (
    ("confluent-kafka", "kafka-clients", "kafkajs"),
    ("kafka-python", "franz-go", "aiokafka"),
)
"""On Apache Kafka the first trio fails: kafkajs does not come back after the time that Kafka needs after a crash."""

Start = Callable[..., MemberProcess]


@pytest.fixture
def broker(start_broker: Callable[..., Broker]) -> Broker:
    return start_broker(*SETTINGS)


@pytest.fixture
def start_member(broker: Broker, topic: str) -> Iterator[Start]:
    """Start members of one group that reads one topic; those that still run are killed in the end."""
    started: list[MemberProcess] = []

    def start(library: str) -> MemberProcess:
        member = MemberProcess(library, broker.address, GROUP, topic)
        started.append(member)
        return member

    yield start
    for member in started:
        member.kill()


def produce_through_a_crash(broker: Broker, topic: str, count: int, start: int) -> set[str]:
    """Produce so many records while the broker is killed and started again; returns their values."""
    settings = {"bootstrap.servers": broker.address, "enable.idempotence": True, "retry.backoff.ms": 50, "log_level": 0}
    producer = Producer(settings)
    made = {f"value-{number}": number % PARTITIONS for number in range(start, start + count)}
    for done, (value, partition) in enumerate(made.items()):
        producer.produce(topic, value.encode(), partition=partition)
        if done == count // 2:
            producer.flush(WAIT_SECONDS)
            broker.kill()
    broker.start()
    assert producer.flush(WAIT_SECONDS) == 0
    return set(made)


@pytest.mark.parametrize("trio", TRIOS, ids="+".join)
def test_a_group_goes_on_whoever_is_killed(
    trio: tuple[str, str, str], broker: Broker, topic: str, start_member: Start
) -> None:
    wanted = produce(broker, topic, 100)
    first, second, third = members = [start_member(library) for library in trio]
    wait_for_share(*members)
    wait_for_records(wanted, *members)

    before = answered(*members)
    wanted |= produce_through_a_crash(broker, topic, 100, start=100)
    check_commits_are_kept(broker.address, GROUP, before)
    wait_for_records(wanted, *members)
    wait_for_share(*members)

    first.kill()
    wanted |= produce_through_a_crash(broker, topic, 100, start=200)
    wait_for_share(second, third)
    wait_for_records(wanted, *members)

    fourth = start_member(trio[0])
    before = answered(*members)
    wanted |= produce_through_a_crash(broker, topic, 100, start=300)
    check_commits_are_kept(broker.address, GROUP, before)
    wait_for_share(second, third, fourth)
    second.leave()
    wait_for_share(third, fourth)
    wanted |= produce(broker, topic, 100, start=400)
    wait_for_records(wanted, *members, fourth)

    check_commits_are_kept(broker.address, GROUP, answered(*members, fourth))
    check_nothing_is_assigned_twice(broker.address, GROUP)
