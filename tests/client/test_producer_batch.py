"""Deliveries tell whoever asked."""

from __future__ import annotations

import asyncio

import pytest

from ottla.client import Delivery
from ottla.errors import (
    TopicAuthorizationFailed,
)
from ottla.protocol.apis import ApiKey
from tests.client.scripted import (
    TOPIC,
    ScriptedCluster,
    refuse,
)
from tests.client.scripted_producer import a_producer


def test_what_a_delivery_calls_hears_of_errors_and_does_not_hide_them_from_a_flush() -> None:
    cluster = ScriptedCluster()
    cluster.reply(ApiKey.PRODUCE, refuse(TopicAuthorizationFailed))

    async def work() -> None:
        async with a_producer() as producer:
            delivery = await producer.send(TOPIC, b"x")
            told: list[Delivery] = []
            delivery.add_done_callback(told.append)
            with pytest.raises(TopicAuthorizationFailed):
                await producer.flush()
            await asyncio.sleep(0)
            assert told == [delivery]
            delivery.add_done_callback(told.append)
            await asyncio.sleep(0)
            assert told == [delivery, delivery]

    cluster.run(work)
