"""Whatever goes wrong on the way: what was sent is written once and in order, and deliveries tell their true places."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ottla.client import Producer, ProducerSettings
from ottla.errors import MessageTooLarge, NotEnoughReplicas, NotLeaderOrFollower
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.produce import LeaderIdAndEpoch, PartitionProduceResponse, ProduceRequest
from ottla.records.batch import RecordBatch
from tests.client.scripted import (
    BOOTSTRAP,
    TOPIC,
    Answer,
    ScriptedBroker,
    ScriptedCluster,
    batches_of,
    hang_up,
    produced,
    refuse,
    settings,
    silence,
    write_and_hang_up,
)


def usual(broker: ScriptedBroker, request: Any) -> Message:
    return broker.usual(request)


def move_and_refuse(broker: ScriptedBroker, request: ProduceRequest) -> Message:
    """Another broker leads from now on; the asked one only says that it does not."""
    broker.cluster.logs[0].move(leader=3 - broker.cluster.logs[0].leader)
    return refuse(NotLeaderOrFollower)(broker, request)


def move_and_name(broker: ScriptedBroker, request: ProduceRequest) -> Message:
    """The same, and it says who leads."""
    log = broker.cluster.logs[0]
    log.move(leader=3 - log.leader)
    leader = LeaderIdAndEpoch(leader_id=log.leader, leader_epoch=log.leader_epoch)
    return produced(request, PartitionProduceResponse(error_code=6, base_offset=-1, current_leader=leader))


def write_and_move(broker: ScriptedBroker, request: ProduceRequest) -> Message:
    """The batch is written, nobody hears of it, and another broker leads."""
    broker.usual(request)
    broker.cluster.logs[0].move(leader=3 - broker.cluster.logs[0].leader)
    return hang_up(broker, request)


def write_in_silence(broker: ScriptedBroker, request: ProduceRequest) -> Message:
    broker.usual(request)
    return silence(broker, request)


def refuse_as_too_large(broker: ScriptedBroker, request: ProduceRequest) -> Message:
    """Refuse batches of several records, but none that was let in before: a repeat is as large as what it repeats."""
    written = {place(RecordBatch(data)) for data in broker.cluster.logs[0].batches}
    if all(batch.count > 1 and place(batch) not in written for batch in batches_of(request)):
        return refuse(MessageTooLarge)(broker, request)
    return broker.usual(request)


def place(batch: RecordBatch) -> tuple[int, int, int]:
    return batch.producer_id, batch.producer_epoch, batch.base_sequence


FAULTS: dict[str, Answer] = {
    "usual": usual,
    "hang up": hang_up,
    "write and hang up": write_and_hang_up,
    "silence": silence,
    "write in silence": write_in_silence,
    "not enough replicas": refuse(NotEnoughReplicas),
    "move and refuse": move_and_refuse,
    "move and name": move_and_name,
    "write and move": write_and_move,
    "too large": refuse_as_too_large,
}


def send_through(faults: list[str], sizes: list[int], pauses: list[bool]) -> None:
    """Send batches of so many records while these faults happen, and hold the log to what was sent."""
    cluster = ScriptedCluster(brokers=2)
    values = [[b"%d.%d" % (number, index) for index in range(size)] for number, size in enumerate(sizes)]
    flat = [value for batch in values for value in batch]

    async def work() -> list[int]:
        producing = ProducerSettings(linger_ms=1)
        async with Producer(BOOTSTRAP, settings=producing, cluster=settings(request_timeout_ms=1_000)) as producer:
            await producer.partitions_of(TOPIC)
            cluster.reply(ApiKey.PRODUCE, *(FAULTS[fault] for fault in faults))
            deliveries = []
            for batch, must_pause in zip(values, pauses, strict=True):
                deliveries += [await producer.send(TOPIC, value, partition=0) for value in batch]
                await asyncio.sleep(0.5 if must_pause else 0.002)
            await producer.flush()
            return [(await delivery).offset for delivery in deliveries]

    offsets = cluster.run(work)

    assert cluster.logs[0].values == flat
    assert offsets == list(range(len(flat)))


@hypothesis_settings(max_examples=100, deadline=None)
@given(
    faults=st.lists(st.sampled_from(sorted(FAULTS)), max_size=8),
    batches=st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=6),
)
def test_nothing_is_lost_doubled_or_turned_around(faults: list[str], batches: list[tuple[int, bool]]) -> None:
    send_through(faults, [size for size, _ in batches], [pause for _, pause in batches])


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_twice_under_a_flight_of_batches(fault: str) -> None:
    send_through([fault, "usual", fault], [3, 2, 4, 1, 5], [False] * 5)
