"""What a consumer makes of positions that are gone, and when its application hears of errors that do not pass."""

from __future__ import annotations

import asyncio

import pytest

from ottla.client.errors import ConnectionLost
from ottla.client.fetch_errors import MAX_FAILURES
from ottla.errors import NotLeaderOrFollower, OffsetOutOfRange
from ottla.protocol.apis import ApiKey
from tests.client.scripted import T0, ScriptedCluster, refuse, silence
from tests.client.scripted_consumer import a_consumer, filled, values


@pytest.mark.parametrize(("reset", "first"), [("earliest", b"c"), ("latest", b"d")])
def test_a_position_that_retention_overtook_is_reset_as_the_settings_say(reset: str, first: bytes) -> None:
    cluster = filled(brokers=1)
    cluster.fill(0, b"c")
    del cluster.logs[0].batches[0]
    cluster.logs[0].start_offset = 2

    async def work() -> None:
        async with a_consumer(reset) as consumer:
            await consumer.assign([T0])
            consumer.seek(T0, 1)
            reading = asyncio.ensure_future(values(consumer, 1))
            await asyncio.sleep(5)
            cluster.fill(0, b"d")
            assert await reading == [first]

    cluster.run(work)


def test_without_a_policy_the_application_hears_of_it_once_and_seeks() -> None:
    cluster = filled(brokers=1)

    async def work() -> None:
        async with a_consumer("none") as consumer:
            await consumer.assign([T0])
            consumer.seek(T0, 7)
            await asyncio.sleep(30)
            with pytest.raises(OffsetOutOfRange, match="t-0"):
                await consumer.next_record(1000)
            assert await consumer.next_record(1) is None, "what was tried meanwhile is no second error"
            consumer.seek(T0, 1)
            assert await values(consumer, 1) == [b"b"]

    cluster.run(work)


@pytest.mark.parametrize("reset", ["latest", "none"])
def test_what_was_fetched_comes_before_what_is_missing(reset: str) -> None:
    """The next fetch finds the log cut off while the application still has records to read."""
    cluster = ScriptedCluster()
    cluster.fill(0, b"a", b"b")
    cluster.fill(0, b"c")

    async def work() -> None:
        async with a_consumer(reset) as consumer:
            await consumer.assign([T0])
            consumer.seek(T0, 0)
            assert await values(consumer, 1) == [b"a"]
            cluster.logs[0].batches.clear()
            cluster.logs[0].start_offset = 10
            await asyncio.sleep(60)
            assert await values(consumer, 2) == [b"b", b"c"]
            assert consumer.known_position(T0) == 3
            if reset == "none":
                with pytest.raises(OffsetOutOfRange):
                    await consumer.next_record(10_000)
            else:
                assert await consumer.next_record(10_000) is None
                assert consumer.known_position(T0) == 10

    cluster.run(work)


def test_a_broker_that_answers_nothing_is_told_of_when_a_call_would_be_over() -> None:
    """Ten failures of half a minute each are more than anybody waits for."""
    cluster = ScriptedCluster()
    cluster.fill(0, b"a")
    cluster.reply(ApiKey.FETCH, *[silence] * 20)

    async def work() -> None:
        async with a_consumer("earliest") as consumer:
            await consumer.assign([T0])
            started = asyncio.get_running_loop().time()
            with pytest.raises(ConnectionLost, match=r"t-0: .*no answer to Fetch"):
                await consumer.next_record(600_000)
            assert asyncio.get_running_loop().time() - started < 125

    cluster.run(work)


def test_errors_that_come_fast_are_told_of_after_ten() -> None:
    cluster = ScriptedCluster()
    cluster.fill(0, b"a")
    cluster.reply(ApiKey.FETCH, *[refuse(NotLeaderOrFollower)] * MAX_FAILURES)

    async def work() -> None:
        async with a_consumer("earliest") as consumer:
            await consumer.assign([T0])
            with pytest.raises(NotLeaderOrFollower):
                await consumer.next_record(600_000)
            assert await values(consumer, 1) == [b"a"]

    cluster.run(work)
