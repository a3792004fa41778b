"""Offsets by time, asked of leaders that change."""

from __future__ import annotations

import asyncio

from tests.client.scripted import (
    T0,
    TOPIC,
)
from tests.client.scripted_consumer import a_consumer, filled


def test_offsets_are_asked_of_the_new_leader_until_it_is_known() -> None:
    cluster = filled()

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.partitions_of(TOPIC)
            cluster.logs[0].leader = 9  # every broker refuses for a while
            asking = asyncio.ensure_future(consumer.end_offsets([T0]))
            await asyncio.sleep(10)
            assert not asking.done()
            cluster.logs[0].leader = 2
            assert await asking == {T0: 2}

    cluster.run(work)
