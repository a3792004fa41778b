"""What a producer needs before it can send."""

from __future__ import annotations

import pytest

from ottla.errors import (
    ClusterAuthorizationFailed,
)
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
from tests.client.scripted import (
    TOPIC,
    ScriptedCluster,
)
from tests.client.scripted_producer import a_producer


def test_a_producer_that_may_not_have_an_id_says_why() -> None:
    cluster = ScriptedCluster()
    code = ClusterAuthorizationFailed.code
    cluster.reply(
        ApiKey.INIT_PRODUCER_ID,
        lambda broker, request: InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1),
    )

    async def work() -> None:
        async with a_producer() as producer:
            with pytest.raises(ClusterAuthorizationFailed):
                await producer.send_and_wait(TOPIC, b"a")

    cluster.run(work)
