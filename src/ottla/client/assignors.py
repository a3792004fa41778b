"""Client-side assignors of classic groups: the leader decides with one of these who reads what. Pure functions.

* `range`: each topic's partitions in runs, members in the order of their ids, so that topics can be joined;
* `roundrobin`: all partitions dealt out one by one;
* `cooperative-sticky`: as even as can be, moving as little as can be. A partition that moves is given to nobody until
  its old owner has let go of it, in a second rebalance (KIP-429).

Names, results of the first two, and what is exchanged are those of Kafka's own clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.model import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member as its subscription shows it. `owned` is what it had in generation `generation_id`."""

    topics: Sequence[str]
    instance_id: str | None = None
    owned: Sequence[TopicPartition] = ()
    generation_id: int = -1


Members = Mapping[str, GroupMember]
PartitionCounts = Mapping[str, int]
"""How many partitions each topic has; topics that do not exist are not in it."""
Assignment = dict[str, list[TopicPartition]]


def assign_range(members: Members, topics: PartitionCounts) -> Assignment:
    """Give each member a run of every topic that it wants, the first ones one more where it does not come out even."""
    assigned: Assignment = {member_id: [] for member_id in members}
    for topic in sorted(topics):
        subscribers = _subscribers(members, topic)
        if not subscribers:
            continue
        size, larger = divmod(topics[topic], len(subscribers))
        first = 0
        for position, member_id in enumerate(subscribers):
            count = size + (position < larger)
            assigned[member_id].extend(TopicPartition(topic, first + i) for i in range(count))
            first += count
    return assigned


def assign_round_robin(members: Members, topics: PartitionCounts) -> Assignment:
    """Deal out all partitions in the order of their names; who does not want a topic is passed over."""
    assigned: Assignment = {member_id: [] for member_id in members}
    ordered = sorted(members, key=lambda member_id: _order(member_id, members[member_id]))
    turn = 0
    for topic in sorted(topics):
        if not _subscribers(members, topic):
            continue
        for partition in range(topics[topic]):
            while topic not in members[ordered[turn % len(ordered)]].topics:
                turn += 1
            assigned[ordered[turn % len(ordered)]].append(TopicPartition(topic, partition))
            turn += 1
    return assigned


def _subscribers(members: Members, topic: str) -> list[str]:
    wanting = [member_id for member_id, member in members.items() if topic in member.topics]
    return sorted(wanting, key=lambda member_id: _order(member_id, members[member_id]))


def _order(member_id: str, member: GroupMember) -> tuple[bool, str]:
    """Static members first, by their instances, so that they keep their place over restarts."""
    return member.instance_id is None, member_id if member.instance_id is None else member.instance_id


def assign_cooperative_sticky(members: Members, topics: PartitionCounts) -> Assignment:
    """Even out how much members have, leaving out what must be given up first by somebody else."""
    owners = _believable_owners(members, topics)
    assigned = _assign_sticky(members, topics, owners)
    return {
        member_id: [partition for partition in mine if owners.get(partition, member_id) == member_id]
        for member_id, mine in assigned.items()
    }


def _believable_owners(members: Members, topics: PartitionCounts) -> dict[TopicPartition, str]:
    """Who owns what, by the claims of the latest generation; who claims what somebody else has too owns it not."""
    latest = max((member.generation_id for member in members.values() if member.owned), default=-1)
    owners: dict[TopicPartition, str] = {}
    disputed: set[TopicPartition] = set()
    for member_id in sorted(members):
        member = members[member_id]
        for partition in member.owned if member.generation_id == latest else ():
            if partition.partition >= topics.get(partition.topic, 0) or partition.topic not in member.topics:
                continue
            if partition in owners:
                disputed.add(partition)
            owners[partition] = member_id
    return {partition: owner for partition, owner in owners.items() if partition not in disputed}


def _assign_sticky(members: Members, topics: PartitionCounts, owners: Mapping[TopicPartition, str]) -> Assignment:
    placed = dict(owners)
    load = dict.fromkeys(sorted(members), 0)
    for owner in placed.values():
        load[owner] += 1
    subscribers = {topic: _subscribers(members, topic) for topic in topics}
    everything = [
        TopicPartition(topic, partition)
        for topic in sorted(topics, key=lambda topic: (len(subscribers[topic]), topic))
        if subscribers[topic]
        for partition in range(topics[topic])
    ]
    for partition in everything:
        if partition not in placed:
            _place(partition, subscribers, placed, load)
    while any([_improve(partition, subscribers, placed, load) for partition in reversed(everything)]):
        pass
    assigned: Assignment = {member_id: [] for member_id in members}
    for partition in sorted(placed):
        assigned[placed[partition]].append(partition)
    return assigned


def _place(
    partition: TopicPartition,
    subscribers: Mapping[str, Sequence[str]],
    placed: dict[TopicPartition, str],
    load: dict[str, int],
) -> None:
    taker = min(subscribers[partition.topic], key=load.__getitem__)
    placed[partition] = taker
    load[taker] += 1


def _improve(
    partition: TopicPartition,
    subscribers: Mapping[str, Sequence[str]],
    placed: dict[TopicPartition, str],
    load: dict[str, int],
) -> bool:
    """Move a partition to a member that has at least two less; say whether one has."""
    owner = placed[partition]
    if load[owner] <= min(load[one] for one in subscribers[partition.topic]) + 1:
        return False
    load[owner] -= 1
    _place(partition, subscribers, placed, load)
    return True


Assignor = Callable[[Members, PartitionCounts], Assignment]

ASSIGNORS: Final[Mapping[str, Assignor]] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "cooperative-sticky": assign_cooperative_sticky,
}
COOPERATIVE: Final = frozenset({"cooperative-sticky"})
"""Assignors whose members keep what they have while they rejoin."""


def is_cooperative(assignors: Iterable[str]) -> bool:
    """Say whether members with these assignors keep what they have: only where none of them needs all to be free."""
    return set(assignors) <= COOPERATIVE
