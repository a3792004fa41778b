"""DescribeLogDirs: sizes are those of the files, and asking for everything costs little."""

from __future__ import annotations

import shutil
import time
import tracemalloc
from pathlib import Path

import pytest

from ottla.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.wire import Room, on_broker

MANY = 300
VOLUME_FROM_VERSION = 4
MIB = 1 << 20


def bytes_of(directory: Path) -> int:
    """What a partition's segments hold."""
    return sum(path.stat().st_size for path in directory.glob("*.log"))


@pytest.mark.parametrize("version", range(1, 6))
@on_broker({"log.segment.bytes": str(MIB)})
async def test_sizes_are_those_of_the_files(room: Room, version: int) -> None:
    """dpkp/kafka-python#2881 "Fix describe_log_dirs", KAFKA-5584 "Fix integer overflow in Log.size"."""
    await room.create("t", partitions=2)
    for _ in range(3):
        await room.append("t", bytes(600_000))
    wanted = [
        DescribableLogDirTopic(topic="t", partitions=[0, 1, 7]),
        DescribableLogDirTopic(topic="no", partitions=[0]),
    ]
    (result,) = (await room.ask(DescribeLogDirsRequest(topics=wanted), version)).results
    (topic,) = result.topics
    directory = Path(room.running.directory)

    assert result.log_dir == str(directory)
    sizes = {row.partition_index: row.partition_size for row in topic.partitions}
    assert sizes == {0: bytes_of(directory / "t-0"), 1: 0}
    assert sizes[0] > 3 * 600_000
    if version >= VOLUME_FROM_VERSION:
        assert result.total_bytes == shutil.disk_usage(directory).total
        assert 0 < result.usable_bytes <= result.total_bytes


@on_broker()
async def test_all_of_many_partitions_are_described_at_little_cost(room: Room) -> None:
    """redpanda-data/redpanda#23292 "Fixed oversized alloc in describe_log_dirs"; null topics mean all of them."""
    await room.create("many", partitions=MANY)
    begin = time.thread_time()
    tracemalloc.start()
    try:
        (result,) = (await room.ask(DescribeLogDirsRequest(topics=None), 4)).results
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    rows = {
        topic.name: {row.partition_index: row.partition_size for row in topic.partitions} for topic in result.topics
    }
    assert rows["many"] == dict.fromkeys(range(MANY), 0)
    assert peak_bytes < 16 * MIB
    assert time.thread_time() - begin < 5
