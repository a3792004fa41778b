"""Small files beside the records, damaged: they are made again, or the start says which one is wrong."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from ottla.config.log_config import LogConfig
from ottla.model import MAX_TIMESTAMP, AppendOrigin, TopicPartition
from ottla.records.control import ControlType, EndTransactionMarker, end_transaction_batch
from ottla.server import StartError
from ottla.storage.files import LocalFileSystem
from ottla.testing.faults import Faults, FaultyFileSystem, PowerCut
from tests.process import KILL, SECONDS, TERM, started
from tests.storage.harness import make_batch, make_manager
from tests.wire import Room, batch, batches_of, open_room, room_at

START_MS: Final = int(time.time()) * 1_000 - 3_600_000
BATCHES: Final = 24
PER_SEGMENT: Final = 6
SETTINGS: Final = {"log.index.interval.bytes": "0", "log.retention.ms": "-1"}
CONFIGS: Final = {"segment.ms": str(PER_SEGMENT * 1000 - 1), "retention.ms": "-1"}
READ_COMMITTED: Final = 1
CLEAN: Final = ".kafka_cleanshutdown"
KINDS: Final = ("index", "timeindex", "txnindex", "snapshot")


async def fill(room: Room) -> None:
    """Four segments with idempotent batches, each with a transaction that was aborted in it."""
    await room.create("t", configs=CONFIGS)
    log = room.running.broker.partition("t", 0)._log
    for number in range(BATCHES):
        stamp_ms = START_MS + number * 1000
        await room.append("t", b"%d" % number, producer=(7, 0, number), timestamps=[stamp_ms])
        if number % PER_SEGMENT == 2:
            sequence = number // PER_SEGMENT
            open_batch = batch(b"aborted", producer=(9, 0, sequence), is_transactional=True, timestamps=[stamp_ms])
            room.running.broker.partition("t", 0).append(memoryview(bytearray(open_batch)), stamp_ms)
            marker = EndTransactionMarker(ControlType.ABORT, 0)
            end = end_transaction_batch(marker, producer_id=9, producer_epoch=0, timestamp_ms=stamp_ms)
            where = TopicPartition("t", 0)
            log.begin_append(where, bytearray(end), leader_epoch=0, origin=AppendOrigin.COORDINATOR)


async def answers(room: Room) -> dict[str, Any]:
    """What readers are told at every offset, for every time, and what producers that come back are."""
    start, end = await room.bounds("t")
    told: dict[str, Any] = {"bounds": (start, end), "fetch": [], "times": []}
    for offset in range(end):
        row = await room.fetch("t", offset, max_bytes=1, isolation_level=READ_COMMITTED)
        (one,) = batches_of(row)
        aborted = {(gone.producer_id, gone.first_offset) for gone in row.aborted_transactions or ()}
        told["fetch"].append((one.base_offset, {gone for gone in aborted if gone[1] <= one.last_offset}))
    for asked in (MAX_TIMESTAMP, *range(START_MS - 500, START_MS + BATCHES * 1000 + 500, 500)):
        found = await room.list_offset("t", asked)
        told["times"].append((asked, found.offset, found.timestamp))
    again = await room.produce("t", batch(b"again", producer=(7, 0, BATCHES - 1)))
    told["again"] = (again.error_code, again.base_offset)
    told["gap"] = (await room.produce("t", batch(b"gap", producer=(7, 0, BATCHES + 1)))).error_code
    return told


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A directory that was stopped in order, and the answers that it gives."""
    directory = tmp_path_factory.mktemp("left") / "data"

    async def scenario() -> dict[str, Any]:
        async with open_room({**SETTINGS, "log.dirs": str(directory)}) as room:
            await fill(room)
            return await answers(room)

    expected = asyncio.run(scenario())
    assert len(list((directory / "t-0").glob("*.txnindex"))) == BATCHES // PER_SEGMENT
    assert [offset for _, offset, _ in expected["times"]].count(-1) < 3
    return directory, expected


def files_of(directory: Path, kind: str) -> list[Path]:
    found = sorted((directory / "t-0").glob(f"*.{kind}"))
    assert len(found) >= BATCHES // PER_SEGMENT
    return found


def each(change: Callable[[Path], object]) -> Callable[[list[Path]], None]:
    def change_all(paths: list[Path]) -> None:
        for path in paths:
            change(path)

    return change_all


def swap(paths: list[Path]) -> None:
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, [*contents[1:], contents[0]], strict=True):
        path.write_bytes(content)


DAMAGES: dict[str, Callable[[list[Path]], None]] = {
    "deleted": each(Path.unlink),
    "empty": each(lambda path: path.write_bytes(b"")),
    "one byte": each(lambda path: path.write_bytes(path.read_bytes()[:1])),
    "zeros": each(lambda path: path.write_bytes(bytes(path.stat().st_size))),
    "swapped": swap,
}
UNSEEN = {("txnindex", "deleted"): "most segments have none", ("snapshot", "swapped"): "each is one that could be"}
"""What nothing shows where a broker was stopped in order, in Kafka neither."""


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", [*KINDS, "*index"])
def test_indexes_and_snapshots_are_made_again(
    left: tuple[Path, dict[str, Any]], tmp_path: Path, kind: str, damage: str, is_clean: bool
) -> None:
    """bitnami/bitnami-docker-kafka#34 "Kafka corrupted index", KAFKA-13603, KAFKA-4734: an end at the start, wrong
    answers by time, records of aborted transactions."""
    if (kind, damage) in UNSEEN:
        is_clean = False
    data = tmp_path / "data"
    shutil.copytree(left[0], data)
    DAMAGES[damage](files_of(data, kind))
    if not is_clean:
        (data / CLEAN).unlink()
        (data / "recovery-point-offset-checkpoint").unlink()

    async def scenario() -> None:
        async with open_room({**SETTINGS, "log.dirs": str(data)}) as room:
            assert await answers(room) == left[1]

    asyncio.run(scenario())


def is_marked(data: Path) -> bool:
    return (data / CLEAN).exists()


def test_the_mark_of_a_clean_stop_goes_before_anything_else(left: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """KAFKA-10471 "Mark broker crash during log loading as unclean shutdown", KAFKA-15375: a crash within a start,
    whose repairs were half done, counted as a clean stop. Here a start ends at each thing that it changes in turn."""
    cut_at = 0
    while True:
        data = tmp_path / str(cut_at)
        shutil.copytree(left[0], data)
        before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file() and path.name != ".lock"}
        faults = Faults(random.Random(cut_at), cut_at)
        manager = make_manager(data, filesystem=FaultyFileSystem(LocalFileSystem(), faults))
        try:
            manager.open()
            manager.load()
            manager.create(TopicPartition("t", 0), manager.partitions()[TopicPartition("t", 0)], LogConfig())
            manager.begin_append(TopicPartition("t", 0), make_batch(), leader_epoch=9)
        except PowerCut:
            pass
        for directory in manager.every_directory:
            directory.release()
        after = {path: path.read_bytes() for path in data.rglob("*") if path.is_file() and path.name != ".lock"}
        assert after == before or not is_marked(data), f"changed before the mark was gone, at {cut_at}"
        if not faults.is_cut:
            break
        cut_at += 1
    assert cut_at > 2
    assert not is_marked(data)


def test_a_torn_end_is_cut_though_the_stop_before_was_clean(tmp_path: Path) -> None:
    """KAFKA-10471: a clean stop, a start that is killed, and a power cut in the middle of a record."""
    data = tmp_path / "data"

    async def write(address: str) -> None:
        async with room_at(address) as room:
            await room.create("t")
            await room.append("t", b"0", b"1")

    async def read() -> None:
        async with open_room({**SETTINGS, "log.dirs": str(data)}) as room:
            assert await room.read_all("t") == [(0, b"0"), (1, b"1")]
            assert await room.append("t", b"2") == 2

    with started(data) as broker:
        asyncio.run(write(broker.address))
        broker.process.send_signal(TERM)
        assert broker.process.wait(SECONDS) == 0
    assert is_marked(data)
    with started(data) as broker:
        broker.process.send_signal(KILL)
        broker.process.wait(SECONDS)
    assert not is_marked(data)
    with (data / "t-0" / f"{0:020d}.log").open("ab") as file:
        file.write(batch(b"torn")[:-3])
    asyncio.run(read())


STRAYS: Final = (".tmp", ".swap", ".cleaned", ".deleted")


@pytest.mark.parametrize("damage", ["empty", "half", "stray"])
def test_no_small_file_costs_a_topic_in_silence(left: tuple[Path, dict[str, Any]], tmp_path: Path, damage: str) -> None:
    """KAFKA-16541 "potential leader-epoch checkpoint file corruption", KAFKA-12520 (files of a swap),
    strimzi/strimzi-kafka-operator#7484: a stack trace without a file's name, or a cluster that is empty."""
    names = [
        str(path.relative_to(left[0]))
        for path in left[0].rglob("*")
        if path.is_file() and path.suffix not in (".log", ".lock") and path.stat().st_size
    ]
    assert len(names) > 15
    refused = []
    for number, name in enumerate(sorted(names)):
        data = tmp_path / str(number)
        shutil.copytree(left[0], data)
        path = data / name
        if damage == "stray":
            for suffix in STRAYS:
                path.with_name(path.name + suffix).write_bytes(b"half of somet")
        else:
            path.chmod(0o600)
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 if damage == "half" else 0])

        async def scenario(data: Path) -> None:
            async with open_room({**SETTINGS, "log.dirs": str(data)}) as room:
                assert await room.bounds("t") == left[1]["bounds"], data
                assert len(await room.read_all("t")) == BATCHES + 2 * BATCHES // PER_SEGMENT

        try:
            asyncio.run(scenario(data))
        except StartError as error:
            assert path.name in str(error) or "__cluster_metadata-0" in str(error), (name, str(error))
            refused.append(path.name)
    assert set(refused) <= MAY_REFUSE, refused


MAY_REFUSE: Final = {
    "meta.properties",
    "quorum-state",
    f"{0:020d}-{0:010d}.checkpoint",
    "log-start-offset-checkpoint",
}
"""What cannot be made again from anything else."""
