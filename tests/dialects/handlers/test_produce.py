"""Produce, beside the recordings: to a log that is damaged, and to a partition that one request names several times."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.batch import BATCH_LENGTH_AT, MAGIC_AT
from ottla.records.compression import Codec
from ottla.testing.cluster import running_broker
from tests.wire import ACKS_ALL, NONE, Peer, Room, batch, fetch_request, on_broker

CORRUPT_MESSAGE = 2
INVALID_REQUIRED_ACKS = 21
INVALID_TIMESTAMP = 32
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
KAFKA_STORAGE_ERROR = 56
UNSUPPORTED_COMPRESSION_TYPE = 76
INVALID_RECORD = 87
NO_OFFSET = -1


@pytest.mark.parametrize(("keys", "code"), [((b"k",), KAFKA_STORAGE_ERROR), ((None,), INVALID_RECORD)])
def test_a_batch_for_a_log_that_cannot_be_opened_is_answered(
    tmp_path: Path, keys: tuple[bytes | None], code: int
) -> None:
    """Also one that is refused for itself, whose answer would tell where the log starts."""

    async def scenario(*, is_damaged: bool) -> None:
        async with running_broker({"log.dirs": str(tmp_path)}) as running:
            room = Room(running.address, await Peer.connect(running.address), running)
            if not is_damaged:
                await room.create("t", configs={"cleanup.policy": "compact"})
                await room.append("t", b"v", keys=[b"k"])
            else:
                row = await room.produce("t", batch(b"v", keys=keys))
                assert (row.error_code, row.base_offset, row.log_start_offset) == (code, NO_OFFSET, NO_OFFSET)
            await room.close()

    asyncio.run(scenario(is_damaged=False))
    log = tmp_path / "t-0" / f"{0:020d}.log"
    log.unlink()
    log.mkdir()
    asyncio.run(scenario(is_damaged=True))


BEFORE_ZSTD = 3
"""A version in which a request may not hold what zstd compressed, which gives a second error of requests."""
LAST_WITH_NAMES = 12
ABOVE_ONE_TURN = 300
"""Rows that make a request long, so that it is done in steps."""

SEVERAL_AND_WHAT_KAFKA_SAYS = [
    ("good good", NONE, b"1"),
    ("good old", INVALID_RECORD, b"0"),
    ("old good", INVALID_RECORD, b"1"),
    ("old zstd", UNSUPPORTED_COMPRESSION_TYPE, None),
    ("zstd old", INVALID_RECORD, None),
    ("zstd empty", INVALID_RECORD, None),
    ("old zstd good", UNSUPPORTED_COMPRESSION_TYPE, b"2"),
    ("old good zstd", UNSUPPORTED_COMPRESSION_TYPE, b"1"),
    ("good old good", INVALID_RECORD, b"2"),
    ("zstd good old good", INVALID_RECORD, b"3"),
    ("good late", INVALID_TIMESTAMP, None),
    ("late good", NONE, b"1"),
    ("zstd late", UNSUPPORTED_COMPRESSION_TYPE, None),
    ("late old good", INVALID_RECORD, b"2"),
    ("torn good", CORRUPT_MESSAGE, None),
    ("good torn", CORRUPT_MESSAGE, None),
    ("transactional good", TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None),
    ("transactional torn", TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None),
    ("torn transactional", CORRUPT_MESSAGE, None),
    ("good " * ABOVE_ONE_TURN + "old", INVALID_RECORD, b"%d" % (ABOVE_ONE_TURN - 1)),
    ("old " + "good " * ABOVE_ONE_TURN, INVALID_RECORD, b"%d" % ABOVE_ONE_TURN),
    ("good " * ABOVE_ONE_TURN + "transactional torn", TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None),
]
"""What stands for one partition in a request, the code of the answer, and the record that is in the log."""


def records_of(kind: str, number: int) -> bytes:
    """Return one row's records, whose value is their number."""
    value = b"%d" % number
    if kind == "zstd":
        return batch(value, codec=Codec.ZSTD)
    if kind == "late":
        return batch(value, timestamps=[1 << 60])
    if kind == "transactional":
        return batch(value, producer=(5, 0, 0), is_transactional=True)
    records = bytearray(batch(value))
    if kind == "old":
        records[MAGIC_AT] = 1
    elif kind == "torn":
        records[BATCH_LENGTH_AT : BATCH_LENGTH_AT + 4] = bytes(4)
    return b"" if kind == "empty" else bytes(records)


def request_for(topic: str, kinds: str, *, acks: int, is_topic_repeated: bool = False) -> ProduceRequest:
    rows = [
        PartitionProduceData(index=0, records=records_of(kind, number)) for number, kind in enumerate(kinds.split())
    ]
    several = [[row] for row in rows] if is_topic_repeated else [rows]
    topics = [TopicProduceData(name=topic, partition_data=some) for some in several]
    return ProduceRequest(transactional_id=None, acks=acks, timeout_ms=5000, topic_data=topics)


@pytest.mark.parametrize("is_topic_repeated", [False, True])
@pytest.mark.parametrize("acks", [1, ACKS_ALL])
@on_broker()
async def test_a_partition_that_is_named_several_times_gets_kafkas_answer(
    room: Room, acks: int, is_topic_repeated: bool
) -> None:
    for number, (kinds, code, kept) in enumerate(SEVERAL_AND_WHAT_KAFKA_SAYS):
        topic = f"t{number}"
        await room.create(topic)
        request = request_for(topic, kinds, acks=acks, is_topic_repeated=is_topic_repeated)

        answer = await room.ask(request, BEFORE_ZSTD)

        ((row,),) = [topic.partition_responses for topic in answer.responses]
        assert (row.index, row.error_code, row.base_offset) == (0, code, NO_OFFSET if code else 0), kinds
        assert [value for _, value in await room.read_all(topic)] == ([] if kept is None else [kept]), kinds


@pytest.mark.parametrize(
    ("kinds", "is_ended"), [("old good", True), ("good old", True), ("late good", False), ("good good", False)]
)
@on_broker()
async def test_an_earlier_error_ends_the_connection_of_who_wants_no_answer(
    room: Room, kinds: str, is_ended: bool
) -> None:
    await room.create("t")
    peer = await room.connect()

    peer.send(request_for("t", kinds, acks=0), LAST_WITH_NAMES)
    peer.send(fetch_request({"t": {0: 0}}), LAST_WITH_NAMES)

    assert await peer.is_ended() == is_ended
    assert len(await room.read_all("t")) == 1


@on_broker()
async def test_an_earlier_error_of_the_request_comes_before_wrong_acks(room: Room) -> None:
    await room.create("t")

    codes = []
    for kinds in ("good good", "old good", "good old"):
        answer = await room.ask(request_for("t", kinds, acks=2), LAST_WITH_NAMES)
        codes += [row.error_code for topic in answer.responses for row in topic.partition_responses]

    assert codes == [INVALID_REQUIRED_ACKS, INVALID_RECORD, INVALID_RECORD]
    assert await room.read_all("t") == []
