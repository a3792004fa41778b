"""How a client finds its brokers, and finds them again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.client.cluster import Cluster
from ottla.client.errors import ClusterUnreachable, ConnectionLost
from ottla.errors import LeaderNotAvailable, RebootstrapRequired, TopicAuthorizationFailed
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from tests.client.scripted import BOOTSTRAP, T0, TOPIC, ScriptedBroker, ScriptedCluster, hang_up, settings, silence


async def ask_node(cluster: Cluster, node_id: int) -> ListOffsetsResponse:
    request = ListOffsetsRequest(replica_id=-1, topics=[])
    return await cluster.call(ApiKey.LIST_OFFSETS, request, ListOffsetsResponse, node_id)


def test_every_bootstrap_address_is_tried_and_named_with_its_reason() -> None:
    scripted = ScriptedCluster()
    scripted.brokers[1].stop()

    async def work() -> None:
        with pytest.raises(ClusterUnreachable, match=r"a:1: connection refused; b:2: connection refused"):
            await Cluster("a:1,b:2", settings()).start()

    scripted.run(work)


def test_a_bootstrap_address_that_is_down_is_passed_over() -> None:
    scripted = ScriptedCluster()

    async def work() -> None:
        cluster = Cluster(["down:1", BOOTSTRAP], settings())
        await cluster.start()
        assert sorted(cluster.brokers) == [1]
        await cluster.close()

    scripted.run(work)


def test_when_no_known_broker_can_be_reached_the_bootstrap_addresses_are_tried_again() -> None:
    """KIP-899: the whole cluster moved, only the name by which it is found stayed."""
    scripted = ScriptedCluster(brokers=2)

    async def work() -> None:
        cluster = Cluster(BOOTSTRAP, settings())
        await cluster.start()
        for broker in scripted.brokers.values():
            broker.stop()
            broker.address = f"new-{broker.node_id}:1"
        scripted.stopped.clear()
        await cluster.refresh()
        assert [str(broker) for broker in cluster.brokers.values()] == ["new-1:1", "new-2:1"]
        await cluster.close()

    scripted.run(work)


def test_a_broker_that_asks_for_it_is_left_for_the_bootstrap_addresses() -> None:
    """KIP-1102: a proxy in front of clusters sends its clients back to where they came in."""
    scripted = ScriptedCluster(brokers=2)

    async def work() -> None:
        cluster = Cluster(BOOTSTRAP, settings())
        await cluster.topic(TOPIC)
        await cluster.connection_to(2)
        scripted.entrances = {BOOTSTRAP: 2}
        tried = len(scripted.attempts)
        scripted.reply(
            ApiKey.METADATA,
            lambda broker, request: MetadataResponse(brokers=[], topics=[], error_code=RebootstrapRequired.code),
        )
        await cluster.refresh()
        assert scripted.attempts[tried] == BOOTSTRAP
        assert cluster.leader_of(T0) == 1
        await cluster.close()

    scripted.run(work)


def test_brokers_that_do_not_answer_for_long_are_left_for_the_bootstrap_addresses() -> None:
    """KIP-1102: they take connections, but know nothing."""
    scripted = ScriptedCluster(brokers=1)

    async def work() -> None:
        cluster = Cluster(BOOTSTRAP, settings(metadata_recovery_rebootstrap_trigger_ms=50_000))
        await cluster.start()
        node = await cluster.connection_to(1)
        assert node.is_open
        tried = len(scripted.attempts)
        began = asyncio.get_running_loop().time()
        scripted.reply(ApiKey.METADATA, *[silence] * 3)
        for _ in range(3):
            try:
                await cluster.refresh()
                break
            except ConnectionLost:
                continue
        assert asyncio.get_running_loop().time() - began < 200
        assert BOOTSTRAP in scripted.attempts[tried:]
        await cluster.close()

    scripted.run(work)


def test_a_node_that_moves_gets_a_connection_at_its_new_address() -> None:
    scripted = ScriptedCluster(brokers=2)

    async def work() -> None:
        cluster = Cluster(BOOTSTRAP, settings())
        await cluster.start()
        old = await cluster.connection_to(2)
        scripted.brokers[2].address = "moved:1"
        await cluster.refresh()
        assert not old.is_open
        assert (await cluster.connection_to(2)).address == "moved:1"
        await cluster.close()

    scripted.run(work)


def test_a_node_that_moves_while_it_is_connected_to_is_not_kept() -> None:
    """Else every request to the node would go to whoever listens at its old address."""
    scripted = ScriptedCluster(brokers=2)

    async def work() -> None:
        cluster = Cluster(BOOTSTRAP, settings())
        await cluster.start()

        def move(broker: ScriptedBroker, request: Any) -> Message:
            scripted.brokers[2].address = "moved:1"
            cluster.update(MetadataResponse(brokers=scripted.broker_rows(), topics=[], controller_id=1))
            return broker.usual(request)

        scripted.reply(ApiKey.API_VERSIONS, move)
        with pytest.raises(ConnectionLost, match="moved away"):
            await cluster.connection_to(2)
        assert (await cluster.connection_to(2)).address == "moved:1"
        await cluster.close()

    scripted.run(work)


def test_a_call_to_a_node_looks_for_it_anew_when_the_connection_fails() -> None:
    scripted = ScriptedCluster(brokers=2)

    async def work() -> None:
        cluster = Cluster(BOOTSTRAP, settings())
        await cluster.start()
        await cluster.connection_to(2)
        scripted.brokers[2].stop()
        scripted.brokers[2].address = "moved:1"
        scripted.stopped.clear()
        await ask_node(cluster, 2)
        assert scripted.attempts[-1] == "moved:1"
        await cluster.close()

    scripted.run(work)


def test_a_call_to_a_node_that_is_gone_for_good_ends_soon() -> None:
    scripted = ScriptedCluster(brokers=2)

    async def work() -> None:
        cluster = Cluster(BOOTSTRAP, settings())
        await cluster.start()
        scripted.brokers[2].stop()
        began = asyncio.get_running_loop().time()
        with pytest.raises(ConnectionLost, match=r"node-2:9092: connection refused"):
            await ask_node(cluster, 2)
        assert asyncio.get_running_loop().time() - began < 1, "not a minute of trying"
        with pytest.raises(LeaderNotAvailable):
            await cluster.connection_to(2)
        await cluster.close()

    scripted.run(work)


def test_a_call_that_is_cut_off_is_made_again() -> None:
    scripted = ScriptedCluster()
    scripted.reply(ApiKey.LIST_OFFSETS, hang_up, hang_up)

    async def work() -> None:
        cluster = Cluster(BOOTSTRAP, settings())
        await cluster.start()
        await ask_node(cluster, 1)
        await cluster.close()

    scripted.run(work)

    assert len(scripted.sent(ListOffsetsRequest)) == 3


def test_a_broker_that_heard_of_an_older_leader_does_not_turn_the_clock_back() -> None:
    """KIP-320: metadata comes from any broker, and brokers learn at different moments."""
    scripted = ScriptedCluster(brokers=2)

    async def work() -> None:
        cluster = Cluster(BOOTSTRAP, settings())
        scripted.logs[0].move(leader=2)
        await cluster.topic(TOPIC)
        scripted.logs[0].leader, scripted.logs[0].leader_epoch = 1, 0
        await cluster.refresh()
        assert cluster.leader_of(T0) == 2
        await cluster.close()

    scripted.run(work)


def test_a_topic_is_waited_for_until_it_appears_and_not_where_that_is_in_vain() -> None:
    scripted = ScriptedCluster()

    def with_code(code: int) -> Any:
        def answer(broker: ScriptedBroker, request: MetadataRequest) -> Message:
            topics = [MetadataResponseTopic(error_code=code, name=TOPIC, partitions=[])]
            return MetadataResponse(brokers=scripted.broker_rows(), cluster_id="c", controller_id=1, topics=topics)

        return answer

    async def work() -> None:
        cluster = Cluster(BOOTSTRAP, settings())
        scripted.reply(ApiKey.METADATA, with_code(3), with_code(5))
        assert (await cluster.topic(TOPIC)).name == TOPIC
        await cluster.close()
        other = Cluster(BOOTSTRAP, settings())
        scripted.reply(ApiKey.METADATA, with_code(TopicAuthorizationFailed.code))
        with pytest.raises(TopicAuthorizationFailed, match="topic 't'"):
            await other.topic(TOPIC)
        await other.close()

    scripted.run(work)
