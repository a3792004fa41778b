"""Groups of kinds that are not served: what is answered about them, and that nothing of them is lost.

The answers are those of Kafka 4.4 on the directory `groups` (see `tests/golden/directories`), asked while its streams
group `st-app` and its share group `sh-live` had members; `sh-empty` alone is deleted there and not here.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ottla.broker.groups.consumer_requests import HeartbeatOutcome
from ottla.broker.groups.group import MemberClaim
from ottla.broker.groups.offsets import CommittedOffset, offset_record
from ottla.broker.groups.shard import encode_group_record, tombstone
from ottla.engine import Shard, StateBatch, StateRecord
from ottla.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    NonEmptyGroup,
    UnknownMemberId,
)
from ottla.model import OFFSETS_TOPIC, TopicPartition
from ottla.protocol.internal.framing import CoordinatorRecord
from ottla.protocol.internal.group_records import GroupMetadataKey, GroupMetadataValue
from ottla.protocol.internal.share_group_records import (
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
)
from ottla.protocol.internal.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from ottla.protocol.schema import Message
from tests.broker.groups.consumer_harness import ConsumerBench, first_heartbeat
from tests.broker.groups.harness import PARTITIONS, Bench, MemoryShards

GROUP = "g"
PARTITION = TopicPartition("t", 0)
DAY_SECONDS = 24 * 3600


def stored(key: Message, value: Message) -> StateRecord:
    return encode_group_record(CoordinatorRecord(key, value, 0))


def of_unknown_type(group_id: str = GROUP, record_type: int = 99) -> StateRecord:
    return StateRecord(
        record_type.to_bytes(2, "big") + len(group_id).to_bytes(2, "big") + group_id.encode(), b"\x00\x00?"
    )


SHARE_EMPTY = (stored(ShareGroupMetadataKey(group_id=GROUP), ShareGroupMetadataValue(epoch=4)),)
SHARE = (
    *SHARE_EMPTY,
    stored(ShareGroupMemberMetadataKey(group_id=GROUP, member_id="m"), ShareGroupMemberMetadataValue()),
)
STREAMS_EMPTY = (
    stored(StreamsGroupMetadataKey(group_id=GROUP), StreamsGroupMetadataValue(epoch=3, validated_topology_epoch=1)),
    stored(StreamsGroupTopologyKey(group_id=GROUP), StreamsGroupTopologyValue(epoch=1)),
    stored(
        StreamsGroupTargetAssignmentMetadataKey(group_id=GROUP),
        StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=3),
    ),
)


def streams_member(member_epoch: int = 3, state: int = 1) -> tuple[StateRecord, ...]:
    return (
        stored(StreamsGroupMemberMetadataKey(group_id=GROUP, member_id="m"), StreamsGroupMemberMetadataValue()),
        stored(
            StreamsGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="m"),
            StreamsGroupCurrentMemberAssignmentValue(member_epoch=member_epoch, state=state),
        ),
    )


STREAMS = (*STREAMS_EMPTY, *streams_member())
UNKNOWN = (of_unknown_type(),)
KINDS = pytest.mark.parametrize("records", [SHARE, SHARE_EMPTY, STREAMS, STREAMS_EMPTY, UNKNOWN])


def bench_with(*records: StateRecord, has_offset: bool = True) -> Bench:
    """A coordinator that has loaded these records of `GROUP`, and an offset of long ago."""
    store = MemoryShards()
    shard = Shard(OFFSETS_TOPIC, Bench().coordinator.partition_of(GROUP))
    offset = encode_group_record(offset_record(GROUP, PARTITION, CommittedOffset(20, commit_timestamp_ms=1)))
    store.batches[shard] = [StateBatch(0, 0, [offset, *records] if has_offset else list(records))]
    assert shard.partition < PARTITIONS
    return Bench(store)


def listed(bench: Bench) -> list[tuple[str, str, str]]:
    return [(group.group_type, group.protocol_type, group.state_name) for group in bench.coordinator.list_groups()]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (SHARE, [("share", "share", "Stable")]),
        (SHARE_EMPTY, [("share", "share", "Empty")]),
        (STREAMS, [("streams", "streams", "Stable")]),
        (STREAMS_EMPTY, [("streams", "streams", "Empty")]),
        ((*STREAMS_EMPTY, *streams_member(2)), [("streams", "streams", "Reconciling")]),
        ((*STREAMS_EMPTY, *streams_member(3, 2)), [("streams", "streams", "Reconciling")]),
        ((*STREAMS_EMPTY[:2], *streams_member()), [("streams", "streams", "Assigning")]),
        ((*STREAMS_EMPTY[:1], *streams_member()), [("streams", "streams", "NotReady")]),
        ((of_unknown_type(record_type=18),), [("streams", "streams", "Unknown")]),
        ((of_unknown_type(record_type=9),), [("share", "share", "Unknown")]),
        ((of_unknown_type(record_type=15),), [("share", "share", "Empty")]),
        (UNKNOWN, []),
    ],
)
@pytest.mark.parametrize("has_offset", [True, False])
def test_it_is_listed_as_what_it_is(
    records: Sequence[StateRecord], expected: list[tuple[str, str, str]], has_offset: bool
) -> None:
    assert listed(bench_with(*records, has_offset=has_offset)) == expected


@KINDS
def test_its_offsets_are_read_and_never_expire(records: Sequence[StateRecord]) -> None:
    bench = bench_with(*records)
    before = len(bench.store.tickets)
    for _ in range(3):
        bench.advance(30 * DAY_SECONDS)
    assert bench.committed() == {PARTITION: 20}
    assert len(bench.store.tickets) == before
    bench.coordinator.check_offset_fetch(GROUP, MemberClaim())


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (SHARE, NonEmptyGroup),
        (SHARE_EMPTY, GroupIdNotFound),
        (STREAMS, NonEmptyGroup),
        (STREAMS_EMPTY, GroupIdNotFound),
        (UNKNOWN, GroupIdNotFound),
    ],
)
def test_it_is_not_deleted(records: Sequence[StateRecord], error: type[KafkaError]) -> None:
    bench = bench_with(*records)
    (answer,) = bench.delete_group()
    assert type(answer) is error
    assert bench.committed() == {PARTITION: 20}


@pytest.mark.parametrize(
    ("records", "error"), [(SHARE, GroupIdNotFound), (STREAMS, UnknownMemberId), (UNKNOWN, GroupIdNotFound)]
)
@pytest.mark.parametrize("claim", [MemberClaim(), MemberClaim("m", 1), MemberClaim("m", 1, knows_member_epochs=False)])
def test_nobody_commits_to_it(records: Sequence[StateRecord], error: type[KafkaError], claim: MemberClaim) -> None:
    bench = bench_with(*records)
    with pytest.raises(error):
        bench.commit(("t", 0, 30), claim=claim)
    assert bench.committed() == {PARTITION: 20}


def test_a_member_of_no_group_hears_what_its_protocol_knows() -> None:
    with pytest.raises(GroupIdNotFound):
        Bench().commit(("t", 0, 30), claim=MemberClaim("m", 1))
    with pytest.raises(IllegalGeneration):
        Bench().commit(("t", 0, 30), claim=MemberClaim("m", 1, knows_member_epochs=False))


def test_offsets_of_a_streams_group_are_not_for_those_who_claim_to_be_members() -> None:
    with pytest.raises(UnknownMemberId):
        bench_with(*STREAMS).coordinator.check_offset_fetch(GROUP, MemberClaim("m", 3))
    bench_with(*SHARE).coordinator.check_offset_fetch(GROUP, MemberClaim("m", 3))


def test_its_offsets_are_not_deleted() -> None:
    for records in (SHARE, UNKNOWN):
        bench = bench_with(*records)
        with pytest.raises(GroupIdNotFound):
            bench.coordinator.delete_offsets(GROUP, [PARTITION], lambda outcomes: None)
        assert bench.committed() == {PARTITION: 20}
    answers: list[KafkaError | None] = []
    bench = bench_with(*STREAMS)
    bench.coordinator.delete_offsets(GROUP, [PARTITION], answers.extend)
    assert [type(answer) for answer in answers] == [GroupSubscribedToTopic]
    assert bench.committed() == {PARTITION: 20}


@KINDS
@pytest.mark.parametrize("member_id", ["", "m"])
def test_classic_members_are_sent_away(records: Sequence[StateRecord], member_id: str) -> None:
    bench = bench_with(*records)
    member = bench.member(member_id=member_id).join()
    assert type(member.joined.error) is InconsistentGroupProtocol
    assert member.joined.member_id == ""
    assert type(member.sync().syncs[-1].error) is UnknownMemberId
    assert type(member.heartbeat()) is UnknownMemberId
    assert type(member.leave()) is UnknownMemberId


@KINDS
def test_members_of_the_new_protocol_are_sent_away(records: Sequence[StateRecord]) -> None:
    bench = ConsumerBench(bench_with(*records).store)
    answers: list[HeartbeatOutcome | KafkaError] = []
    bench.coordinator.consumer_heartbeat(first_heartbeat(GROUP), answers.append)
    assert [type(answer) for answer in answers] == [GroupIdNotFound]
    for describe in (bench.coordinator.describe_consumer, bench.coordinator.describe_classic):
        with pytest.raises(GroupIdNotFound):
            describe(GROUP)


def test_a_group_that_is_known_stays_what_it_is_beside_records_that_are_not() -> None:
    known = stored(GroupMetadataKey(group=GROUP), GroupMetadataValue(protocol_type="consumer", protocol="", leader=""))
    assert listed(bench_with(of_unknown_type(), known)) == [("classic", "consumer", "Empty")]


@pytest.mark.parametrize("key", [b"\x00\x63", b"\x00\x63\x00\x09g", b"\x00\x63\x00\x01\xff", b"\x00\x63\x00\x00"])
def test_a_record_that_does_not_tell_its_group_is_left_alone(key: bytes) -> None:
    assert listed(bench_with(StateRecord(key, b"\x00\x00"))) == [("classic", "", "Empty")]


@pytest.mark.parametrize("key", [ShareGroupMetadataKey(group_id=GROUP), StreamsGroupMetadataKey(group_id=GROUP)])
def test_a_group_that_was_deleted_where_it_was_served_does_not_come_back(key: Message) -> None:
    """Also when its commits and their tombstones are still in the log."""
    forgotten = StateRecord(encode_group_record(offset_record(GROUP, PARTITION, CommittedOffset(1))).key, None)
    assert listed(bench_with(forgotten, encode_group_record(tombstone(key)))) == []
