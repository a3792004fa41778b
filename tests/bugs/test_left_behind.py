"""What is gone leaves nothing behind in memory: topics, groups, clients, sessions."""

from __future__ import annotations

import asyncio
import gc
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ottla.dialects.kafka.router import Router
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.fetch import ForgottenTopic
from ottla.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.testing.clock import ManualClock
from tests.group_wire import GROUP_SETTINGS, Member, commit, find_coordinator, form_group
from tests.wire import Peer, Room, batch, fetch_request, open_room

ROUNDS = {"topics": 100, "many topics at once": 50, "groups": 300, "clients": 1_000, "producers": 1_000}
AT_ONCE = 20
"""Topics of one request, so that a thousand come and go."""
FEW = 60
"""So many more there may be of a kind: handlers that were not asked for before, what lies in caches."""
REQUESTS = 1_000
STAYS = {"__cluster_metadata-0", "__consumer_offsets-0", "stays-0"}
SETTINGS = {
    **GROUP_SETTINGS,
    "file.delete.delay.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "max.incremental.fetch.session.cache.slots": "5",
}


async def pass_time(room: Room, seconds: int = 5) -> None:
    """Let time pass; what the broker does about it on threads is done when it answers a few times."""
    room.running.advance(seconds)
    for _ in range(3):
        await room.bounds("stays")


def count_objects() -> Counter[str]:
    """Return how many objects of ours there are, by class; containers that they own grow with them."""
    gc.collect()
    kinds = (type(one) for one in gc.get_objects())
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    return Counter(name for name in names if name.startswith("ottla."))


def directories(of: Path) -> set[str]:
    return {path.name for path in of.iterdir() if path.is_dir()}


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def topic_comes_and_goes(room: Room, number: int) -> None:
    name = f"t{number}"
    await room.create(name, partitions=2, configs={"retention.ms": "1000000"})
    await room.append(name, b"v", producer=(number, 0, 0), timestamps=[room.wall_ms()])
    await room.read_all(name)
    await room.ask(fetch_request({name: {0: 0}}, session=(0, 0)), 12)
    await commit(room.peer, "g", name, 0, 1)
    answer = await room.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000), 6)
    assert answer.responses[0].error_code == 0
    await pass_time(room)


async def topics_come_and_go_at_once(room: Room, number: int) -> None:
    names = [f"t{number}-{one}" for one in range(AT_ONCE)]
    wanted = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    created = await room.ask(CreateTopicsRequest(topics=wanted, timeout_ms=1000), 7)
    assert {row.error_code for row in created.topics} == {0}
    gone = [DeleteTopicState(name=name) for name in names]
    deleted = await room.ask(DeleteTopicsRequest(topics=gone, timeout_ms=1000), 6)
    assert {row.error_code for row in deleted.responses} == {0}
    await pass_time(room)


async def group_comes_and_goes(room: Room, number: int) -> None:
    member = await Member.connect(room, group_id=f"g{number}")
    await form_group(room, member)
    assert await member.leave() == 0
    answer = await room.ask(DeleteGroupsRequest(groups_names=[f"g{number}"]), 2)
    assert [row.error_code for row in answer.results] == [0]
    await member.peer.close()
    await pass_time(room)


async def client_comes_and_goes(room: Room, number: int) -> None:
    peer = await Peer.connect(room.address)
    await peer.ask(MetadataRequest(topics=[]), 12, client_id=f"client-{number}")
    await peer.ask(GetTelemetrySubscriptionsRequest(client_instance_id=number.to_bytes(16, "big")), 0)
    session = await peer.ask(fetch_request({"stays": {0: 0}}, session=(0, 0)), 12, client_id=f"client-{number}")
    forgotten = fetch_request({}, session=(session.session_id, 1))
    forgotten.forgotten_topics_data = [ForgottenTopic(topic="stays", partitions=[0])]
    await peer.ask(forgotten, 12, client_id=f"client-{number}")
    await peer.close()


async def producer_comes_and_goes(room: Room, number: int) -> None:
    """It writes once and is never seen again; a day later nobody remembers it."""
    row = await room.produce("stays", batch(b"v", producer=(number, 0, 0), timestamps=[room.wall_ms()]))
    assert row.error_code == 0
    await pass_time(room, 100)


COMINGS_AND_GOINGS: dict[str, Callable[[Room, int], Awaitable[None]]] = {
    "topics": topic_comes_and_goes,
    "many topics at once": topics_come_and_go_at_once,
    "groups": group_comes_and_goes,
    "clients": client_comes_and_goes,
    "producers": producer_comes_and_goes,
}


@pytest.mark.parametrize("what", COMINGS_AND_GOINGS)
def test_what_is_gone_leaves_nothing_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """KAFKA-8392 "Fix old metrics leakage", KAFKA-5544 "LastStableOffsetLag metric should be removed when partition is
    deleted", KAFKA-7660 (sensors that stay): what lives long among things that do not grew until it died."""
    Router().served()  # imports what is not asked for below, which would count as well
    monkeypatch.setattr("ottla.broker.telemetry.REMEMBERED_CLIENTS", 10)
    come_and_go = COMINGS_AND_GOINGS[what]
    settings = {**SETTINGS, "log.dirs": str(tmp_path), "producer.id.expiration.ms": "3000"}

    async def scenario() -> None:
        async with open_room(settings, clock=ManualClock()) as room:
            await room.create("stays")
            await find_coordinator(room)
            for number in range(20):
                await come_and_go(room, number)
            before, files = count_objects(), open_files()
            for number in range(ROUNDS[what]):
                await come_and_go(room, 1_000 + number)
            grown = {kind: more for kind, more in (count_objects() - before).items() if more > FEW}
            assert grown == {}
            assert open_files() <= files + FEW
            for _ in range(REQUESTS):  # while a thread removes the last ones
                if directories(tmp_path) == STAYS:
                    break
                await pass_time(room)
            assert directories(tmp_path) == STAYS

    asyncio.run(scenario())
