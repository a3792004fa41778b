"""Producer ids and epochs as a broker sees them."""

from __future__ import annotations

from ottla.errors import (
    UnknownProducerId,
)
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.client.scripted import (
    TOPIC,
    ScriptedCluster,
    refuse,
)
from tests.client.scripted_producer import a_producer, sequences


def test_the_last_epoch_is_followed_by_a_new_producer_id() -> None:
    cluster = ScriptedCluster()
    cluster.first_producer_epoch = 2**15 - 1

    async def work() -> None:
        async with a_producer() as producer:
            await producer.send_and_wait(TOPIC, b"a")
            cluster.reply(ApiKey.PRODUCE, refuse(UnknownProducerId))
            await producer.send_and_wait(TOPIC, b"b")

    cluster.run(work)

    assert len(cluster.sent(InitProducerIdRequest)) == 2
    assert sequences(cluster.logs[0]) == [(1, 2**15 - 1, 0), (2, 0, 0)]
