"""Server-side assignors (KIP-848): which member shall have which partitions. Pure functions.

Results are equal to Kafka's for `range`, and for `uniform` among members that want the same topics; among members that
want different ones the balance is as good, but who of several equals gets a partition may differ.

* `uniform` evens out the number of partitions per member and leaves partitions where they are as long as it can;
* `range` gives each member neighbouring partitions, the same numbers of every topic, so that topics can be joined.

Members are served in the order in which they are handed in, topics likewise; Kafka's own order is that of its hash
tables. A topic without partitions is not there: nobody gets it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from ottla.model import TopicId


class TopicIdPartition(NamedTuple):
    """One partition of a topic that is known by its id, so that a topic of the same name made later is another."""

    topic_id: TopicId
    partition: int


Assignment = frozenset[TopicIdPartition]
NO_PARTITIONS: Final[Assignment] = frozenset()


class AssignableMember(NamedTuple):
    """What an assignor knows of a member."""

    instance_id: str | None
    topics: AbstractSet[TopicId]
    """The topics that it wants and that are there."""
    assigned: AbstractSet[TopicIdPartition]
    """What it was to have so far."""


Members = Mapping[str, AssignableMember]
PartitionCounts = Mapping[TopicId, int]
"""How many partitions each topic has that somebody wants."""
Assignor = Callable[[Members, PartitionCounts], dict[str, Assignment]]


def assign_range(members: Members, topics: PartitionCounts) -> dict[str, Assignment]:
    """Give each member a run of every topic that it wants. Static members come first, so that they keep theirs."""
    ordered = sorted(members, key=lambda member_id: _range_order(member_id, members[member_id]))
    assigned: dict[str, list[TopicIdPartition]] = {member_id: [] for member_id in members}
    for topic_id, count in topics.items():
        subscribers = [member_id for member_id in ordered if topic_id in members[member_id].topics]
        first = 0
        for member_id, size in zip(subscribers, _even_shares(count, len(subscribers)), strict=True):
            assigned[member_id].extend(TopicIdPartition(topic_id, first + i) for i in range(size))
            first += size
    return {member_id: frozenset(partitions) for member_id, partitions in assigned.items()}


def _range_order(member_id: str, member: AssignableMember) -> tuple[bool, str]:
    return member.instance_id is None, member_id if member.instance_id is None else member.instance_id


def _even_shares(count: int, shares: int) -> list[int]:
    """Split `count` into shares of which the first may be larger by one."""
    if not shares:
        return []
    size, larger = divmod(count, shares)
    return [size + (i < larger) for i in range(shares)]


def assign_uniform(members: Members, topics: PartitionCounts) -> dict[str, Assignment]:
    """Even out how many partitions members have, and move as few as that takes."""
    subscriptions = {frozenset(member.topics) for member in members.values()}
    if len(subscriptions) <= 1:
        return _assign_alike(members, _all_partitions(topics, next(iter(subscriptions), frozenset())))
    return _UnlikeAssignment(members, topics).assign()


def _all_partitions(topics: PartitionCounts, wanted: Collection[TopicId]) -> list[TopicIdPartition]:
    return [
        TopicIdPartition(topic_id, partition)
        for topic_id, count in topics.items()
        if topic_id in wanted
        for partition in range(count)
    ]


def _assign_alike(members: Members, partitions: Sequence[TopicIdPartition]) -> dict[str, Assignment]:
    """Assign to members that all want the same topics.

    Everybody keeps up to its share; a share may be larger by one for as many members as there are partitions over.
    Those who had a larger share keep it first; what is left of the larger shares goes to the last of those who lack.
    """
    if not members:
        return {}
    share, larger_shares = divmod(len(partitions), len(members))
    existing = frozenset(partitions)
    kept: dict[str, list[TopicIdPartition]] = {}
    given_up: list[TopicIdPartition] = []
    lacking: list[str] = []
    for member_id, member in members.items():
        mine = sorted(member.assigned & existing)
        limit = share + (larger_shares > 0)
        kept[member_id], surplus = mine[:limit], mine[limit:]
        given_up += surplus
        if len(mine) > share and larger_shares:
            larger_shares -= 1
        else:
            lacking.append(member_id)
    had = {partition for member in members.values() for partition in member.assigned}
    free = iter([*(partition for partition in partitions if partition not in had), *given_up])
    for position, member_id in enumerate(lacking):
        is_larger = len(lacking) - position <= larger_shares
        need = share + is_larger - len(kept[member_id])
        kept[member_id].extend(partition for _, partition in zip(range(need), free, strict=False))
    return {member_id: frozenset(mine) for member_id, mine in kept.items()}


class _UnlikeAssignment:
    """Assigns to members that want different topics.

    Everybody keeps what it may have. What is free goes to whoever has least, the topics that fewest want first. Then
    partitions move from who has more to who has less as long as that evens out two members.
    """

    def __init__(self, members: Members, topics: PartitionCounts) -> None:
        self._members = members
        self._subscribers = {
            topic_id: [member_id for member_id, member in members.items() if topic_id in member.topics]
            for topic_id in topics
        }
        self._topics = {topic_id: count for topic_id, count in topics.items() if self._subscribers[topic_id]}
        self._owners: dict[TopicIdPartition, str] = {}
        self._load = dict.fromkeys(members, 0)

    def assign(self) -> dict[str, Assignment]:
        self._keep()
        # The most constrained topics first: their partitions have the fewest places to go.
        ordered = sorted(self._topics, key=lambda topic_id: len(self._subscribers[topic_id]))
        for topic_id in ordered:
            self._fill(topic_id)
        while any([self._even_out(topic_id) for topic_id in ordered]):
            pass
        assigned: dict[str, set[TopicIdPartition]] = {member_id: set() for member_id in self._members}
        for partition, owner in self._owners.items():
            assigned[owner].add(partition)
        return {member_id: frozenset(mine) for member_id, mine in assigned.items()}

    def _keep(self) -> None:
        for member_id, member in self._members.items():
            for partition in member.assigned:
                is_there = partition.partition < self._topics.get(partition.topic_id, 0)
                if is_there and partition.topic_id in member.topics and partition not in self._owners:
                    self._give(partition, member_id)

    def _fill(self, topic_id: TopicId) -> None:
        for number in range(self._topics[topic_id]):
            partition = TopicIdPartition(topic_id, number)
            if partition not in self._owners:
                self._give(partition, self._least_loaded(topic_id))

    def _even_out(self, topic_id: TopicId) -> bool:
        """Move this topic's partitions, the last first, to members with at least two less; say whether any moved."""
        has_moved = False
        for number in reversed(range(self._topics[topic_id])):
            partition = TopicIdPartition(topic_id, number)
            owner, taker = self._owners[partition], self._least_loaded(topic_id)
            if self._load[owner] > self._load[taker] + 1:
                self._load[owner] -= 1
                self._give(partition, taker)
                has_moved = True
        return has_moved

    def _least_loaded(self, topic_id: TopicId) -> str:
        return min(self._subscribers[topic_id], key=self._load.__getitem__)

    def _give(self, partition: TopicIdPartition, member_id: str) -> None:
        self._owners[partition] = member_id
        self._load[member_id] += 1


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}
"""The assignors that there are, by the names that members and settings use."""
