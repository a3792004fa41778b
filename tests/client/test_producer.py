"""What a producer takes and what it does not."""

from __future__ import annotations

import pytest

from tests.client.scripted import TOPIC, ScriptedCluster
from tests.client.scripted_producer import a_producer


@pytest.mark.parametrize("timestamp_ms", [-1, -(2**63), 2**63])
def test_a_time_that_no_record_can_have_is_refused_before_anything_is_sent(timestamp_ms: int) -> None:
    """As Kafka's ProducerRecord does; once in a batch it would keep the others from being written."""
    cluster = ScriptedCluster()

    async def work() -> None:
        async with a_producer() as producer:
            with pytest.raises(ValueError, match="timestamp_ms"):
                await producer.send(TOPIC, b"never", timestamp_ms=timestamp_ms)
            for possible in (0, 2**63 - 1):
                await producer.send(TOPIC, b"once", timestamp_ms=possible)

    cluster.run(work)

    assert cluster.logs[0].values == [b"once", b"once"]
