"""Members whose coordinator moves, dies or forgets them: they keep what is theirs, and say when it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ottla.client import Consumer, GroupSettings, RebalanceListener, TopicPartition
from ottla.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable, InconsistentGroupProtocol
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from tests.client.scripted import BOOTSTRAP, T0, TOPIC, ScriptedBroker, hang_up, refuse_to_find, settings
from tests.client.scripted_consumer import values
from tests.client.scripted_group import GroupCluster, moved_to

BEAT = {"classic": ApiKey.HEARTBEAT, "consumer": ApiKey.CONSUMER_GROUP_HEARTBEAT}
JOIN = {"classic": ApiKey.JOIN_GROUP, "consumer": ApiKey.CONSUMER_GROUP_HEARTBEAT}
BEATS: dict[str, type[Message]] = {"classic": HeartbeatRequest, "consumer": ConsumerGroupHeartbeatRequest}


class Journal(RebalanceListener):
    """What the application heard."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.heard.append("revoked")

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.heard.append("assigned")

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.heard.append("lost")


def a_member(protocol: str) -> Consumer:
    group = GroupSettings(group_id="g", group_protocol=protocol, enable_auto_commit=False)
    return Consumer(BOOTSTRAP, group=group, auto_offset_reset="earliest", cluster=settings())


@pytest.fixture(params=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cluster() -> GroupCluster:
    cluster = GroupCluster(brokers=2)
    cluster.fill(0, b"a", b"b")
    return cluster


def test_a_member_follows_its_coordinator_and_keeps_its_partitions(cluster: GroupCluster, protocol: str) -> None:
    journal = Journal()

    async def work() -> None:
        async with a_member(protocol) as consumer:
            await consumer.subscribe(TOPIC, listener=journal)
            assert await values(consumer, 2) == [b"a", b"b"]
            cluster.reply(BEAT[protocol], moved_to(2))
            await consumer.next_record(20_000)
            cluster.fill(0, b"c")
            assert await values(consumer, 1) == [b"c"]
            assert journal.heard == ["assigned"]
            await consumer.commit()

    cluster.run(work)

    assert cluster.sent(BEATS[protocol])[-1][0] == 2
    assert cluster.group.joins == 1
    assert cluster.committed == {0: (3, 0)}


def test_a_coordinator_that_moves_while_one_joins_is_followed(cluster: GroupCluster, protocol: str) -> None:
    async def work() -> None:
        async with a_member(protocol) as consumer:
            cluster.reply(JOIN[protocol], moved_to(2))
            await consumer.subscribe(TOPIC)
            assert await values(consumer, 2) == [b"a", b"b"]

    cluster.run(work)


def test_a_coordinator_that_dies_while_one_joins_is_replaced(cluster: GroupCluster, protocol: str) -> None:
    def die(broker: ScriptedBroker, request: Any) -> Message:
        cluster.coordinator = 2
        return hang_up(broker, request)

    async def work() -> None:
        async with a_member(protocol) as consumer:
            cluster.reply(ApiKey.SYNC_GROUP if protocol == "classic" else JOIN[protocol], die)
            await consumer.subscribe(TOPIC)
            assert await values(consumer, 2) == [b"a", b"b"]

    cluster.run(work)


def test_a_coordinator_that_is_loading_is_waited_for(cluster: GroupCluster) -> None:
    def loading(broker: ScriptedBroker, request: JoinGroupRequest) -> Message:
        code = CoordinatorLoadInProgress.code
        return JoinGroupResponse(error_code=code, protocol_name=None, leader="", member_id="", members=[])

    async def work() -> None:
        async with a_member("classic") as consumer:
            cluster.reply(ApiKey.JOIN_GROUP, *[loading] * 5)
            await consumer.subscribe(TOPIC)
            assert await values(consumer, 2) == [b"a", b"b"]

    cluster.run(work)


def test_a_member_that_was_given_up_hears_that_it_lost_and_begins_anew(cluster: GroupCluster, protocol: str) -> None:
    """What is read then was committed by nobody: it comes again."""
    journal = Journal()

    async def work() -> None:
        async with a_member(protocol) as consumer:
            await consumer.subscribe(TOPIC, listener=journal)
            await values(consumer, 1)
            await consumer.commit()
            assert await values(consumer, 1) == [b"b"]
            cluster.group.forget()
            assert await values(consumer, 1) == [b"b"]

    cluster.run(work)

    assert journal.heard[:3] == ["assigned", "lost", "assigned"]


def test_the_position_of_a_new_member_is_what_was_committed_with_its_epoch(
    cluster: GroupCluster, protocol: str
) -> None:
    """And is checked: the log was cut off between the commit and now."""
    cluster.committed[0] = (3, 0)
    cluster.logs[0].move(leader=2)
    cluster.fill(0, b"c")

    async def work() -> None:
        async with a_member(protocol) as consumer:
            await consumer.subscribe(TOPIC)
            assert await values(consumer, 1) == [b"c"], "epoch 0 ended at 2"
            assert await consumer.position(T0) == 3

    cluster.run(work)


def test_heartbeats_go_on_while_the_application_works(cluster: GroupCluster, protocol: str) -> None:
    async def work() -> None:
        async with a_member(protocol) as consumer:
            await consumer.subscribe(TOPIC)
            await values(consumer, 1)
            before = len(cluster.sent(BEATS[protocol]))
            await asyncio.sleep(60)
            assert len(cluster.sent(BEATS[protocol])) - before == pytest.approx(20, abs=2)

    cluster.run(work)


def test_a_cluster_that_cannot_be_reached_is_warned_of_less_and_less_often(
    cluster: GroupCluster, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with a_member(protocol) as consumer:
            await consumer.subscribe(TOPIC)
            for broker in cluster.brokers.values():
                broker.stop()
            assert await consumer.next_record(600_000) is None

    cluster.run(work)

    warnings = [row.getMessage() for row in caplog.records if "cannot be reached" in row.getMessage()]
    assert 2 <= len(warnings) <= 5
    assert warnings[0].startswith("group g cannot be reached, trying on: ")


def test_a_group_without_a_coordinator_is_warned_of_once_that_lasts(
    cluster: GroupCluster, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What groups in a damaged partition of `__consumer_offsets` get for ever, and others while one moves."""

    async def work() -> None:
        async with a_member(protocol) as consumer:
            await consumer.subscribe(TOPIC)
            cluster.reply(ApiKey.FIND_COORDINATOR, *[refuse_to_find(CoordinatorNotAvailable.code)] * 10_000)
            assert await consumer.next_record(600_000) is None

    cluster.run(work)

    warnings = [row.getMessage() for row in caplog.records if "cannot be reached" in row.getMessage()]
    assert 1 <= len(warnings) <= 8


def test_a_member_that_speaks_otherwise_than_its_protocol_is_told_of(cluster: GroupCluster) -> None:
    def unreadable(broker: ScriptedBroker, request: JoinGroupRequest) -> Message:
        answer = broker.usual(request)
        assert isinstance(answer, JoinGroupResponse)
        for row in answer.members:
            row.metadata = b"\xff"
        cluster.reply(ApiKey.JOIN_GROUP, unreadable)
        return answer

    async def work() -> None:
        async with a_member("classic") as consumer:
            cluster.reply(ApiKey.JOIN_GROUP, unreadable)
            await consumer.subscribe(TOPIC)
            with pytest.raises(InconsistentGroupProtocol, match="cannot be read"):
                await consumer.next_record(60_000)

    cluster.run(work)
