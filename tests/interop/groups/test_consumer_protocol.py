"""Groups of the new protocol (KIP-848), also mixed with classic members: every record is read, no partition by two."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator

import pytest

from ottla.client import Admin
from ottla.client.groups import GroupDescription
from tests.interop.brokers import Broker
from tests.interop.groups.members import MemberProcess, wait_until
from tests.interop.groups.test_groups import PARTITIONS, SETTINGS, produce, values, wait_for_commits, wait_for_records

LIBRARIES = ("confluent-kafka:consumer", "ottla:consumer", "java:consumer")
NEW_SETTINGS = (
    *SETTINGS,
    "group.consumer.min.session.timeout.ms=1000",
    "group.consumer.session.timeout.ms=3000",
    "group.consumer.min.heartbeat.interval.ms=100",
    "group.consumer.heartbeat.interval.ms=300",
)
Start = Callable[..., MemberProcess]


@pytest.fixture
def broker(start_broker: Callable[..., Broker]) -> Broker:
    return start_broker(*NEW_SETTINGS)


@pytest.fixture
def start_member(broker: Broker, topic: str) -> Iterator[Start]:
    """Start members of one group that reads one topic; those that still run are killed in the end."""
    started: list[MemberProcess] = []

    def start(library: str, **said: str) -> MemberProcess:
        member = MemberProcess(library, broker.address, "group", topic, **said)
        started.append(member)
        return member

    yield start
    for member in started:
        member.kill()


def described(broker: Broker) -> GroupDescription | None:
    """The group as the broker describes it."""

    async def ask() -> GroupDescription | None:
        async with Admin(broker.address) as admin:
            found = (await admin.groups.describe(["group"]))["group"]
        return found if isinstance(found, GroupDescription) else None

    return asyncio.run(ask())


def type_of(broker: Broker) -> str:
    group = described(broker)
    assert group is not None
    return group.group_type


def committed(broker: Broker) -> int:
    """How many records the group has committed, all partitions together."""

    async def ask() -> int:
        async with Admin(broker.address) as admin:
            found = await admin.groups.committed("group")
        return sum(one.offset for one in found.values())

    return asyncio.run(ask())


def wait_for_members(broker: Broker, count: int, *members: MemberProcess) -> None:
    """Wait until so many members share the partitions, each of them with some, none with another's."""

    def is_so() -> bool:
        group = described(broker)
        if group is None:
            return False
        owned = [sorted(one.partition for one in member.assignment or ()) for member in group.members]
        flat = sorted(number for one in owned for number in one)
        assert len(set(flat)) == len(flat), f"a partition is assigned twice: {owned}"
        return group.state == "Stable" and len(owned) == count and all(owned) and flat == list(range(PARTITIONS))

    wait_until(is_so, members, f"{count} members share the partitions")


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_member_goes_on_where_the_one_before_it_committed(
    library: str, broker: Broker, topic: str, start_member: Start
) -> None:
    wanted = produce(broker, topic, 200)
    first = start_member(library)
    wait_for_records(wanted, first)
    wait_until(lambda: committed(broker) == 200, [first], "all is committed")
    first.leave()
    assert sorted(values(first)) == sorted(wanted)

    broker.restart()
    new = produce(broker, topic, 50, start=200)
    second = start_member(library)
    wait_for_records(new, second)

    assert set(values(second)) == new


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations_with_replacement(LIBRARIES, 2)))
def test_two_members_share_the_partitions_and_the_rest_takes_over_when_one_leaves(
    first: str, second: str, broker: Broker, topic: str, start_member: Start
) -> None:
    wanted = produce(broker, topic, 100)
    one = start_member(first)
    wait_for_members(broker, 1, one)
    two = start_member(second)
    wait_for_members(broker, 2, one, two)
    wanted |= produce(broker, topic, 100, start=100)
    wait_for_records(wanted, one, two)

    one.leave()

    wait_for_members(broker, 1, two)
    wanted |= produce(broker, topic, 100, start=200)
    wait_for_records(wanted, one, two)


def test_three_libraries_share_a_group_through_kills_of_a_member_and_of_the_broker(
    broker: Broker, topic: str, start_member: Start
) -> None:
    wanted = produce(broker, topic, 100)
    members = [start_member(library) for library in LIBRARIES]
    wait_for_members(broker, 3, *members)
    wait_for_records(wanted, *members)

    members[0].kill()
    wait_for_members(broker, 2, *members[1:])
    wanted |= produce(broker, topic, 100, start=100)
    wait_for_records(wanted, *members)
    wait_until(lambda: committed(broker) == 200, members, "all is committed")

    broker.restart()

    assert committed(broker) == 200
    wait_for_members(broker, 2, *members[1:])
    wanted |= produce(broker, topic, 100, start=200)
    wait_for_records(wanted, *members)
    wait_until(lambda: committed(broker) == 300, members, "all is committed")

    broker.kill()
    broker.start()

    assert committed(broker) == 300
    members.append(start_member(LIBRARIES[0]))
    wait_for_members(broker, 3, *members[1:])
    wanted |= produce(broker, topic, 100, start=300)
    wait_for_records(wanted, *members)


@pytest.mark.parametrize(
    ("classic", "new"),
    [
        ("confluent-kafka", "ottla:consumer"),
        ("ottla", "confluent-kafka:consumer"),
        ("kafka-python", "confluent-kafka:consumer"),
        ("java", "java:consumer"),
    ],
)
def test_a_group_is_migrated_live_and_back(
    classic: str, new: str, broker: Broker, topic: str, start_member: Start
) -> None:
    wanted = produce(broker, topic, 100)
    old_member = start_member(classic)
    wait_for_members(broker, 1, old_member)
    wait_for_records(wanted, old_member)
    new_member = start_member(new)
    wait_for_members(broker, 2, old_member, new_member)
    group = described(broker)
    assert group is not None and group.group_type == "consumer"
    assert sorted(member.speaks_classic for member in group.members) == [False, True]
    wanted |= produce(broker, topic, 100, start=100)
    wait_for_records(wanted, old_member, new_member)
    wait_until(lambda: committed(broker) == 200, [old_member, new_member], "all is committed")

    new_member.leave()

    wait_for_members(broker, 1, old_member)
    assert type_of(broker) == "classic"
    wanted |= produce(broker, topic, 100, start=200)
    wait_for_records(wanted, old_member, new_member)


@pytest.mark.parametrize(
    ("new", "classic"),
    [("ottla:consumer", "kafka-clients"), ("java:consumer", "ottla"), ("confluent-kafka:consumer", "kafkajs")],
)
def test_a_group_of_the_new_protocol_becomes_a_classic_one_live_and_again_a_new_one(
    new: str, classic: str, broker: Broker, topic: str, start_member: Start
) -> None:
    wanted = produce(broker, topic, 100)
    members = [start_member(new)]
    wait_for_members(broker, 1, *members)
    members.append(start_member(classic))
    wait_for_members(broker, 2, *members)
    assert type_of(broker) == "consumer"
    wait_for_records(wanted, *members)
    wait_until(lambda: committed(broker) == 100, members, "all is committed")

    members[0].leave()
    wait_for_members(broker, 1, *members)
    assert type_of(broker) == "classic"
    wanted |= produce(broker, topic, 100, start=100)
    wait_for_records(wanted, *members)
    wait_until(lambda: committed(broker) == 200, members, "all is committed")

    members.append(start_member(new))
    wait_for_members(broker, 2, *members)
    members[1].leave()
    wait_for_members(broker, 1, *members)
    assert type_of(broker) == "consumer"
    wanted |= produce(broker, topic, 100, start=200)
    wait_for_records(wanted, *members)
    wait_until(lambda: committed(broker) == 300, members, "all is committed")
    assert sorted(values(*members)) == sorted(wanted)


def test_a_static_member_keeps_its_partitions_over_its_own_restart(
    broker: Broker, topic: str, start_member: Start
) -> None:
    wanted = produce(broker, topic, 60)
    first = start_member("confluent-kafka:consumer", instance_id="one")
    second = start_member("ottla:consumer", instance_id="two")
    wait_for_members(broker, 2, first, second)
    wait_for_records(wanted, first, second)
    wait_for_commits(60, first, second)
    wait_until(
        lambda: len(first.partitions) == len(second.partitions) == 3,
        [first, second],
        "each has its share, also where one had read all before the other came",
    )
    had, epoch = first.partitions, described(broker)
    first.leave()

    again = start_member("confluent-kafka:consumer", instance_id="one")
    wait_until(lambda: again.partitions == had, [again, second], "it has what it had")

    group = described(broker)
    assert group is not None and epoch is not None and group.group_epoch == epoch.group_epoch
