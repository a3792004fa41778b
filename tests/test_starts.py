"""Starts on damaged directories: what Apache Kafka did with each, and that we do as well or better.

`starts.json` names 39 changes of one directory that Kafka wrote, what Kafka 4.4.0 then did and what it served for the
partition `mixed-0`. A start may end with a refusal that names what is wrong and has changed nothing, never with a hang,
and never in a broker that has forgotten records without a word.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import socket
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from ottla.broker.metadata.records import FeatureLevelRecord, encode_record
from ottla.config.broker_config import BrokerConfig
from ottla.model import IsolationLevel, TopicPartition
from ottla.records.batch import split_batches
from ottla.records.builder import BatchBuilder
from ottla.server import METADATA_FORMAT_LEVEL, Server, StartError

GOLDEN = Path(__file__).parent / "golden" / "directories"
MIXED = TopicPartition("mixed", 0)
RECORDS = 92
RECORDS_OF_SPREAD = 10
TOPICS = 10
ANOTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


class Outcome(NamedTuple):
    """What came of a start: a refusal in one line, or what the broker serves for `mixed-0`."""

    refusal: str | None = None
    log_start_offset: int = -1
    high_watermark: int = -1
    records: int = -1
    topics: int = -1


class Start(NamedTuple):
    """One change, and what must come of it. `refusal` is a part of the line, None where the broker serves."""

    change: str
    make: Callable[[Path], object]
    refusal: str | None = None
    records: int = RECORDS
    settings: Mapping[str, str] = MappingProxyType({})
    why: str = ""
    """Why it is not what Kafka does, where it is not."""


def edit(name: str, change: Callable[[str], str]) -> Callable[[Path], object]:
    def make(directory: Path) -> object:
        path = directory / name
        return path.write_text(change(path.read_text()))

    return make


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda directory: (directory / name).write_text(text)


def delete(name: str) -> Callable[[Path], object]:
    def make(directory: Path) -> object:
        path = directory / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
        return path

    return make


def without_line(name: str, start: str) -> Callable[[Path], object]:
    return edit(name, lambda text: "".join(line for line in text.splitlines(True) if not line.startswith(start)))


def with_line(name: str, start: str, line: str) -> Callable[[Path], object]:
    return edit(name, lambda text: "\n".join(line if old.startswith(start) else old for old in text.splitlines()))


def flip(name: str, position: int) -> Callable[[Path], object]:
    def make(directory: Path) -> object:
        data = bytearray((directory / name).read_bytes())
        data[position if position >= 0 else len(data) // 2] ^= 1
        return (directory / name).write_bytes(data)

    return make


def cut(name: str, count: int) -> Callable[[Path], object]:
    def make(directory: Path) -> object:
        path = directory / name
        return path.write_bytes(path.read_bytes()[:-count])

    return make


def delete_side_files(directory: Path) -> None:
    for suffix in ("index", "timeindex", "snapshot"):
        for path in (directory / "mixed-0").glob(f"*.{suffix}"):
            path.unlink()


def copy_as_stranger(directory: Path) -> None:
    shutil.copytree(directory / "mixed-0", directory / "stranger-0")
    (directory / "stranger-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {ANOTHER_ID}")


def empty_newest_snapshot(directory: Path) -> None:
    max((directory / "mixed-0").glob("*.snapshot")).write_bytes(bytes(10))


def level_record(name: str, level: int) -> bytes:
    return encode_record(FeatureLevelRecord(name=name, feature_level=level), METADATA_FORMAT_LEVEL)


META, METADATA, RECOVERY = "meta.properties", "__cluster_metadata-0", "recovery-point-offset-checkpoint"
START_OFFSETS, WATERMARKS = "log-start-offset-checkpoint", "replication-offset-checkpoint"
CLEAN, QUORUM, EPOCHS = ".kafka_cleanshutdown", f"{METADATA}/quorum-state", "mixed-0/leader-epoch-checkpoint"
FIRST_LOG, FIRST_SNAPSHOT = "mixed-0/00000000000000000000.log", f"{METADATA}/{0:020d}-{0:010d}.checkpoint"
KEPT = "Kafka puts the records aside and serves none; nothing says that they are another topic's, so we keep them"
WASTED = "the log tells all of it, so it is made again"

STARTS = (
    Start("nothing changed", lambda _: None),
    Start("meta.properties deleted", delete(META), "meta.properties"),
    Start("meta.properties: cluster.id line removed", without_line(META, "cluster.id"), "cluster.id"),
    Start("meta.properties: another cluster.id", with_line(META, "cluster.id", f"cluster.id={ANOTHER_ID}")),
    Start("meta.properties: node.id=7", with_line(META, "node.id", "node.id=7"), "node 7"),
    Start("meta.properties: node.id line removed", without_line(META, "node.id"), "node.id"),
    Start("meta.properties: version=2", with_line(META, "version", "version=2"), "version 2"),
    Start("meta.properties: version=0", with_line(META, "version", "version=0"), "version 0"),
    Start("meta.properties: directory.id line removed", without_line(META, "directory.id"), "directory.id"),
    Start(
        "meta.properties: another directory.id",
        with_line(META, "directory.id", f"directory.id={ANOTHER_ID}"),
        "directory",
    ),
    Start(
        "mixed-0/partition.metadata: another topic id",
        write("mixed-0/partition.metadata", f"version: 0\ntopic_id: {ANOTHER_ID}"),
        records=0,
    ),
    Start(
        "mixed-0/partition.metadata: version: 1",
        edit("mixed-0/partition.metadata", lambda text: text.replace("version: 0", "version: 1")),
    ),
    Start("mixed-0/partition.metadata deleted", delete("mixed-0/partition.metadata"), why=KEPT),
    Start("an extra directory named foo (no partition number)", lambda directory: (directory / "foo").mkdir(), "foo"),
    Start("an extra directory named unknown-0, empty", lambda directory: (directory / "unknown-0").mkdir()),
    Start("an extra directory, copy of mixed-0 named stranger-0 with another topic id", copy_as_stranger),
    Start("directory mixed-0 deleted", delete("mixed-0"), records=0),
    Start("recovery-point-offset-checkpoint: garbage", write(RECOVERY, "garbage\n"), why=WASTED),
    Start("replication-offset-checkpoint: garbage", write(WATERMARKS, "garbage\n"), why=WASTED),
    Start("log-start-offset-checkpoint: garbage", write(START_OFFSETS, "garbage\n"), START_OFFSETS),
    Start("replication-offset-checkpoint deleted", delete(WATERMARKS)),
    Start("mixed-0/leader-epoch-checkpoint: garbage", write(EPOCHS, "garbage\n"), why=WASTED),
    Start(".kafka_cleanshutdown deleted", delete(CLEAN)),
    Start(".kafka_cleanshutdown: empty file", write(CLEAN, "")),
    Start(".kafka_cleanshutdown: brokerEpoch 1", write(CLEAN, '{"version":0,"brokerEpoch":1}')),
    Start("quorum-state deleted", delete(QUORUM)),
    Start("quorum-state: garbage", write(QUORUM, "garbage\n"), "quorum-state"),
    Start("__cluster_metadata-0 deleted", delete(METADATA), "metadata"),
    Start(
        "first checkpoint of __cluster_metadata-0 deleted (00000000000000000000-0000000000.checkpoint)",
        delete(FIRST_SNAPSHOT),
    ),
    Start(
        "metadata log: one bit turned at position 2000",
        flip(f"{METADATA}/{0:020d}.log", 2000),
        "__cluster_metadata-0",
        why="Kafka forgets all topics and puts their partitions aside",
    ),
    Start(
        "mixed-0 log: one bit turned in the middle, directory marked clean",
        flip(FIRST_LOG, -1),
        records=50,
        why="another bit was turned there; what lies before it is served, and the damaged batch as it is",
    ),
    Start("mixed-0 log: last 20 bytes cut off, directory marked clean", cut(FIRST_LOG, 20), records=89),
    Start("all .index, .timeindex and .snapshot files of mixed-0 deleted, directory marked clean", delete_side_files),
    Start(
        "mixed-0 .index: 13 bytes of garbage, directory marked clean",
        lambda directory: (directory / f"mixed-0/{0:020d}.index").write_bytes(b"\x17" * 13),
        why="Kafka serves nothing; " + WASTED,
    ),
    Start("mixed-0 newest .snapshot: zero bytes, directory marked clean", empty_newest_snapshot),
    Start("an extra file named foo in the log directory", write("foo", "foo")),
    Start(
        "an empty directory mixed-1.0123456789abcdef0123456789abcdef-delete",
        lambda directory: (directory / "mixed-1.0123456789abcdef0123456789abcdef-delete").mkdir(),
    ),
    Start("started with node.id=2", lambda _: None, "node 1", settings={"node.id": "2"}),
    Start(
        "started with a second, empty log.dirs entry",
        lambda directory: (directory.parent / "second").mkdir(),
        settings={"log.dirs": "kafka-logs,second"},
        why="a new directory beside known ones is formatted, as a new one alone is",
    ),
)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("plain")
    with tarfile.open(GOLDEN / "plain.tar.gz") as archive:
        archive.extractall(directory, filter="fully_trusted")
    return directory / "kafka-logs"


def recorded() -> dict[str, Any]:
    with gzip.open(GOLDEN / "starts.json.gz", "rt") as file:
        return {test["change"]: test for test in json.load(file)["tests"]}


async def start_on(directories: str, settings: dict[str, str]) -> Outcome:
    properties = {"node.id": "1", "listeners": "PLAINTEXT://127.0.0.1:0", "log.retention.ms": "-1", **settings}
    server = Server(BrokerConfig.from_properties({**properties, "log.dirs": directories}))
    try:
        await server.start()
    except StartError as refusal:
        return Outcome(str(refusal))
    try:
        return look(server)
    finally:
        await server.stop()


def look(server: Server) -> Outcome:
    """Read `mixed-0` to its end, or to the first batch that does not hold what it says."""
    partition = server.broker.partition(*MIXED)
    offsets = partition.offsets()
    offset, records = offsets.log_start_offset, 0
    is_good = True
    while offset < offsets.high_watermark and is_good:
        read = partition.read(offset, 1 << 20, IsolationLevel.READ_UNCOMMITTED, at_least_one_batch=True)
        data = b"".join(bytes(span) if isinstance(span, bytes | memoryview) else span.read() for span in read.spans)
        read.release()
        for batch in split_batches(data):
            is_good = is_good and batch.is_crc_valid()
            records += batch.count if is_good else 0
            offset = batch.next_offset
    topics = sum(not topic.name.startswith("__") for topic in server.broker.image.topics())
    return Outcome(None, offsets.log_start_offset, offsets.high_watermark, records, topics)


def files_of(directory: Path) -> dict[str, tuple[object, ...]]:
    """Every name but the locks' with what stands there, and with when it, or what is known of it, last changed.

    Of Kafka's preallocated indexes, 10 MB of zeros each, the times and the number of blocks on disk have to do.
    """
    found: dict[str, tuple[object, ...]] = {}
    for path in directory.rglob("*"):
        facts = path.stat()
        if path.is_dir():
            found[str(path)] = ()
        elif path.name != ".lock":
            content = path.read_bytes() if facts.st_size < 1 << 20 else facts.st_blocks
            found[str(path)] = (content, facts.st_size, facts.st_mode, facts.st_mtime_ns, facts.st_ctime_ns)
    return found


def test_every_recorded_change_is_here() -> None:
    assert [start.change for start in STARTS] == list(recorded())


@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.change.replace(" ", "-")[:60])
def test_start(start: Start, plain: Path, tmp_path: Path) -> None:
    shutil.copytree(plain, tmp_path / "kafka-logs")
    start.make(tmp_path / "kafka-logs")
    before = files_of(tmp_path)
    settings = dict(start.settings)
    names = settings.pop("log.dirs", "kafka-logs").split(",")

    outcome = asyncio.run(start_on(",".join(str(tmp_path / name) for name in names), settings))

    if start.refusal is not None:
        assert outcome.refusal is not None
        assert start.refusal in outcome.refusal
        assert "\n" not in outcome.refusal
        assert files_of(tmp_path) == before
        return
    assert outcome.refusal is None
    assert (outcome.records, outcome.topics) == (start.records, TOPICS)
    kafka = recorded()[start.change]
    if not start.why:
        facts = kafka["mixed-0"]
        assert (outcome.log_start_offset, outcome.high_watermark, outcome.records) == (
            facts["log_start_offset"],
            facts["high_watermark"],
            facts["records_read"],
        )


def test_a_start_that_finds_its_port_in_use_changes_nothing(plain: Path, tmp_path: Path) -> None:
    """Least of all the clean-shutdown file, without which the next start reads through all logs."""
    shutil.copytree(plain, tmp_path / "kafka-logs")
    before = files_of(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listeners = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        outcome = asyncio.run(start_on(str(tmp_path / "kafka-logs"), {"listeners": listeners}))
    assert outcome.refusal is not None
    assert "in use" in outcome.refusal
    assert files_of(tmp_path) == before


LOST_ID = "e9DP0G7_t8bGsID21HTWlg"
SPREAD = TopicPartition("spread", 2)


def empty(directory: Path) -> None:
    shutil.rmtree(directory)
    directory.mkdir()


def take_the_place(directory: Path) -> None:
    """What the refusal says to do where a disk is lost for good."""
    empty(directory)
    lines = (directory.parent / "kafka-logs-1" / META).read_text().splitlines()
    text = "\n".join(f"directory.id={LOST_ID}" if line.startswith("directory.id") else line for line in lines)
    (directory / META).write_text(text)


@pytest.mark.parametrize(
    ("change", "names", "refusal"),
    [
        (lambda _: None, "kafka-logs-1,kafka-logs-2", None),
        (empty, "kafka-logs-1,kafka-logs-2", f"directory.id={LOST_ID} is not there, and 9 partitions"),
        (shutil.rmtree, "kafka-logs-1,kafka-logs-2", f"directory.id={LOST_ID} is not there"),
        (lambda _: None, "kafka-logs-1", f"directory.id={LOST_ID} is not there"),
        (take_the_place, "kafka-logs-1,kafka-logs-2", None),
        (
            lambda second: shutil.copytree(second.parent / f"kafka-logs-1/{SPREAD}", second / f"{SPREAD}"),
            "kafka-logs-1,kafka-logs-2",
            f"{SPREAD} lies in both",
        ),
    ],
    ids=["both", "not mounted", "no folder", "not named", "in place of the lost one", "a partition in both"],
)
def test_a_start_with_one_directory_of_two(
    tmp_path: Path, change: Callable[[Path], object], names: str, refusal: str | None
) -> None:
    """A disk that is not mounted must not be taken for one that is empty. Kafka refuses an empty directory, too, and a
    partition that lies in both; of a directory that is not named any more it serves nothing."""
    with tarfile.open(GOLDEN / "multi-dir.tar.gz") as archive:
        archive.extractall(tmp_path, filter="fully_trusted")
    change(tmp_path / "kafka-logs-2")
    before = files_of(tmp_path)

    async def start() -> str | int:
        directories = ",".join(str(tmp_path / name) for name in names.split(","))
        properties = {"node.id": "1", "listeners": "PLAINTEXT://127.0.0.1:0", "log.retention.ms": "-1"}
        server = Server(BrokerConfig.from_properties({**properties, "log.dirs": directories}))
        try:
            await server.start()
        except StartError as error:
            return str(error)
        try:
            return server.broker.partition(*SPREAD).offsets().high_watermark
        finally:
            await server.stop()

    outcome = asyncio.run(start())
    if refusal is None:
        assert outcome == RECORDS_OF_SPREAD
    else:
        assert refusal in str(outcome)
        after = files_of(tmp_path)
        after.pop(str(tmp_path / "kafka-logs-2"), None)
        before.pop(str(tmp_path / "kafka-logs-2"), None)
        assert after == before


REFUSED_RECORDS = {
    "an unknown type": (bytes([1, 99, 0]), "type 99, version 0"),
    "an unknown version": (bytes([1, 2, 9]), "type 2, version 9"),
    "a newer metadata.version": (level_record("metadata.version", 34), "metadata.version"),
    "a newer group.version": (level_record("group.version", 2), "group.version"),
    "an unknown feature": (level_record("brand.new.version", 1), "brand.new.version"),
}


def append_metadata(directory: Path, record: bytes) -> None:
    """Have one more whole batch in the metadata log, such as a newer broker would have written."""
    log = directory / METADATA / f"{0:020d}.log"
    *_, last = split_batches(log.read_bytes())
    builder = BatchBuilder(base_offset=last.next_offset, leader_epoch=last.partition_leader_epoch)
    builder.append(last.max_timestamp, None, record)
    with log.open("ab") as file:
        file.write(builder.build())


@pytest.mark.parametrize("record", REFUSED_RECORDS)
@pytest.mark.parametrize("case", ["plain", "unclean"])
def test_metadata_of_a_newer_broker_is_refused_and_nothing_is_changed(case: str, record: str, tmp_path: Path) -> None:
    with tarfile.open(GOLDEN / f"{case}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="fully_trusted")
    directory = tmp_path / "kafka-logs"
    assert (directory / CLEAN).exists() == (case == "plain")
    data, refusal = REFUSED_RECORDS[record]
    append_metadata(directory, data)
    before = files_of(tmp_path)

    outcome = asyncio.run(start_on(str(directory), {}))

    assert outcome.refusal is not None
    assert refusal in outcome.refusal
    assert "\n" not in outcome.refusal
    assert files_of(tmp_path) == before


def test_a_new_directory_beside_metadata_that_is_refused_is_not_formatted(plain: Path, tmp_path: Path) -> None:
    shutil.copytree(plain, tmp_path / "kafka-logs")
    (tmp_path / "second").mkdir()
    append_metadata(tmp_path / "kafka-logs", bytes([1, 99, 0]))
    before = files_of(tmp_path)

    outcome = asyncio.run(start_on(f"{tmp_path}/kafka-logs,{tmp_path}/second", {}))

    assert outcome.refusal is not None
    assert files_of(tmp_path) == before
