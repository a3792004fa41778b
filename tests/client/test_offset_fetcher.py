"""What a consumer makes of logs that were cut off (KIP-320)."""

from __future__ import annotations

import asyncio

import pytest

from ottla.client import OffsetAndMetadata
from ottla.client.errors import LogTruncated
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tests.client.scripted import (
    T0,
    TOPIC,
    ScriptedBroker,
    ScriptedCluster,
    hang_up,
)
from tests.client.scripted_consumer import a_consumer, filled, values


def cut_to(cluster: ScriptedCluster, *kept: bytes, then: bytes) -> None:
    """Let broker 2 lead, whose log has only `kept` of the last epoch, and goes on with another record."""
    cluster.logs[0].batches.clear()
    cluster.fill(0, *kept)
    cluster.logs[0].move(leader=2)
    cluster.fill(0, then)


def test_a_log_that_was_cut_off_is_read_again_from_where_it_differs() -> None:
    cluster = filled()

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            assert await values(consumer, 2) == [b"a", b"b"]
            cut_to(cluster, b"a", then=b"B")
            assert await values(consumer, 1) == [b"B"], "without a question to the new leader it would be skipped"

    cluster.run(work)


def test_without_a_policy_a_log_that_was_cut_off_is_an_error_that_says_where() -> None:
    cluster = filled()

    async def work() -> None:
        async with a_consumer("none") as consumer:
            await consumer.assign([T0])
            consumer.seek(T0, 0)
            await values(consumer, 2)
            cut_to(cluster, b"a", then=b"B")
            with pytest.raises(LogTruncated, match=r"t-0: .* differs from offset 1 on, before position 2") as caught:
                await consumer.next_record(60_000)
            consumer.seek(T0, caught.value.divergent_offset)
            assert await values(consumer, 1) == [b"B"]

    cluster.run(work)


def test_a_leader_that_does_not_know_the_epoch_leads_to_the_default_position() -> None:
    cluster = filled()

    def cannot_tell(broker: ScriptedBroker, request: OffsetForLeaderEpochRequest) -> Message:
        rows = [EpochEndOffset(error_code=0, partition=0, leader_epoch=-1, end_offset=-1)]
        return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult(topic=TOPIC, partitions=rows)])

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            await values(consumer, 2)
            cluster.reply(ApiKey.OFFSET_FOR_LEADER_EPOCH, cannot_tell)
            cluster.logs[0].move(leader=2)
            assert await values(consumer, 2) == [b"a", b"b"]

    cluster.run(work)


def test_a_question_about_epochs_that_fails_is_asked_again_before_anything_is_fetched() -> None:
    cluster = filled()

    def fenced(broker: ScriptedBroker, request: OffsetForLeaderEpochRequest) -> Message:
        rows = [EpochEndOffset(error_code=74, partition=0)]
        return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult(topic=TOPIC, partitions=rows)])

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            await values(consumer, 2)
            cluster.reply(ApiKey.OFFSET_FOR_LEADER_EPOCH, fenced, hang_up)
            cut_to(cluster, b"a", then=b"B")
            assert await values(consumer, 1) == [b"B"]

    cluster.run(work)

    assert len(cluster.sent(OffsetForLeaderEpochRequest)) == 3


def test_a_position_with_a_leader_epoch_is_checked_before_the_first_fetch() -> None:
    """As committed ones are: the log may have been cut off while nobody read."""
    cluster = filled()
    cluster.logs[0].move(leader=2)
    cluster.fill(0, b"c")

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            consumer.seek(T0, OffsetAndMetadata(3, leader_epoch=0))
            assert await values(consumer, 1) == [b"c"], "epoch 0 ended at 2, so that record 2 is another one"

    cluster.run(work)


def test_what_is_not_drained_is_read_before_the_new_leader_is_asked() -> None:
    cluster = filled()

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            assert await values(consumer, 1) == [b"a"]
            cut_to(cluster, b"a", then=b"B")
            await asyncio.sleep(60)
            assert await values(consumer, 2) == [b"b", b"B"]

    cluster.run(work)
