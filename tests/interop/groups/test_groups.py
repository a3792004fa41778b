"""Groups of real clients, of one kind and of three: every record is read, no partition by two, commits are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from tests.interop.brokers import Broker
from tests.interop.groups.members import LIBRARIES, WAIT_SECONDS, MemberProcess, share, wait_until

PARTITIONS = 6
SETTINGS = (
    "group.min.session.timeout.ms=500",
    "group.initial.rebalance.delay.ms=200",
    "offsets.topic.num.partitions=8",
    f"num.partitions={PARTITIONS}",
)


@pytest.fixture
def broker(start_broker: Callable[..., Broker]) -> Broker:
    return start_broker(*SETTINGS)


Start = Callable[..., MemberProcess]


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


def produce(broker: Broker, topic: str, count: int, start: int = 0) -> set[str]:
    """Produce so many records, to all partitions in turn; returns their values."""
    producer = Producer({"bootstrap.servers": broker.address})
    made = {f"value-{number}": number % PARTITIONS for number in range(start, start + count)}
    for value, partition in made.items():
        producer.produce(topic, value.encode(), partition=partition)
    assert producer.flush(WAIT_SECONDS) == 0
    return set(made)


def values(*members: MemberProcess) -> list[str]:
    return [value for member in members for _, _, value in member.records]


def wait_for_records(wanted: set[str], *members: MemberProcess) -> None:
    wait_until(lambda: wanted <= set(values(*members)), members, f"{len(wanted)} records are read")


def wait_for_commits(count: int, *members: MemberProcess) -> None:
    """Wait until the offsets that members committed make so many records."""

    def is_so() -> bool:
        newest: dict[int, int] = {}
        for member in members:
            for partition, offset in member.committed.items():
                newest[partition] = max(newest.get(partition, 0), offset)
        return sum(newest.values()) >= count

    wait_until(is_so, members, f"{count} records are committed")


def wait_for_share(*members: MemberProcess) -> None:
    wait_until(lambda: share(members, PARTITIONS), members, "the partitions are shared out")


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_member_goes_on_where_the_one_before_it_committed(
    library: str, broker: Broker, topic: str, start_member: Start
) -> None:
    wanted = produce(broker, topic, 200)
    first = start_member(library)
    wait_for_records(wanted, first)
    wait_for_commits(200, first)
    first.leave()
    assert sorted(values(first)) == sorted(wanted)

    broker.restart()
    new = produce(broker, topic, 50, start=200)
    second = start_member(library)
    wait_for_records(new, second)

    assert set(values(second)) == new


@pytest.mark.parametrize("library", LIBRARIES)
def test_two_members_share_the_partitions_and_the_rest_takes_over_when_one_leaves(
    library: str, broker: Broker, topic: str, start_member: Start
) -> None:
    wanted = produce(broker, topic, 100)
    one = start_member(library)
    wait_for_share(one)
    two = start_member(library)
    wait_for_share(one, two)
    wanted |= produce(broker, topic, 100, start=100)
    wait_for_records(wanted, one, two)

    one.leave()

    wait_for_share(two)
    wanted |= produce(broker, topic, 100, start=200)
    wait_for_records(wanted, one, two)


def test_three_libraries_share_a_group_through_kills_and_a_restart_of_the_broker(
    broker: Broker, topic: str, start_member: Start
) -> None:
    wanted = produce(broker, topic, 100)
    members = [start_member(library) for library in LIBRARIES]
    wait_for_share(*members)
    wait_for_records(wanted, *members)

    members[0].kill()
    wait_for_share(*members[1:])
    wanted |= produce(broker, topic, 100, start=100)
    wait_for_records(wanted, *members)
    wait_for_commits(200, *members)

    broker.restart()

    wanted |= produce(broker, topic, 100, start=200)
    wait_for_records(wanted, *members)
    wait_for_share(*members[1:])
    wait_for_commits(300, *members)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_static_member_that_comes_back_disturbs_nobody(
    library: str, broker: Broker, topic: str, start_member: Start
) -> None:
    wanted = produce(broker, topic, 100)
    stays, goes = start_member(library, instance_id="stays"), start_member(library, instance_id="goes")
    wait_for_share(stays, goes)
    wait_for_records(wanted, stays, goes)
    before = len(stays.assigned)

    goes.kill()
    back = start_member(library, instance_id="goes")

    wait_until(lambda: back.partitions == goes.partitions, [stays, back], "it has its partitions again")
    wanted |= produce(broker, topic, 100, start=100)
    wait_for_records(wanted, stays, goes, back)
    assert len(stays.assigned) == before


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "roundrobin"])
def test_other_assignors_are_the_clients_own_matter(
    assignor: str, broker: Broker, topic: str, start_member: Start
) -> None:
    wanted = produce(broker, topic, 100)
    members = [start_member("confluent-kafka", assignor=assignor) for _ in range(2)]
    wait_for_share(*members)
    members.append(start_member("confluent-kafka", assignor=assignor))
    wait_for_share(*members)
    members.pop().leave()
    wait_for_share(*members)
    wanted |= produce(broker, topic, 100, start=100)
    wait_for_records(wanted, *members)
