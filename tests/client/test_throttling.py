"""A broker that is asked too much says for how long it wants to be left in peace (KIP-219)."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from ottla.client import Consumer, Producer, ProducerSettings
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.client.scripted import BOOTSTRAP, T0, TOPIC, ScriptedBroker, ScriptedCluster, settings


class Watch:
    """Notes when requests of one kind come, and asks for peace in the answers to some of them."""

    def __init__(self, *throttle_times_ms: int) -> None:
        self.times: list[float] = []
        self._throttle_times_ms = list(throttle_times_ms)

    def __call__(self, broker: ScriptedBroker, request: Any) -> Message:
        self.times.append(asyncio.get_running_loop().time())
        answer = broker.usual(request)
        if self._throttle_times_ms:
            cast(ProduceResponse, answer).throttle_time_ms = self._throttle_times_ms.pop(0)
        return answer

    @property
    def pauses(self) -> list[int]:
        """Whole seconds between one request and the next."""
        return [int(later - earlier) for earlier, later in zip(self.times, self.times[1:], strict=False)]


async def produce(*values: bytes, acks: int | str = "all", request_timeout_ms: int = 30_000) -> None:
    producer = Producer(
        BOOTSTRAP,
        settings=ProducerSettings(linger_ms=0, max_in_flight=1, acks=acks),
        cluster=settings(request_timeout_ms=request_timeout_ms),
    )
    async with producer:
        for value in values:
            await producer.send_and_wait(TOPIC, value, partition=0)


def test_a_producer_waits_as_long_as_it_is_asked_to() -> None:
    cluster, watch = ScriptedCluster(), Watch(5_000, 2_000)
    cluster.reply(ApiKey.PRODUCE, watch, watch, watch, watch)
    cluster.run(lambda: produce(b"a", b"b", b"c", b"d"))
    assert watch.pauses == [5, 2, 0]
    assert cluster.logs[0].values == [b"a", b"b", b"c", b"d"]


def test_the_wait_is_no_overdue_answer() -> None:
    cluster, watch = ScriptedCluster(), Watch(60_000)
    cluster.reply(ApiKey.PRODUCE, watch, watch)
    cluster.run(lambda: produce(b"a", b"b", request_timeout_ms=1_000))
    assert watch.pauses == [60]
    assert len(cluster.sent(ProduceRequest)) == 2


def test_what_is_held_back_goes_out_before_the_end() -> None:
    """Without acks nobody is told, so that closing must not lose it."""
    cluster, watch = ScriptedCluster(), Watch(60_000)
    cluster.reply(ApiKey.METADATA, watch)
    cluster.run(lambda: produce(b"a", acks=0))
    assert len(cluster.sent(ProduceRequest)) == 1


def test_a_consumer_waits_too() -> None:
    cluster, watch = ScriptedCluster(), Watch(7_000)
    cluster.fill(0, b"first")
    cluster.reply(ApiKey.FETCH, watch, watch, watch)

    async def work() -> None:
        async with Consumer(BOOTSTRAP, auto_offset_reset="earliest", cluster=settings()) as consumer:
            await consumer.assign([T0])
            assert await consumer.next_batch(1_000) is not None
            cluster.fill(0, b"second")
            assert await consumer.next_batch(5_000) is None
            assert await consumer.next_batch(5_000) is not None

    cluster.run(work)
    assert watch.pauses[0] == 7


def test_a_broker_that_has_waited_itself_is_not_made_to_wait_twice() -> None:
    """Before 2.0 the answer came late, and told how late."""

    def old_versions(broker: ScriptedBroker, request: Any) -> Message:
        answer = cast(ApiVersionsResponse, broker.usual(request))
        for row in answer.api_keys:
            if row.api_key == ApiKey.API_VERSIONS:
                row.max_version = 1
        return answer

    cluster, watch = ScriptedCluster(), Watch(5_000)
    cluster.reply(ApiKey.API_VERSIONS, old_versions, old_versions, old_versions)
    cluster.reply(ApiKey.PRODUCE, watch, watch)
    cluster.run(lambda: produce(b"a", b"b"))
    assert watch.pauses == [0]
