"""Server-side assignors: Kafka's own results, and what must hold for any group."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.broker.groups.assignors import ASSIGNORS, AssignableMember, Assignment, TopicIdPartition, assign_uniform
from ottla.model import TopicId
from tests.storage.harness import GOLDEN


def topic_id(number: int) -> TopicId:
    return TopicId(bytes([number]) * 16)


def recorded() -> Iterator[dict[str, Any]]:
    with gzip.open(GOLDEN / "groups" / "assignors.jsonl.gz", "rt") as file:
        yield from map(json.loads, file)


def partitions(topics: Mapping[str, list[int]]) -> Assignment:
    return frozenset(
        TopicIdPartition(topic_id(int(topic)), one) for topic, numbers in topics.items() for one in numbers
    )


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_results_are_kafkas(assignor: str) -> None:
    count = 0
    for case in recorded():
        if case["assignor"] != assignor:
            continue
        members = {
            member_id: AssignableMember(
                member.get("instance"), frozenset(map(topic_id, member["topics"])), partitions(member["assigned"])
            )
            for member_id, member in case["members"].items()
        }
        topics = {topic_id(int(topic)): size for topic, size in case["topics"].items()}
        expected = {member_id: partitions(assigned) for member_id, assigned in case["assigned"].items()}

        assert ASSIGNORS[assignor](members, topics) == expected, case
        count += 1
    assert count > 100


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, AssignableMember], dict[TopicId, int]]:
    """Members that want different topics, with leftovers of any earlier assignment, also of topics that are gone."""
    topics = {topic_id(number): draw(st.integers(0, 6)) for number in range(1, draw(st.integers(1, 4)) + 1)}
    everything = [TopicIdPartition(topic_id(number), partition) for number in range(1, 6) for partition in range(7)]
    holders = draw(st.lists(st.integers(0, 4), min_size=len(everything), max_size=len(everything)))
    members = {
        f"m{number}": AssignableMember(
            draw(st.sampled_from([None, f"i{number}"])),
            draw(st.frozensets(st.sampled_from(list(topics)))),
            frozenset(one for one, holder in zip(everything, holders, strict=True) if holder == number),
        )
        for number in range(draw(st.integers(0, 5)))
    }
    return members, topics


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(groups())
@settings(max_examples=60, deadline=None)
def test_every_wanted_partition_has_one_owner_that_wants_it(
    assignor: str, group: tuple[dict[str, AssignableMember], dict[TopicId, int]]
) -> None:
    members, topics = group

    assigned = ASSIGNORS[assignor](members, topics)

    given_out = [partition for mine in assigned.values() for partition in mine]
    wanted = {topic for member in members.values() for topic in member.topics}
    assert sorted(given_out) == [TopicIdPartition(t, p) for t in sorted(wanted) for p in range(topics[t])]
    for member_id, mine in assigned.items():
        assert {partition.topic_id for partition in mine} <= members[member_id].topics


@given(groups())
@settings(max_examples=60, deadline=None)
def test_uniform_leaves_no_two_members_between_which_a_partition_could_move(
    group: tuple[dict[str, AssignableMember], dict[TopicId, int]],
) -> None:
    members, topics = group

    assigned = assign_uniform(members, topics)

    for mine in assigned.values():
        for partition in mine:
            takers = [assigned[one] for one, member in members.items() if partition.topic_id in member.topics]
            assert len(mine) <= min(map(len, takers)) + 1


@given(groups())
@settings(max_examples=60, deadline=None)
def test_uniform_changes_nothing_where_nothing_changed(
    group: tuple[dict[str, AssignableMember], dict[TopicId, int]],
) -> None:
    members, topics = group
    once = assign_uniform(members, topics)

    again = assign_uniform(
        {member_id: member._replace(assigned=once[member_id]) for member_id, member in members.items()}, topics
    )

    assert again == once
