"""Where a producer sends, and when: leaders that change, brokers that die, and programs that only send."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.errors import (
    FencedLeaderEpoch,
    KafkaError,
    NotLeaderOrFollower,
)
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
)
from tests.client.scripted import (
    TOPIC,
    ScriptedBroker,
    ScriptedCluster,
    produced,
    refuse,
    silence,
    write_and_hang_up,
)
from tests.client.scripted_producer import a_producer, send_each, sequences

# ---- leaders that change


@pytest.mark.parametrize("error", [NotLeaderOrFollower, FencedLeaderEpoch])
def test_a_leader_that_is_one_no_more_is_left_for_the_one_in_fresh_metadata(error: type[KafkaError]) -> None:
    cluster = ScriptedCluster(brokers=2)

    def move(broker: ScriptedBroker, request: Any) -> Message:
        cluster.logs[0].move(leader=2)
        return refuse(error)(broker, request)

    async def work() -> None:
        async with a_producer() as producer:
            await producer.send_and_wait(TOPIC, b"a")
            cluster.reply(ApiKey.PRODUCE, move)
            await asyncio.gather(*await send_each(producer, b"b", b"c"))

    cluster.run(work)

    assert cluster.logs[0].values == [b"a", b"b", b"c"]
    assert [node_id for node_id, _ in cluster.sent(ProduceRequest)][-1] == 2


def test_a_leader_that_the_answer_names_is_asked_at_once_and_without_metadata() -> None:
    """KIP-951: the broker knows who leads now, and where that one is."""
    cluster = ScriptedCluster(brokers=2)
    times: list[float] = []

    def move(broker: ScriptedBroker, request: ProduceRequest) -> Message:
        times.append(asyncio.get_running_loop().time())
        cluster.logs[0].move(leader=2)
        leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=1)
        answer = produced(request, PartitionProduceResponse(error_code=6, base_offset=-1, current_leader=leader))
        cluster.brokers[2].address = "elsewhere:1"
        answer.node_endpoints.append(NodeEndpoint(node_id=2, host="elsewhere", port=1))
        return answer

    async def work() -> None:
        async with a_producer() as producer:
            await producer.partitions_of(TOPIC)
            cluster.reply(ApiKey.PRODUCE, move)
            asked = len(cluster.sent(MetadataRequest))
            await producer.send_and_wait(TOPIC, b"a")
            times.append(asyncio.get_running_loop().time())
            assert len(cluster.sent(MetadataRequest)) == asked

    cluster.run(work)

    assert cluster.logs[0].values == [b"a"]
    assert times[1] - times[0] < 0.05, "there was no pause"


def test_what_two_leaders_refuse_in_any_order_is_written_in_the_order_of_sending() -> None:
    """The second batch fails at the new leader before the first one does at the old one."""
    cluster = ScriptedCluster(brokers=2)

    async def work() -> None:
        async with a_producer(request_timeout_ms=1000) as producer:
            await producer.send_and_wait(TOPIC, b"a")
            cluster.reply(ApiKey.PRODUCE, silence)
            first = await send_each(producer, b"b")
            cluster.logs[0].move(leader=2)
            await producer._cluster.refresh()
            second = await send_each(producer, b"c")
            await asyncio.gather(*first, *second)

    cluster.run(work)

    assert cluster.logs[0].values == [b"a", b"b", b"c"]
    assert sequences(cluster.logs[0]) == [(1, 0, 0), (1, 0, 1), (1, 0, 2)], "nothing was lost, so no new epoch"


def test_a_broker_that_dies_hands_over_and_nothing_is_written_twice() -> None:
    cluster = ScriptedCluster(brokers=2)

    def die(broker: ScriptedBroker, request: Any) -> Message:
        broker.usual(request)  # written, but nobody hears of it
        cluster.logs[0].move(leader=2)
        broker.stop()
        return write_and_hang_up(broker, request)

    async def work() -> None:
        async with a_producer() as producer:
            await producer.send_and_wait(TOPIC, b"a")
            cluster.reply(ApiKey.PRODUCE, die)
            await asyncio.gather(*await send_each(producer, b"b", b"c"))

    cluster.run(work)

    assert cluster.logs[0].values == [b"a", b"b", b"c"]


def test_one_partition_in_trouble_does_not_hold_up_another() -> None:
    cluster = ScriptedCluster(partitions=2)

    async def work() -> None:
        async with a_producer() as producer:
            await producer.partitions_of(TOPIC)
            cluster.logs[0].leader = 9  # nobody
            await producer._cluster.refresh()
            waiting = await producer.send(TOPIC, b"waits", partition=0)
            await producer.send(TOPIC, b"goes", partition=1)
            await asyncio.sleep(10)
            assert cluster.logs[1].values == [b"goes"]
            cluster.logs[0].leader = 1
            await waiting

    cluster.run(work)

    assert cluster.logs[0].values == [b"waits"]


# ---- a loop that does nothing but send


def test_full_batches_leave_while_more_is_sent() -> None:
    cluster = ScriptedCluster()

    async def work() -> None:
        async with a_producer(linger_ms=1000, batch_size=200) as producer:
            await producer.send_and_wait(TOPIC, b"first")
            for _ in range(100):
                await producer.send(TOPIC, bytes(100))
            assert producer.delivered_count > 10

    cluster.run(work)

    assert len(cluster.logs[0].values) == 101
