"""How batches form, become due, wait for memory and are settled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from traceback import walk_tb
from typing import Any

import pytest

from ottla.client.accumulator import Accumulator, AccumulatorSettings
from ottla.client.producer_batch import PartitionQueue, restamped
from ottla.errors import InvalidProducerEpoch, MessageTooLarge, NotLeaderOrFollower
from ottla.model import TopicPartition
from ottla.records.batch import RecordBatch
from ottla.records.compression import Codec

SETTINGS = AccumulatorSettings(
    batch_size=1000,
    linger_ms=60_000,
    buffer_memory=2000,
    max_request_size=5000,
    delivery_timeout_ms=120_000,
    codec=Codec.NONE,
    level=None,
)


def on_a_loop(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def a_queue() -> PartitionQueue:
    return PartitionQueue(TopicPartition("t", 0))


def test_records_share_a_batch_until_it_is_full() -> None:
    async def work() -> None:
        due: list[None] = []
        accumulator, queue = Accumulator(SETTINGS, lambda: due.append(None)), a_queue()
        for _ in range(3):
            assert accumulator.append(queue, 5, None, b"x" * 400, ()) is not None
        assert (len(queue.waiting), queue.length, len(due)) == (1, 2, 1)
        first = queue.take_due()
        assert first is not None
        assert RecordBatch(first.seal(7, 1, 0)).count == 2
        assert queue.take_due() is None, "the open batch still lingers"
        accumulator.close()

    on_a_loop(work())


def test_a_flush_makes_open_batches_due() -> None:
    async def work() -> None:
        accumulator, queue = Accumulator(SETTINGS, lambda: None), a_queue()
        accumulator.append(queue, 5, None, b"x", ())
        accumulator.flush()
        assert list(accumulator.due) == [queue]
        assert queue.take_due() is not None
        accumulator.close()

    on_a_loop(work())


def test_without_linger_a_batch_is_due_when_the_loop_turns() -> None:
    async def work() -> None:
        accumulator, queue = Accumulator(SETTINGS._replace(linger_ms=0), lambda: None), a_queue()
        accumulator.append(queue, 5, None, b"x", ())
        was_due = queue.has_due
        await asyncio.sleep(0)
        assert (was_due, queue.has_due) == (False, True)
        accumulator.append(queue, 5, None, b"y", ())
        batch = queue.take_due()
        assert batch is not None
        assert batch.count == 2, "a due batch fills on until it is taken"

    on_a_loop(work())


def test_memory_is_bounded_and_given_back() -> None:
    async def work() -> None:
        accumulator = Accumulator(SETTINGS, lambda: None)
        queues = [PartitionQueue(TopicPartition("t", number)) for number in range(3)]
        assert accumulator.append(queues[0], 5, None, b"x", ()) is not None
        assert accumulator.append(queues[1], 5, None, b"x", ()) is not None
        assert accumulator.append(queues[2], 5, None, b"x", ()) is None
        assert queues[0].has_due, "what is open is sent sooner when memory is short"

        room = asyncio.ensure_future(accumulator.room())
        await asyncio.sleep(0)
        batch = queues[0].take_due()
        assert batch is not None
        accumulator.settle(batch, 100)
        await room
        assert accumulator.append(queues[2], 5, None, b"x", ()) is not None
        accumulator.close()

    on_a_loop(work())


def test_a_record_larger_than_a_request_is_refused() -> None:
    async def work() -> None:
        accumulator = Accumulator(SETTINGS, lambda: None)
        with pytest.raises(MessageTooLarge, match="t-0"):
            accumulator.append(a_queue(), 5, None, b"x" * 5000, ())

    on_a_loop(work())


def test_of_what_is_refused_nothing_is_kept() -> None:
    async def work() -> None:
        accumulator = Accumulator(SETTINGS, lambda: None)
        accumulator.refuse(InvalidProducerEpoch())
        for _ in range(20):
            with pytest.raises(InvalidProducerEpoch) as refusal:
                accumulator.append(a_queue(), 5, None, b"x", ())
        assert len(list(walk_tb(refusal.value.__traceback__))) < 10

    on_a_loop(work())


def test_a_delivery_knows_its_records_place() -> None:
    async def work() -> None:
        accumulator, queue = Accumulator(SETTINGS, lambda: None), a_queue()
        accumulator.append(queue, 5, None, b"x", ())
        delivery = accumulator.append(queue, 6, None, b"y", ())
        assert delivery is not None
        assert not delivery.is_done
        assert queue.open is not None
        accumulator.settle(queue.open, 100)
        assert (await delivery) == ("t", 0, 101, 6)
        assert accumulator.delivered_count == 2
        accumulator.close()

    on_a_loop(work())


def test_a_failed_batch_raises_for_each_of_its_records() -> None:
    async def work() -> None:
        accumulator, queue = Accumulator(SETTINGS, lambda: None), a_queue()
        deliveries = [accumulator.append(queue, 5, None, b"x", ()) for _ in range(2)]
        assert queue.open is not None
        accumulator.settle(queue.open, NotLeaderOrFollower("gone"))
        for delivery in deliveries:
            assert delivery is not None
            with pytest.raises(NotLeaderOrFollower):
                await delivery
        assert accumulator.failed_count == 2
        accumulator.close()

    on_a_loop(work())


def test_a_batch_is_stamped_anew_for_another_producer_epoch() -> None:
    async def work() -> None:
        accumulator, queue = Accumulator(SETTINGS, lambda: None), a_queue()
        accumulator.append(queue, 5, b"k", b"v", ())
        assert queue.open is not None
        before = queue.open.seal(7, 0, 33)
        after = RecordBatch(restamped(before, 7, 1, 0))
        assert (after.producer_id, after.producer_epoch, after.base_sequence) == (7, 1, 0)
        assert after.is_crc_valid()
        assert after.decode()[0].value == b"v"
        accumulator.close()

    on_a_loop(work())
