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
from ottla.server import Server
from ottla.storage.files import LocalFileSystem
from ottla.testing.faults import Faults, FaultyFileSystem
from tests.wire import ACKS_ALL, Room, batch, room_at

FULL = KafkaStorageError.code
NEEDS_ROOM = {"append", "create", "write", "make_directory"}
POLICIES = ["fsync", "os"]
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
async def broker_on(disk: Disk, directory: Path, policy: str) -> AsyncIterator[tuple[Server, Room]]:
    properties = {"log.dirs": str(directory), "listeners": "PLAINTEXT://127.0.0.1:0", "ottla.flush.policy": policy}
    server = Server(BrokerConfig.from_properties(properties), filesystem=disk.files)
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
