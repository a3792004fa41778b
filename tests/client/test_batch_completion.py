"""What becomes of batches that were refused, lost or waited too long: order, single writing, and who hears of what."""

from __future__ import annotations

import asyncio

import pytest

from ottla.client import ProducerSettings
from ottla.client.errors import DeliveryExpired, RefusedWithBatch
from ottla.errors import (
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    MessageTooLarge,
    NotEnoughReplicas,
    OutOfOrderSequenceNumber,
    TopicAuthorizationFailed,
    UnknownProducerId,
)
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
)
from ottla.records.batch import RecordBatch
from tests.client.scripted import (
    TOPIC,
    ScriptedBroker,
    ScriptedCluster,
    batches_of,
    hang_up,
    produced,
    refuse,
    silence,
    write_and_hang_up,
)
from tests.client.scripted_producer import a_producer, send_each, sequences

# ---- sequences


def test_a_lost_answer_is_asked_for_again_and_written_once() -> None:
    cluster = ScriptedCluster()
    cluster.reply(ApiKey.PRODUCE, write_and_hang_up, hang_up)

    async def work() -> None:
        async with a_producer() as producer:
            deliveries = await send_each(producer, b"a", b"b")
            assert [(await delivery).offset for delivery in deliveries] == [0, 1]

    cluster.run(work)

    assert cluster.logs[0].values == [b"a", b"b"]


def test_batches_behind_one_that_failed_wait_for_it_without_a_new_epoch() -> None:
    """The broker calls them out of order; they are not, once the first is there."""
    cluster = ScriptedCluster()
    cluster.reply(ApiKey.PRODUCE, refuse(NotEnoughReplicas))

    async def work() -> None:
        async with a_producer() as producer:
            await asyncio.gather(*[await producer.send(TOPIC, bytes(50_000), partition=0) for _ in range(5)])

    cluster.run(work)

    assert sequences(cluster.logs[0]) == [(1, 0, number) for number in range(5)]


@pytest.mark.parametrize("error", [OutOfOrderSequenceNumber, UnknownProducerId, InvalidProducerEpoch])
def test_a_broker_with_another_idea_of_the_sequence_gets_a_new_epoch(error: type[KafkaError]) -> None:
    cluster = ScriptedCluster()

    async def work() -> None:
        async with a_producer() as producer:
            await producer.send_and_wait(TOPIC, b"a")
            cluster.reply(ApiKey.PRODUCE, refuse(error))
            await producer.send_and_wait(TOPIC, b"b")
            await producer.send_and_wait(TOPIC, b"c")

    cluster.run(work)

    assert cluster.logs[0].values == [b"a", b"b", b"c"]
    assert sequences(cluster.logs[0]) == [(1, 0, 0), (1, 1, 0), (1, 1, 1)]


def test_an_epoch_that_stays_fenced_is_given_up_while_a_gap_is_tried_until_the_delivery_timeout() -> None:
    cluster = ScriptedCluster()
    cluster.reply(ApiKey.PRODUCE, *[refuse(InvalidProducerEpoch)] * 4, *[refuse(UnknownProducerId)] * 10)

    async def work() -> None:
        async with a_producer() as producer:
            with pytest.raises(InvalidProducerEpoch, match="t-0"):
                await producer.send_and_wait(TOPIC, b"fenced")
            await producer.send_and_wait(TOPIC, b"a")

    cluster.run(work)

    assert cluster.logs[0].values == [b"a"]


def test_partitions_without_trouble_keep_their_epoch() -> None:
    cluster = ScriptedCluster(partitions=2)

    async def work() -> None:
        async with a_producer() as producer:
            for partition in (0, 1):
                await producer.send_and_wait(TOPIC, b"a", partition=partition)
            cluster.reply(ApiKey.PRODUCE, refuse(UnknownProducerId))
            for partition in (0, 1):
                await producer.send_and_wait(TOPIC, b"b", partition=partition)

    cluster.run(work)

    assert sequences(cluster.logs[0]) == [(1, 0, 0), (1, 1, 0)]
    assert sequences(cluster.logs[1]) == [(1, 0, 0), (1, 0, 1)]


# ---- time


def test_what_nobody_takes_ends_with_the_delivery_timeout() -> None:
    cluster = ScriptedCluster()

    async def work() -> None:
        async with a_producer() as producer:
            await producer.partitions_of(TOPIC)
            cluster.brokers[1].stop()
            began = asyncio.get_running_loop().time()
            with pytest.raises(DeliveryExpired, match="t-0: not delivered within delivery"):
                await producer.send_and_wait(TOPIC, b"a")
            assert asyncio.get_running_loop().time() - began == pytest.approx(120, abs=1)
            cluster.stopped.clear()
            await producer.send_and_wait(TOPIC, b"b")

    cluster.run(work)

    assert cluster.logs[0].values == [b"b"]


def test_what_is_in_flight_ends_with_the_delivery_timeout_too() -> None:
    """The answer may still come: what is sent after it goes out under a sequence that fits either way."""
    cluster = ScriptedCluster()

    async def work() -> None:
        async with a_producer(delivery_timeout_ms=5_000, request_timeout_ms=20_000) as producer:
            await producer.send_and_wait(TOPIC, b"a")
            cluster.reply(ApiKey.PRODUCE, silence)
            began = asyncio.get_running_loop().time()
            with pytest.raises(DeliveryExpired):
                await producer.send_and_wait(TOPIC, b"lost")
            assert asyncio.get_running_loop().time() - began == pytest.approx(5, abs=0.1)
            await asyncio.sleep(20)  # the connection is given up
            await producer.send_and_wait(TOPIC, b"b")

    cluster.run(work)

    assert cluster.logs[0].values == [b"a", b"b"]
    assert sequences(cluster.logs[0]) == [(1, 0, 0), (1, 1, 0)]


def test_records_that_expire_between_two_attempts_leave_no_gap() -> None:
    cluster = ScriptedCluster()
    cluster.reply(ApiKey.PRODUCE, *[refuse(NotEnoughReplicas)] * 6)

    async def work() -> None:
        async with a_producer(delivery_timeout_ms=2_000) as producer:
            with pytest.raises(DeliveryExpired):
                await producer.send_and_wait(TOPIC, b"expires")
            cluster.scripts[ApiKey.PRODUCE].clear()
            asked = len(cluster.sent(ProduceRequest))
            await producer.send_and_wait(TOPIC, b"a")
            assert len(cluster.sent(ProduceRequest)) == asked + 1, "not refused first for a sequence that begins at 1"

    cluster.run(work)

    assert sequences(cluster.logs[0]) == [(1, 1, 0)]


# ---- batches that are refused


def test_a_batch_that_is_too_large_is_sent_as_smaller_ones_and_every_record_knows_its_place() -> None:
    cluster = ScriptedCluster()

    def at_most_three(broker: ScriptedBroker, request: ProduceRequest) -> Message:
        cluster.reply(ApiKey.PRODUCE, at_most_three)
        if any(batch.count > 3 for batch in batches_of(request)):
            return refuse(MessageTooLarge)(broker, request)
        return broker.usual(request)

    cluster.reply(ApiKey.PRODUCE, at_most_three)
    values = [b"%d" % number for number in range(10)]

    async def work() -> None:
        async with a_producer(linger_ms=10) as producer:
            deliveries = [
                await producer.send(TOPIC, value, key=b"k", headers=[("h", b"v")], timestamp_ms=5) for value in values
            ]
            early = asyncio.ensure_future(asyncio.wait_for(deliveries[7], 100))
            told: list[int] = []
            for delivery in deliveries:
                delivery.add_done_callback(lambda done: told.append(done.result().offset))
            await producer.flush()
            await asyncio.sleep(0)
            assert sorted(told) == list(range(10))
            assert [(await delivery).offset for delivery in deliveries] == list(range(10))
            assert (await early).offset == 7
            assert producer.delivered_count == 10
            assert producer._accumulator.free_bytes == ProducerSettings().buffer_memory

    cluster.run(work)

    log = cluster.logs[0]
    assert log.values == values
    assert [RecordBatch(data).count for data in log.batches] == [3, 2, 3, 2]
    assert sequences(log) == [(1, 0, 0), (1, 0, 3), (1, 0, 5), (1, 0, 8)]
    record = RecordBatch(log.batches[-1]).decode()[-1]
    assert (record.key, record.headers, record.timestamp) == (b"k", (("h", b"v"),), 5)


@pytest.mark.parametrize("is_idempotent", [True, False])
def test_a_single_record_that_is_too_large_fails_alone(is_idempotent: bool) -> None:
    cluster = ScriptedCluster()

    def no_large(broker: ScriptedBroker, request: ProduceRequest) -> Message:
        cluster.reply(ApiKey.PRODUCE, no_large)
        if any(batch.size_in_bytes > 500 for batch in batches_of(request)):
            return refuse(MessageTooLarge)(broker, request)
        return broker.usual(request)

    cluster.reply(ApiKey.PRODUCE, no_large)

    async def work() -> None:
        async with a_producer(linger_ms=10, enable_idempotence=is_idempotent) as producer:
            values = [b"a", b"b", bytes(1000), b"c"]
            deliveries = [await producer.send(TOPIC, value) for value in values]
            found = await asyncio.gather(*deliveries, return_exceptions=True)
            assert [type(one).__name__ for one in found] == ["RecordMetadata"] * 2 + [
                "MessageTooLarge",
                "RecordMetadata",
            ]

    cluster.run(work)

    assert cluster.logs[0].values == [b"a", b"b", b"c"]


def test_the_error_of_one_record_is_its_own_and_the_others_hear_that_they_were_with_it() -> None:
    """KIP-467; like Kafka's producer, nothing of the batch is sent again."""
    cluster = ScriptedCluster()

    def refuse_second(broker: ScriptedBroker, request: ProduceRequest) -> Message:
        rows = [BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="too old")]
        return produced(request, PartitionProduceResponse(error_code=32, base_offset=-1, record_errors=rows))

    async def work() -> None:
        async with a_producer(linger_ms=10) as producer:
            cluster.reply(ApiKey.PRODUCE, refuse_second)
            deliveries = [await producer.send(TOPIC, value) for value in (b"a", b"b", b"c")]
            with pytest.raises(InvalidTimestamp, match="t-0: too old"):
                await deliveries[1]
            for delivery in (deliveries[0], deliveries[2]):
                with pytest.raises(RefusedWithBatch, match="1 of the 3 in its batch"):
                    await delivery
            cluster.reply(ApiKey.PRODUCE, refuse_second)
            await producer.send(TOPIC, b"a")
            await producer.send(TOPIC, b"b")
            with pytest.raises(InvalidTimestamp):
                await producer.flush()
            await producer.send_and_wait(TOPIC, b"d")

    cluster.run(work)

    assert cluster.logs[0].values == [b"d"]


def test_errors_of_several_records_are_told_by_their_texts() -> None:
    """One code for all of them cannot be right for each."""
    cluster = ScriptedCluster()
    rows = [
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=f"wrong {index}") for index in (0, 1)
    ]
    cluster.reply(
        ApiKey.PRODUCE,
        lambda broker, request: produced(
            request, PartitionProduceResponse(error_code=32, base_offset=-1, record_errors=rows)
        ),
    )

    async def work() -> None:
        async with a_producer(linger_ms=10) as producer:
            deliveries = [await producer.send(TOPIC, value) for value in (b"a", b"b")]
            for index, delivery in enumerate(deliveries):
                with pytest.raises(InvalidRecord, match=f"wrong {index}") as caught:
                    await delivery
                assert not isinstance(caught.value, RefusedWithBatch)

    cluster.run(work)


def test_what_waiting_does_not_mend_fails_at_once() -> None:
    cluster = ScriptedCluster()
    cluster.reply(ApiKey.PRODUCE, refuse(TopicAuthorizationFailed))

    async def work() -> None:
        async with a_producer() as producer:
            with pytest.raises(TopicAuthorizationFailed, match="t-0"):
                await producer.send_and_wait(TOPIC, b"a")
            await producer.send_and_wait(TOPIC, b"b")

    cluster.run(work)

    assert len(cluster.sent(ProduceRequest)) == 2
