"""A disk without room: what was acknowledged stays, readers read on, and writers go on when there is room again."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from ottla.broker.metadata.create_topics import NewTopic
from ottla.config.broker_config import BrokerConfig
from ottla.errors import KafkaStorageError
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.server import Server
from ottla.storage.files import LocalFileSystem
from ottla.testing.faults import Faults, FaultyFileSystem
from tests.small_disk import SmallDisk
from tests.wire import ACKS_ALL, Room, batch, room_at

FULL = KafkaStorageError.code
NEEDS_ROOM = {"append", "create", "write", "make_directory"}
POLICIES = ["fsync", "os"]
DISK_BLOCKS = 50 * 256
MANY_TOPICS = 1_000
SMALL_TOPICS = 150
"""More deletions than fit into a block that is not full yet."""
ACKS = [ACKS_ALL, 1]


class Disk:
    """A disk that is full, or that of whose files only some find no room."""

    def __init__(self) -> None:
        self.faults = Faults(Random(104))
        self.faults.error = errno.ENOSPC
        self.files = FaultyFileSystem(LocalFileSystem(), self.faults)

    def fill(self, part_of_path: str = "") -> None:
        self.faults.fails = lambda call, path: call in NEEDS_ROOM and part_of_path in path

    def free(self) -> None:
        self.faults.fails = None


@asynccontextmanager
async def broker_on(
    disk: Disk | SmallDisk, directory: Path, policy: str, **settings: str
) -> AsyncIterator[tuple[Server, Room]]:
    properties = {"log.dirs": str(directory), "listeners": "PLAINTEXT://127.0.0.1:0", "ottla.flush.policy": policy}
    properties |= {key.replace("_", "."): value for key, value in settings.items()}
    files = disk.files if isinstance(disk, Disk) else disk
    server = Server(BrokerConfig.from_properties(properties), filesystem=files)
    await server.start()
    try:
        async with room_at(server.address) as room:
            yield server, room
    finally:
        await server.stop()


@pytest.mark.parametrize("acks", ACKS)
@pytest.mark.parametrize("policy", POLICIES)
def test_what_was_acknowledged_is_all_there_is(tmp_path: Path, policy: str, acks: int) -> None:
    """redpanda-data/redpanda#4803 "Reject writes as needed to avoid full disks", #24492 "return an error to clients
    stating disk full condition", KAFKA-10778 "Fence appends after write failure": an end of the process, half of a
    batch served, or silence. A client tries again after KAFKA_STORAGE_ERROR; after any other error it may not."""
    disk = Disk()

    async def scenario() -> None:
        async with broker_on(disk, tmp_path, policy) as (_, room):
            await room.create("t")
            told: list[tuple[int, bytes]] = []
            for number in range(60):
                if number % 20 == 10:
                    disk.fill()
                elif number % 20 == 0:
                    disk.free()
                one = batch(b"%d" % number, os.urandom(1000), producer=(7, 0, 2 * len(told)))
                row = await room.produce("t", one, acks=acks)
                if row.error_code == 0:
                    told.append((row.base_offset, b"%d" % number))
                else:
                    assert (row.error_code, row.base_offset) == (FULL, -1)
                    assert number % 20 >= 10
            disk.free()
            assert len(told) == 30
            end = await room.append("t", b"once this is on the disk, so is what came before")
            assert [row for row in await room.read_all("t") if row[0] % 2 == 0 and row[0] < end] == told

    asyncio.run(scenario())


@pytest.mark.parametrize("policy", POLICIES)
def test_a_full_disk_can_be_made_room_on(tmp_path: Path, policy: str) -> None:
    """redpanda-data/redpanda#4803, getsentry/self-hosted#3133: nothing could be deleted any more. Records are let go
    without writing anything, and the log goes on once there is room."""
    disk = Disk()

    async def scenario() -> None:
        async with broker_on(disk, tmp_path, policy) as (_, room):
            await room.create("t")
            for number in range(6):
                await room.append("t", b"%d" % number)
            disk.fill()
            assert (await room.produce("t", batch(b"no"))).error_code == FULL
            assert await room.delete_records("t", 4) == (0, 4)
            assert await room.read_all("t", start=4) == [(4, b"4"), (5, b"5")]
            disk.free()
            assert await room.append("t", b"6") == 6
        async with broker_on(disk, tmp_path, policy) as (_, room):
            assert await room.bounds("t") == (4, 7)

    asyncio.run(scenario())


def test_topics_come_and_go_again_when_there_is_room(tmp_path: Path) -> None:
    """redpanda-data/redpanda#24492: what could not be written did not happen, and may be asked for again."""
    disk = Disk()

    async def scenario() -> None:
        async with broker_on(disk, tmp_path, "fsync") as (server, room):
            await room.create("t")
            disk.fill()
            with pytest.raises(KafkaStorageError):
                server.broker.metadata.create_topics([NewTopic("u", 1, 1)])
            assert server.broker.find_topic("u") is None
            disk.free()
            await room.create("u")
            assert await room.append("u", b"1") == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("policy", POLICIES)
def test_a_broker_on_a_full_disk_stops_in_order(tmp_path: Path, policy: str, caplog: pytest.LogCaptureFixture) -> None:
    """ozangunalp/kafka-native#151, KAFKA-10778: it ended in a stack trace, and did not start again. The next start
    checks the logs, as nothing says that they are whole, and finds everything."""
    disk = Disk()

    async def scenario() -> None:
        async with broker_on(disk, tmp_path, policy) as (_, room):
            await room.create("t")
            await room.append("t", b"0", b"1")
            disk.fill()
        assert not (tmp_path / ".kafka_cleanshutdown").exists()
        disk.free()
        async with broker_on(disk, tmp_path, policy) as (_, room):
            assert await room.read_all("t") == [(0, b"0"), (1, b"1")]
            assert await room.append("t", b"2") == 2

    asyncio.run(scenario())
    assert "the next start checks the logs" in caplog.text


def test_a_small_file_without_room_does_not_end_a_log(tmp_path: Path) -> None:
    """KAFKA-10778, strimzi/strimzi-kafka-operator#7484: a checkpoint that finds no room is no record that is lost. It
    is written with a later flush, or learnt again from the log after a crash."""
    disk = Disk()

    async def scenario() -> None:
        async with broker_on(disk, tmp_path, "fsync") as (_, room):
            await room.create("t")
            disk.fill("leader-epoch-checkpoint")
            assert await room.append("t", b"0") == 0, "the first append begins an epoch"
            assert not (tmp_path / "t-0" / "leader-epoch-checkpoint").exists()
            disk.free()
            assert await room.append("t", b"1") == 1
            assert (tmp_path / "t-0" / "leader-epoch-checkpoint").read_text().splitlines()[1:] == ["1", "0 0"]

    asyncio.run(scenario())


async def delete_topics(room: Room, *names: str) -> list[int]:
    """Delete topics one by one; returns the error codes."""
    codes = []
    for name in names:
        answer = await room.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000), 6)
        codes += [row.error_code for row in answer.responses]
    return codes


async def usable_bytes(room: Room) -> int:
    answer = await room.ask(DescribeLogDirsRequest(topics=[]), 4)
    return int(answer.results[0].usable_bytes)


async def produce_until_full(room: Room, topic: str, acks: int) -> list[tuple[int, bytes]]:
    """Return offsets and values of what was acknowledged."""
    told: list[tuple[int, bytes]] = []
    while True:
        value = os.urandom(20_000 + 7 * len(told))
        row = await room.produce(topic, batch(value), acks=acks)
        if row.error_code:
            assert (row.error_code, row.base_offset) == (FULL, -1)
            return told
        told.append((row.base_offset, value))


@pytest.mark.parametrize(("policy", "acks"), [("fsync", ACKS_ALL), ("os", 1)])
def test_a_disk_is_filled_to_the_last_block_and_freed_by_deleting_topics(
    tmp_path: Path, policy: str, acks: int
) -> None:
    """redpanda-data/redpanda#4803, #24492, ozangunalp/kafka-native#151, getsentry/self-hosted#3133: on a volume of 50
    MB. Deleting is what people do then, and needs a few bytes itself, for which the metadata log keeps a reserve; what
    would take room instead is refused, so that the reserve stays."""
    disk = SmallDisk(DISK_BLOCKS)
    small = [f"small-{number}" for number in range(SMALL_TOPICS)]

    async def scenario() -> None:
        async with broker_on(disk, tmp_path, policy, log_segment_delete_delay_ms="0") as (_, room):
            for name in ("kept", "large", *small):
                await room.create(name)
            before = await usable_bytes(room)
            assert len(await produce_until_full(room, "large", acks)) > 1000
            told = [await room.append("kept", b"%d" % number) for number in range(10)]
            assert await usable_bytes(room) < before // 100, "who watches this is warned"
            while disk.free_blocks:  # the last block of a file has room for small records yet
                disk.take(str(tmp_path / f"ballast-{disk.free_blocks}"), 4096)
            with pytest.raises(AssertionError, match="The disk is full"):
                for number in range(MANY_TOPICS):
                    await room.create(f"more-{number}")
            assert await delete_topics(room, *small) == [0] * SMALL_TOPICS
            assert [offset for offset, _ in await room.read_all("kept")] == told
            assert await delete_topics(room, "large") == [0]
            while disk.free_blocks < DISK_BLOCKS // 2:  # a thread removes the files
                await asyncio.sleep(0)
            await room.create("new")
            assert await room.append("new", b"goes on") == 0
            assert await room.append("kept", b"goes on") == len(told)
        async with broker_on(disk, tmp_path, policy) as (server, room):
            topics = {topic.name for topic in server.broker.image.topics()}
            assert {name for name in topics if not name.startswith("more-")} == {"kept", "new"}
            assert len(await room.read_all("kept")) == len(told) + 1
            assert await room.append("more-0", b"its log is made when there is room") == 0

    asyncio.run(scenario())
