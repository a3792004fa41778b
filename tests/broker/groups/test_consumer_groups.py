"""Consumer groups of the new protocol (KIP-848): joining, epochs, reconciliation, static members, time, restarts."""

from __future__ import annotations

import random

import pytest

from ottla.broker.groups.consumer import ConsumerState
from ottla.broker.groups.consumer_member import MemberState
from ottla.broker.groups.group import MemberClaim
from ottla.broker.groups.offsets import OffsetToCommit
from ottla.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRegularExpression,
    InvalidRequest,
    KafkaError,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
    UnsupportedVersion,
)
from ottla.model import TopicPartition
from tests.broker.groups.consumer_harness import Consumer, ConsumerBench, owners


@pytest.fixture
def bench() -> ConsumerBench:
    made = ConsumerBench()
    made.topic("t", 4)
    return made


def pair(bench: ConsumerBench) -> tuple[Consumer, Consumer]:
    """Two members that share topic t."""
    first = bench.consumer("a", "t").join()
    second = bench.consumer("b", "t").join()
    bench.beat(first, second)
    assert owners([first, second], "t") == {0: "a", 1: "a", 2: "b", 3: "b"}
    return first, second


# -- joining ----------------------------------------------------------------------------------------------------------


def test_the_first_member_gets_everything_in_epoch_two(bench: ConsumerBench) -> None:
    member = bench.consumer("a", "t").join()

    assert member.answer.member_epoch == 2
    assert member.answer.heartbeat_interval_ms == 5000
    assert member.reads("t") == [0, 1, 2, 3]
    assert bench.consumer_group().state is ConsumerState.STABLE


def test_a_second_member_waits_until_the_first_has_given_up(bench: ConsumerBench) -> None:
    first = bench.consumer("a", "t").join()
    second = bench.consumer("b", "t").join()
    assert second.answer.assigned == set()

    first.send(owned=first.owned)
    assert (first.epoch, first.reads("t")) == (2, [0, 1])
    assert second.beat().reads("t") == []
    first.beat()
    assert first.epoch == 3
    second.beat()

    assert second.reads("t") == [2, 3]
    assert bench.consumer_group().state is ConsumerState.STABLE


def test_who_joins_says_all_there_is_to_say(bench: ConsumerBench) -> None:
    """B74: partitions that are owned already, or a missing list of them, are refused."""
    complete = {"rebalance_timeout_ms": 1000, "subscribed_topics": ["t"], "owned": frozenset[object]()}
    for lacking in complete:
        said = {**complete, lacking: None}
        assert isinstance(bench.consumer("a").send(**said).error, InvalidRequest), lacking
    owner = bench.consumer("x", "t").join()
    assert isinstance(bench.consumer("a").send(**{**complete, "owned": owner.owned}).error, InvalidRequest)
    assert bench.consumer("a").send(**complete).answer.member_epoch == 3


@pytest.mark.parametrize(
    "said",
    [
        {"group_id": " "},
        {"member_id": ""},
        {"instance_id": ""},
        {"rack_id": " "},
        {"member_epoch": -3},
        {"member_epoch": -2},
        {"member_epoch": 5, "member_id": ""},
    ],
)
def test_senseless_heartbeats_are_refused(bench: ConsumerBench, said: dict[str, object]) -> None:
    assert isinstance(bench.consumer("a", "t").send(**said).error, InvalidRequest)


def test_members_from_before_own_ids_are_given_one(bench: ConsumerBench) -> None:
    member = bench.consumer("", "t", brings_own_id=False).join()

    assert member.member_id == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert member.beat().answer.member_id == member.member_id


def test_strangers_and_wrong_epochs_are_told_so(bench: ConsumerBench) -> None:
    """B74."""
    stranger = bench.consumer("a", "t", epoch=5)
    assert isinstance(stranger.beat().error, GroupIdNotFound)
    member = bench.consumer("b", "t").join()
    assert isinstance(stranger.beat().error, UnknownMemberId)
    assert isinstance(stranger.leave().error, UnknownMemberId)
    assert isinstance(member.send(member_epoch=7).error, FencedMemberEpoch)
    assert member.beat().answer.member_epoch == 2


def test_an_answer_that_got_lost_is_given_again(bench: ConsumerBench) -> None:
    """A member that is one epoch behind, and owns nothing that it does not have, is brought up to date."""
    first, second = pair(bench)
    assert isinstance(first.send(member_epoch=2, owned=None).error, FencedMemberEpoch)
    assert isinstance(first.send(member_epoch=2, owned=second.owned).error, FencedMemberEpoch)

    assert first.send(member_epoch=2, owned=first.owned).answer.member_epoch == 3


def test_a_member_that_joins_again_is_told_everything_again(bench: ConsumerBench) -> None:
    member = bench.consumer("a", "t").join()

    assert member.join().reads("t") == [0, 1, 2, 3]
    assert bench.consumer_group().group_epoch == 2


def test_a_full_group_takes_nobody_in() -> None:
    bench = ConsumerBench(group_consumer_max_size="1")
    bench.topic("t", 1)
    member = bench.consumer("a", "t").join()

    assert isinstance(bench.consumer("b", "t").join().error, GroupMaxSizeReached)
    assert member.join().answer.member_epoch == 2


def test_the_assignor_that_most_want_is_used(bench: ConsumerBench) -> None:
    assert isinstance(bench.consumer("a", "t", assignor="none").join().error, UnsupportedAssignor)
    bench.consumer("a", "t", assignor="range").join()
    assert bench.coordinator.describe_consumer("g").assignor_name == "range"
    bench.consumer("b", "t", assignor="uniform").join()
    bench.consumer("c", "t", assignor="uniform").join()

    assert bench.coordinator.describe_consumer("g").assignor_name == "uniform"


def test_another_assignor_is_a_new_epoch(bench: ConsumerBench) -> None:
    member = bench.consumer("a", "t").join()
    assert member.send(server_assignor="uniform").answer.member_epoch == 2  # it was that already

    assert member.send(server_assignor="range").answer.member_epoch == 3


def test_a_member_that_has_more_to_give_up_stays_in_its_epoch(bench: ConsumerBench) -> None:
    first = bench.consumer("a", "t").join()
    bench.consumer("b", "t").join()
    first.send(owned=first.owned)
    bench.consumer("c", "t").join()
    bench.consumer("d", "t").join()

    first.beat()
    assert (first.epoch, first.reads("t")) == (2, [0])
    first.beat()

    assert first.epoch == 5


def test_without_the_feature_nobody_joins() -> None:
    bench = ConsumerBench(group_coordinator_rebalance_protocols="classic")
    bench.topic("t", 1)

    assert isinstance(bench.consumer("a", "t").join().error, UnsupportedVersion)


# -- what members want ------------------------------------------------------------------------------------------------


def test_members_get_only_topics_that_they_want(bench: ConsumerBench) -> None:
    bench.topic("u", 2)
    first = bench.consumer("a", "t").join()
    second = bench.consumer("b", "t", "u").join()
    bench.beat(first, second)

    assert second.reads("u") == [0, 1]
    assert len(first.reads("t")) == 3
    assert set(owners([first, second], "t")) == {0, 1, 2, 3}


def test_a_topic_that_appears_later_is_assigned_at_the_next_heartbeat(bench: ConsumerBench) -> None:
    """B75."""
    member = bench.consumer("a", "t", "later").join()
    bench.topic("later", 2)

    assert member.beat().reads("later") == [0, 1]
    assert member.epoch == 3


def test_partitions_that_are_added_are_shared_without_a_double_owner(bench: ConsumerBench) -> None:
    """B75."""
    first, second = pair(bench)
    bench.topic("t", 8)
    for _ in range(4):
        first.beat()
        owners([first, second], "t")
        second.beat()
        owners([first, second], "t")

    assert len(owners([first, second], "t")) == 8
    assert bench.consumer_group().state is ConsumerState.STABLE


def test_a_deleted_topic_is_taken_away_and_one_of_its_name_is_another(bench: ConsumerBench) -> None:
    bench.topic("u", 1)
    member = bench.consumer("a", "t", "u").join()
    bench.delete_topic("u")
    bench.beat(member)
    assert {one.topic_id for one in member.owned} == {bench.topic_ids["t"]}

    bench.topic("u", 2, number=77)
    bench.beat(member)

    assert member.reads("u") == [0, 1]


def test_a_new_subscription_takes_effect_at_once(bench: ConsumerBench) -> None:
    bench.topic("u", 1)
    member = bench.consumer("a", "t").join()

    member.send(subscribed_topics=["u"], owned=member.owned)

    assert member.reads("t") == []
    bench.beat(member)
    assert member.reads("u") == [0]


def test_a_member_without_topics_is_in_the_group_and_owns_nothing(bench: ConsumerBench) -> None:
    member = bench.consumer("a").join()

    assert (member.epoch, member.owned) == (1, frozenset())


# -- patterns ---------------------------------------------------------------------------------------------------------


def test_a_pattern_is_matched_soon_and_again_when_topics_are_new(bench: ConsumerBench) -> None:
    """B75: also when the topic appears after joining."""
    member = bench.consumer("a", pattern="(t|u).*").join()
    assert member.owned == frozenset()
    bench.beat(member)
    assert member.reads("t") == [0, 1, 2, 3]

    bench.topic("u2", 1)
    bench.topic("other", 1)
    bench.advance(11)
    bench.beat(member)

    assert member.reads("u2") == [0]
    assert member.reads("other") == []


def test_patterns_rest_between_two_looks(bench: ConsumerBench) -> None:
    member = bench.consumer("a", pattern="u.*").join()
    bench.beat(member)
    bench.topic("u1", 1)

    bench.advance(9)
    bench.beat(member)
    assert member.owned == frozenset()
    bench.advance(2)
    bench.beat(member)

    assert member.reads("u1") == [0]


def test_a_pattern_that_nobody_has_any_more_is_forgotten(bench: ConsumerBench) -> None:
    member = bench.consumer("a", pattern="t").join()
    bench.beat(member)
    assert set(bench.consumer_group().patterns) == {"t"}

    member.send(subscribed_pattern="", owned=member.owned)
    bench.beat(member)

    assert (bench.consumer_group().patterns, member.owned) == ({}, frozenset())


def test_another_pattern_takes_away_what_it_does_not_match(bench: ConsumerBench) -> None:
    bench.topic("u", 1)
    member = bench.consumer("a", pattern="t").join()
    bench.beat(member)

    member.send(subscribed_pattern="u", owned=member.owned)
    assert member.owned == frozenset()
    bench.beat(member)

    assert (member.reads("t"), member.reads("u")) == ([], [0])


def test_a_pattern_that_is_none_is_refused(bench: ConsumerBench) -> None:
    assert isinstance(bench.consumer("a", pattern="(?=a)").join().error, InvalidRegularExpression)
    with pytest.raises(GroupIdNotFound):
        bench.consumer_group()


# -- static members ---------------------------------------------------------------------------------------------------


def test_an_instance_has_one_member_until_it_lets_go(bench: ConsumerBench) -> None:
    member = bench.consumer("a", "t", instance_id="i").join()

    assert isinstance(bench.consumer("b", "t", instance_id="i").join().error, UnreleasedInstanceId)
    assert isinstance(bench.consumer("a", "t", instance_id="other", epoch=2).beat().error, UnknownMemberId)
    assert member.beat().answer.member_epoch == 2


def test_a_static_member_comes_back_to_what_it_had(bench: ConsumerBench) -> None:
    member = bench.consumer("a", "t", instance_id="i").join()
    other = bench.consumer("b", "t").join()
    bench.beat(member, other)
    had, epoch = member.reads("t"), bench.consumer_group().group_epoch
    member.leave(-2)
    bench.beat(other)

    returned = bench.consumer("c", "t", instance_id="i").join()

    assert returned.reads("t") == had
    assert bench.consumer_group().group_epoch == epoch
    assert isinstance(member.send(member_epoch=epoch).error, FencedInstanceId)
    assert owners([returned, other], "t").keys() == {0, 1, 2, 3}


def test_a_static_member_that_does_not_come_back_is_removed(bench: ConsumerBench) -> None:
    bench.consumer("a", "t", instance_id="i").join().leave(-2)
    other = bench.consumer("b", "t").join()
    for _ in range(10):
        bench.advance(5)
        bench.beat(other, rounds=1)

    assert other.reads("t") == [0, 1, 2, 3]
    assert list(bench.consumer_group().members) == ["b"]


# -- leaving and time -------------------------------------------------------------------------------------------------


def test_a_group_that_all_have_left_is_empty_and_keeps_its_epoch(bench: ConsumerBench) -> None:
    member = bench.consumer("a", "t").join()
    assert member.leave().answer.member_epoch == -1

    group = bench.consumer_group()
    assert (group.state, group.group_epoch, group.assignment_epoch) == (ConsumerState.EMPTY, 3, 3)
    assert bench.consumer("b", "t").join().epoch == 4


def test_a_silent_member_is_removed_when_its_session_is_over(bench: ConsumerBench) -> None:
    first, second = pair(bench)
    for _ in range(44):
        bench.advance(1)
        first.beat()
    assert len(bench.consumer_group().members) == 2
    bench.advance(1.1)
    bench.beat(first)

    assert first.reads("t") == [0, 1, 2, 3]
    assert isinstance(second.beat().error, UnknownMemberId)


def test_a_session_may_be_the_groups_own_setting(bench: ConsumerBench) -> None:
    bench.set_group_config("g", "consumer.session.timeout.ms", "50000")
    bench.set_group_config("g", "consumer.heartbeat.interval.ms", "7000")
    member = bench.consumer("a", "t").join()
    assert member.answer.heartbeat_interval_ms == 7000

    bench.advance(49)
    assert bench.consumer_group().members
    bench.advance(2)

    assert not bench.consumer_group().members


def test_a_groups_own_setting_counts_as_far_as_the_broker_allows_it_now(bench: ConsumerBench) -> None:
    """It was set while the broker's bounds were others: the session at least 45 s, the heartbeat at most 15 s."""
    bench.set_group_config("g", "consumer.session.timeout.ms", "1000")
    bench.set_group_config("g", "consumer.heartbeat.interval.ms", "600000")
    member = bench.consumer("a", "t").join()
    assert member.answer.heartbeat_interval_ms == 15_000

    bench.advance(44)
    assert bench.consumer_group().members
    bench.advance(2)

    assert not bench.consumer_group().members


def test_who_does_not_give_partitions_up_in_time_is_removed(bench: ConsumerBench) -> None:
    first = bench.consumer("a", "t", rebalance_timeout_ms=20_000).join()
    held = first.owned
    second = bench.consumer("b", "t").join()
    for _ in range(19):
        bench.advance(1)
        first.send(owned=held)
        second.beat()
    assert second.owned == frozenset()
    bench.advance(2)
    bench.beat(second)

    assert second.reads("t") == [0, 1, 2, 3]
    assert isinstance(first.beat().error, UnknownMemberId)


def test_targets_are_computed_at_most_once_per_interval() -> None:
    bench = ConsumerBench(group_consumer_assignment_interval_ms="1000")
    bench.topic("t", 2)
    first = bench.consumer("a", "t").join()
    second = bench.consumer("b", "t").join()
    group = bench.consumer_group()
    assert (group.state, group.group_epoch, group.assignment_epoch) == (ConsumerState.ASSIGNING, 3, 2)
    assert (second.epoch, second.owned) == (2, frozenset())

    bench.advance(1)
    bench.beat(first, second)

    assert owners([first, second], "t") == {0: "a", 1: "b"}


# -- offsets ----------------------------------------------------------------------------------------------------------


def commit(bench: ConsumerBench, claim: MemberClaim, *partitions: int) -> list[KafkaError | None]:
    answers: list[KafkaError | None] = []
    offsets = [OffsetToCommit(TopicPartition("t", one), 7, -1, "", bench.topic_ids["t"]) for one in partitions]
    bench.coordinator.commit_offsets("g", claim, offsets, answers.extend)
    return answers


def test_members_commit_in_their_epoch(bench: ConsumerBench) -> None:
    member = bench.consumer("a", "t").join()

    assert commit(bench, member.claim, 0) == [None]
    for claim, refusal in [
        (member.claim._replace(epoch=9), StaleMemberEpoch),
        (member.claim._replace(knows_member_epochs=False), UnsupportedVersion),
        (MemberClaim("nobody", 2), UnknownMemberId),
        (MemberClaim(), UnknownMemberId),
    ]:
        with pytest.raises(refusal):
            commit(bench, claim, 0)


def test_a_commit_of_an_earlier_epoch_is_good_for_partitions_that_were_kept(bench: ConsumerBench) -> None:
    """KIP-1251: a commit that was under way while the epoch rose is no mistake of the member."""
    first, second = pair(bench)
    assert first.epoch == 3

    assert commit(bench, first.claim._replace(epoch=2), 0, 1) == [None, None]
    for claim, partitions in [
        (first.claim._replace(epoch=2), (0, 3)),
        (first.claim._replace(epoch=1), (0,)),
        (second.claim._replace(epoch=2), (2,)),
    ]:
        with pytest.raises(StaleMemberEpoch):
            commit(bench, claim, *partitions)


def test_members_read_offsets_in_their_epoch_and_others_without_one(bench: ConsumerBench) -> None:
    member = bench.consumer("a", "t").join()

    bench.coordinator.check_offset_fetch("g", member.claim)
    bench.coordinator.check_offset_fetch("g", MemberClaim())
    with pytest.raises(StaleMemberEpoch):
        bench.coordinator.check_offset_fetch("g", member.claim._replace(epoch=1))
    with pytest.raises(UnknownMemberId):
        bench.coordinator.check_offset_fetch("g", MemberClaim("nobody", 1))


def test_an_empty_group_takes_offsets_from_anybody_and_can_be_deleted(bench: ConsumerBench) -> None:
    member = bench.consumer("a", "t").join()
    assert isinstance(bench.delete_group()[0], NonEmptyGroup)
    member.leave()
    assert commit(bench, MemberClaim(), 0) == [None]

    assert bench.delete_group() == [None]

    assert bench.coordinator.find("g") is None
    assert bench.restarted().coordinator.find("g") is None


# -- restarts ---------------------------------------------------------------------------------------------------------


def test_a_restart_forgets_nothing(bench: ConsumerBench) -> None:
    first, second = pair(bench)
    bench.consumer("c", "t", instance_id="i", group_id="other", rack_id="r").join().leave(-2)
    bench.consumer("d", pattern="t", group_id="by-pattern").join()
    bench.advance(0)

    again = bench.restarted()

    for group_id in ("g", "other", "by-pattern"):
        before, after = bench.consumer_group(group_id), again.consumer_group(group_id)
        before.hashed_version = after.hashed_version
        assert [getattr(after, name) for name in before.__slots__] == [
            getattr(before, name) for name in before.__slots__
        ]
    first.bench = second.bench = again
    again.beat(first, second)
    assert owners([first, second], "t") == {0: "a", 1: "a", 2: "b", 3: "b"}
    assert again.consumer_group().group_epoch == 3


def test_members_have_a_new_session_after_a_restart(bench: ConsumerBench) -> None:
    first, second = pair(bench)
    bench.clock.advance(40)
    again = bench.restarted()
    first.bench = second.bench = again

    again.advance(40)
    assert first.beat().answer.member_epoch == 3
    again.advance(6)

    assert list(again.consumer_group().members) == ["a"]


def test_who_was_giving_partitions_up_at_a_restart_still_has_to(bench: ConsumerBench) -> None:
    first = bench.consumer("a", "t", rebalance_timeout_ms=5000).join()
    held = first.owned
    second = bench.consumer("b", "t").join()
    first.send(owned=held)
    again = bench.restarted()
    second.bench = again
    assert again.consumer_group().members["a"].state is MemberState.UNREVOKED_PARTITIONS

    again.advance(6)
    again.beat(second)

    assert second.reads("t") == [0, 1, 2, 3]


def test_an_answer_waits_until_what_it_says_is_durable(bench: ConsumerBench) -> None:
    bench.store.is_slow = True
    member = bench.consumer("a", "t").join()
    assert member.answers == []

    bench.store.settle()

    assert member.answer.member_epoch == 2


def test_a_heartbeat_that_changes_nothing_writes_nothing(bench: ConsumerBench) -> None:
    first, second = pair(bench)
    written = len(bench.store.records())

    bench.beat(first, second)

    assert len(bench.store.records()) == written


# -- any order of events ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_no_partition_ever_has_two_owners_and_in_the_end_each_has_one(seed: int) -> None:
    """Members join, leave, fall silent and come back in any order, over restarts, while topics grow."""
    chance = random.Random(seed)
    bench = ConsumerBench()
    sizes = {"t": 3, "u": 2}
    for name, size in sizes.items():
        bench.topic(name, size)
    consumers: dict[str, Consumer] = {}
    for step in range(120):
        match chance.randrange(12):
            case 0 | 1 if len(consumers) < 5:
                name = f"m{step}"
                consumers[name] = bench.consumer(name, *chance.choice([["t"], ["u"], ["t", "u"]])).join()
            case 2 if consumers:
                consumers.pop(chance.choice(list(consumers))).leave()
            case 3 if consumers:  # killed: its session decides
                consumers.pop(chance.choice(list(consumers)))
                for _ in range(10):
                    bench.advance(5)
                    bench.beat(*consumers.values(), rounds=1)
            case 4:
                name = chance.choice(["t", "u"])
                sizes[name] = min(sizes[name] + 1, 6)
                bench.topic(name, sizes[name])
            case 5:
                bench = bench.restarted()
                for consumer in consumers.values():
                    consumer.bench = bench
            case _ if consumers:
                chance.choice(list(consumers.values())).beat()
        for topic in sizes:
            owners(list(consumers.values()), topic)
    bench.beat(*consumers.values(), rounds=8)
    for topic, size in sizes.items():
        wanted = any(topic in consumer.topics for consumer in consumers.values())
        assert len(owners(list(consumers.values()), topic)) == (size if wanted else 0)
