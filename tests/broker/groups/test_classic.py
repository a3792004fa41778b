"""Classic groups: states, protocols, members, and their one record."""

from __future__ import annotations

import pytest

from ottla.broker.groups.classic import (
    TRANSITIONS,
    ClassicEvent,
    ClassicGroup,
    ClassicMember,
    ClassicState,
    format_transitions,
    subscribed_topics,
)
from ottla.broker.groups.group import MemberClaim
from ottla.broker.groups.requests import AssignmentProtocol
from ottla.errors import (
    FencedInstanceId,
    IllegalGeneration,
    KafkaError,
    NonEmptyGroup,
    RebalanceInProgress,
    UnknownMemberId,
)
from ottla.protocol.internal.group_records import GroupMetadataValue
from tests.broker.groups.harness import subscription

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicState


def member(member_id: str, *protocols: str, instance_id: str | None = None) -> ClassicMember:
    said = [AssignmentProtocol(name, f"{member_id} about {name}".encode()) for name in protocols or ("range",)]
    return ClassicMember(member_id, instance_id, "client", "/host", 60_000, 10_000, said)


def group_of(*members: ClassicMember, state: ClassicState = STABLE) -> ClassicGroup:
    group = ClassicGroup("g")
    for one in members:
        group.add(one, "consumer")
    group.generation_id = 3
    group.protocol_name = group.choose_protocol() if members else None
    group.state = state
    return group


def test_the_table_of_states_prints() -> None:
    lines = format_transitions().splitlines()

    assert len(lines) == len(TRANSITIONS) == 7
    assert lines[0].split() == ["Empty", "a", "member", "joins,", "changes", "or", "goes", "PreparingRebalance"]


def test_every_state_but_dead_can_be_left_and_reached() -> None:
    assert {state for state, _ in TRANSITIONS} == set(ClassicState) - {DEAD}
    assert set(TRANSITIONS.values()) == set(ClassicState)


def test_a_step_that_is_not_in_the_table_is_a_bug() -> None:
    with pytest.raises(KeyError):
        group_of(member("a")).step(ClassicEvent.JOINED, 0)


@pytest.mark.parametrize(
    ("spoken", "chosen"),
    [
        ([["x", "y"], ["y", "z"]], "y"),
        ([["a", "b"], ["a", "b"], ["b", "a"]], "a"),
        ([["a", "b", "c"], ["b", "a", "c"], ["b", "c", "a"]], "b"),
        ([["only"]], "only"),
    ],
)
def test_the_protocol_is_what_all_speak_and_most_like(spoken: list[list[str]], chosen: str) -> None:
    group = group_of(*(member(str(number), *protocols) for number, protocols in enumerate(spoken)))
    assert group.choose_protocol() == chosen


@pytest.mark.parametrize(
    ("protocol_type", "protocols", "expected"),
    [
        ("consumer", ["y"], True),
        ("consumer", ["x"], False),  # only one member speaks it
        ("connect", ["y"], False),
        ("consumer", [], False),
    ],
)
def test_newcomers_must_speak_what_all_members_speak(protocol_type: str, protocols: list[str], expected: bool) -> None:
    group = group_of(member("a", "x", "y"), member("b", "y", "z"))
    assert group.supports(protocol_type, [AssignmentProtocol(name, b"") for name in protocols]) is expected


def test_an_empty_group_takes_any_protocol_type() -> None:
    group = group_of(state=EMPTY)
    group.protocol_type = "consumer"
    assert group.supports("connect", [AssignmentProtocol("sessioned", b"")])
    assert not group.supports("connect", [])
    assert not group.supports("", [AssignmentProtocol("sessioned", b"")])


def test_a_rebalance_that_all_have_left_takes_any_protocol_of_its_type() -> None:
    """Somebody got an id and did not come back yet."""
    group = group_of(member("a", "x"))
    group.step(ClassicEvent.REBALANCE, 0)
    group.remove("a")
    assert group.supports("consumer", [AssignmentProtocol("another", b"")])
    assert not group.supports("consumer", [])
    assert not group.supports("connect", [AssignmentProtocol("x", b"")])


def test_the_first_member_leads_and_another_follows_when_it_goes() -> None:
    group = group_of(member("a"), member("b"))
    assert group.leader == "a"
    group.remove("a")
    assert group.leader == "b"
    group.remove("b")
    assert group.leader is None


def test_the_record_brings_the_group_back() -> None:
    group = group_of(member("a"), member("b", instance_id="i"))
    group.state_timestamp_ms = 77
    record = group.record({"a": b"for a"})
    assert isinstance(record.value, GroupMetadataValue)

    back = ClassicGroup("g")
    back.replay(record.value)

    assert (back.state, back.generation_id, back.protocol_name, back.leader) == (STABLE, 3, "range", "a")
    assert (back.protocol_type, back.state_timestamp_ms, back.static_members) == ("consumer", 77, {"i": "b"})
    assert {one.member_id: one.assignment for one in back.members.values()} == {"a": b"for a", "b": b""}
    assert back.members["a"].metadata("range") == b"a about range"
    assert back.record(back.assignments()) == record


def test_replay_keeps_what_members_wait_for_and_drops_who_is_gone() -> None:
    answers: list[object] = []
    stays, goes = member("stays"), member("goes")
    stays.sync_reply = goes.sync_reply = answers.append
    group = group_of(stays, goes)
    record = group_of(member("stays")).record({"stays": b"x"})
    assert isinstance(record.value, GroupMetadataValue)

    group.replay(record.value)

    assert list(group.members.values()) == [stays]
    assert (stays.assignment, stays.sync_reply) == (b"x", answers.append)
    assert len(answers) == 1


def test_subscribed_topics_are_those_of_all_members() -> None:
    assert subscribed_topics([subscription("a", "b"), subscription("b", "c")]) == frozenset({"a", "b", "c"})


@pytest.mark.parametrize("damaged", [b"", b"\x00", b"\xff\xff\x00\x00", b"\x00\x01\x00\x00\x00\x09"])
def test_a_subscription_that_cannot_be_read_leaves_all_topics_subscribed(damaged: bytes) -> None:
    assert subscribed_topics([subscription("a"), damaged]) is None


def test_a_topic_counts_as_subscribed_while_that_is_not_known() -> None:
    group = group_of(member("a"))
    assert group.is_subscribed_to("t")
    group.protocol_type = "connect"
    assert not group.is_subscribed_to("t")


@pytest.mark.parametrize(
    ("state", "claim", "error"),
    [
        (STABLE, MemberClaim("a", 3), None),
        (PREPARING, MemberClaim("a", 3), None),
        (COMPLETING, MemberClaim("a", 3), RebalanceInProgress),
        (STABLE, MemberClaim("a", 2), IllegalGeneration),
        (STABLE, MemberClaim("x", 3), UnknownMemberId),
        (STABLE, MemberClaim("", 3), UnknownMemberId),
        (STABLE, MemberClaim("", -1), UnknownMemberId),
        (STABLE, MemberClaim("old", 3, "i"), FencedInstanceId),
        (STABLE, MemberClaim("s", 3, "i"), None),
        (STABLE, MemberClaim("s", 3, "other"), UnknownMemberId),
        (EMPTY, MemberClaim("", -1), None),
        (EMPTY, MemberClaim("x", -1), None),
        (EMPTY, MemberClaim("x", 3), UnknownMemberId),
    ],
)
def test_who_may_commit(state: ClassicState, claim: MemberClaim, error: type[KafkaError] | None) -> None:
    members = [] if state is EMPTY else [member("a"), member("s", instance_id="i")]
    group = group_of(*members, state=state)
    if error is None:
        group.check_offset_commit(claim, is_transactional=False)
    else:
        with pytest.raises(error):
            group.check_offset_commit(claim, is_transactional=False)


def test_a_transaction_may_commit_for_a_group_without_saying_who_it_is() -> None:
    group_of(member("a")).check_offset_commit(MemberClaim(), is_transactional=True)
    group_of(member("a"), state=COMPLETING).check_offset_commit(MemberClaim("a", 3), is_transactional=True)


@pytest.mark.parametrize("state", [PREPARING, COMPLETING, STABLE])
def test_a_group_with_members_is_not_deleted(state: ClassicState) -> None:
    with pytest.raises(NonEmptyGroup):
        group_of(member("a"), state=state).check_delete()


def test_offsets_of_live_groups_are_deleted_only_where_it_is_known_what_they_read() -> None:
    group = group_of(member("a"))
    group.check_offset_delete()
    group.protocol_type = "connect"
    with pytest.raises(NonEmptyGroup):
        group.check_offset_delete()


@pytest.mark.parametrize(
    ("protocol_type", "state", "state_timestamp_ms", "topics", "expected"),
    [
        ("", EMPTY, 500, None, 100),  # nobody can be in it: the commit counts
        ("consumer", EMPTY, 500, None, 500),
        ("consumer", EMPTY, -1, None, 100),  # written by releases that did not note the time
        ("consumer", STABLE, 500, frozenset({"t"}), 100),
        ("consumer", STABLE, 500, None, None),
        ("consumer", PREPARING, 500, frozenset({"t"}), None),
        ("consumer", COMPLETING, 500, frozenset({"t"}), None),
        ("connect", STABLE, 500, None, None),
        ("connect", EMPTY, 500, None, 500),
    ],
)
def test_from_when_on_the_retention_of_an_offset_counts(
    protocol_type: str,
    state: ClassicState,
    state_timestamp_ms: int,
    topics: frozenset[str] | None,
    expected: int | None,
) -> None:
    group = ClassicGroup("g", protocol_type=protocol_type, state=state, state_timestamp_ms=state_timestamp_ms)
    group.subscribed_topics = topics
    assert group.retention_start_ms(100) == expected


def test_a_stored_leader_who_is_no_member_leads_nobody() -> None:
    group = group_of(member("m"), state=PREPARING)
    group.leader = "somebody else"
    assert not group.elect_leader()
    group.members["m"].join_reply = print
    assert group.elect_leader()
    assert group.leader == "m"
