"""Whom a consumer asks for records, and what it makes of damaged ones."""

from __future__ import annotations

import pytest

from ottla.errors import FencedLeaderEpoch, KafkaError, NotLeaderOrFollower, OffsetOutOfRange, UnknownLeaderEpoch
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse, LeaderIdAndEpoch, NodeEndpoint
from ottla.protocol.messages.list_offsets import ListOffsetsRequest
from ottla.protocol.messages.metadata import MetadataRequest
from tests.client.scripted import (
    T0,
    ScriptedBroker,
    ScriptedCluster,
    refuse,
)
from tests.client.scripted_consumer import a_consumer, filled, values

# ---- leaders that change


@pytest.mark.parametrize("error", [NotLeaderOrFollower, FencedLeaderEpoch, UnknownLeaderEpoch])
def test_a_leader_that_refuses_is_left_for_the_one_in_fresh_metadata(error: type[KafkaError]) -> None:
    cluster = filled()

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            assert await values(consumer, 2) == [b"a", b"b"]
            cluster.scripts[ApiKey.FETCH].append(refuse(error))
            cluster.logs[0].move(leader=2)
            cluster.fill(0, b"c")
            assert await values(consumer, 1) == [b"c"]

    cluster.run(work)

    assert cluster.sent(FetchRequest)[-1][0] == 2


def test_a_leader_that_the_answer_names_is_asked_without_metadata() -> None:
    """KIP-951."""
    cluster = filled()

    def move(broker: ScriptedBroker, request: FetchRequest) -> Message:
        cluster.logs[0].move(leader=2)
        cluster.fill(0, b"c")
        cluster.brokers[2].address = "elsewhere:1"
        answer = refuse(NotLeaderOrFollower)(broker, request)
        assert isinstance(answer, FetchResponse)
        answer.responses[0].partitions[0].current_leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=1)
        answer.node_endpoints.append(NodeEndpoint(node_id=2, host="elsewhere", port=1))
        return answer

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            await values(consumer, 1)
            asked = len(cluster.sent(MetadataRequest))
            cluster.reply(ApiKey.FETCH, move)
            assert await values(consumer, 2) == [b"b", b"c"]
            assert len(cluster.sent(MetadataRequest)) == asked

    cluster.run(work)


def test_a_broker_that_dies_hands_over_without_a_gap() -> None:
    cluster = filled()

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            await values(consumer, 2)
            cluster.logs[0].move(leader=2)
            cluster.fill(0, b"c")
            cluster.brokers[1].stop()
            assert await values(consumer, 1) == [b"c"]

    cluster.run(work)


def test_a_node_that_turns_up_elsewhere_is_followed() -> None:
    """What Kubernetes does to a pod: the same node id, another address."""
    cluster = filled(brokers=1)

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            await values(consumer, 2)
            cluster.brokers[1].stop()
            cluster.brokers[1].address = "moved:1"
            cluster.stopped.clear()
            cluster.fill(0, b"c")
            assert await values(consumer, 1) == [b"c"]

    cluster.run(work)

    assert "moved:1" in cluster.attempts


# ---- logs with damage


def test_a_batch_whose_offset_went_back_does_not_take_the_position_along() -> None:
    """No checksum covers a base offset: what stands before it would come again, and for ever where it is the last."""
    cluster = ScriptedCluster()
    for value in (b"a", b"b", b"damaged", b"behind"):
        cluster.fill(0, value)
    log = cluster.logs[0]
    behind = log.batches.pop()
    log.batches[2] = bytes(8) + log.batches[2][8:]

    def once(broker: ScriptedBroker, request: FetchRequest) -> Message:
        answer = broker.usual(request)
        log.batches.append(behind)
        return answer

    cluster.reply(ApiKey.FETCH, once)

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            assert await values(consumer, 3) == [b"a", b"b", b"behind"]

    cluster.run(work)


# ---- followers


def go_to_the_follower(broker: ScriptedBroker, request: FetchRequest) -> Message:
    answer = broker.usual(request)
    assert isinstance(answer, FetchResponse)
    answer.responses[0].partitions[0].records = b""
    answer.responses[0].partitions[0].preferred_read_replica = 2
    return answer


def test_the_follower_that_a_leader_names_is_read_until_it_fails() -> None:
    """KIP-392: with a rack, a leader may answer nothing but where to read."""
    cluster = filled()
    cluster.followed_by[2].add(0)

    async def work() -> None:
        async with a_consumer(client_rack="here") as consumer:
            await consumer.assign([T0])
            cluster.reply(ApiKey.FETCH, go_to_the_follower)
            assert await values(consumer, 2) == [b"a", b"b"]
            assert [node_id for node_id, _ in cluster.sent(FetchRequest)][:2] == [1, 2]
            cluster.followed_by[2].clear()
            cluster.fill(0, b"c")
            assert await values(consumer, 1) == [b"c"]
            assert cluster.sent(FetchRequest)[-1][0] == 1

    cluster.run(work)


def test_a_follower_that_lags_does_not_reset_the_position() -> None:
    cluster = filled()
    cluster.followed_by[2].add(0)

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            consumer.seek(T0, 1)
            cluster.reply(ApiKey.FETCH, go_to_the_follower, refuse(OffsetOutOfRange))
            assert await values(consumer, 1) == [b"b"]

    cluster.run(work)

    assert len(cluster.sent(ListOffsetsRequest)) == 0, "nobody asked where to begin"
