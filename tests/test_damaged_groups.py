"""A broker whose `__consumer_offsets` has a damaged partition, asked over a socket: every API that names a group.

The answers are those of Apache Kafka 4.4.0, which was started on such a partition (a bit turned in a batch's length,
in a segment behind which others follow) and asked the same.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ottla.cli.storage import repair
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest
from ottla.protocol.schema import Message
from ottla.records.batch import split_batches
from ottla.testing.cluster import running_broker
from tests.wire import Peer, Room

LOST: Final = "g1"
LOST_TOO: Final = "g9"
"""Both live in partition 2 of 4; nobody ever spoke of the second one."""
FINE: Final = "g0"
SETTINGS: Final = {"offsets.topic.num.partitions": "4", "group.initial.rebalance.delay.ms": "0"}
NOT_COORDINATOR: Final = 16
COMMITS: Final = 5


def commit(group_id: str, offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    return OffsetCommitRequest(group_id=group_id, topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])])


async def committed(peer: Peer, group_id: str) -> tuple[int, list[int]]:
    """Return how OffsetFetch ends for a group, and its offsets."""
    answer = await peer.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)]), 9)
    (group,) = answer.groups
    return group.error_code, [row.committed_offset for topic in group.topics for row in topic.partitions]


async def listed(peer: Peer) -> tuple[int, list[str]]:
    answer = await peer.ask(ListGroupsRequest(), 5)
    return answer.error_code, sorted(group.group_id for group in answer.groups)


async def ask_all(peer: Peer, group_id: str) -> Mapping[str, Any]:
    """Return the error that each API gives for a group."""
    join = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    beat = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    delete = OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])
    one = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    members = [MemberIdentity(member_id="m")]
    on_top: Mapping[str, tuple[Message, int]] = {
        "JoinGroup": (join, 9),
        "SyncGroup": (SyncGroupRequest(group_id=group_id, generation_id=1, member_id="m"), 4),
        "Heartbeat": (HeartbeatRequest(group_id=group_id, generation_id=1, member_id="m"), 4),
        "LeaveGroup": (LeaveGroupRequest(group_id=group_id, members=members), 5),
        "LeaveGroup of one": (LeaveGroupRequest(group_id=group_id, member_id="m"), 1),
        "ConsumerGroupHeartbeat": (beat, 1),
        "OffsetFetch of one group": (OffsetFetchRequest(group_id=group_id, topics=[one]), 7),
        "OffsetDelete": (OffsetDeleteRequest(group_id=group_id, topics=[delete]), 0),
    }
    found = {name: (await peer.ask(*asked)).error_code for name, asked in on_top.items()}
    old = await peer.ask(OffsetFetchRequest(group_id=group_id, topics=[one]), 1)
    found["OffsetFetch before errors on top"] = old.topics[0].partitions[0].error_code
    found["OffsetFetch"] = (await committed(peer, group_id))[0]
    found["OffsetCommit"] = (await peer.ask(commit(group_id, 1), 8)).topics[0].partitions[0].error_code
    for version in (5, 6):
        described = await peer.ask(DescribeGroupsRequest(groups=[group_id]), version)
        found[f"DescribeGroups {version}"] = described.groups[0].error_code
    described = await peer.ask(ConsumerGroupDescribeRequest(group_ids=[group_id]), 1)
    found["ConsumerGroupDescribe"] = described.groups[0].error_code
    deleted = await peer.ask(DeleteGroupsRequest(groups_names=[group_id]), 2)
    found["DeleteGroups"] = deleted.results[0].error_code
    return found


async def fill(directory: Path) -> None:
    """Have two groups commit, in two partitions."""
    async with running_broker({**SETTINGS, "log.dirs": str(directory)}) as running:
        room = Room(running.address, await Peer.connect(running.address), running)
        await room.create("t")
        await room.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[LOST]), 4)
        for offset in range(COMMITS):
            for group_id in (LOST, FINE):
                answer = await room.ask(commit(group_id, offset), 8)
                assert answer.topics[0].partitions[0].error_code == 0
        assert await listed(room.peer) == (0, [FINE, LOST])
        await room.close()


def damage(log: Path) -> int:
    """Turn a bit in the second batch; returns where that begins."""
    data = bytearray(log.read_bytes())
    position = next(iter(split_batches(data))).size_in_bytes
    data[position + 50] ^= 1
    log.write_bytes(data)
    return position


def test_a_damaged_partition_of_offsets_costs_its_own_groups_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.run(fill(tmp_path))
    lost = tmp_path / "__consumer_offsets-2"
    whole = (lost / f"{0:020d}.log").read_bytes()
    position = damage(lost / f"{0:020d}.log")
    damaged = (lost / f"{0:020d}.log").read_bytes()

    async def use_the_rest() -> None:
        async with running_broker({**SETTINGS, "log.dirs": str(tmp_path)}) as running:
            peer = await Peer.connect(running.address)
            for group_id in (LOST, LOST_TOO):
                sought = await peer.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id]), 4)
                assert [(row.error_code, row.node_id) for row in sought.coordinators] == [(0, 1)]
                answers = await ask_all(peer, group_id)
                assert dict.fromkeys(answers, NOT_COORDINATOR) == answers
            assert await listed(peer) == (0, [FINE])
            assert await committed(peer, FINE) == (0, [COMMITS - 1])
            assert (await peer.ask(commit(FINE, COMMITS), 8)).topics[0].partitions[0].error_code == 0
            assert NOT_COORDINATOR not in (await ask_all(peer, FINE)).values()
            await peer.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(use_the_rest())
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"__consumer_offsets-2 cannot be loaded: {lost}/{0:020d}.log, byte {position}: ")
    assert [path.read_bytes() for path in lost.glob("*.log")] == [damaged]

    (lost / f"{0:020d}.log").write_bytes(whole)

    async def use_all() -> None:
        async with running_broker({**SETTINGS, "log.dirs": str(tmp_path)}) as running:
            peer = await Peer.connect(running.address)
            assert await committed(peer, LOST) == (0, [COMMITS - 1])
            assert (await peer.ask(commit(LOST, 9), 8)).topics[0].partitions[0].error_code == 0
            await peer.close()

    asyncio.run(use_all())


def test_a_repaired_partition_has_what_came_before_the_damage(tmp_path: Path) -> None:
    """What the line in the log says to do."""
    asyncio.run(fill(tmp_path))
    damage(tmp_path / "__consumer_offsets-2" / f"{0:020d}.log")
    told = CliRunner().invoke(repair, [str(tmp_path)])
    assert told.exit_code == 0, told.output

    async def use() -> None:
        async with running_broker({**SETTINGS, "log.dirs": str(tmp_path)}) as running:
            peer = await Peer.connect(running.address)
            assert await committed(peer, LOST) == (0, [0])
            assert await committed(peer, FINE) == (0, [COMMITS - 1])
            await peer.close()

    asyncio.run(use())


def test_a_partition_that_cannot_be_opened_costs_its_own_groups_alone(tmp_path: Path) -> None:
    asyncio.run(fill(tmp_path))
    log = tmp_path / "__consumer_offsets-2" / f"{0:020d}.log"
    log.unlink()
    log.mkdir()

    async def use() -> None:
        async with running_broker({**SETTINGS, "log.dirs": str(tmp_path)}) as running:
            peer = await Peer.connect(running.address)
            assert await committed(peer, LOST) == (NOT_COORDINATOR, [])
            assert await committed(peer, FINE) == (0, [COMMITS - 1])
            await peer.close()

    asyncio.run(use())
    shutil.rmtree(log)
