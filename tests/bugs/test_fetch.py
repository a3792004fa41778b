"""Fetch: which bytes a reader gets, when, and what a session remembers."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from pathlib import Path
from typing import cast

import pytest

from ottla.model import EARLIEST_TIMESTAMP
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.records.batch import split_batches
from ottla.records.compression import Codec
from tests.wire import Room, batch, batches_of, fetch_request, on_broker, open_room, produce_request

OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
KAFKA_STORAGE_ERROR = 56
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
KIB = 1 << 10
MIB = 1 << 20


def sizes(answer: FetchResponse) -> dict[int, int]:
    """Bytes of records that an answer has, by partition."""
    rows = [row for topic in answer.responses for row in topic.partitions]
    return {row.partition_index: len(cast(memoryview, row.records)) for row in rows}


@on_broker()
async def test_the_limit_of_an_answer_counts_all_partitions(room: Room) -> None:
    """redpanda-data/redpanda#3420 "kafka: limit bytes in many-partition fetch", "apply max bytes limit when reading
    batches from cache"; franz-go "fix missing reset of `nbytes` variable while fetching": two hundred times the
    limit, or always nothing for the later partitions."""
    count, size = 100, 100 * KIB
    await room.create("t", partitions=count)
    records = batch(bytes(size))
    await room.ask(produce_request({"t": dict.fromkeys(range(count), records)}), 12)
    positions = dict.fromkeys(range(count), 0)
    for _ in range(2):
        answer = await room.ask(fetch_request({"t": positions}, max_bytes=MIB), 12)
        got = sizes(answer)
        assert 9 * size < sum(got.values()) <= MIB
    answer = await room.ask(fetch_request({"t": positions}, max_bytes=1), 12)
    assert sum(sizes(answer).values()) == len(records)


@on_broker()
async def test_no_partition_of_a_session_starves(room: Room) -> None:
    """redpanda "fixed starvation bug in handling fetch session partition" (KIP-227): where the budget is one batch, the
    first partition had it every time."""
    await room.create("t", partitions=3)
    for _ in range(20):
        await room.ask(produce_request({"t": {p: batch(bytes(KIB)) for p in range(3)}}), 12)
    positions = dict.fromkeys(range(3), 0)
    answer = await room.ask(fetch_request({"t": positions}, max_bytes=KIB, session=(0, 0)), 12)
    served = dict.fromkeys(range(3), 0)
    for epoch in range(1, 31):
        for row in (row for topic in answer.responses for row in topic.partitions):
            if row.records:
                served[row.partition_index] += 1
                positions[row.partition_index] = list(split_batches(row.records))[-1].next_offset
        request = fetch_request({"t": positions}, max_bytes=KIB, session=(answer.session_id, epoch))
        answer = await room.ask(request, 12)

    assert min(served.values()) >= 9, served


@on_broker()
async def test_offsets_outside_the_log_are_told(room: Room) -> None:
    """redpanda-data/redpanda#4181 "validate fetch offset against high watermark", #8869 (empty partitions), "fixed
    validating fetch offset": success beyond the end, or an error on an empty partition."""
    await room.create("t")
    for number in range(10):
        await room.append("t", b"%d" % number)
    await room.delete_records("t", 5)
    codes = {offset: (await room.fetch("t", offset)).error_code for offset in (-1, 0, 4, 5, 9, 10, 11, 2**62)}
    await room.create("new")
    fresh = await room.fetch("new", 0)
    beyond = await room.fetch("t", 11)

    out = OFFSET_OUT_OF_RANGE
    assert codes == {-1: out, 0: out, 4: out, 5: 0, 9: 0, 10: 0, 11: out, 2**62: out}
    assert (fresh.error_code, fresh.high_watermark, fresh.records) == (0, 0, b"")
    assert (beyond.high_watermark, beyond.records) == (-1, b"")


@on_broker()
async def test_a_long_poll_ends_with_the_first_record(room: Room) -> None:
    """nisshi-io/nisshi#672, #674 "propagate max_wait on fetch", KAFKA-13767: an empty answer at once, or the whole
    wait."""
    await room.create("t", partitions=2)
    waiting = room.peer.send(fetch_request({"t": {0: 0, 1: 0}}, max_wait_ms=8000), 12)
    other = await room.connect()
    await other.ask(MetadataRequest(topics=[]), 12)  # the fetch waits by then, or will find the record
    begin = time.monotonic()
    await other.ask(produce_request({"t": {1: batch(b"news")}}), 12)
    answer = await room.peer.receive_answer(FetchResponse, 12, waiting)

    assert time.monotonic() - begin < 4
    assert sizes(answer) == {0: 0, 1: len(batch(b"news"))}


@on_broker()
async def test_a_long_poll_ends_in_time_with_what_there_is(room: Room) -> None:
    """nisshi-io/nisshi#672, KAFKA-13767: ten bytes where a gigabyte was wanted come after the wait, and come."""
    await room.create("t")
    await room.append("t", b"little")
    begin = time.monotonic()
    answer = await room.ask(fetch_request({"t": {0: 0}}, max_wait_ms=300, min_bytes=10**9), 12)

    assert 0.25 < time.monotonic() - begin < 4
    assert sizes(answer) == {0: len(batch(b"little"))}


@on_broker()
async def test_an_error_is_not_waited_with(room: Room) -> None:
    """KAFKA-13767 (fetch waited although it could return). Partitions that are not there are told beside the others."""
    await room.create("t", partitions=2)
    begin = time.monotonic()
    answer = await room.ask(fetch_request({"t": {0: 0, 1: 99}}, max_wait_ms=8000), 12)
    only_gone = await room.ask(fetch_request({"t": {7: 0}}, max_wait_ms=8000), 12)
    assert time.monotonic() - begin < 4
    begin = time.monotonic()
    gone = await room.ask(fetch_request({"t": {0: 0, 7: 0}}, max_wait_ms=300), 12)

    assert 0.25 < time.monotonic() - begin < 4
    assert [row.error_code for row in only_gone.responses[0].partitions] == [UNKNOWN_TOPIC_OR_PARTITION]
    assert [row.error_code for row in answer.responses[0].partitions] == [0, OFFSET_OUT_OF_RANGE]
    assert {row.error_code for row in gone.responses[0].partitions} == {0, UNKNOWN_TOPIC_OR_PARTITION}


@on_broker()
async def test_idle_readers_cost_nothing_while_they_wait(room: Room) -> None:
    """KAFKA-13767, nisshi-io/nisshi#672: two hundred idle consumers kept a core busy."""
    await room.create("t")
    readers = [await room.connect() for _ in range(100)]
    for reader in readers:
        reader.send(fetch_request({"t": {0: 0}}, max_wait_ms=1500), 12)
    await room.ask(MetadataRequest(topics=[]), 12)
    begin = time.process_time()
    answers = [await reader.receive_answer(FetchResponse, 12, 1) for reader in readers]

    assert time.process_time() - begin < 0.5
    assert all(sizes(answer) == {0: 0} for answer in answers)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@on_broker()
async def test_a_batch_comes_whole_from_any_of_its_offsets(room: Room, codec: Codec) -> None:
    """KAFKA-5360 "Down-converted uncompressed batches should respect fetch offset", nisshi "header_fetch.sql used the
    requested fetch offset for the first record": wrong deltas, or the headers of another record."""
    await room.create("t")
    await room.append("t", *[b"v%d" % n for n in range(10)], codec=codec)
    await room.append("t", b"next")
    for offset in (0, 7, 9):
        (first, second) = batches_of(await room.fetch("t", offset))
        assert (first.base_offset, first.last_offset, second.base_offset) == (0, 9, 10)
        assert [record.value for record in first.records()] == [b"v%d" % n for n in range(10)]


async def incremental(
    room: Room, session: tuple[int, int], *, forget: dict[str, list[int]] | None = None
) -> FetchResponse:
    request = fetch_request({}, session=session)
    request.forgotten_topics_data = [ForgottenTopic(topic=t, partitions=p) for t, p in (forget or {}).items()]
    answer: FetchResponse = await room.ask(request, 12)
    return answer


@on_broker()
async def test_a_session_tells_only_news(room: Room) -> None:
    """redpanda-data/redpanda#1123 "fixed incorrect handling of empty incremental fetch requests", KAFKA-17102
    "FetchRequest#forgottenTopics would return incorrect data"."""
    await room.create("t", partitions=3)
    full = await room.ask(fetch_request({"t": dict.fromkeys(range(3), 0)}, session=(0, 0)), 12)
    assert full.session_id > 0
    assert sizes(full) == {0: 0, 1: 0, 2: 0}
    session_id = full.session_id

    assert sizes(await incremental(room, (session_id, 1))) == {}
    await room.append("t", b"a", partition=0)
    await room.append("t", b"b", partition=1)
    news = await incremental(room, (session_id, 2), forget={"t": [1]})
    assert sizes(news) == {0: len(batch(b"a"))}
    await room.append("t", b"c", partition=1)
    assert 1 not in sizes(await incremental(room, (session_id, 3)))


@on_broker()
async def test_a_session_is_strict_about_its_epoch(room: Room) -> None:
    """redpanda-data/redpanda#1123 and KIP-227: a skipped epoch means that an answer was lost."""
    await room.create("t")
    full = await room.ask(fetch_request({"t": {0: 0}}, session=(0, 0)), 12)
    session_id = full.session_id
    assert (await incremental(room, (session_id, 2))).error_code == INVALID_FETCH_SESSION_EPOCH
    assert (await incremental(room, (session_id, 1))).error_code == 0
    assert (await incremental(room, (session_id, 1))).error_code == INVALID_FETCH_SESSION_EPOCH
    unknown = session_id % (2**31 - 2) + 1
    assert (await incremental(room, (unknown, 1))).error_code == FETCH_SESSION_ID_NOT_FOUND
    closed = await room.ask(fetch_request({}, session=(session_id, -1)), 12)
    assert closed.session_id == 0
    assert (await incremental(room, (session_id, 2))).error_code == FETCH_SESSION_ID_NOT_FOUND


@on_broker({"max.incremental.fetch.session.cache.slots": "1"})
async def test_a_session_in_use_keeps_its_slot(room: Room) -> None:
    """KAFKA-9137 "Fix incorrect FetchSessionCache eviction logic": two clients put each other out all the time."""
    await room.create("t")
    first = await room.ask(fetch_request({"t": {0: 0}}, session=(0, 0)), 12)
    other = await room.connect()
    second = await other.ask(fetch_request({"t": {0: 0}}, session=(0, 0)), 12)

    assert first.session_id > 0
    assert second.session_id == 0, "no room for a second session: it is served without one"
    assert (await incremental(room, (first.session_id, 1))).error_code == 0


@on_broker()
async def test_a_topic_that_comes_back_is_not_read_on_in_a_session(room: Room) -> None:
    """KAFKA-17102 and its kind: a session by name must not go on in the topic that took the name's place, nor fall over
    a topic that is gone."""
    await room.create("t")
    await room.append("t", b"old")
    full = await room.ask(fetch_request({"t": {0: 0}}, session=(0, 0)), 12)
    await delete_topic(room, "t")
    (gone,) = (await incremental(room, (full.session_id, 1))).responses
    assert gone.partitions[0].error_code == UNKNOWN_TOPIC_OR_PARTITION


async def delete_topic(room: Room, name: str) -> None:
    answer = await room.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=5000), 5)
    assert answer.responses[0].error_code == 0


async def end_of_epoch(
    room: Room, epoch: int, *, current: int = -1, replica_id: int = -1, version: int = 4
) -> EpochEndOffset:
    rows = [OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)]
    request = OffsetForLeaderEpochRequest(
        replica_id=replica_id, topics=[OffsetForLeaderTopic(topic="t", partitions=rows)]
    )
    answer = await room.ask(request, version)
    row: EpochEndOffset = answer.topics[0].partitions[0]
    return row


def test_leader_epochs_are_checked_where_they_are_told(tmp_path: Path) -> None:
    """redpanda "k/fetch: validate leader epoch in fetch api" and "k/list_offsets: validate leader epoch", franz-go
    (kfake OffsetForLeaderEpoch), redpanda-data/redpanda#11864, KAFKA-6857: -1 compared literally, replica -2 refused,
    the current epoch answered whatever was asked."""

    async def main() -> None:
        settings = {"log.dirs": str(tmp_path)}
        async with open_room(settings) as room:
            await room.create("t")
            await room.append("t", b"a", b"b", b"c")
        async with open_room(settings) as room:
            await room.append("t", b"d")
            (last,) = batches_of(await room.fetch("t", 3))
            now = last.partition_leader_epoch
            assert now > 0
            expected = {-1: 0, now: 0, now - 1: FENCED_LEADER_EPOCH, now + 1: UNKNOWN_LEADER_EPOCH}
            for epoch, code in expected.items():
                assert (await room.fetch("t", 0, leader_epoch=epoch)).error_code == code
                listed = await room.list_offset("t", EARLIEST_TIMESTAMP, leader_epoch=epoch)
                assert listed.error_code == code
                for replica_id in (-1, -2):
                    ended = await end_of_epoch(room, 0, current=epoch, replica_id=replica_id)
                    assert ended.error_code == code
            ends = {epoch: await end_of_epoch(room, epoch) for epoch in (-1, 0, now - 1, now, now + 1)}
            assert {epoch: (row.leader_epoch, row.end_offset) for epoch, row in ends.items()} == {
                -1: (-1, -1),
                0: (0, 3),
                now - 1: (0, 3),
                now: (now, 4),
                now + 1: (-1, -1),
            }

    asyncio.run(main())


def test_a_segment_that_cannot_be_read_is_an_error_in_every_version(tmp_path: Path) -> None:
    """KAFKA-3427 "broker can return incorrect version of fetch response when the broker hits an unknown exception",
    KAFKA-13258, KAFKA-13259, KAFKA-13260 "Fix error response generation"."""

    async def main() -> None:
        settings = {"log.dirs": str(tmp_path)}
        async with open_room(settings) as room:
            topic_id = await room.create("t")
            await room.create("healthy")
            await room.append("t", b"v")
            await room.append("healthy", b"v")
        segment = tmp_path / "t-0" / f"{0:020d}.log"
        segment.unlink()
        segment.mkdir()
        async with open_room(settings) as room:
            for version in range(4, 19):
                request = fetch_request({"t": {0: 0}})
                request.topics[0].topic_id = topic_id
                answer = await room.ask(request, version)
                (row,) = answer.responses[0].partitions
                assert row.error_code == KAFKA_STORAGE_ERROR, version
            assert (await room.list_offset("t", EARLIEST_TIMESTAMP)).error_code == KAFKA_STORAGE_ERROR
            assert (await room.produce("t", batch(b"v"))).error_code == KAFKA_STORAGE_ERROR
            assert await room.read_all("healthy") == [(0, b"v")]

    asyncio.run(main())


@on_broker()
async def test_a_reader_that_does_not_read_costs_a_bounded_buffer(room: Room) -> None:
    """KAFKA-7639 and its kind, from the other side: answers that nobody takes must not pile up in memory."""
    await room.create("t", partitions=16)
    for number in range(16):
        await room.append("t", bytes(MIB - KIB), partition=number)
    positions = dict.fromkeys(range(16), 0)
    lazy = await room.connect()
    tracemalloc.start()
    try:
        for _ in range(60):
            lazy.send(fetch_request({"t": positions}, max_bytes=16 * MIB), 12)
        for _ in range(20):
            await room.ask(MetadataRequest(topics=[]), 12)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for number in range(3):
        answer = await lazy.receive_answer(FetchResponse, 12, number + 1)
        assert sum(sizes(answer).values()) > 12 * MIB

    assert peak_bytes < 8 * MIB


@on_broker()
async def test_a_topic_is_named_once_however_often_it_is_asked(room: Room) -> None:
    """redpanda "kafka/s: Remove duplicate responses - offset_fetch" and its kind, for a fetch that names a partition
    twice: the last one counts."""
    await room.create("t")
    await room.append("t", b"v")
    request = fetch_request({"t": {0: 0}})
    twice = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=MIB,
        session_epoch=-1,
        topics=[FetchTopic(topic="t", partitions=request.topics[0].partitions * 2)],
    )
    answer = await room.ask(twice, 12)

    assert [row.partition_index for topic in answer.responses for row in topic.partitions] == [0]
