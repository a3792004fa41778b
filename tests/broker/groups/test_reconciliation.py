"""One member's next step towards its target, state by state."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ottla.broker.groups.assignors import TopicIdPartition
from ottla.broker.groups.consumer_member import ConsumerMember, MemberState
from ottla.broker.groups.reconciliation import Surroundings, Target, reconcile
from ottla.errors import FencedMemberEpoch
from ottla.model import TopicId

T, U = TopicId(b"t" * 16), TopicId(b"u" * 16)


def partitions(*numbers: int, topic: TopicId = T) -> frozenset[TopicIdPartition]:
    return frozenset(TopicIdPartition(topic, number) for number in numbers)


def member(*assigned: int, epoch: int = 2, state: MemberState = MemberState.STABLE, **said: object) -> ConsumerMember:
    epochs = dict.fromkeys(partitions(*assigned), epoch)
    return ConsumerMember(member_id="a", member_epoch=epoch, state=state, assigned=epochs, **said)  # type: ignore[arg-type]


def around(owned: Iterable[int] | None, *, held: Iterable[int] = (), **said: object) -> Surroundings:
    """`owned` is what the member reports, `held` what others have."""
    reported = None if owned is None else partitions(*owned)
    taken = partitions(*held)
    return Surroundings(reported, taken.__contains__, frozenset({T, U}), **said)  # type: ignore[arg-type]


def test_a_member_at_its_target_stays_as_it_is() -> None:
    settled = member(0, 1)

    assert reconcile(settled, Target(2, partitions(0, 1)), around(None)) is settled


def test_what_is_free_is_given_at_once_in_the_targets_epoch() -> None:
    following = reconcile(member(0), Target(5, partitions(0, 1)), around([0]))

    assert (following.member_epoch, following.previous_member_epoch, following.state) == (5, 2, MemberState.STABLE)
    assert following.assigned == {**dict.fromkeys(partitions(0), 2), **dict.fromkeys(partitions(1), 5)}


def test_what_others_have_is_waited_for() -> None:
    waiting = reconcile(member(0), Target(3, partitions(0, 1, 2)), around([0], held=[1]))

    assert (waiting.state, frozenset(waiting.assigned)) == (MemberState.UNRELEASED_PARTITIONS, partitions(0, 2))
    assert reconcile(waiting, Target(3, partitions(0, 1, 2)), around(None, held=[1])) is waiting
    assert reconcile(waiting, Target(3, partitions(0, 1, 2)), around(None)).state is MemberState.STABLE


@pytest.mark.parametrize("owned", [None, [0, 1], [1]])
def test_what_must_go_is_waited_for_until_it_is_owned_no_more(owned: list[int] | None) -> None:
    revoking = reconcile(member(0, 1), Target(3, partitions(0)), around(owned))
    assert (revoking.member_epoch, revoking.state) == (2, MemberState.UNREVOKED_PARTITIONS)
    assert (frozenset(revoking.assigned), frozenset(revoking.pending_revocation)) == (partitions(0), partitions(1))
    assert reconcile(revoking, Target(3, partitions(0)), around(owned)) is revoking

    done = reconcile(revoking, Target(3, partitions(0)), around([0]))

    assert (done.member_epoch, done.state, done.pending_revocation) == (3, MemberState.STABLE, {})


def test_what_is_not_owned_any_more_need_not_be_given_up() -> None:
    done = reconcile(member(0, 1), Target(3, partitions(0)), around([0]))

    assert (done.member_epoch, done.state, frozenset(done.assigned)) == (3, MemberState.STABLE, partitions(0))


def test_what_comes_back_while_it_is_given_up_is_kept() -> None:
    revoking = reconcile(member(0, 1), Target(3, partitions(0)), around(None))

    done = reconcile(revoking, Target(4, partitions(0, 1)), around([0], held=[0, 1]))

    assert (done.state, frozenset(done.assigned)) == (MemberState.STABLE, partitions(0, 1))


def test_a_target_gives_nothing_that_the_member_does_not_want() -> None:
    target = Target(3, partitions(0) | partitions(0, topic=U))
    wants_t = around([0])._replace(wanted=frozenset({T}))

    assert frozenset(reconcile(member(0), target, wants_t).assigned) == partitions(0)


def test_a_member_that_changes_its_mind_gives_up_before_there_is_a_new_target() -> None:
    changed = around([0])._replace(wanted=frozenset({U}), has_changed_its_mind=True)

    revoking = reconcile(member(0), Target(2, partitions(0)), changed)

    assert (revoking.state, revoking.assigned) == (MemberState.UNREVOKED_PARTITIONS, {})
    assert reconcile(member(0), Target(2, partitions(0)), changed._replace(owned=frozenset())).assigned == {}


def test_a_state_of_a_newer_kafka_is_left_where_nothing_can_be_owned_twice() -> None:
    unknown = member(0, state=MemberState(99))
    assert unknown.state is MemberState.UNKNOWN

    assert reconcile(unknown, Target(3, partitions(0, 1)), around([0])).state is MemberState.STABLE
    with pytest.raises(FencedMemberEpoch):
        reconcile(unknown, Target(3, partitions(0)), around([0, 1]))
    with pytest.raises(FencedMemberEpoch):
        reconcile(
            member(0, state=MemberState.UNKNOWN, pending_revocation=dict.fromkeys(partitions(1), 2)),
            Target(3, partitions(0)),
            around([0]),
        )
