"""Live migration (KIP-848): classic groups become consumer groups and back, and members of both kinds share one."""

from __future__ import annotations

import pytest

from ottla.broker.groups.classic import ClassicState
from ottla.broker.groups.consumer import ConsumerState
from ottla.broker.groups.group import MemberClaim
from ottla.broker.groups.offsets import OffsetToCommit
from ottla.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from ottla.model import TopicPartition
from ottla.protocol.internal.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from ottla.protocol.internal.framing import decode_versioned, encode_versioned
from tests.broker.groups.consumer_harness import ConsumerBench
from tests.broker.groups.harness import Member, subscription


@pytest.fixture
def bench() -> ConsumerBench:
    made = ConsumerBench(group_min_session_timeout_ms="1000")
    made.topic("t", 4)
    return made


def assignment(*partitions: int) -> bytes:
    topics = [ConsumerProtocolAssignmentTopicPartition(topic="t", partitions=list(partitions))]
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=topics), 1)


def owning(*partitions: int) -> bytes:
    owned = [ConsumerProtocolSubscriptionTopicPartition(topic="t", partitions=list(partitions))]
    return encode_versioned(ConsumerProtocolSubscription(topics=["t"], owned_partitions=owned), 1)


def assigned(member: Member) -> list[int]:
    """What a classic member was handed last."""
    topics = decode_versioned(ConsumerProtocolAssignment, member.syncs[-1].assignment).assigned_partitions
    return sorted(partition for topic in topics for partition in topic.partitions)


def classic_pair(bench: ConsumerBench) -> tuple[Member, Member]:
    """A stable classic group whose members share topic t."""
    leader, follower = (bench.member().join() for _ in range(2))
    bench.advance(0)
    leader.sync(**{leader.member_id: assignment(0, 1), follower.member_id: assignment(2, 3)})
    follower.sync()
    return leader, follower


def commit(bench: ConsumerBench, claim: MemberClaim, partition: int) -> list[KafkaError | None]:
    answers: list[KafkaError | None] = []
    offset = OffsetToCommit(TopicPartition("t", partition), 7, -1, "", bench.topic_ids["t"])
    bench.coordinator.commit_offsets("g", claim, [offset], answers.extend)
    return answers


def rejoin(member: Member, *owned: int) -> Member:
    """Go through JoinGroup and SyncGroup as a cooperative consumer that owns these."""
    member.protocols = [("range", owning(*owned))]
    return member.join().sync()


def test_an_upgrade_keeps_what_members_have_until_the_new_one_needs_it(bench: ConsumerBench) -> None:
    first, second = classic_pair(bench)
    newcomer = bench.consumer("n", "t").join()

    group = bench.consumer_group()
    assert (group.group_epoch, len(group.members)) == (first.joined.generation_id + 1, 3)
    assert newcomer.owned == frozenset()
    assert isinstance(first.heartbeat(), RebalanceInProgress)

    rejoin(first, 0, 1)
    assert assigned(first) == [0, 1]
    rejoin(second, 2, 3)
    assert assigned(second) == [2]
    rejoin(second, 2)
    newcomer.beat()
    assert newcomer.reads("t") == [3]
    assert bench.consumer_group().state is ConsumerState.STABLE
    assert (first.heartbeat(), second.heartbeat()) == (None, None)


def test_an_upgrade_sends_those_away_that_wait_for_a_generation(bench: ConsumerBench) -> None:
    classic_pair(bench)
    waiting = bench.member().join()
    assert not waiting.joins

    bench.consumer("n", "t").join()

    assert isinstance(waiting.joined.error, RebalanceInProgress)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"group_consumer_migration_policy": "downgrade"}, {}),
        ({"group_consumer_migration_policy": "disabled"}, {}),
        ({"group_consumer_max_size": "1"}, {}),
        ({}, {"protocol_type": "connect"}),
        ({}, {"protocols": [("range", b"no subscription")]}),
    ],
)
def test_other_classic_groups_stay_what_they_are(settings: dict[str, str], said: dict[str, object]) -> None:
    bench = ConsumerBench(None, None, group_min_session_timeout_ms="1000", **settings)
    bench.topic("t", 4)
    leader, follower = (bench.member(**said).join() for _ in range(2))
    bench.advance(0)
    leader.sync()
    follower.sync()

    assert isinstance(bench.consumer("n", "t").join().error, GroupIdNotFound)

    assert bench.group().state is ClassicState.STABLE


def test_an_empty_classic_group_makes_way_and_keeps_its_offsets(bench: ConsumerBench) -> None:
    bench.commit(("t", 0, 5))

    assert bench.consumer("n", "t").join().epoch == 2

    assert bench.committed() == {("t", 0): 5}
    assert bench.restarted().consumer_group().group_epoch == 2


def test_an_empty_consumer_group_makes_way_for_a_classic_one(bench: ConsumerBench) -> None:
    bench.consumer("n", "t").join().leave()
    bench.commit(("t", 0, 5))

    bench.stable_group(1)

    assert bench.states() == {"g": "Stable"}
    assert bench.committed() == {("t", 0): 5}
    assert bench.restarted().states() == {"g": "Stable"}


def test_the_last_new_member_to_go_turns_the_group_back(bench: ConsumerBench) -> None:
    first, second = classic_pair(bench)
    newcomer = bench.consumer("n", "t").join()
    rejoin(first, 0, 1)
    rejoin(second, 2, 3)
    epoch = bench.consumer_group().group_epoch

    newcomer.leave()

    group = bench.group()
    assert group.generation_id == epoch
    assert bench.restarted().group().generation_id == epoch
    assert group.state is ClassicState.PREPARING_REBALANCE
    assert set(group.members) == {first.member_id, second.member_id}
    assert isinstance(first.heartbeat(), RebalanceInProgress | IllegalGeneration)
    first.join()
    second.join()
    bench.advance(0)
    assert first.joined.generation_id == second.joined.generation_id == epoch + 1


def test_a_session_that_is_over_turns_the_group_back_too(bench: ConsumerBench) -> None:
    first, second = classic_pair(bench)
    bench.consumer("n", "t").join()
    for _ in range(23):
        bench.advance(2)
        for member in (first, second):
            if isinstance(member.heartbeat(), RebalanceInProgress):
                rejoin(member, 0)

    assert isinstance(bench.group().state, ClassicState)


def test_a_policy_of_upgrades_only_keeps_the_consumer_group() -> None:
    bench = ConsumerBench(group_min_session_timeout_ms="1000", group_consumer_migration_policy="upgrade")
    bench.topic("t", 4)
    classic_pair(bench)

    bench.consumer("n", "t").join().leave()

    assert len(bench.consumer_group().members) == 2


# -- classic members of a consumer group ------------------------------------------------------------------------------


def test_a_classic_member_joins_a_consumer_group(bench: ConsumerBench) -> None:
    resident = bench.consumer("n", "t").join()
    member = bench.member(must_know_member_id=True).join()
    assert isinstance(member.joined.error, MemberIdRequired)
    member.join()
    assert (member.joined.generation_id, member.joined.protocol_name, member.joined.leader) == (3, "range", "")
    member.sync()
    assert assigned(member) == []

    bench.beat(resident)
    assert isinstance(member.heartbeat(), RebalanceInProgress)
    rejoin(member)

    assert assigned(member) == [2, 3]
    assert member.heartbeat() is None
    assert bench.coordinator.describe_consumer("g").members[0].member.classic is not None


def test_classic_members_hear_what_is_wrong(bench: ConsumerBench) -> None:
    resident = bench.consumer("n", "t").join()
    member = rejoin(bench.member())
    generation = member.joined.generation_id

    def heartbeat(member_id: str, generation_id: int) -> None:
        bench.coordinator.heartbeat("g", member_id, None, generation_id)

    with pytest.raises(UnknownMemberId):
        heartbeat(resident.member_id, resident.epoch)
    with pytest.raises(UnknownMemberId):
        heartbeat("nobody", generation)
    with pytest.raises(IllegalGeneration):
        heartbeat(member.member_id, generation + 1)
    for stranger in (
        bench.member(protocol_type="connect"),
        bench.member(protocols=[("other", subscription("t"))]),
        bench.member(protocols=[("range", b"no subscription")]),
        bench.member(protocols=[]),
    ):
        assert isinstance(stranger.join().joined.error, InconsistentGroupProtocol), stranger.protocols


def test_a_static_classic_member_takes_its_place_back(bench: ConsumerBench) -> None:
    bench.consumer("n", "t").join()
    member = rejoin(bench.member(instance_id="i"))
    epoch = bench.consumer_group().group_epoch

    returned = rejoin(bench.member(instance_id="i"))

    assert returned.member_id != member.member_id
    assert bench.consumer_group().group_epoch == epoch
    assert isinstance(member.heartbeat(), FencedInstanceId)


def test_a_static_classic_member_that_replaces_the_last_new_one_turns_the_group_back(bench: ConsumerBench) -> None:
    """Nothing moves, so nobody has to rebalance."""
    bench.consumer("n", "t", instance_id="i").join().leave(-2)

    returned = rejoin(bench.member(instance_id="i"))

    assert returned.joined.generation_id == 2
    assert bench.group().state is ClassicState.STABLE
    assert assigned(returned) == [0, 1, 2, 3]


def test_classic_members_commit_in_their_generation_and_late_for_what_they_kept(bench: ConsumerBench) -> None:
    first, _ = classic_pair(bench)
    bench.consumer("n", "t").join()
    rejoin(first, 0, 1)
    claim = first.claim

    assert claim.epoch == 2
    assert commit(bench, claim, 0) == [None]
    assert commit(bench, claim._replace(epoch=1), 0) == [None]
    for wrong, partition in ((claim._replace(epoch=3), 0), (claim._replace(epoch=1), 3)):
        with pytest.raises(IllegalGeneration):
            commit(bench, wrong, partition)


def test_who_does_not_ask_for_its_assignment_or_rejoin_is_removed(bench: ConsumerBench) -> None:
    resident = bench.consumer("n", "t").join()
    never_syncs = bench.member(rebalance_timeout_ms=5000, session_timeout_ms=60_000).join()
    never_rejoins = rejoin(bench.member(rebalance_timeout_ms=5000, session_timeout_ms=60_000))
    bench.beat(resident)
    for _ in range(6):
        bench.advance(1)
        never_rejoins.heartbeat()
        resident.beat()

    assert isinstance(never_syncs.heartbeat(), UnknownMemberId)
    assert isinstance(never_rejoins.heartbeat(), UnknownMemberId)
    bench.beat(resident)
    assert resident.reads("t") == [0, 1, 2, 3]


def test_members_of_both_kinds_leave_through_leave_group(bench: ConsumerBench) -> None:
    """Administrators remove members this way."""
    resident = bench.consumer("n", "t").join()
    member = rejoin(bench.member())
    stranger = bench.member(member_id="nobody")

    assert isinstance(stranger.leave(), UnknownMemberId)
    assert member.leave() is None
    assert list(bench.consumer_group().members) == ["n"]
    assert bench.member(member_id=resident.member_id).leave() is None

    assert bench.consumer_group().state is ConsumerState.EMPTY
