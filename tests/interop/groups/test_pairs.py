"""Two members of different clients in one group; each of the six is once the one that dies, once the one that leaves.

All pairs go through it side by side, on one broker: a join, a restart of the broker, kill -9 of a member, a new one in
its place, a leave. Every record is delivered, no partition is assigned to two members of a generation, and no commit
that was answered is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.interop.brokers import Broker
from tests.interop.groups.commits import answered, check_commits_are_kept, stored
from tests.interop.groups.generations import check_nothing_is_assigned_twice
from tests.interop.groups.members import MemberProcess
from tests.interop.groups.test_groups import SETTINGS, produce, wait_for_commits, wait_for_records, wait_for_share

PAIRS = (
    ("confluent-kafka", "franz-go"),
    ("franz-go", "kafkajs"),
    ("kafkajs", "kafka-clients"),
    ("kafka-clients", "kafka-python"),
    ("kafka-python", "aiokafka"),
    ("aiokafka", "confluent-kafka"),
)
"""Who dies, and who leaves."""

COUNT = 60


@dataclass
class Pair:
    """A group of its own on a topic of its own, with what was sent and who was in it."""

    dies: str
    leaves: str
    broker: Broker
    wanted: set[str] = field(default_factory=set)
    members: list[MemberProcess] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Of its group and its topic."""
        return f"{self.dies}.{self.leaves}"

    def join(self, library: str) -> None:
        self.members.append(MemberProcess(library, self.broker.address, self.name, self.name))

    def produce(self) -> None:
        self.wanted |= produce(self.broker, self.name, COUNT, start=len(self.wanted))

    def wait(self, *numbers: int) -> None:
        """Wait until these of its members share all partitions, and all that was sent was read."""
        wait_for_share(*(self.members[number] for number in numbers))
        wait_for_records(self.wanted, *self.members)

    def commits(self) -> dict[int, int]:
        """What the broker must have: what its members saw answered, and what it showed."""
        told, shown = answered(*self.members), stored(self.broker.address, self.name)
        return {number: max(told.get(number, 0), shown.get(number, 0)) for number in {*told, *shown}}


@pytest.fixture
def pairs(start_broker: Callable[..., Broker]) -> Iterator[list[Pair]]:
    broker = start_broker(*SETTINGS)
    made = [Pair(*libraries, broker) for libraries in PAIRS]
    yield made
    for pair in made:
        for member in pair.members:
            member.kill()


def test_every_client_dies_and_leaves_beside_another(pairs: list[Pair]) -> None:
    for pair in pairs:
        pair.produce()
        pair.join(pair.dies)
        pair.join(pair.leaves)
    for pair in pairs:
        pair.wait(0, 1)
        wait_for_commits(COUNT, *pair.members)

    before = [pair.commits() for pair in pairs]
    pairs[0].broker.restart()
    for pair, kept in zip(pairs, before, strict=True):
        assert sum(kept.values()) == COUNT
        check_commits_are_kept(pair.broker.address, pair.name, kept)
        pair.produce()
    for pair in pairs:
        pair.wait(0, 1)

    for pair in pairs:
        pair.members[0].kill()
        pair.produce()
    for pair in pairs:
        pair.wait(1)
        pair.join(pair.dies)
    for pair in pairs:
        pair.wait(1, 2)

    for pair in pairs:
        pair.members[1].leave()
        pair.produce()
    for pair in pairs:
        pair.wait(2)
        wait_for_commits(len(pair.wanted), *pair.members)
        check_commits_are_kept(pair.broker.address, pair.name, answered(*pair.members))
        check_nothing_is_assigned_twice(pair.broker.address, pair.name)
