"""Committed offsets: who may commit, what is kept, how long, and what becomes of it in transactions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.broker.groups.group import MemberClaim
from ottla.broker.groups.offsets import CommittedOffset, CommittedOffsets, offset_record, offset_tombstone
from ottla.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InvalidGroupId,
    KafkaError,
    KafkaStorageError,
    NonEmptyGroup,
    NotCoordinator,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    UnknownMemberId,
)
from ottla.model import TopicPartition
from tests.broker.groups.harness import TOPIC_ID, Bench, subscription

MINUTE = 60.0
CHECK = 600.0
"""offsets.retention.check.interval.ms"""
RETENTION_MINUTES = "30"


@pytest.fixture
def bench() -> Bench:
    return Bench()


def raised(action: Callable[[], object]) -> type[KafkaError] | None:
    try:
        action()
    except KafkaError as error:
        return type(error)
    return None


# -- commits ----------------------------------------------------------------------------------------------------------


def test_what_was_committed_is_read_back_with_all_that_was_said(bench: Bench) -> None:
    assert bench.commit(("t", 0, 5), ("t", 3, 7), ("u", 0, -1), metadata="note") == [None, None, None]

    assert bench.committed() == {("t", 0): 5, ("t", 3): 7, ("u", 0): -1}
    found = bench.coordinator.committed_offset("g", TopicPartition("t", 3))
    assert found is not None
    assert (found.metadata, found.leader_epoch, found.topic_id) == ("note", -1, TOPIC_ID)
    assert found.commit_timestamp_ms == bench.clock.wall_ms()
    assert bench.coordinator.committed_offset("g", TopicPartition("t", 1)) is None
    assert bench.coordinator.committed_offset("nobody", TopicPartition("t", 0)) is None


def test_the_latest_commit_counts_also_backwards_and_twice_in_one_request(bench: Bench) -> None:
    bench.commit(("t", 0, 9))
    bench.commit(("t", 0, 4), ("t", 0, 3))
    assert bench.committed() == {("t", 0): 3}


def test_commits_outlive_a_restart(bench: Bench) -> None:
    for number in range(20):
        bench.commit(("t", number % 3, number), group_id=f"g{number % 4}", metadata=str(number))
    restarted = bench.restart()
    for group_id in ("g0", "g1", "g2", "g3"):
        assert restarted.coordinator.committed_offsets(group_id) == bench.coordinator.committed_offsets(group_id)
    assert restarted.states() == bench.states()


def test_somebody_in_no_group_makes_one_that_is_empty(bench: Bench) -> None:
    bench.commit(("t", 0, 1))
    group = bench.group()
    assert (group.state_name, group.protocol_type, group.is_simple) == ("Empty", "", True)


def test_the_empty_group_id_is_good_enough_for_offsets(bench: Bench) -> None:
    """KAFKA-6773: old clients commit so."""
    assert bench.commit(("t", 0, 1), group_id="") == [None]
    assert bench.committed("") == {("t", 0): 1}


def test_who_may_commit(bench: Bench) -> None:
    (member,) = bench.stable_group(1)
    generation_id = member.joined.generation_id
    claims = {
        MemberClaim(member.member_id, generation_id): None,
        MemberClaim(member.member_id, generation_id + 1): IllegalGeneration,
        MemberClaim("nobody", generation_id): UnknownMemberId,
        MemberClaim(): UnknownMemberId,
    }
    for claim, error in claims.items():
        assert raised(lambda claim=claim: bench.commit(("t", 0, 1), claim=claim)) is error, claim  # type: ignore[misc]
    assert raised(lambda: bench.commit(("t", 0, 1), group_id="new", claim=MemberClaim("m", 0))) is GroupIdNotFound
    assert bench.commit(("t", 0, 1), group_id="new", claim=MemberClaim("m", -1)) == [None]


def test_members_may_commit_while_others_rejoin_but_not_before_they_are_assigned(bench: Bench) -> None:
    (member,) = bench.stable_group(1)
    claim = member.claim
    bench.member().join()
    assert bench.commit(("t", 0, 1), claim=claim) == [None]
    member.join()
    assert raised(lambda: bench.commit(("t", 0, 2), claim=member.claim)) is RebalanceInProgress


def test_metadata_has_a_largest_size(bench: Bench) -> None:
    bench = Bench(offset_metadata_max_bytes="10")
    assert bench.commit(("t", 0, 1), metadata="x" * 10) == [None]
    (error,) = bench.commit(("t", 0, 2), metadata="x" * 11)
    assert isinstance(error, OffsetMetadataTooLarge)
    assert bench.committed() == {("t", 0): 1}


def test_a_commit_is_answered_when_it_is_durable(bench: Bench) -> None:
    bench.store.is_slow = True
    answers = bench.commit(("t", 0, 1))
    durable: list[KafkaError | None] = []
    bench.coordinator.when_durable("g", durable.append)
    assert (answers, durable) == ([], [])
    assert bench.committed() == {("t", 0): 1}  # decisions see it at once, readers wait

    bench.store.settle()

    assert durable == [None]


def test_a_commit_that_is_never_durable_sends_clients_to_another_coordinator(bench: Bench) -> None:
    bench.store.is_slow = True
    durable: list[KafkaError | None] = []
    bench.commit(("t", 0, 1))
    bench.coordinator.when_durable("g", durable.append)
    bench.store.settle(KafkaStorageError())
    assert [type(error) for error in durable] == [NotCoordinator]


def test_a_commit_that_cannot_be_written_changes_nothing(bench: Bench) -> None:
    bench.store.failure = KafkaStorageError()
    assert raised(lambda: bench.commit(("t", 0, 1))) is NotCoordinator
    assert (bench.committed(), bench.states()) == ({}, {})


# -- deletion ---------------------------------------------------------------------------------------------------------


def delete(bench: Bench, *partitions: tuple[str, int], group_id: str = "g") -> list[KafkaError | None]:
    answers: list[KafkaError | None] = []
    asked = [TopicPartition(*partition) for partition in partitions]
    bench.coordinator.delete_offsets(group_id, asked, answers.extend)
    return answers


def test_deleted_offsets_are_gone_for_good(bench: Bench) -> None:
    bench.commit(("t", 0, 1), ("t", 1, 1))
    assert delete(bench, ("t", 0), ("t", 7)) == [None, None]
    assert bench.committed() == {("t", 1): 1}
    assert bench.restart().committed() == {("t", 1): 1}


def test_offsets_of_topics_that_members_read_are_not_deleted(bench: Bench) -> None:
    (member,) = bench.stable_group(1, protocols=[("range", subscription("t"))])
    bench.commit(("t", 0, 1), ("u", 0, 1), claim=member.claim)
    assert [type(answer) for answer in delete(bench, ("t", 0), ("u", 0))] == [GroupSubscribedToTopic, type(None)]
    assert bench.committed() == {("t", 0): 1}
    member.leave()
    assert delete(bench, ("t", 0)) == [None]


def test_offsets_of_live_groups_that_are_no_consumers_are_not_deleted(bench: Bench) -> None:
    bench.stable_group(1, protocol_type="connect")
    assert raised(lambda: delete(bench, ("t", 0))) is NonEmptyGroup
    assert raised(lambda: delete(bench, ("t", 0), group_id="nobody")) is GroupIdNotFound
    assert raised(lambda: delete(bench, ("t", 0), group_id="")) is InvalidGroupId


def test_a_deleted_topic_takes_its_offsets_along_in_every_group(bench: Bench) -> None:
    (member,) = bench.stable_group(1, group_id="live")
    bench.commit(("t", 0, 1), ("u", 0, 2), group_id="live", claim=member.claim)
    bench.commit(("t", 0, 1), ("t", 1, 1), group_id="simple")
    bench.coordinator.forget_topics(["t", "never heard of"])
    for coordinator in (bench, bench.restart()):
        assert coordinator.committed("live") == {("u", 0): 2}
        assert coordinator.committed("simple") == {}


# -- expiry -----------------------------------------------------------------------------------------------------------


def test_offsets_of_nobody_in_particular_expire_after_their_commit() -> None:
    bench = Bench(offsets_retention_minutes=RETENTION_MINUTES)
    bench.commit(("t", 0, 1))
    bench.advance(10 * MINUTE)
    bench.commit(("t", 1, 1))
    bench.advance(10 * MINUTE)
    assert len(bench.committed()) == 2
    bench.advance(10 * MINUTE)
    assert bench.committed() == {("t", 1): 1}
    bench.advance(10 * MINUTE)
    assert (bench.committed(), bench.states()) == ({}, {})
    assert bench.restart().states() == {}


def test_offsets_of_a_group_expire_after_its_last_member_left() -> None:
    bench = Bench(offsets_retention_minutes=RETENTION_MINUTES)
    (member,) = bench.stable_group(1, session_timeout_ms=1_000_000)
    bench.commit(("t", 0, 1), claim=member.claim)
    for _ in range(12):
        bench.advance(5 * MINUTE)
        member.heartbeat()
    member.leave()
    bench.advance(20 * MINUTE)
    assert bench.committed() == {("t", 0): 1}
    bench.advance(10 * MINUTE)
    assert (bench.committed(), bench.states()) == ({}, {})


def test_offsets_of_topics_that_a_live_group_reads_no_more_expire() -> None:
    bench = Bench(offsets_retention_minutes=RETENTION_MINUTES)
    (member,) = bench.stable_group(1, session_timeout_ms=1_000_000, protocols=[("range", subscription("t"))])
    bench.commit(("t", 0, 1), ("old", 0, 1), claim=member.claim)
    for _ in range(7):
        bench.advance(5 * MINUTE)
        member.heartbeat()
    assert bench.committed() == {("t", 0): 1}
    assert bench.states() == {"g": "Stable"}


def test_nothing_expires_while_a_group_rebalances() -> None:
    """KAFKA-13636: whose members all rejoin is not empty."""
    bench = Bench(offsets_retention_minutes=RETENTION_MINUTES)
    (member,) = bench.stable_group(1, session_timeout_ms=1_800_000, rebalance_timeout_ms=3_600_000)
    bench.commit(("t", 0, 1), ("old", 0, 1), claim=member.claim)
    bench.advance(25 * MINUTE)
    member.heartbeat()
    bench.member(session_timeout_ms=1_800_000, must_know_member_id=True).join().join()
    bench.advance(5 * MINUTE)
    assert bench.states() == {"g": "PreparingRebalance"}
    assert len(bench.committed()) == 2


def test_nothing_expires_early_because_of_a_restart() -> None:
    bench = Bench(offsets_retention_minutes=RETENTION_MINUTES)
    (member,) = bench.stable_group(1)
    bench.commit(("t", 0, 1), claim=member.claim)
    bench.advance(5)
    member.leave()
    bench.advance(25 * MINUTE)
    restarted = bench.restart(offsets_retention_minutes=RETENTION_MINUTES)
    restarted.advance(4 * MINUTE)
    assert restarted.committed() == {("t", 0): 1}
    restarted.advance(6 * MINUTE)
    assert restarted.committed() == {}


def test_an_expiry_that_the_client_asked_for_goes_before_the_retention() -> None:
    """OffsetCommit v2 to v4 could; such a record has the one version that holds it."""
    bench = Bench()
    now_ms = bench.clock.wall_ms()
    bench.commit(("t", 0, 1), expire_timestamp_ms=now_ms + 1000)
    bench.commit(("t", 1, 1))
    restarted = bench.restart()
    restarted.advance(CHECK)
    assert restarted.committed() == {("t", 1): 1}


def test_empty_groups_without_offsets_are_cleared_away() -> None:
    bench = Bench()
    (member,) = bench.stable_group(1)
    member.leave()
    bench.advance(CHECK)
    assert (bench.states(), bench.restart().states()) == ({}, {})


# -- transactions -----------------------------------------------------------------------------------------------------

PARTITION = TopicPartition("t", 0)


def replay(offsets: CommittedOffsets, offset: int, record_offset: int, producer_id: int = -1) -> None:
    offsets.replay(
        offset_record("g", PARTITION, CommittedOffset(offset)), record_offset=record_offset, producer_id=producer_id
    )


def found(offsets: CommittedOffsets) -> int | None:
    committed = offsets.find("g", *PARTITION)
    return None if committed is None else committed.offset


def test_an_offset_in_a_transaction_counts_with_its_commit() -> None:
    offsets = CommittedOffsets()
    replay(offsets, 5, 0, producer_id=1)
    assert (found(offsets), offsets.is_pending("g", *PARTITION), offsets.has_pending("g")) == (None, True, True)
    assert offsets.replay_end_of_transaction(1, is_commit=True) == ["g"]
    assert (found(offsets), offsets.is_pending("g", *PARTITION), offsets.has_pending("g")) == (5, False, False)


def test_an_offset_in_a_transaction_that_is_aborted_never_was() -> None:
    offsets = CommittedOffsets()
    replay(offsets, 3, 0)
    replay(offsets, 5, 1, producer_id=1)
    offsets.replay_end_of_transaction(1, is_commit=False)
    assert (found(offsets), offsets.is_pending("g", *PARTITION)) == (3, False)


def test_of_plain_and_transactional_commits_the_later_record_counts() -> None:
    """As compaction will see it, which knows records and not when a transaction ended."""
    offsets = CommittedOffsets()
    replay(offsets, 5, 0, producer_id=1)
    replay(offsets, 7, 1)
    offsets.replay_end_of_transaction(1, is_commit=True)
    assert found(offsets) == 7


def test_a_tombstone_takes_pending_offsets_along() -> None:
    offsets = CommittedOffsets()
    replay(offsets, 5, 0, producer_id=1)
    offsets.replay(offset_tombstone("g", PARTITION))
    offsets.replay_end_of_transaction(1, is_commit=True)
    assert found(offsets) is None


def test_offsets_that_wait_for_a_transaction_do_not_expire() -> None:
    offsets = CommittedOffsets()
    replay(offsets, 3, 0)
    replay(offsets, 5, 1, producer_id=1)
    assert list(offsets.expirable("g")) == []
    assert offsets.partitions_of("g") == [PARTITION]
    assert offsets.groups_with("t") == ["g"]
