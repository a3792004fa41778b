"""Logs with holes, as compaction leaves them: readers get past every one of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ottla.records.batch import RecordBatch, split_batches, stamp
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from tests.wire import batches_of, open_room

COUNT = 12
PER_BATCH = 3


def rewrite(directory: Path, kept: set[int], *, emptied: int | None = None) -> None:
    """Leave only some batches of a stopped broker's segment; of one that is `emptied` the header stays."""
    segment = directory / f"{0:020d}.log"
    data = b""
    for number, one in enumerate(split_batches(segment.read_bytes())):
        if number == emptied:
            data += empty_batch(one)
        elif number in kept:
            data += bytes(one.buffer)
    segment.write_bytes(data)
    for index in (*directory.glob("*.index"), *directory.glob("*.timeindex")):
        index.unlink()


def empty_batch(of: RecordBatch) -> bytes:
    """A batch without records that covers the same offsets: what is kept of an idempotent producer's last one."""
    builder = BatchBuilder(producer_id=7, producer_epoch=0, base_sequence=0)
    builder.extend_to(of.last_offset_delta)
    data = bytearray(builder.build())
    stamp(data, of.base_offset, 0)
    return bytes(data)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize(
    ("kept", "emptied"),
    [
        ({0, 5, 11}, None),
        ({3, 4, 11}, None),
        ({0, 11}, 6),
        ({0, 1}, 11),
        ({0}, 1),
    ],
    ids=["in the middle", "at the beginning", "an empty batch", "an empty batch at the end", "nothing behind it"],
)
def test_readers_get_past_holes(tmp_path: Path, kept: set[int], emptied: int | None, codec: Codec) -> None:
    """redpanda-data/redpanda#8698 "last offset off by one error", IBM/sarama#3221 "stuck on the batch with zero records
    length", dpkp/kafka-python#1571, tulios/kafkajs#562, kafka4beam/brod#263: an empty answer for ever."""
    settings = {"log.dirs": str(tmp_path)}

    async def write() -> None:
        async with open_room(settings) as room:
            await room.create("t", configs={"cleanup.policy": "compact"})
            for number in range(COUNT):
                values = [b"%d" % (number * PER_BATCH + place) for place in range(PER_BATCH)]
                await room.append("t", *values, keys=[b"k"] * PER_BATCH, codec=codec)

    async def read() -> None:
        there = sorted(kept | ({emptied} if emptied is not None else set()))
        async with open_room(settings) as room:
            _, end = await room.bounds("t")
            assert end == (there[-1] + 1) * PER_BATCH
            for offset in range(end):
                expected = next(number for number in there if (number + 1) * PER_BATCH > offset)
                first = batches_of(await room.fetch("t", offset, max_bytes=1))[0]
                assert (first.base_offset, first.next_offset) == (expected * PER_BATCH, (expected + 1) * PER_BATCH)
            offsets = [offset for offset, _ in await room.read_all("t")]
            assert offsets == [number * PER_BATCH + place for number in sorted(kept) for place in range(PER_BATCH)]
            assert await room.append("t", b"more", keys=[b"k"]) == end

    asyncio.run(write())
    rewrite(tmp_path / "t-0", kept, emptied=emptied)
    asyncio.run(read())
