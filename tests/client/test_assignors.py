"""Client-side assignors: Kafka's own examples, and what must hold for any group."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.assignors import (
    ASSIGNORS,
    GroupMember,
    assign_cooperative_sticky,
    assign_range,
    assign_round_robin,
    is_cooperative,
)
from ottla.model import TopicPartition


def short(assigned: dict[str, list[TopicPartition]]) -> dict[str, str]:
    """Assignments as text, `t0 t1`."""
    return {member: " ".join(f"{topic}{number}" for topic, number in mine) for member, mine in assigned.items()}


def test_range_gives_each_member_the_same_run_of_each_topic() -> None:
    members = {"a": GroupMember(["t", "u"]), "b": GroupMember(["t", "u"])}

    assert short(assign_range(members, {"t": 3, "u": 3})) == {"a": "t0 t1 u0 u1", "b": "t2 u2"}


def test_range_passes_over_members_that_do_not_want_a_topic() -> None:
    members = {"a": GroupMember(["t"]), "b": GroupMember(["t", "u"])}

    assert short(assign_range(members, {"t": 2, "u": 3})) == {"a": "t0", "b": "t1 u0 u1 u2"}


def test_round_robin_deals_out_one_by_one() -> None:
    members = {"a": GroupMember(["t", "u"]), "b": GroupMember(["t", "u"])}

    assert short(assign_round_robin(members, {"t": 3, "u": 3})) == {"a": "t0 t2 u1", "b": "t1 u0 u2"}


def test_static_members_come_first_in_the_order_of_their_instances() -> None:
    members = {"x": GroupMember(["t"]), "y": GroupMember(["t"], "i2"), "z": GroupMember(["t"], "i1")}

    assert short(assign_range(members, {"t": 3})) == {"z": "t0", "y": "t1", "x": "t2"}


def owning(topic: str, *numbers: int, generation_id: int = 1) -> GroupMember:
    return GroupMember([topic], None, [TopicPartition(topic, number) for number in numbers], generation_id)


def test_what_moves_is_given_to_nobody_until_its_owner_has_let_go() -> None:
    members = {"a": owning("t", 0, 1, 2, 3), "b": GroupMember(["t"])}

    first = assign_cooperative_sticky(members, {"t": 4})
    assert short(first) == {"a": "t0 t1", "b": ""}

    members = {"a": owning("t", 0, 1, generation_id=2), "b": owning("t", generation_id=2)}
    assert short(assign_cooperative_sticky(members, {"t": 4})) == {"a": "t0 t1", "b": "t2 t3"}


def test_claims_of_an_earlier_generation_count_for_nothing() -> None:
    members = {"a": owning("t", 0, 1, generation_id=1), "b": owning("t", 0, 1, generation_id=2)}

    assert short(assign_cooperative_sticky(members, {"t": 2}))["b"] == "t0"


def test_what_two_members_claim_belongs_to_neither() -> None:
    members = {"a": owning("t", 0, 1), "b": owning("t", 1, 2)}

    assigned = assign_cooperative_sticky(members, {"t": 3})

    assert sorted(one.partition for mine in assigned.values() for one in mine) == [0, 1, 2]


def test_members_keep_what_they_have_only_if_all_their_assignors_allow_it() -> None:
    assert is_cooperative(["cooperative-sticky"])
    assert not is_cooperative(["range", "cooperative-sticky"])


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, GroupMember], dict[str, int]]:
    topics = {name: draw(st.integers(0, 6)) for name in draw(st.sets(st.sampled_from("tuv"), min_size=1))}
    members = {
        f"m{number}": GroupMember(
            sorted(draw(st.sets(st.sampled_from("tuvw")))),
            draw(st.sampled_from([None, f"i{number}"])),
            [
                TopicPartition(topic, partition)
                for topic, partition in draw(st.sets(st.tuples(st.sampled_from("tuv"), st.integers(0, 7)), max_size=8))
            ],
            draw(st.integers(1, 2)),
        )
        for number in range(draw(st.integers(1, 5)))
    }
    return members, topics


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(groups())
@settings(max_examples=50, deadline=None)
def test_nothing_is_given_twice_or_to_who_does_not_want_it(
    assignor: str, group: tuple[dict[str, GroupMember], dict[str, int]]
) -> None:
    members, topics = group

    assigned = ASSIGNORS[assignor](members, topics)

    given_out = [partition for mine in assigned.values() for partition in mine]
    assert len(set(given_out)) == len(given_out)
    assert all(partition.topic in members[member].topics for member, mine in assigned.items() for partition in mine)
    if assignor != "cooperative-sticky":
        wanted = {topic for member in members.values() for topic in member.topics}
        assert len(given_out) == sum(count for topic, count in topics.items() if topic in wanted)


@given(groups())
@settings(max_examples=50, deadline=None)
def test_a_second_round_gives_out_everything_evenly(group: tuple[dict[str, GroupMember], dict[str, int]]) -> None:
    members, topics = group
    first = assign_cooperative_sticky(members, topics)
    members = {
        member_id: GroupMember(member.topics, member.instance_id, first[member_id], 3)
        for member_id, member in members.items()
    }

    second = assign_cooperative_sticky(members, topics)

    wanted = {topic for member in members.values() for topic in member.topics}
    assert sum(map(len, second.values())) == sum(count for topic, count in topics.items() if topic in wanted)
    for mine in second.values():
        for partition in mine:
            takers = [second[one] for one, member in members.items() if partition.topic in member.topics]
            assert len(mine) <= min(map(len, takers)) + 1
