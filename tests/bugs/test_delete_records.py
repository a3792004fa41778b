"""DeleteRecords: where a log begins afterwards, also after a restart, and that offsets are never given twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ottla.model import EARLIEST_TIMESTAMP
from tests.wire import Room, batch, on_broker, open_room, produce_request

OFFSET_OUT_OF_RANGE = 1
POLICY_VIOLATION = 44


def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    """KAFKA-6975 "Fix replica fetching from non-batch-aligned log start offset", redpanda-data/redpanda#2326 "Kafka
    offsets are off by one after log eviction", KAFKA-9133 apache/kafka#7662, KAFKA-7400."""
    settings = {"log.dirs": str(tmp_path)}

    async def check_start(room: Room, start: int) -> None:
        assert (await room.fetch("t", start - 1)).error_code == OFFSET_OUT_OF_RANGE
        assert (await room.list_offset("t", EARLIEST_TIMESTAMP)).offset == start
        assert [offset for offset, _ in await room.read_all("t", start=start)] == list(range(start, 50))

    async def main() -> None:
        async with open_room(settings) as room:
            await room.create("t")
            for number in range(5):
                await room.append("t", *[b"%d" % n for n in range(number * 10, number * 10 + 10)])
            assert await room.delete_records("t", 25) == (0, 25)
            assert await room.delete_records("t", 10) == (0, 25), "below the start: nothing to do"
            assert (await room.delete_records("t", 51))[0] == OFFSET_OUT_OF_RANGE
            assert (await room.delete_records("t", -5))[0] == OFFSET_OUT_OF_RANGE
            await check_start(room, 25)
        async with open_room(settings) as room:
            await check_start(room, 25)
            assert await room.delete_records("t", -1) == (0, 50)
            assert await room.bounds("t") == (50, 50)
        async with open_room(settings) as room:
            assert await room.bounds("t") == (50, 50)
            assert await room.append("t", b"next") == 50

    asyncio.run(main())


@on_broker()
async def test_a_compacted_topic_is_not_trimmed_by_offset(room: Room) -> None:
    """KAFKA-7400, KAFKA-9133: a cleaner that died at a start within a segment; Kafka refuses since KIP-107."""
    await room.create("compact", configs={"cleanup.policy": "compact"})
    await room.create("both", configs={"cleanup.policy": "compact,delete"})
    for name in ("compact", "both"):
        await room.append(name, b"v", keys=[b"k"])

    assert (await room.delete_records("compact", -1))[0] == POLICY_VIOLATION
    assert await room.delete_records("both", -1) == (0, 1)
    assert await room.bounds("compact") == (0, 1)


@on_broker({"log.segment.bytes": str(1 << 20)})
async def test_no_offset_is_given_twice_while_a_log_is_trimmed(room: Room) -> None:
    """redpanda "s/log: fixed race condition between appends and prefix truncation": the same offset for two batches, or
    an end that goes back."""
    await room.create("t", configs={"segment.bytes": str(1 << 20)})
    trimming = Room(room.address, await room.connect())
    is_over = False
    starts: list[int] = []

    async def trim() -> None:
        while not is_over:
            code, low = await trimming.delete_records("t", -1)
            assert code == 0
            starts.append(low)

    trimming_task = asyncio.ensure_future(trim())
    records = batch(*[bytes(60_000)] * 3)
    given: list[int] = []
    for _ in range(60):
        answer = await room.ask(produce_request({"t": {0: records}}), 12)
        (row,) = answer.responses[0].partition_responses
        assert row.error_code == 0
        given.append(row.base_offset)
    is_over = True
    await trimming_task

    assert given == list(range(0, 180, 3))
    assert starts == sorted(starts)
    assert len(starts) > 10
    assert await room.bounds("t") == (starts[-1], 180)
