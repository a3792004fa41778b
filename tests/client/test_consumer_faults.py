"""Whatever goes wrong on the way: a consumer gets every record once and in order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ottla.client import Consumer, FetchSettings
from ottla.errors import (
    CorruptMessage,
    FencedLeaderEpoch,
    FetchSessionIdNotFound,
    InvalidFetchSessionEpoch,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    UnknownLeaderEpoch,
    UnknownTopicId,
)
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from tests.client.scripted import (
    BOOTSTRAP,
    T0,
    T1,
    Answer,
    ScriptedBroker,
    ScriptedCluster,
    hang_up,
    refuse,
    settings,
    silence,
)


def usual(broker: ScriptedBroker, request: Any) -> Message:
    return broker.usual(request)


def move(broker: ScriptedBroker, request: FetchRequest) -> Message:
    """Both partitions get other leaders, and whoever is asked answers as it is then."""
    for log in broker.cluster.logs:
        log.move(leader=3 - log.leader)
    return broker.usual(request)


def move_in_silence(broker: ScriptedBroker, request: FetchRequest) -> Message:
    move(broker, request)
    return silence(broker, request)


def forget_session(broker: ScriptedBroker, request: FetchRequest) -> Message:
    return FetchResponse(error_code=FetchSessionIdNotFound.code, responses=[])


def disagree_about_session(broker: ScriptedBroker, request: FetchRequest) -> Message:
    return FetchResponse(error_code=InvalidFetchSessionEpoch.code, responses=[])


FAULTS: dict[str, Answer] = {
    "usual": usual,
    "hang up": hang_up,
    "silence": silence,
    "move": move,
    "move in silence": move_in_silence,
    "forget session": forget_session,
    "disagree about session": disagree_about_session,
    "not leader": refuse(NotLeaderOrFollower),
    "fenced": refuse(FencedLeaderEpoch),
    "unknown epoch": refuse(UnknownLeaderEpoch),
    "unknown id": refuse(UnknownTopicId),
    "corrupt": refuse(CorruptMessage),
    "not available": refuse(OffsetNotAvailable),
}


@hypothesis_settings(max_examples=100, deadline=None)
@given(
    faults=st.lists(st.sampled_from(sorted(FAULTS)), max_size=10),
    sizes=st.lists(st.integers(1, 4), min_size=2, max_size=8),
    more=st.integers(0, 3),
)
def test_every_record_comes_once_and_in_order(faults: list[str], sizes: list[int], more: int) -> None:
    cluster = ScriptedCluster(brokers=2, partitions=2)
    for number, size in enumerate(sizes):
        cluster.fill(number % 2, *(b"%d.%d" % (number, index) for index in range(size)))
    cluster.reply(ApiKey.FETCH, *(FAULTS[fault] for fault in faults))
    found: dict[int, list[bytes]] = {0: [], 1: []}

    async def take(consumer: Consumer, count: int) -> None:
        for _ in range(count):
            record = await consumer.next_record(120_000)
            assert record is not None, f"only {found} came"
            found[record.partition].append(record.value)

    async def work() -> None:
        fetching = FetchSettings(auto_offset_reset="none", max_partition_fetch_bytes=100)
        async with Consumer(BOOTSTRAP, settings=fetching, cluster=settings(request_timeout_ms=1_000)) as consumer:
            await consumer.assign([T0, T1])
            consumer.seek(T0, 0)
            consumer.seek(T1, 0)
            await take(consumer, sum(sizes))
            for number in range(more):
                cluster.fill(number % 2, b"more %d" % number)
                await take(consumer, 1)

    cluster.run(work)

    assert [found[0], found[1]] == [cluster.logs[0].values, cluster.logs[1].values]
