"""What a consumer makes of leaders that change, logs that were cut off, and positions that are gone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.client import Consumer, FetchSettings, OffsetAndMetadata
from ottla.client.errors import LogTruncated
from ottla.errors import FencedLeaderEpoch, KafkaError, NotLeaderOrFollower, OffsetOutOfRange, UnknownLeaderEpoch
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse, LeaderIdAndEpoch, NodeEndpoint
from ottla.protocol.messages.list_offsets import ListOffsetsRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tests.client.scripted import (
    BOOTSTRAP,
    T0,
    TOPIC,
    ScriptedBroker,
    ScriptedCluster,
    hang_up,
    refuse,
    settings,
)


def a_consumer(reset: str = "earliest", **said: Any) -> Consumer:
    return Consumer(
        BOOTSTRAP,
        settings=FetchSettings(auto_offset_reset=reset, **said),
        cluster=settings(),
    )


async def values(consumer: Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        record = await consumer.next_record(60_000)
        assert record is not None, f"only {found} came"
        found.append(record.value)
    return found


def filled(brokers: int = 2) -> ScriptedCluster:
    cluster = ScriptedCluster(brokers=brokers)
    cluster.fill(0, b"a", b"b")
    return cluster


# ---- leaders that change


@pytest.mark.parametrize("error", [NotLeaderOrFollower, FencedLeaderEpoch, UnknownLeaderEpoch])
def test_a_leader_that_refuses_is_left_for_the_one_in_fresh_metadata(error: type[KafkaError]) -> None:
    cluster = filled()

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            assert await values(consumer, 2) == [b"a", b"b"]
            cluster.scripts[ApiKey.FETCH].append(refuse(error))
            cluster.logs[0].move(leader=2)
            cluster.fill(0, b"c")
            assert await values(consumer, 1) == [b"c"]

    cluster.run(work)

    assert cluster.sent(FetchRequest)[-1][0] == 2


def test_a_leader_that_the_answer_names_is_asked_without_metadata() -> None:
    """KIP-951."""
    cluster = filled()

    def move(broker: ScriptedBroker, request: FetchRequest) -> Message:
        cluster.logs[0].move(leader=2)
        cluster.fill(0, b"c")
        cluster.brokers[2].address = "elsewhere:1"
        answer = refuse(NotLeaderOrFollower)(broker, request)
        assert isinstance(answer, FetchResponse)
        answer.responses[0].partitions[0].current_leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=1)
        answer.node_endpoints.append(NodeEndpoint(node_id=2, host="elsewhere", port=1))
        return answer

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            await values(consumer, 1)
            asked = len(cluster.sent(MetadataRequest))
            cluster.reply(ApiKey.FETCH, move)
            assert await values(consumer, 2) == [b"b", b"c"]
            assert len(cluster.sent(MetadataRequest)) == asked

    cluster.run(work)


def test_a_broker_that_dies_hands_over_without_a_gap() -> None:
    cluster = filled()

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            await values(consumer, 2)
            cluster.logs[0].move(leader=2)
            cluster.fill(0, b"c")
            cluster.brokers[1].stop()
            assert await values(consumer, 1) == [b"c"]

    cluster.run(work)


def test_a_node_that_turns_up_elsewhere_is_followed() -> None:
    """What Kubernetes does to a pod: the same node id, another address."""
    cluster = filled(brokers=1)

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            await values(consumer, 2)
            cluster.brokers[1].stop()
            cluster.brokers[1].address = "moved:1"
            cluster.stopped.clear()
            cluster.fill(0, b"c")
            assert await values(consumer, 1) == [b"c"]

    cluster.run(work)

    assert "moved:1" in cluster.attempts


# ---- positions that are gone


@pytest.mark.parametrize(("reset", "first"), [("earliest", b"c"), ("latest", b"d")])
def test_a_position_that_retention_overtook_is_reset_as_the_settings_say(reset: str, first: bytes) -> None:
    cluster = filled(brokers=1)
    cluster.fill(0, b"c")
    del cluster.logs[0].batches[0]
    cluster.logs[0].start_offset = 2

    async def work() -> None:
        async with a_consumer(reset) as consumer:
            await consumer.assign([T0])
            consumer.seek(T0, 1)
            reading = asyncio.ensure_future(values(consumer, 1))
            await asyncio.sleep(5)
            cluster.fill(0, b"d")
            assert await reading == [first]

    cluster.run(work)


def test_without_a_policy_the_application_hears_of_it_once_and_seeks() -> None:
    cluster = filled(brokers=1)

    async def work() -> None:
        async with a_consumer("none") as consumer:
            await consumer.assign([T0])
            consumer.seek(T0, 7)
            await asyncio.sleep(30)
            with pytest.raises(OffsetOutOfRange, match="t-0"):
                await consumer.next_record(1000)
            assert await consumer.next_record(1) is None, "what was tried meanwhile is no second error"
            consumer.seek(T0, 1)
            assert await values(consumer, 1) == [b"b"]

    cluster.run(work)


@pytest.mark.parametrize("reset", ["latest", "none"])
def test_what_was_fetched_comes_before_what_is_missing(reset: str) -> None:
    """The next fetch finds the log cut off while the application still has records to read."""
    cluster = ScriptedCluster()
    cluster.fill(0, b"a", b"b")
    cluster.fill(0, b"c")

    async def work() -> None:
        async with a_consumer(reset) as consumer:
            await consumer.assign([T0])
            consumer.seek(T0, 0)
            assert await values(consumer, 1) == [b"a"]
            cluster.logs[0].batches.clear()
            cluster.logs[0].start_offset = 10
            await asyncio.sleep(60)
            assert await values(consumer, 2) == [b"b", b"c"]
            assert consumer.known_position(T0) == 3
            if reset == "none":
                with pytest.raises(OffsetOutOfRange):
                    await consumer.next_record(10_000)
            else:
                assert await consumer.next_record(10_000) is None
                assert consumer.known_position(T0) == 10

    cluster.run(work)


# ---- logs with damage


def test_a_batch_whose_offset_went_back_does_not_take_the_position_along() -> None:
    """No checksum covers a base offset: what stands before it would come again, and for ever where it is the last."""
    cluster = ScriptedCluster()
    for value in (b"a", b"b", b"damaged", b"behind"):
        cluster.fill(0, value)
    log = cluster.logs[0]
    behind = log.batches.pop()
    log.batches[2] = bytes(8) + log.batches[2][8:]

    def once(broker: ScriptedBroker, request: FetchRequest) -> Message:
        answer = broker.usual(request)
        log.batches.append(behind)
        return answer

    cluster.reply(ApiKey.FETCH, once)

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            assert await values(consumer, 3) == [b"a", b"b", b"behind"]

    cluster.run(work)


# ---- logs that were cut off


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


# ---- followers


def go_to_the_follower(broker: ScriptedBroker, request: FetchRequest) -> Message:
    answer = broker.usual(request)
    assert isinstance(answer, FetchResponse)
    answer.responses[0].partitions[0].records = b""
    answer.responses[0].partitions[0].preferred_read_replica = 2
    return answer


def test_the_follower_that_a_leader_names_is_read_until_it_fails() -> None:
    """KIP-392: with a rack, a leader may answer nothing but where to read."""
    cluster = filled()
    cluster.followed_by[2].add(0)

    async def work() -> None:
        async with a_consumer(client_rack="here") as consumer:
            await consumer.assign([T0])
            cluster.reply(ApiKey.FETCH, go_to_the_follower)
            assert await values(consumer, 2) == [b"a", b"b"]
            assert [node_id for node_id, _ in cluster.sent(FetchRequest)][:2] == [1, 2]
            cluster.followed_by[2].clear()
            cluster.fill(0, b"c")
            assert await values(consumer, 1) == [b"c"]
            assert cluster.sent(FetchRequest)[-1][0] == 1

    cluster.run(work)


def test_a_follower_that_lags_does_not_reset_the_position() -> None:
    cluster = filled()
    cluster.followed_by[2].add(0)

    async def work() -> None:
        async with a_consumer() as consumer:
            await consumer.assign([T0])
            consumer.seek(T0, 1)
            cluster.reply(ApiKey.FETCH, go_to_the_follower, refuse(OffsetOutOfRange))
            assert await values(consumer, 1) == [b"b"]

    cluster.run(work)

    assert len(cluster.sent(ListOffsetsRequest)) == 0, "nobody asked where to begin"


# ---- offsets


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
