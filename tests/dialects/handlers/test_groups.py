"""The handlers of groups, beside the recordings: where errors stand, what waits, and what a stopping server says."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.metadata.create_topics import NewTopic
from ottla.broker.metadata.delete_topics import TopicReference
from ottla.broker.metadata.update_features import FeatureUpdate
from ottla.dialects.kafka.answers import ROWS_A_STEP, LaterAnswer, Settled
from ottla.dialects.kafka.handlers import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from ottla.dialects.kafka.handlers.offset_commit import OFFSETS_AT_ONCE
from ottla.errors import NotCoordinator
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_delete import OffsetDeleteRequest
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.dialects.handlers.harness import Bench
from tests.turns import finish

NOT_COORDINATOR = 16
INVALID_SESSION_TIMEOUT = 26
UNSUPPORTED_VERSION = 35
SAFE_DOWNGRADE = 2
UNKNOWN_TOPIC_ID = 100


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A broker with a topic of two partitions, where nobody asked for a coordinator yet."""
    bench = Bench(tmp_path, offsets_topic_num_partitions="3")
    bench.controller.create_topics([NewTopic("t", 2, 1)])
    return bench


def coordinate(bench: Bench) -> None:
    bench.ask(find_coordinator, FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)


def joining(**said: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        **said,  # type: ignore[arg-type]
    )


def test_looking_for_a_coordinator_makes_the_topic_and_waits_for_it(bench: Bench) -> None:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    answer = bench.begin(find_coordinator.handle(request, bench.context(4)))
    assert isinstance(answer, LaterAnswer)
    assert answer.response is None
    bench.store.tickets[-1].settle()
    assert bench.broker.groups.is_ready
    topic = bench.broker.find_topic("__consumer_offsets")
    assert topic is not None and len(topic.partitions) == 3
    image = bench.broker.image.topic("__consumer_offsets")
    assert image is not None and dict(image.configs) == {
        "compression.type": "producer",
        "cleanup.policy": "compact",
        "segment.bytes": "104857600",
    }
    again = bench.begin(find_coordinator.handle(FindCoordinatorRequest(key_type=0, key="h"), bench.context(0)))
    assert not isinstance(again, LaterAnswer)
    assert (again.error_code, again.node_id, again.host, again.port) == (0, 1, "localhost", 9092)


def test_before_that_everybody_is_sent_to_look(bench: Bench) -> None:
    codes = {
        "join": bench.ask(join_group, joining(), 9).error_code,
        "sync": bench.ask(sync_group, SyncGroupRequest(group_id="g"), 4).error_code,
        "heartbeat": bench.ask(heartbeat, HeartbeatRequest(group_id="g"), 4).error_code,
        "leave": bench.ask(leave_group, LeaveGroupRequest(group_id="g"), 5).error_code,
        "describe": bench.ask(describe_groups, DescribeGroupsRequest(groups=["g"]), 6).groups[0].error_code,
        "delete": bench.ask(delete_groups, DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code,
        "offset delete": bench.ask(offset_delete, OffsetDeleteRequest(group_id="g"), 0).error_code,
        "commit": bench.ask(offset_commit, committing(0), 9).topics[0].partitions[0].error_code,
    }
    assert codes == dict.fromkeys(codes, NOT_COORDINATOR)
    assert bench.ask(list_groups, ListGroupsRequest(), 5).groups == []


def test_a_session_timeout_that_is_not_allowed_is_told_before_that(bench: Bench) -> None:
    request = joining()
    request.session_timeout_ms, request.member_id = 1, "m"
    answer = bench.ask(join_group, request, 9)
    assert (answer.error_code, answer.member_id) == (INVALID_SESSION_TIMEOUT, "m")
    request.session_timeout_ms = 10_000
    answer = bench.ask(join_group, request, 9)
    assert (answer.error_code, answer.member_id) == (NOT_COORDINATOR, "")


def test_a_group_between_two_generations_shows_what_was_assigned_in_the_first(bench: Bench) -> None:
    coordinate(bench)
    answer = join_group.handle(joining(group_instance_id="i"), bench.context(5))
    bench.advance(3)  # the delay of the first generation is over
    bench.store.tickets[-1].settle()
    assert isinstance(answer.response, JoinGroupResponse)
    member_id = answer.response.member_id
    assigned = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")]
    bench.ask(sync_group, SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id, assignments=assigned), 4)
    join_group.handle(joining(group_instance_id="another"), bench.context(5))

    (group,) = bench.ask(describe_groups, DescribeGroupsRequest(groups=["g"]), 6).groups

    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    shown = {one.group_instance_id: one.member_assignment for one in group.members}
    assert shown == {"i": b"all", "another": b""}


def test_a_cluster_without_consumer_groups_describes_none(bench: Bench) -> None:
    """Where `group.version` is 0, the answer is not that the group is unknown."""
    bench.broker.administration.update_features([FeatureUpdate("group.version", 0, SAFE_DOWNGRADE)])
    request = ConsumerGroupDescribeRequest(group_ids=["g", ""])
    codes = [row.error_code for row in bench.ask(consumer_group_describe, request, 1).groups]
    assert codes == [UNSUPPORTED_VERSION, UNSUPPORTED_VERSION]


def committing(*partitions: int, offset: int = 5) -> OffsetCommitRequest:
    rows = [OffsetCommitRequestPartition(partition_index=p, committed_offset=offset) for p in partitions]
    return OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=rows)])


def test_what_is_wrong_with_a_partition_is_said_of_it_alone(bench: Bench) -> None:
    coordinate(bench)
    rows = bench.ask(offset_commit, committing(0, 2, -1, 1), 9).topics[0].partitions
    assert [(row.partition_index, row.error_code) for row in rows] == [(0, 0), (2, 3), (-1, 3), (1, 0)]


def test_more_offsets_than_groups_have_are_committed_by_several_batches(bench: Bench) -> None:
    """What keeps a later batch from being committed is said of its partitions; the earlier ones stand."""
    coordinate(bench)
    request = committing(*([0] * OFFSETS_AT_ONCE), *([2] * 10), *([1] * OFFSETS_AT_ONCE), offset=7)
    answer, yields = finish(offset_commit.handle(request, bench.context(9)))
    assert yields > 2 * OFFSETS_AT_ONCE / ROWS_A_STEP
    assert codes_of(answer) == [0] * OFFSETS_AT_ONCE + [3] * 10 + [0] * OFFSETS_AT_ONCE

    steps = offset_commit.handle(committing(*([0] * OFFSETS_AT_ONCE), *([1] * 5), offset=9), bench.context(9))
    while bench.broker.groups.committed_offsets("g")["t"][0].offset != 9:
        next(steps)
    bench.broker.groups.close()
    answer, _ = finish(steps)
    assert codes_of(answer) == [0] * OFFSETS_AT_ONCE + [NotCoordinator.code] * 5


def codes_of(answer: Settled) -> list[int]:
    response = answer.response if isinstance(answer, LaterAnswer) else answer
    assert isinstance(response, OffsetCommitResponse)
    return [row.error_code for row in response.topics[0].partitions]


def test_a_topic_is_known_by_its_id_from_version_10_on(bench: Bench) -> None:
    coordinate(bench)
    topic = bench.broker.find_topic("t")
    assert topic is not None
    request = committing(0)
    for topic_id, code in ((topic.topic_id, 0), (b"another topic id", UNKNOWN_TOPIC_ID)):
        request.topics[0].topic_id = topic_id
        (row,) = bench.ask(offset_commit, request, 10).topics
        assert (row.topic_id, row.partitions[0].error_code) == (topic_id, code)
        asked = OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])
        group = OffsetFetchRequestGroup(group_id="g", topics=[asked])
        (answer,) = bench.ask(offset_fetch, OffsetFetchRequest(groups=[group]), 10).groups
        assert (answer.error_code, answer.topics[0].partitions[0].error_code) == (0, code)


def test_offsets_of_topics_that_are_gone_are_left_out_where_ids_are_wanted(bench: Bench) -> None:
    """They stay until the deletion of their topic reaches the group."""
    coordinate(bench)
    bench.ask(offset_commit, committing(0), 9)
    bench.broker.groups.forget_topics(["t"])
    everything = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    assert bench.ask(offset_fetch, everything, 10).groups[0].topics == []


def test_a_group_level_error_stands_where_the_version_has_a_place_for_it(bench: Bench) -> None:
    """KAFKA-19246: in version 1 that is every partition."""
    asked = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
    first = bench.ask(offset_fetch, OffsetFetchRequest(group_id="g", topics=asked), 1)
    assert [row.error_code for row in first.topics[0].partitions] == [NOT_COORDINATOR, NOT_COORDINATOR]
    second = bench.ask(offset_fetch, OffsetFetchRequest(group_id="g", topics=asked), 2)
    assert (second.error_code, second.topics) == (NOT_COORDINATOR, [])
    groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g", "h")]
    several = bench.ask(offset_fetch, OffsetFetchRequest(groups=groups), 8).groups
    assert [(row.group_id, row.error_code, row.topics) for row in several] == [
        ("g", NOT_COORDINATOR, []),
        ("h", NOT_COORDINATOR, []),
    ]


def test_asking_for_no_group_is_answered_with_none(bench: Bench) -> None:
    coordinate(bench)
    assert bench.ask(offset_fetch, OffsetFetchRequest(groups=[]), 8).groups == []
    assert bench.ask(delete_groups, DeleteGroupsRequest(groups_names=[]), 2).results == []


def test_who_waits_is_sent_away_when_the_server_stops(bench: Bench) -> None:
    coordinate(bench)
    answer = join_group.handle(joining(group_instance_id="i"), bench.context(5))
    assert answer.hurry is not None
    answer.hurry()
    assert isinstance(answer.response, JoinGroupResponse)
    assert answer.response.error_code == NOT_COORDINATOR
    bench.broker.groups.close()  # an answer that comes now has nowhere to go


def test_who_waits_is_sent_away_when_the_topic_of_the_groups_is_deleted(bench: Bench) -> None:
    coordinate(bench)
    answer = join_group.handle(joining(group_instance_id="i"), bench.context(5))
    bench.controller.delete_topics([TopicReference(name="__consumer_offsets")])
    assert isinstance(answer.response, JoinGroupResponse)
    assert answer.response.error_code == NOT_COORDINATOR
    assert not bench.broker.groups.is_ready
    coordinate(bench)
    assert bench.broker.groups.is_ready
