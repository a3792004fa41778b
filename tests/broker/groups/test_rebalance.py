"""Joining, assigning and leaving: who is in a generation, when it begins, and what its members are told."""

from __future__ import annotations

import pytest

from ottla.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    KafkaError,
    KafkaStorageError,
    MemberIdRequired,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)
from ottla.protocol.internal.group_records import GroupMetadataValue
from tests.broker.groups.harness import Bench, Member, subscription


@pytest.fixture
def bench() -> Bench:
    return Bench()


def error_of(answer: object) -> type[KafkaError] | None:
    error = answer if isinstance(answer, KafkaError) else getattr(answer, "error", None)
    return type(error) if isinstance(error, KafkaError) else None


# -- the first generation ---------------------------------------------------------------------------------------------


def test_a_newcomer_gets_its_id_first_and_joins_with_it(bench: Bench) -> None:
    member = bench.member(must_know_member_id=True).join()
    assert (error_of(member.joined), member.member_id) == (MemberIdRequired, "client-uuid1")
    assert bench.states() == {"g": "Empty"}

    member.join()
    bench.advance(0)

    assert (member.joined.error, member.joined.generation_id, member.joined.leader) == (None, 1, "client-uuid1")
    assert [one.member_id for one in member.joined.members] == ["client-uuid1"]
    assert bench.states() == {"g": "CompletingRebalance"}


def test_static_members_are_named_after_their_instance_and_join_at_once(bench: Bench) -> None:
    member = bench.member(instance_id="i1", must_know_member_id=True).join()
    bench.advance(0)
    assert (member.joined.error, member.member_id) == (None, "i1-uuid1")


def test_the_leader_alone_sees_who_is_in_the_generation(bench: Bench) -> None:
    leader = bench.member(protocols=[("range", b"of the leader")]).join()
    follower = bench.member(protocols=[("range", b"of the follower")], instance_id="i").join()
    bench.advance(0)

    assert [tuple(one) for one in leader.joined.members] == [
        (leader.member_id, None, b"of the leader"),
        (follower.member_id, "i", b"of the follower"),
    ]
    assert (follower.joined.members, follower.joined.leader) == ((), leader.member_id)
    assert {one.joined.protocol_name for one in (leader, follower)} == {"range"}


def test_a_new_group_waits_for_more_members_while_they_come(bench: Bench) -> None:
    """group.initial.rebalance.delay.ms again after each newcomer, no longer than the rebalance timeout in all."""
    bench = Bench(group_initial_rebalance_delay_ms="3000")
    first = bench.member(rebalance_timeout_ms=8_000).join()
    bench.advance(2.9)
    second = bench.member(rebalance_timeout_ms=8_000).join()
    bench.advance(0.1)
    assert not first.joins
    bench.advance(2.9)
    third = bench.member(rebalance_timeout_ms=8_000).join()
    bench.advance(0.1)
    assert not first.joins
    bench.advance(2)  # 8 seconds in all

    assert [len(one.joins) for one in (first, second, third)] == [1, 1, 1]
    assert bench.group().generation_id == 1


def test_a_new_group_waits_no_longer_than_the_delay_when_nobody_comes() -> None:
    bench = Bench(group_initial_rebalance_delay_ms="3000")
    member = bench.member().join()
    bench.advance(2.9)
    assert not member.joins
    bench.advance(0.1)
    assert member.joined.error is None


# -- who is let in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"group_id": ""}, InvalidGroupId),
        ({"session_timeout_ms": 999}, InvalidSessionTimeout),
        ({"session_timeout_ms": 1_800_001}, InvalidSessionTimeout),
        ({"member_id": "nobody"}, UnknownMemberId),
    ],
)
def test_who_asks_wrongly_makes_no_group(bench: Bench, said: dict[str, object], error: type[KafkaError]) -> None:
    member = bench.member(**said).join()
    assert error_of(member.joined) is error
    assert (bench.states(), bench.store.records()) == ({}, [])


@pytest.mark.parametrize("said", [{"protocols": []}, {"protocol_type": ""}])
def test_who_speaks_no_protocol_leaves_an_empty_group(bench: Bench, said: dict[str, object]) -> None:
    """As on Kafka, where it is cleared away with the next check of offsets."""
    assert error_of(bench.member(**said).join().joined) is InconsistentGroupProtocol
    assert bench.states() == {"g": "Empty"}
    bench.advance(600)
    assert bench.states() == {}


def test_an_unknown_member_is_sent_away_from_a_group_that_is_there(bench: Bench) -> None:
    bench.stable_group(1)
    assert error_of(bench.member(member_id="nobody").join().joined) is UnknownMemberId


@pytest.mark.parametrize(
    "said", [{"protocols": [("roundrobin", b"")]}, {"protocol_type": "connect"}, {"protocols": []}]
)
def test_members_have_a_protocol_in_common(bench: Bench, said: dict[str, object]) -> None:
    bench.stable_group(2)
    assert error_of(bench.member(**said).join().joined) is InconsistentGroupProtocol
    assert bench.states() == {"g": "Stable"}


def test_a_full_group_takes_nobody(bench: Bench) -> None:
    bench = Bench(group_max_size="2")
    bench.stable_group(2)
    late = bench.member().join()
    assert (error_of(late.joined), late.joined.member_id) == (GroupMaxSizeReached, "")
    assert bench.states() == {"g": "Stable"}


def test_in_a_rebalance_of_a_full_group_those_that_rejoin_first_stay(bench: Bench) -> None:
    bench = Bench(group_max_size="2")
    members = [bench.member().join() for _ in range(3)]
    bench.advance(0)
    assert [error_of(one.joined) for one in members] == [None, None, GroupMaxSizeReached]


# -- rebalances -------------------------------------------------------------------------------------------------------


def test_a_second_member_makes_one_new_generation_in_which_both_are(bench: Bench) -> None:
    (first,) = bench.stable_group(1)
    second = bench.member().join()
    assert error_of(first.heartbeat()) is RebalanceInProgress
    assert not second.joins

    first.join()

    assert [one.joined.generation_id for one in (first, second)] == [2, 2]
    second.sync()
    first.sync()
    assert [one.syncs[-1].assignment for one in (first, second)] == [
        first.member_id.encode(),
        second.member_id.encode(),
    ]
    assert [one.heartbeat() for one in (first, second)] == [None, None]


def test_who_does_not_rejoin_within_the_rebalance_timeout_is_dropped(bench: Bench) -> None:
    quick, slow = bench.stable_group(2, rebalance_timeout_ms=5_000, session_timeout_ms=60_000)
    newcomer = bench.member().join()
    quick.join()
    bench.advance(59.9)
    assert not newcomer.joins  # the newcomer lets everybody take 60 seconds
    slow.heartbeat()
    bench.advance(0.1)

    assert [one.joined.generation_id for one in (quick, newcomer)] == [2, 2]
    assert error_of(slow.heartbeat()) is UnknownMemberId
    assert len(bench.group().members) == 2


def test_another_leads_when_the_leader_does_not_rejoin(bench: Bench) -> None:
    leader, follower = bench.stable_group(2, rebalance_timeout_ms=5_000)
    bench.member(rebalance_timeout_ms=5_000).join()
    follower.join()
    bench.pass_time(5, leader)
    assert follower.is_leader
    assert len(follower.joined.members) == 2


def test_static_members_that_do_not_rejoin_are_in_the_next_generation_all_the_same(bench: Bench) -> None:
    (static,) = bench.stable_group(1, instance_id="i", rebalance_timeout_ms=5_000, session_timeout_ms=20_000)
    newcomer = bench.member(rebalance_timeout_ms=5_000).join()
    bench.advance(5)
    assert newcomer.joined.generation_id == 2
    assert set(bench.group().members) == {static.member_id, newcomer.member_id}
    assert newcomer.is_leader
    newcomer.sync(**{static.member_id: b"as before"})
    static.join().sync()
    assert static.syncs[-1].assignment == b"as before"


def test_a_group_of_silent_static_members_waits_for_one_of_them(bench: Bench) -> None:
    first, second = (bench.member(instance_id=i, rebalance_timeout_ms=2_000, session_timeout_ms=30_000) for i in "ab")
    first.join()
    second.join()
    bench.advance(0)
    first.sync()
    second.sync()
    first.leave()  # a rebalance that nobody takes part in
    bench.advance(2)
    assert bench.states() == {"g": "PreparingRebalance"}
    second.join()
    assert (second.joined.error, second.joined.generation_id) == (None, 2)


def test_an_unchanged_follower_hears_of_the_present_generation_again(bench: Bench) -> None:
    leader, follower = bench.stable_group(2)
    follower.join()
    assert (follower.joined.generation_id, follower.joined.members) == (1, ())
    assert bench.states() == {"g": "Stable"}
    leader.join()  # leaders rejoin to have partitions assigned anew
    assert bench.states() == {"g": "PreparingRebalance"}


def test_a_follower_that_wants_something_else_makes_a_rebalance(bench: Bench) -> None:
    _, follower = bench.stable_group(2)
    follower.protocols = [("range", subscription("other"))]
    follower.join()
    assert bench.states() == {"g": "PreparingRebalance"}


def test_who_lost_the_answer_to_its_join_gets_it_again(bench: Bench) -> None:
    leader, follower = bench.member().join(), bench.member().join()
    bench.advance(0)
    for member in (leader, follower):
        first = member.joined
        member.join()
        assert member.joined == first
    assert bench.states() == {"g": "CompletingRebalance"}


def test_a_join_that_is_asked_again_gives_up_the_first(bench: Bench) -> None:
    first, _ = bench.stable_group(2)
    first.join()
    first.join()
    assert [error_of(answer) for answer in first.joins[1:]] == [RebalanceInProgress]


def test_a_group_goes_on_counting_when_it_was_empty(bench: Bench) -> None:
    (member,) = bench.stable_group(1)
    member.leave()
    assert bench.states() == {"g": "Empty"}
    again = bench.member(protocol_type="connect", protocols=[("sessioned", b"")]).join()
    bench.advance(0)
    assert (again.joined.generation_id, again.joined.protocol_type) == (3, "connect")


# -- SyncGroup --------------------------------------------------------------------------------------------------------


def test_followers_wait_for_the_leaders_assignment(bench: Bench) -> None:
    leader, follower = bench.member().join(), bench.member().join()
    bench.advance(0)
    follower.sync()
    assert not follower.syncs
    leader.sync(**{follower.member_id: b"for the follower"})
    assert follower.syncs[0].assignment == b"for the follower"
    assert leader.syncs[0].assignment == b""
    assert follower.sync().syncs[1] == follower.syncs[0]


def test_who_syncs_out_of_turn_is_refused(bench: Bench) -> None:
    (member,) = bench.stable_group(1)
    stranger = bench.member(member_id="nobody")
    stranger.joins = member.joins
    assert error_of(stranger.sync().syncs[0]) is UnknownMemberId
    bench.member().join()
    assert error_of(member.sync().syncs[-1]) is RebalanceInProgress
    member.join()
    member.joins.append(member.joins[0])
    assert error_of(member.sync().syncs[-1]) is IllegalGeneration


def test_an_assignment_is_told_when_it_is_durable(bench: Bench) -> None:
    bench.store.is_slow = True
    leader, follower = bench.member().join(), bench.member().join()
    bench.advance(0)
    follower.sync()
    leader.sync()
    late = Member(bench, member_id=follower.member_id, joins=follower.joins).sync()
    assert not (leader.syncs or follower.syncs or late.syncs)
    bench.store.settle()
    assert [one.syncs[0].error for one in (leader, follower, late)] == [None, None, None]


def test_an_assignment_that_will_never_be_durable_sends_members_away(bench: Bench) -> None:
    leader = bench.member().join()
    bench.advance(0)
    bench.store.is_slow = True
    leader.sync()
    bench.store.settle(KafkaStorageError())
    assert error_of(leader.syncs[0]) is NotCoordinator


def test_an_assignment_that_cannot_be_written_is_asked_for_again(bench: Bench) -> None:
    leader = bench.member().join()
    bench.advance(0)
    bench.store.failure = KafkaStorageError()
    leader.sync()
    assert error_of(leader.syncs[0]) is NotCoordinator
    assert bench.states() == {"g": "PreparingRebalance"}


def test_members_that_never_ask_for_their_assignment_are_dropped(bench: Bench) -> None:
    """The time for that is the rebalance timeout (KAFKA-13790 and others: groups stuck in CompletingRebalance)."""
    leader = bench.member(rebalance_timeout_ms=5_000).join()
    silent = bench.member(rebalance_timeout_ms=5_000).join()
    bench.advance(0)
    leader.sync()
    bench.pass_time(5, silent, leader)
    assert set(bench.group().members) == {leader.member_id}
    assert error_of(silent.heartbeat()) is UnknownMemberId
    assert error_of(leader.heartbeat()) is RebalanceInProgress


# -- LeaveGroup -------------------------------------------------------------------------------------------------------


def test_the_others_rebalance_when_a_member_leaves(bench: Bench) -> None:
    first, second = bench.stable_group(2)
    assert second.leave() is None
    assert error_of(first.heartbeat()) is RebalanceInProgress
    first.join()
    assert first.joined.generation_id == 2
    assert error_of(second.leave()) is UnknownMemberId


def test_the_last_to_leave_empties_the_group(bench: Bench) -> None:
    (member,) = bench.stable_group(1)
    bench.advance(2)
    member.leave()
    group = bench.group()
    assert (group.state_name, group.generation_id, group.protocol_type) == ("Empty", 2, "consumer")
    value = bench.store.records()[-1].value
    assert isinstance(value, GroupMetadataValue)
    assert (value.members, value.current_state_timestamp) == ([], bench.clock.wall_ms())
    assert bench.restart().states() == {"g": "Empty"}


def test_who_leaves_while_it_waits_is_told_to_come_anew(bench: Bench) -> None:
    _, second = bench.stable_group(2)
    second.protocols = [("range", subscription("other"))]
    second.join()
    second.leave()
    assert (error_of(second.joined), second.joined.member_id) == (UnknownMemberId, "")


def test_an_id_that_was_only_given_out_can_leave(bench: Bench) -> None:
    member = bench.member(must_know_member_id=True).join()
    assert member.leave() is None
    assert error_of(member.join().joined) is UnknownMemberId


def test_a_leave_is_answered_when_the_empty_group_is_durable(bench: Bench) -> None:
    (member,) = bench.stable_group(1)
    bench.store.is_slow = True
    with pytest.raises(IndexError):
        member.leave()
    bench.store.settle()


# -- static members ---------------------------------------------------------------------------------------------------


def test_a_static_member_that_comes_back_has_its_assignment_and_disturbs_nobody(bench: Bench) -> None:
    leader, static = bench.stable_group(1)[0], bench.member(instance_id="i")
    static.join()
    leader.join()
    leader.sync()
    static.sync()
    old_id, assignment = static.member_id, static.syncs[-1].assignment
    static.member_id = ""
    static.join()

    assert (static.joined.error, static.joined.generation_id) == (None, 2)
    assert static.member_id != old_id
    assert static.sync().syncs[-1].assignment == assignment
    assert leader.heartbeat() is None
    old = bench.member(instance_id="i", member_id=old_id, joins=static.joins)
    assert error_of(old.heartbeat()) is FencedInstanceId
    assert error_of(old.sync().syncs[-1]) is FencedInstanceId
    assert error_of(old.join().joined) is FencedInstanceId
    assert error_of(old.leave()) is FencedInstanceId


@pytest.mark.parametrize("can_skip_assignment", [True, False])
def test_a_static_leader_that_comes_back_need_not_assign(bench: Bench, can_skip_assignment: bool) -> None:
    (leader,) = bench.stable_group(1, instance_id="i", can_skip_assignment=can_skip_assignment)
    old_id, leader.member_id = leader.member_id, ""
    leader.join()
    assert leader.joined.skip_assignment is can_skip_assignment
    assert leader.joined.leader == (leader.member_id if can_skip_assignment else old_id)
    assert bool(leader.joined.members) is can_skip_assignment


def test_a_static_member_that_comes_back_during_a_rebalance_takes_part(bench: Bench) -> None:
    other, static = bench.member().join(), bench.member(instance_id="i").join()
    bench.advance(0)
    old = Member(bench, instance_id="i", member_id=static.member_id, joins=list(static.joins)).sync()
    static.member_id = ""
    static.join()  # the leader was told of the old id
    assert error_of(old.syncs[0]) is FencedInstanceId
    assert bench.states() == {"g": "PreparingRebalance"}
    other.join()
    assert static.joined.generation_id == 2


def test_a_second_process_of_an_instance_takes_the_place_of_one_that_waits(bench: Bench) -> None:
    first = bench.member(instance_id="i").join()
    second = bench.member(instance_id="i").join()
    assert (error_of(first.joined), first.joined.member_id) == (FencedInstanceId, "i-uuid1")
    bench.advance(0)
    assert second.joined.error is None
    assert len(bench.group().members) == 1


def test_a_static_member_with_other_protocols_makes_a_rebalance_when_these_decide(bench: Bench) -> None:
    (member,) = bench.stable_group(1, instance_id="i", protocols=[("a", b""), ("b", b"")])
    member.member_id = ""
    member.protocols = [("b", b"")]
    member.join()
    assert member.joined.protocol_name == "b"
    assert member.joined.generation_id == 2


def test_an_administrator_removes_a_static_member_by_its_instance(bench: Bench) -> None:
    bench.stable_group(1, instance_id="i")
    assert bench.member(instance_id="i").leave() is None
    assert error_of(bench.member(instance_id="i").leave()) is UnknownMemberId
    assert bench.states() == {"g": "Empty"}


def test_a_returning_static_member_is_remembered_over_a_restart(bench: Bench) -> None:
    """KAFKA-10284: who came last is stored at once, not with the next rebalance."""
    (member,) = bench.stable_group(1, instance_id="i")
    old_id, member.member_id = member.member_id, ""
    member.join()
    member.bench = bench.restart()
    assert member.heartbeat() is None
    old = Member(member.bench, instance_id="i", member_id=old_id, joins=member.joins)
    assert error_of(old.heartbeat()) is FencedInstanceId


# -- sessions ---------------------------------------------------------------------------------------------------------


def test_a_member_that_is_not_heard_of_is_dropped(bench: Bench) -> None:
    beating, silent = bench.stable_group(2, session_timeout_ms=6_000)
    bench.pass_time(5, beating)
    assert len(bench.group().members) == 2
    bench.pass_time(1, beating)
    assert set(bench.group().members) == {beating.member_id}
    assert error_of(silent.heartbeat()) is UnknownMemberId


def test_the_last_silent_member_leaves_the_group_empty(bench: Bench) -> None:
    bench.stable_group(1, session_timeout_ms=6_000)
    bench.advance(6)
    assert bench.states() == {"g": "Empty"}
    assert len(bench.timers) == 1  # the check of offsets


def test_a_member_that_waits_for_us_is_not_silent(bench: Bench) -> None:
    first, second = bench.stable_group(2, session_timeout_ms=6_000, rebalance_timeout_ms=60_000)
    first.join()
    bench.pass_time(30, second)
    assert first.member_id in bench.group().members
    second.join()
    second.sync()
    bench.pass_time(5, second)
    assert first.heartbeat() is None


def test_who_joins_for_the_first_time_has_five_minutes(bench: Bench) -> None:
    """It cannot send heartbeats and may be gone; it would hold up rebalances for ever (KAFKA-7610)."""
    (member,) = bench.stable_group(1, rebalance_timeout_ms=3_600_000)
    ghost = bench.member(session_timeout_ms=1000, rebalance_timeout_ms=3_600_000).join()
    bench.pass_time(299, member)
    assert not ghost.joins
    bench.pass_time(1, member)
    assert error_of(ghost.joined) is UnknownMemberId
    assert len(bench.group().members) == 1


def test_an_id_that_nobody_comes_back_with_is_forgotten(bench: Bench) -> None:
    bench.stable_group(1)
    pending = bench.member(must_know_member_id=True, session_timeout_ms=6_000).join()
    bench.advance(6)
    assert error_of(pending.join().joined) is UnknownMemberId


def test_a_rebalance_waits_for_ids_that_were_given_out(bench: Bench) -> None:
    (member,) = bench.stable_group(1, session_timeout_ms=60_000)
    pending = bench.member(must_know_member_id=True, session_timeout_ms=6_000).join()
    member.join()
    assert len(member.joins) == 1
    bench.advance(6)
    assert member.joined.generation_id == 2
    assert error_of(pending.join().joined) is UnknownMemberId


def test_commits_keep_a_session_alive(bench: Bench) -> None:
    (member,) = bench.stable_group(1, session_timeout_ms=6_000)
    for _ in range(4):
        bench.advance(5)
        assert bench.commit(("t", 0, 1), claim=member.claim) == [None]
    assert bench.states() == {"g": "Stable"}


def test_a_loop_that_was_held_up_expels_nobody(bench: Bench) -> None:
    members = bench.stable_group(3, session_timeout_ms=6_000)
    bench.advance(60, lag_seconds=54)
    assert [member.heartbeat() for member in members] == [None, None, None]
    assert bench.states() == {"g": "Stable"}


def test_after_a_restart_members_have_a_new_session(bench: Bench) -> None:
    beating, silent = bench.stable_group(2, session_timeout_ms=6_000)
    bench.advance(5)
    restarted = bench.restart()
    beating.bench = silent.bench = restarted
    assert restarted.states() == {"g": "Stable"}
    restarted.pass_time(5, beating)
    assert len(restarted.group().members) == 2
    restarted.pass_time(1, beating)
    assert set(restarted.group().members) == {beating.member_id}


def test_after_a_restart_a_group_above_the_allowed_size_rebalances(bench: Bench) -> None:
    bench.stable_group(3)
    assert bench.restart(group_max_size="2").states() == {"g": "PreparingRebalance"}


# -- where there is no coordinator ------------------------------------------------------------------------------------


def test_without_shards_members_are_sent_to_look_for_their_coordinator(bench: Bench) -> None:
    waiting = bench.stable_group(2)[0].join()
    bench.coordinator.close()
    assert error_of(waiting.joined) is NotCoordinator
    assert error_of(waiting.heartbeat()) is NotCoordinator
    assert error_of(bench.member().join().joined) is NotCoordinator
    assert len(bench.timers) == 0
