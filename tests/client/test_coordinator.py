"""Coordinators that move: commits and look-ups find the new one, within the time of a call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.client import Consumer, OffsetAndMetadata
from ottla.errors import CoordinatorNotAvailable, GroupAuthorizationFailed, NotCoordinator
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from tests.client.scripted import BOOTSTRAP, T0, ScriptedBroker, ScriptedCluster, hang_up, refuse_to_find, settings


async def commit(cluster: ScriptedCluster, offset: int) -> None:
    async with Consumer(BOOTSTRAP, group="g", cluster=settings()) as consumer:
        await consumer.commit({T0: OffsetAndMetadata(offset, leader_epoch=4)})


def test_a_commit_follows_the_coordinator_to_another_broker() -> None:
    scripted = ScriptedCluster(brokers=2)

    async def work() -> None:
        async with Consumer(BOOTSTRAP, group="g", cluster=settings()) as consumer:
            await consumer.commit({T0: 1})
            scripted.coordinator = 2
            await consumer.commit({T0: 2})

    scripted.run(work)

    assert [node_id for node_id, _ in scripted.sent(OffsetCommitRequest)] == [1, 1, 2]
    assert scripted.committed == {0: (2, -1)}


def test_a_coordinator_that_dies_is_looked_for_anew() -> None:
    scripted = ScriptedCluster(brokers=2)
    scripted.coordinator = 2

    async def work() -> None:
        async with Consumer(BOOTSTRAP, group="g", cluster=settings()) as consumer:
            await consumer.commit({T0: 1})
            scripted.reply(ApiKey.OFFSET_COMMIT, hang_up)
            scripted.brokers[2].stop()
            scripted.coordinator = 1
            await consumer.commit({T0: 2})

    scripted.run(work)

    assert scripted.committed == {0: (2, -1)}


def test_a_coordinator_that_moved_to_another_address_is_found_there() -> None:
    """It has the same node id, so that only fresh metadata tells."""
    scripted = ScriptedCluster(brokers=2)
    scripted.coordinator = 2

    async def work() -> None:
        async with Consumer(BOOTSTRAP, group="g", cluster=settings()) as consumer:
            await consumer.commit({T0: 1})
            scripted.brokers[2].stop()
            scripted.brokers[2].address = "moved:1"
            scripted.stopped.clear()
            began = asyncio.get_running_loop().time()
            await consumer.commit({T0: 2})
            assert asyncio.get_running_loop().time() - began < 5

    scripted.run(work)

    assert scripted.attempts[-1] == "moved:1"


def test_a_coordinator_that_is_not_there_yet_is_waited_for() -> None:
    scripted = ScriptedCluster()
    scripted.reply(ApiKey.FIND_COORDINATOR, *[refuse_to_find(CoordinatorNotAvailable.code)] * 3)

    scripted.run(lambda: commit(scripted, 3))

    assert scripted.committed == {0: (3, 4)}


def test_waiting_for_a_coordinator_ends_with_the_time_of_a_call() -> None:
    """Kafka's default.api.timeout.ms, both where none is found and where each refuses."""
    scripted = ScriptedCluster(brokers=2)

    async def work() -> None:
        began = asyncio.get_running_loop().time()
        async with Consumer(BOOTSTRAP, group="g", cluster=settings()) as consumer:
            scripted.reply(ApiKey.FIND_COORDINATOR, *[refuse_to_find(CoordinatorNotAvailable.code)] * 1000)
            with pytest.raises(CoordinatorNotAvailable):
                await consumer.commit({T0: 1})
            assert asyncio.get_running_loop().time() - began == pytest.approx(60, abs=2)
            scripted.scripts.clear()
            scripted.reply(ApiKey.OFFSET_COMMIT, *[_not_me] * 1000)
            with pytest.raises(NotCoordinator):
                await consumer.commit({T0: 1})
            assert asyncio.get_running_loop().time() - began == pytest.approx(120, abs=4)

    scripted.run(work)


def _not_me(broker: ScriptedBroker, request: Any) -> Message:
    coordinator, broker.cluster.coordinator = broker.cluster.coordinator, -1
    answer = broker.usual(request)
    broker.cluster.coordinator = coordinator
    return answer


def test_a_group_that_is_forbidden_is_an_error_at_once() -> None:
    scripted = ScriptedCluster()
    scripted.reply(ApiKey.FIND_COORDINATOR, refuse_to_find(GroupAuthorizationFailed.code))

    async def work() -> None:
        with pytest.raises(GroupAuthorizationFailed):
            await commit(scripted, 1)

    scripted.run(work)


def test_a_commit_carries_the_leader_epoch_of_what_was_read() -> None:
    """So that whoever goes on from there finds out when the log was cut off meanwhile (KIP-320)."""
    scripted = ScriptedCluster()
    scripted.logs[0].leader_epoch = 6
    scripted.fill(0, b"a", b"b")

    async def work() -> None:
        async with Consumer(BOOTSTRAP, group="g", auto_offset_reset="earliest", cluster=settings()) as consumer:
            await consumer.assign([T0])
            await consumer.next_record(1000)
            await consumer.next_record(1000)
            await consumer.commit()

    scripted.run(work)

    assert scripted.committed == {0: (2, 6)}
