"""A directory that is served read-only: all of it can be read, nothing of it is changed, and who tries is told."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.read_only import refuse_change
from ottla.config.broker_config import BrokerConfig
from ottla.errors import UnknownTopicOrPartition
from ottla.model import OFFSETS_TOPIC, TopicPartition
from ottla.protocol.messages import (
    alter_client_quotas,
    alter_configs,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    incremental_alter_configs,
    offset_delete,
    update_features,
)
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.protocol.messages.fetch import PartitionData
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.schema import Message
from ottla.records.crc32c import crc32c
from ottla.server import Server, StartError
from ottla.testing.clock import ManualClock
from ottla.testing.cluster import running_broker
from tests.group_wire import Member, commit, committed, find_coordinator, subscription, sync_all
from tests.process import READY, SECONDS, TERM, refused, started
from tests.storage.harness import GOLDEN
from tests.storage.test_directories import ADOPTED, CASES, digest, expectation, log_directories, partitions_of
from tests.wire import Room, batch, batches_of, room_at

REFUSED = refuse_change().code


def unpack(case: str, directory: Path) -> list[Path]:
    with tarfile.open(GOLDEN / "directories" / f"{case}.tar.gz") as archive:
        archive.extractall(directory, filter="fully_trusted")
    return log_directories(directory)


def state_of(directory: Path) -> dict[str, tuple[object, ...]]:
    """Every name with what stands in it, and with all its times but the one at which it was last read.

    Of Kafka's preallocated indexes, 10 MB of zeros each, the number of blocks on disk has to do.
    """
    found: dict[str, tuple[object, ...]] = {}
    for path in [directory, *directory.rglob("*")]:
        facts = path.stat()
        content = crc32c(path.read_bytes()) if path.is_file() and facts.st_size < 1 << 20 else facts.st_blocks
        found[str(path)] = (content, facts.st_size, facts.st_mode, facts.st_mtime_ns, facts.st_ctime_ns)
    return found


@asynccontextmanager
async def served(directories: list[Path], **settings: str) -> AsyncIterator[Room]:
    properties = {"log.dirs": ",".join(map(str, directories)), "listeners": "PLAINTEXT://127.0.0.1:0", **settings}
    server = Server(BrokerConfig.from_properties(properties), is_read_only=True)
    await server.start()
    try:
        async with room_at(server.address) as room:
            yield room
    finally:
        await server.stop()


async def read_records(room: Room, topic: str, number: int, position: int) -> list[tuple[int, str | None]]:
    found: list[tuple[int, str | None]] = []
    while True:
        row: PartitionData = await room.fetch(topic, position, partition=number)
        assert row.error_code == 0, (topic, number, position, row.error_code)
        batches = batches_of(row)
        if not batches:
            return found
        found += [
            (record.offset, digest(record.value))
            for one in batches
            if not one.is_control
            for record in one.records()
            if record.offset >= position
        ]
        position = batches[-1].next_offset


async def check_offsets(room: Room, case: str, expected: dict[str, Any]) -> None:
    """Earliest and latest offset of every partition, for readers of either isolation."""
    for name, answers in expected["list_offsets"].items():
        topic, _, number = name.rpartition("-")
        if (case, TopicPartition(topic, int(number))) in ADOPTED:
            continue
        for asked, isolation_level in (("-2", 0), ("-1", 0), ("-1_read_committed", 1)):
            timestamp = int(asked.removesuffix("_read_committed"))
            found = await room.list_offset(topic, timestamp, partition=int(number), isolation_level=isolation_level)
            assert asked not in answers or found.offset == answers[asked][0], (name, asked)


async def sizes_by_directory(room: Room) -> dict[str, dict[str, int]]:
    """Bytes of every partition, by the last name of its directory."""
    answer = await room.ask(DescribeLogDirsRequest(topics=None), 4)
    return {
        Path(directory.log_dir).name: {
            f"{topic.name}-{one.partition_index}": one.partition_size
            for topic in directory.topics
            for one in topic.partitions
        }
        for directory in answer.results
    }


def expected_sizes(expected: dict[str, Any]) -> dict[str, dict[str, int]]:
    (directories,) = expected["log_dirs"].values()
    return {Path(path).name: sizes for path, sizes in directories.items()}


@pytest.mark.parametrize("case", CASES)
def test_what_kafka_left_is_served_and_not_changed(case: str, tmp_path: Path) -> None:
    """Also where it was not stopped in order, or is damaged: what recovery does, it does in memory."""
    directories = unpack(case, tmp_path)
    expected, before = expectation(case), state_of(tmp_path)

    async def scenario() -> None:
        async with served(directories, **{"log.retention.ms": "1000"}) as room:
            for partition, _, facts in partitions_of(expected):
                if (case, partition) in ADOPTED or partition.topic.startswith("__"):
                    continue
                start, end = await room.bounds(*partition)
                assert (start, end) == (facts["log_start_offset"], facts["high_watermark"]), partition
                records = [(row["o"], row.get("v_sha256", row.get("v"))) for row in facts["records"]]
                assert await read_records(room, *partition, start) == records, partition
            await check_offsets(room, case, expected)
            adopted = {str(partition) for of_case, partition in ADOPTED if of_case == case}
            for path, sizes in (await sizes_by_directory(room)).items():
                other = set(sizes.items()) ^ set(expected_sizes(expected)[path].items())
                assert {name for name, _ in other} == adopted, path

    asyncio.run(scenario())
    assert state_of(tmp_path) == before


def test_what_ottla_left_when_it_was_killed_is_served_and_not_changed(tmp_path: Path) -> None:
    with started(tmp_path) as broker:

        async def produce() -> None:
            async with room_at(broker.address) as room:
                await room.create("t")
                await room.append("t", b"1", b"2")

        asyncio.run(produce())
    before = state_of(tmp_path)

    async def scenario() -> None:
        async with served([tmp_path]) as room:
            assert await room.read_all("t") == [(0, b"1"), (1, b"2")]

    asyncio.run(scenario())
    assert state_of(tmp_path) == before
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


def codes(answer: Message) -> set[int]:
    """Every error code in an answer."""
    return {int(code) for code in re.findall(r"error_code=(-?[0-9]+)", repr(answer))}


TOPIC, GROUP = "orders", "c-simple"
AT_TOPIC = 2
SET = 0
CHANGES: dict[str, tuple[int, Message]] = {
    "CreateTopics": (
        7,
        create_topics.CreateTopicsRequest(
            topics=[create_topics.CreatableTopic(name="new", num_partitions=1, replication_factor=1)], timeout_ms=1000
        ),
    ),
    "DeleteTopics": (
        6,
        delete_topics.DeleteTopicsRequest(topics=[delete_topics.DeleteTopicState(name=TOPIC)], timeout_ms=1000),
    ),
    "CreatePartitions": (
        3,
        create_partitions.CreatePartitionsRequest(
            topics=[create_partitions.CreatePartitionsTopic(name=TOPIC, count=9, assignments=None)], timeout_ms=1000
        ),
    ),
    "DeleteRecords": (
        2,
        delete_records.DeleteRecordsRequest(
            topics=[
                delete_records.DeleteRecordsTopic(
                    name=TOPIC, partitions=[delete_records.DeleteRecordsPartition(partition_index=0, offset=1)]
                )
            ]
        ),
    ),
    "AlterConfigs": (
        2,
        alter_configs.AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(
                    resource_type=AT_TOPIC,
                    resource_name=TOPIC,
                    configs=[alter_configs.AlterableConfig(name="retention.ms", value="1")],
                )
            ]
        ),
    ),
    "IncrementalAlterConfigs": (
        1,
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=AT_TOPIC,
                    resource_name=TOPIC,
                    configs=[
                        incremental_alter_configs.AlterableConfig(name="retention.ms", config_operation=SET, value="1")
                    ],
                )
            ]
        ),
    ),
    "AlterClientQuotas": (
        1,
        alter_client_quotas.AlterClientQuotasRequest(
            entries=[
                alter_client_quotas.AlterClientQuotasRequestEntryData(
                    entity=[alter_client_quotas.EntityData(entity_type="user", entity_name="u")],
                    ops=[alter_client_quotas.OpData(key="producer_byte_rate", value=1.0)],
                )
            ]
        ),
    ),
    "AlterUserScramCredentials": (
        0,
        alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            upsertions=[
                alter_user_scram_credentials.ScramCredentialUpsertion(
                    name="u", mechanism=1, iterations=8192, salt=b"salt", salted_password=bytes(32)
                )
            ]
        ),
    ),
    "UpdateFeatures": (
        1,
        update_features.UpdateFeaturesRequest(
            feature_updates=[
                update_features.FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
            ]
        ),
    ),
    "AlterReplicaLogDirs": (
        2,
        alter_replica_log_dirs.AlterReplicaLogDirsRequest(
            dirs=[
                alter_replica_log_dirs.AlterReplicaLogDir(
                    path="/elsewhere",
                    topics=[alter_replica_log_dirs.AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])],
                )
            ]
        ),
    ),
    "OffsetDelete": (
        0,
        offset_delete.OffsetDeleteRequest(
            group_id=GROUP,
            topics=[
                offset_delete.OffsetDeleteRequestTopic(
                    name=TOPIC, partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=0)]
                )
            ],
        ),
    ),
    "DeleteGroups": (2, delete_groups.DeleteGroupsRequest(groups_names=[GROUP])),
}


def test_every_change_is_refused_for_good(tmp_path: Path) -> None:
    directories = unpack("groups", tmp_path)
    before = state_of(tmp_path)

    async def scenario() -> None:
        async with served(directories) as room:
            for name, (version, request) in CHANGES.items():
                assert codes(await room.ask(request, version)) - {0} == {REFUSED}, name
            assert await commit(room.peer, GROUP, TOPIC, 0, 1) == REFUSED
            assert await committed(room.peer, GROUP, TOPIC) == 8
            assert (await room.bounds(TOPIC))[0] == 0

    asyncio.run(scenario())
    assert state_of(tmp_path) == before


def test_producers_are_refused_with_words(tmp_path: Path) -> None:
    """An idempotent one, too, which first of all asks for an id: it gets one, or it would not get as far."""
    directories = unpack("groups", tmp_path)

    async def scenario() -> None:
        async with served(directories, **{"ottla.flush.policy": "os"}) as room:
            end = (await room.bounds(TOPIC))[1]
            given = await room.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
            assert given.error_code == 0
            for records in (batch(b"1"), batch(b"1", producer=(given.producer_id, given.producer_epoch, 0))):
                for acks in (-1, 1):
                    row = await room.produce(TOPIC, records, acks=acks)
                    assert (row.error_code, row.error_message) == (REFUSED, refuse_change().message)
            assert (await room.bounds(TOPIC))[1] == end
            row = await room.produce(OFFSETS_TOPIC, batch(b"1", keys=[b"k"]))
            assert row.error_code != 0

    asyncio.run(scenario())


def test_members_join_and_read_and_may_not_commit(tmp_path: Path) -> None:
    """Of a classic group that Kafka kept offsets of. Its members are in memory, its offsets stay as they are."""
    directories = unpack("groups", tmp_path)

    async def scenario() -> None:
        async with served(directories, **{"group.initial.rebalance.delay.ms": "0"}) as room:
            member = await Member.connect(room, group_id=GROUP, protocols=[("range", subscription(TOPIC))])
            assert await member.join() == 0
            assert (await sync_all(member)) == [member.member_id.encode()]
            assert await member.heartbeat() == 0
            assert await committed(room.peer, GROUP, TOPIC) == 8
            assert await member.commit(TOPIC, 0, 9) == REFUSED
            assert await member.heartbeat() == 0
            assert await member.leave() == 0

    asyncio.run(scenario())


def test_groups_without_a_topic_of_theirs_are_served_from_memory(tmp_path: Path) -> None:
    async def prepare() -> None:
        async with running_broker({"log.dirs": str(tmp_path)}) as running, room_at(running.address) as room:
            await room.create("t")
            await room.append("t", b"1")

    asyncio.run(prepare())
    before = state_of(tmp_path)

    async def scenario() -> None:
        async with served([tmp_path], **{"group.initial.rebalance.delay.ms": "0"}) as room:
            answer = await room.ask(MetadataRequest(topics=[MetadataRequestTopic(name="unknown")]), 12)
            assert [row.error_code for row in answer.topics] == [UnknownTopicOrPartition.code]
            await find_coordinator(room)
            member = await Member.connect(room)
            assert await member.join() == 0

    asyncio.run(scenario())
    assert state_of(tmp_path) == before


def test_committed_offsets_do_not_expire(tmp_path: Path) -> None:
    directories = unpack("groups", tmp_path)
    clock = ManualClock(expectation("groups")["as_of_ms"])

    async def scenario() -> None:
        config = BrokerConfig.from_properties(
            {
                "log.dirs": str(directories[0]),
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "offsets.retention.minutes": "1",
                "offsets.retention.check.interval.ms": "1000",
            }
        )
        server = Server(config, clock=clock, is_read_only=True)
        await server.start()
        for _ in range(10):
            clock.advance(3600)
            server.timers.run_due(clock.monotonic())
        async with room_at(server.address) as room:
            assert await committed(room.peer, GROUP, TOPIC) == 8
        await server.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize("what", ["nothing", "an empty directory", "no metadata log"])
def test_where_there_is_nothing_to_serve_nothing_is_made(what: str, tmp_path: Path) -> None:
    directory = tmp_path / "data"
    if what != "nothing":
        directory.mkdir()
    if what == "no metadata log":
        (directory / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    before = state_of(tmp_path)

    async def scenario() -> None:
        with pytest.raises(
            StartError, match="there is no directory" if what == "nothing" else "nothing to serve read-only"
        ):
            async with served([directory]):
                pass

    asyncio.run(scenario())
    assert state_of(tmp_path) == before


def test_readers_share_a_directory_that_nobody_writes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_broker({"log.dirs": str(tmp_path)}):
            with pytest.raises(StartError, match="in use by another broker"):
                async with served([tmp_path]):
                    pass
        async with served([tmp_path]), served([tmp_path]):
            with pytest.raises(StartError, match="in use by another broker"):
                async with running_broker({"log.dirs": str(tmp_path)}):
                    pass
        async with running_broker({"log.dirs": str(tmp_path)}):
            pass

    asyncio.run(scenario())


def test_the_command_takes_the_node_id_from_the_directory(tmp_path: Path) -> None:
    async def prepare() -> None:
        settings = {"log.dirs": str(tmp_path / "data"), "node.id": "7"}
        async with running_broker(settings) as running, room_at(running.address) as room:
            await room.create("t")
            await room.append("t", b"1")

    asyncio.run(prepare())
    before = state_of(tmp_path)

    async def read(address: str) -> list[tuple[int, bytes | None]]:
        async with room_at(address) as room:
            return await room.read_all("t")

    arguments = [sys.executable, "-m", "ottla.cli.main", "serve", "--listen", "127.0.0.1:0"]
    arguments += ["--read-only", str(tmp_path / "data")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix(READY).strip()
        assert asyncio.run(read(address)) == [(0, b"1")]
        process.send_signal(TERM)
        assert process.wait(SECONDS) == 0
    assert state_of(tmp_path) == before
    code, said = refused([*arguments, "-o", "node.id=3"])
    assert (code, "belongs to node 7" in said) == (1, True)
