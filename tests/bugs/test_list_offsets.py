"""ListOffsets: times, special offsets, and what is left when records were trimmed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ottla.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP
from ottla.records.compression import Codec
from tests.wire import Room, on_broker, open_room

UNSUPPORTED_VERSION = 35
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
BASE_MS = 1_700_000_000_000


async def at(room: Room, timestamp: int, topic: str = "t") -> tuple[int, int]:
    """Offset and timestamp of the first record at or after a time, both -1 when there is none."""
    row = await room.list_offset(topic, timestamp)
    assert row.error_code == 0
    return row.offset, row.timestamp


@pytest.mark.parametrize("is_one_batch", [False, True])
@pytest.mark.parametrize("codec", list(Codec))
@on_broker()
async def test_the_first_record_at_or_after_a_time_is_found(room: Room, is_one_batch: bool, codec: Codec) -> None:
    """streamnative/kop#334 "[BUG] ListOffset return wrong value", nisshi-io/nisshi#484, #485 "list offset by
    timestamp", redpanda-data/redpanda#6604, #6606, #6658 "do not try to timequery into compressed batches": the last
    record before the time, the batch's start, or the next batch."""
    await room.create("t")
    times = [2, 4, 6, 8]
    if is_one_batch:
        await room.append("t", b"a", b"b", b"c", b"d", timestamps=times, codec=codec)
    else:
        for time in times:
            await room.append("t", b"v", timestamps=[time], codec=codec)
    answers = [await at(room, time) for time in range(1, 10)]

    none = (-1, -1)
    assert answers == [(0, 2), (0, 2), (1, 4), (1, 4), (2, 6), (2, 6), (3, 8), (3, 8), none]


@on_broker()
async def test_nothing_found_is_no_offset_and_no_error(room: Room) -> None:
    """redpanda-data/redpanda#4308 "Align KIP-79; Redpanda shouldn't return negative value when retention expires",
    #4322 "ListOffsets returns -1 if no offset found", #19951 (empty topics): the end with a timestamp of -1, at which
    the Java client throws."""
    await room.create("t")
    assert await at(room, 0) == (-1, -1)
    await room.append("t", b"v", timestamps=[BASE_MS])
    assert await at(room, BASE_MS + 1) == (-1, -1)
    await room.delete_records("t", -1)
    assert await at(room, 0) == (-1, -1)
    assert await at(room, EARLIEST_TIMESTAMP) == (1, -1)
    assert await at(room, LATEST_TIMESTAMP) == (1, -1)
    assert await at(room, MAX_TIMESTAMP) == (-1, -1)


@on_broker()
async def test_times_out_of_order_are_found_in_order_of_offsets(room: Room) -> None:
    """redpanda-data/redpanda#6604 "fix CreateTime handling in timestamp seek, max offset handling in timequery": the
    first record by offset whose time is late enough, wherever later ones go back in time."""
    await room.create("t")
    for time in (5, 1, 9, 3, 7):
        await room.append("t", b"v", timestamps=[time])
    answers = [(await at(room, time))[0] for time in (1, 5, 6, 8, 9, 10)]

    assert answers == [0, 0, 2, 2, 2, -1]


@pytest.mark.parametrize("codec", list(Codec))
def test_the_record_with_the_largest_time_is_found_and_forgotten_with_its_log(tmp_path: Path, codec: Codec) -> None:
    """KAFKA-16310 "ListOffsets doesn't report the offset with maxTimestamp anymore", KAFKA-16342, KAFKA-16341; franz-go
    "fix trimLeft panic when maxTimestampBatchIdx becomes stale"."""

    async def main() -> None:
        settings = {"log.dirs": str(tmp_path)}
        async with open_room(settings) as room:
            await room.create("t")
            await room.append("t", b"a", b"b", b"c", timestamps=[10, 30, 20], codec=codec)
            await room.append("t", b"d", timestamps=[25])
            assert await at(room, MAX_TIMESTAMP) == (1, 30)
        async with open_room(settings) as room:
            assert await at(room, MAX_TIMESTAMP) == (1, 30)
            await room.append("t", b"e", timestamps=[30])
            assert await at(room, MAX_TIMESTAMP) == (1, 30), "of equal ones the first"
            await room.create("stamped", configs={"message.timestamp.type": "LogAppendTime"})
            row = await room.append("stamped", b"a", b"b", b"c", codec=codec)
            offset, _ = await at(room, MAX_TIMESTAMP, "stamped")
            assert offset == row

    asyncio.run(main())


@on_broker()
async def test_the_largest_time_of_what_was_trimmed_is_not_told(room: Room) -> None:
    """franz-go "fix trimLeft panic when maxTimestampBatchIdx becomes stale", KAFKA-16310: an offset below the log's
    start sends a consumer out of range."""
    await room.create("t")
    await room.append("t", b"a", b"b", b"c", timestamps=[10, 30, 20])
    await room.append("t", b"d", timestamps=[25])
    await room.delete_records("t", 3)
    offset, time = await at(room, MAX_TIMESTAMP)

    assert (offset, time) == (3, 25)


@on_broker()
async def test_a_time_before_the_logs_start_is_its_start(room: Room) -> None:
    """redpanda-data/redpanda#18599 "Backport timequery bugfixes" (#18097, #18112): the offset of a record that is
    deleted, and endless out-of-range after it."""
    await room.create("t")
    await room.append("t", *[b"%d" % n for n in range(10)], timestamps=[100 + n for n in range(10)])
    assert await room.delete_records("t", 6) == (0, 6)

    assert await at(room, 100) == (6, 106)
    assert await at(room, 106) == (6, 106)
    assert await at(room, 108) == (8, 108)
    assert (await at(room, EARLIEST_TIMESTAMP))[0] == 6


@on_broker()
async def test_a_time_before_the_start_is_found_across_segments(room: Room) -> None:
    """redpanda-data/redpanda#18599 at the edge of a segment."""
    await room.create("t", configs={"segment.bytes": str(1 << 20)})
    for number in range(5):
        await room.append("t", bytes(600_000), timestamps=[100 + number])
    for before in range(1, 5):
        assert await room.delete_records("t", before) == (0, before)
        assert await at(room, 100) == (before, 100 + before)


@pytest.mark.parametrize(
    ("timestamp", "version", "code", "offset"),
    [
        (MAX_TIMESTAMP, 6, UNSUPPORTED_VERSION, -1),
        (EARLIEST_LOCAL, 7, UNSUPPORTED_VERSION, -1),
        (LATEST_TIERED, 8, UNSUPPORTED_VERSION, -1),
        (EARLIEST_PENDING_UPLOAD, 10, UNSUPPORTED_VERSION, -1),
        (EARLIEST_LOCAL, 8, 0, 0),
        (LATEST_TIERED, 9, 0, -1),
        (EARLIEST_PENDING_UPLOAD, 11, 0, -1),
        (-99, 10, UNSUPPORTED_VERSION, -1),
    ],
)
@on_broker()
async def test_special_times_need_their_version(
    room: Room, timestamp: int, version: int, code: int, offset: int
) -> None:
    """KAFKA-17331 apache/kafka#16873 "Throw unsupported version exception if the server does NOT support
    EarliestLocalSpec and LatestTieredSpec": taken for an ordinary time, answered with 0."""
    await room.create("t")
    await room.append("t", b"v", timestamps=[BASE_MS])
    row = await room.list_offset("t", timestamp, version=version)

    assert (row.error_code, row.offset) == (code, offset)


@pytest.mark.parametrize("version", range(1, 12))
@on_broker()
async def test_every_version_means_the_same(room: Room, version: int) -> None:
    """redpanda-data/redpanda#4473 "Redpanda doesn't support ListOffset v0": announced, and answered with another
    meaning."""
    await room.create("t")
    await room.append("t", b"a", b"b", timestamps=[BASE_MS, BASE_MS + 5])
    found = [await room.list_offset("t", time, version=version) for time in (-2, -1, BASE_MS + 1)]

    assert [(row.offset, row.timestamp) for row in found] == [(0, -1), (2, -1), (1, BASE_MS + 5)]
